"""The state of a run while it is planned: scopes, which are graphs under way, and the activations of nodes in them.

The run itself is a scope; so is each sub-workflow. Nothing here decides anything: `planner` does.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from msgspec import Struct

from comity.core.workflow.graph import Graph, GraphNode


class State(IntEnum):
    """How far a node is, in this turn of its loops."""

    IDLE = 0
    ACTIVE = 1
    DONE = 2
    SKIPPED = 3


class Role(IntEnum):
    """What a number that the planner gave out stands for."""

    STEP = 0
    QUESTION = 1
    DUE = 2  # of a question or an event
    PAUSE = 3  # before another attempt
    DELAY = 4  # of a wait node
    EVENT = 5
    UNDO = 6
    UNDO_PAUSE = 7


class LoopState(Struct, gc=False):
    """One loop under way."""

    left: int  # nodes of its body that have not settled in this turn
    turn: int = 1
    is_open: bool = True
    repeats: bool = False
    counts: dict[int, int] | None = None  # how often each closing edge was taken
    deferred: dict[int, bool] | None = None  # edges that leave it, until it is over
    instruction: str = ""
    error: dict[str, Any] | None = None


class Undo(Struct, frozen=True, gc=False):
    """What takes a completed node back, ready to be called."""

    place: str
    node: str
    agent: str
    capability: str
    inputs: Any
    message: str = ""


class Ending(Struct, gc=False):
    """Why a scope stops: what runs is awaited, then it is taken back, then it has ended."""

    status: str  # completed, failed, cancelled
    response: dict[str, Any]
    undoes: bool


class Scope(Struct, eq=False):
    """A graph under way."""

    graph: Graph
    path: str  # before the names of its nodes: `` for the run itself
    above: Activity | None  # the activation of the node that runs it
    variables: dict[str, Any]
    edges: list[bool | None]
    pending: list[int]  # incoming edges of each node that have not settled
    taken: list[int]
    states: list[State]
    loops: list[LoopState]
    active: dict[Activity, None]
    undo: list[Undo]
    errors: dict[int, dict[str, Any]]  # by node: what led to it over an error edge
    warnings: list[str]
    abandoned: set[int]  # nodes that a join which fired did without
    queued: int = 0  # things to be done for it in this event
    confidence: float | None = None
    ending: Ending | None = None
    undoing: Undo | None = None
    undo_attempts: int = 0
    undo_failures: list[str] | None = None
    last: GraphNode | None = None  # the latest node that gave a result
    steps: int = 0  # of a sub-workflow: counted as those of the run are
    calls: int = 0
    tokens: int = 0
    sizes: dict[int, int] | None = None  # by node: about how many bytes the value has that its mapping made
    held: int = 0  # the sum of them


class Each(Struct, eq=False):
    """A map under way."""

    items: list[Any]
    replies: list[dict[str, Any] | None]
    next: int = 0
    running: int = 0
    failed: int = 0
    is_stopped: bool = False
    first_error: dict[str, Any] | None = None


class Activity(Struct, eq=False):
    """One activation of a node, or one item of its map."""

    scope: Scope
    node: GraphNode
    place: str
    numbers: dict[int, Role]  # what it waits for
    attempt: int = 1
    asked: int = 0  # questions that the agent asked
    question: str = ""
    answer: Any = None
    instruction: str = ""
    each: Each | None = None  # of a map
    item_of: Activity | None = None  # the map it is an item of
    index: int = -1
    below: Scope | None = None
    items: dict[Activity, None] | None = None
    is_abandoned: bool = False  # a join that fired does without it


Mailbox = list[tuple[str, Any]]


def new_scope(graph: Graph, path: str, above: Activity | None, data: Any, run: dict[str, Any]) -> Scope:
    """Return a graph of which nothing has happened yet."""
    return Scope(
        graph,
        path,
        above,
        {"input": data, "run": run},
        [None] * len(graph.edges),
        graph.pending.copy(),
        [0] * len(graph.nodes),
        [State.IDLE] * len(graph.nodes),
        [LoopState(len(loop.body)) for loop in graph.loops],
        {},
        [],
        {},
        [],
        set(),
    )
