"""A workflow definition as values: nodes, edges, limits. `document` is the same definition as the plain JSON it came from."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

START: Final = "start"
END: Final = "end"
# Names that conditions and mappings give a meaning of their own; no node may be called so.
RESERVED: Final = frozenset({
    START, END, "input", "run", "item", "index", "error", "response", "event",
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop",
    "package", "namespace", "return", "var", "void", "while", "type", "int", "uint", "double", "bool", "string", "bytes",
    "list", "map", "null_type",
})  # fmt: skip
NODES_MAX: Final = 1_000
EDGES_MAX: Final = 5_000
MAP_ITEMS_MAX: Final = 10_000
QUESTIONS_MAX: Final = 5  # rounds of clarification that one activation of a node may ask for

DEFAULT_STEPS_MAX: Final = 1_000
DEFAULT_RUNTIME_MS: Final = 30 * 86_400_000
DEFAULT_CALLS_MAX: Final = 100_000


class Kind(StrEnum):
    """What a node does; the values are the verbs of the file."""

    CALL = "call"  # a capability of an agent; an agent with a model has the capability `message`
    RUN = "run"  # another workflow, as a part of this run
    AGGREGATE = "aggregate"
    ASK = "ask"  # a person
    WAIT = "wait"  # for a time or an event
    SET = "set"  # data made by mapping alone
    DECIDE = "decide"  # the first edge whose condition holds
    JOIN = "join"
    FINISH = "end"  # the whole run


class On(StrEnum):
    """When an edge without a condition is taken."""

    SUCCESS = "success"  # success and partial
    ERROR = "error"
    RETRY = "retry"  # the reply sent the work back with an instruction
    ALWAYS = "always"


class Retry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How often a failed node is tried again; `on` lists error codes, and empty means each retryable error."""

    max: int = 0
    on: tuple[str, ...] = ()
    backoff_ms: int = 1_000
    factor: float = 2.0
    backoff_ms_max: int = 60_000
    instruct: bool = False  # the error's message goes to the agent as its instruction

    def pause_ms(self, failures: int) -> int:
        """Return the pause before the attempt that follows this number of failures."""
        return int(min(self.backoff_ms * self.factor ** (failures - 1), self.backoff_ms_max))


class Call(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is called. `agent` may be `agent/key`, and the key may hold templates."""

    agent: str
    capability: str
    input: Any = None
    message: Any = ""
    objective: str = ""


class Each(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A map over a list: at most `concurrency` items at a time, up to `tolerate` of them may fail."""

    over: Any
    concurrency: int = 10
    tolerate: int = 0


class Ask(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A question to a person."""

    text: Any
    options: tuple[Any, ...] = ()
    answer_schema: dict[str, Any] | None = None
    default: Any = None
    has_default: bool = False


class Wait(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A wait for a duration, until a time, or for an event."""

    delay_ms: int | None = None
    until: Any = None
    event: str = ""
    match: str = ""


class Aggregate(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the replies of other nodes become one."""

    strategy: str
    of: tuple[str, ...] = ()
    options: dict[str, Any] = {}


class Finish(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a run ends at an `end` node."""

    status: Literal["success", "failure"] = "success"
    message: Any = ""


class Node(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One node. Exactly the field of its kind is set, beside what every node may have."""

    name: str
    kind: Kind
    call: Call | None = None
    workflow: str = ""
    input: Any = None  # of a sub-workflow
    ask: Ask | None = None
    wait: Wait | None = None
    aggregate: Aggregate | None = None
    finish: Finish | None = None
    data: Any = None  # of `set`, and the value a `decide` node shows
    each: Each | None = None
    join: Literal["all", "any"] | int = "all"
    when: str = ""
    route: Literal["all", "first"] = "all"
    dynamic: bool = False  # `next_step_hint` may choose among the targets of its edges
    timeout_ms: int | None = None
    retry: Retry = Retry()
    undo: Call | None = None
    output: Any = None
    has_output: bool = False
    output_schema: dict[str, Any] | None = None
    description: str = ""


class Edge(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One edge. With `max` it may close a loop, at most `max` times."""

    id: str
    source: str
    target: str
    when: str = ""
    on: On = On.SUCCESS
    is_else: bool = False
    max: int | None = None


class RunLimits(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one run may use. A run is no call: it may take weeks and many thousand steps, and has limits of its own."""

    steps_max: int = DEFAULT_STEPS_MAX
    calls_max: int = DEFAULT_CALLS_MAX
    tokens_max: int | None = None
    cost_max: float | None = None
    prompt_cost: float = 0.0  # of a million prompt tokens
    completion_cost: float = 0.0
    runtime_ms: int = DEFAULT_RUNTIME_MS


class Definition(Struct, frozen=True, kw_only=True):
    """A workflow. Equal documents are equal definitions."""

    name: str
    version: str
    document: dict[str, Any]
    nodes: dict[str, Node]
    edges: tuple[Edge, ...]
    description: str = ""
    triggers: tuple[str, ...] = ()
    input_schema: dict[str, Any] | None = None
    output: Any = None
    has_output: bool = False
    output_schema: dict[str, Any] | None = None
    limits: RunLimits = RunLimits()

    @property
    def uses(self) -> tuple[str, ...]:
        """The names of the workflows it runs as parts of itself."""
        return tuple(dict.fromkeys(node.workflow for node in self.nodes.values() if node.kind is Kind.RUN))


def content_hash(document: Any) -> str:
    """Return the identity of a definition: the same for the same content, in whatever order its keys stand."""
    return hashlib.sha256(msgspec.json.encode(document, order="deterministic")).hexdigest()
