"""A definition as arrays the planner walks: nodes and edges by number, conditions and templates compiled, loops found.

Edges with `max` close loops. Without them the graph must have no cycle; a loop's body is every node between the target and the
source of its closing edges. `start` is node 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import jsonschema_rs
from msgspec import Struct

from comity.core.expression import Expression
from comity.core.workflow.mapping import Render, compiled
from comity.core.workflow.model import END, START, Call, Definition, Edge, Kind, Node, On

TO_END: Final = -1
# When an edge is taken, and what a node does, as numbers: looking an enum's member up costs as much as the decision.
CONDITION, OTHERWISE, SUCCESS, ERROR, RETRY, ALWAYS = range(6)
_MODES: Final = {On.SUCCESS: SUCCESS, On.ERROR: ERROR, On.RETRY: RETRY, On.ALWAYS: ALWAYS}
WORKS: Final = frozenset({Kind.CALL, Kind.RUN})
_SILENT: Final = frozenset({Kind.SET, Kind.DECIDE, Kind.JOIN, Kind.WAIT})


class GraphEdge(Struct, eq=False):
    """An edge between two numbers; `exits` are the loops it leaves, innermost first."""

    number: int
    spec: Edge
    source: int
    target: int
    condition: Expression | None
    mode: int = 0
    loop: int | None = None  # that it closes
    exits: tuple[int, ...] = ()


class Rendered(Struct, eq=False):
    """A call with its templates compiled; None where there is nothing to fill in."""

    spec: Call
    agent: Render | None
    input: Render | None
    message: Render | None
    is_fixed: bool  # whom it calls is known, and it has no message


class GraphNode(Struct, eq=False):
    """A node with its edges, and everything about it that is compiled."""

    number: int
    spec: Node
    name: str = ""
    incoming: tuple[int, ...] = ()  # without those that close loops
    outgoing: tuple[int, ...] = ()
    loops: tuple[int, ...] = ()  # it is in, innermost first
    absorbed: bool = False  # its failure is left to the joins behind it
    region: frozenset[int] = frozenset()  # of a join that may fire early: nodes that lead nowhere else
    hints: frozenset[str] = frozenset()
    when: Expression | None = None
    call: Rendered | None = None
    undo: Rendered | None = None
    text: Render | None = None  # of a question, a message or the time to wait for
    value: Render | None = None  # of `set`, `decide`, the options of an aggregate, the input of a sub-workflow
    over: Render | None = None
    output: Render | None = None
    default: Render | None = None
    match: Expression | None = None
    validator: Any = None  # of response.data
    works: bool = False  # makes calls
    is_call: bool = False
    is_silent: bool = False  # says nothing about the outcome
    is_plain: bool = False  # neither maps its output nor checks it nor has to be undone
    joins_all: bool = True
    is_through: bool = False  # one edge leads on, and it is taken if the node did its work
    onward: GraphEdge | None = None  # that edge, where neither end is in a loop
    again: GraphEdge | None = None  # that runs it once more by itself, and beside which no other edge is taken
    is_last: bool = False  # no edge leads on, and it is in no loop
    is_single: bool = False  # one call, no list of them
    is_straight: bool = False  # such a call to which one edge leads and which has no condition of its own


class Loop(Struct, eq=False):
    """Nodes that are run again together, from `header` on."""

    number: int
    header: int
    body: tuple[int, ...]
    inner: tuple[int, ...] = ()  # loops inside it
    outer: tuple[int, ...] = ()
    edges: tuple[int, ...] = ()  # inside the body, without those that close it


class Graph(Struct, eq=False):
    """One definition, compiled."""

    definition: Definition
    nodes: list[GraphNode]
    edges: list[GraphEdge]
    loops: list[Loop]
    pending: list[int]  # incoming edges of each node
    begins: tuple[GraphEdge, ...]  # the edges from `start`, if each is always taken and leads to a straight call; else none
    output: Render | None
    input_validator: Any
    output_validator: Any


class Program(Struct, frozen=True):
    """A definition and the workflows it runs as parts, all compiled and pinned together."""

    graph: Graph
    parts: dict[str, Graph]
    hash: str = ""


def compile_program(definition: Definition, library: Mapping[str, Definition] | None = None, content_hash: str = "") -> Program:
    """Compile a definition and every workflow that it or they name. Raises `KeyError` for a name that is not in the library."""
    parts: dict[str, Graph] = {}
    waiting = list(definition.uses)
    while waiting:
        name = waiting.pop()
        if name not in parts:
            part = (library or {})[name]
            parts[name] = compile_graph(part)
            waiting += part.uses
    return Program(compile_graph(definition), parts, content_hash)


def compile_graph(definition: Definition) -> Graph:
    """Compile one definition, which `check` has found sound."""
    numbers = {START: 0, **{name: place for place, name in enumerate(definition.nodes, 1)}, END: TO_END}
    nodes = [GraphNode(0, Node(name=START, kind=Kind.SET), START)]
    nodes += [_node(number, node) for number, node in enumerate(definition.nodes.values(), 1)]
    specs = [*_from_start(definition), *definition.edges]
    edges = [
        GraphEdge(
            number,
            edge,
            numbers[edge.source],
            numbers[edge.target],
            Expression(edge.when) if edge.when else None,
            CONDITION if edge.when else OTHERWISE if edge.is_else else _MODES[edge.on],
        )
        for number, edge in enumerate(specs)
    ]
    loops = _loops(nodes, edges)
    for node in nodes:
        outgoing = [edge for edge in edges if edge.source == node.number]
        # Last, whatever the file says: whether it is taken depends on the others.
        node.outgoing = tuple(edge.number for edge in sorted(outgoing, key=lambda one: one.spec.is_else))
        node.incoming = tuple(edge.number for edge in edges if edge.target == node.number and edge.loop is None)
        node.hints = frozenset(edge.spec.target for edge in outgoing) if node.spec.dynamic else frozenset()
        node.absorbed = bool(outgoing) and all(
            edge.target != TO_END and nodes[edge.target].spec.join != "all" and edge.loop is None for edge in outgoing
        )
        node.is_through = len(outgoing) == 1 and outgoing[0].mode == SUCCESS and outgoing[0].loop is None
        node.loops = tuple(loop.number for loop in sorted(loops, key=lambda one: len(one.body)) if node.number in loop.body)
    for edge in edges:
        if edge.loop is None:
            inside = set() if edge.target == TO_END else set(nodes[edge.target].loops)
            edge.exits = tuple(loop for loop in nodes[edge.source].loops if loop not in inside)
    for node in nodes:
        if node.spec.join != "all" and len(node.incoming) > 1:
            node.region = _region(node.number, nodes, edges)
        node.is_last = not node.outgoing and not node.loops
        node.is_straight = node.is_single and node.when is None and node.joins_all and len(node.incoming) == 1
        if node.is_through and not node.loops and (edge := edges[node.outgoing[0]]).target != TO_END:
            node.onward = None if nodes[edge.target].loops else edge
        node.again = _again(node, [edges[number] for number in node.outgoing], loops)
    begins = tuple(edges[number] for number in nodes[0].outgoing)
    is_plain = all(one.mode == ALWAYS and one.target != TO_END and nodes[one.target].is_straight for one in begins)
    return Graph(
        definition,
        nodes,
        edges,
        loops,
        [len(node.incoming) for node in nodes],
        begins if is_plain else (),
        compiled(definition.output),
        _validator(definition.input_schema),
        _validator(definition.output_schema),
    )


def _again(node: GraphNode, outgoing: list[GraphEdge], loops: list[Loop]) -> GraphEdge | None:
    """Return the edge from a call to itself, if it is the first one and no other edge is taken when it is."""
    is_alone = node.is_single and node.is_plain and node.when is None and not node.hints and len(node.loops) == 1
    if not is_alone or loops[node.loops[0]].body != (node.number,):
        return None
    edge, *others = outgoing
    is_only = node.spec.route == "first" or all(one.mode in {OTHERWISE, ERROR, RETRY} for one in others)
    return (
        edge
        if edge.loop is not None and is_only and edge.mode in {CONDITION, SUCCESS} and edge.spec.on is not On.RETRY
        else None
    )


def forward(definition: Definition) -> dict[str, list[str]]:
    """Return the targets of every node's edges that close no loop."""
    found: dict[str, list[str]] = {START: [], **{name: [] for name in definition.nodes}}
    for edge in [*_from_start(definition), *definition.edges]:
        if edge.max is None and edge.target != END:
            found[edge.source].append(edge.target)
    return found


def reachable(begin: Iterable[str], targets: Mapping[str, list[str]]) -> set[str]:
    """Return the nodes one can get to."""
    found: set[str] = set()
    waiting = list(begin)
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += targets.get(one, ())
    return found


def _from_start(definition: Definition) -> list[Edge]:
    """Return the edges from `start` to the nodes that no other edge leads to; none where the definition has its own."""
    if any(edge.source == START for edge in definition.edges):
        return []
    led_to = {edge.target for edge in definition.edges if edge.max is None}
    return [
        Edge(id=f"{START}-{name}", source=START, target=name, on=On.ALWAYS) for name in definition.nodes if name not in led_to
    ]


def _node(number: int, spec: Node) -> GraphNode:
    node = GraphNode(number, spec, spec.name)
    node.works, node.is_call, node.is_silent = spec.kind in WORKS, spec.kind is Kind.CALL, spec.kind in _SILENT
    node.is_plain = not spec.has_output and spec.output_schema is None and spec.undo is None
    node.is_single = node.is_call and spec.each is None
    node.joins_all = spec.join == "all"
    node.when = Expression(spec.when) if spec.when else None
    node.call = None if spec.call is None else _rendered(spec.call)
    node.undo = None if spec.undo is None else _rendered(spec.undo)
    node.over = None if spec.each is None else compiled(spec.each.over)
    node.output = compiled(spec.output)
    node.validator = _validator(spec.output_schema)
    match spec.kind:
        case Kind.ASK:
            assert spec.ask is not None
            node.text, node.default = compiled(spec.ask.text), compiled(spec.ask.default)
            node.value = compiled(list(spec.ask.options))
            node.validator = _validator(spec.ask.answer_schema)
        case Kind.WAIT:
            assert spec.wait is not None
            node.text = compiled(spec.wait.until)
            node.match = Expression(spec.wait.match) if spec.wait.match else None
        case Kind.SET | Kind.DECIDE:
            node.value = compiled(spec.data)
        case Kind.RUN:
            node.value = compiled(spec.input)
        case Kind.AGGREGATE:
            assert spec.aggregate is not None
            node.value = compiled(spec.aggregate.options)
        case Kind.FINISH:
            assert spec.finish is not None
            node.text = compiled(spec.finish.message)
    return node


def _rendered(call: Call) -> Rendered:
    agent = compiled(call.agent)
    return Rendered(call, agent, compiled(call.input), compiled(call.message), agent is None and call.message == "")


def _validator(schema: dict[str, Any] | None) -> Any:
    return None if schema is None else jsonschema_rs.validator_for(schema)


def _loops(nodes: list[GraphNode], edges: list[GraphEdge]) -> list[Loop]:
    """Return the loops, one per header, and mark the edges that close them."""
    closing: dict[int, list[GraphEdge]] = {}
    for edge in edges:
        if edge.spec.max is not None and edge.target != TO_END:
            closing.setdefault(edge.target, []).append(edge)
    onward = _table(nodes, ((edge.source, edge.target) for edge in edges if edge.spec.max is None))
    back = _table(nodes, ((edge.target, edge.source) for edge in edges if edge.spec.max is None and edge.target != TO_END))
    loops: list[Loop] = []
    for header, ends in closing.items():
        after = _reached([header], lambda one: onward[one])
        before = _reached([edge.source for edge in ends], lambda one: back[one])
        body = tuple(sorted(after & before))
        loop = Loop(len(loops), header, body)
        loop.edges = tuple(
            edge.number for edge in edges if edge.spec.max is None and edge.source in body and edge.target in body
        )
        loops.append(loop)
        for edge in ends:
            edge.loop = loop.number
    for loop in loops:
        bodies = {one.number: set(one.body) for one in loops if one is not loop}
        loop.inner = tuple(number for number, body in bodies.items() if body < set(loop.body))
        loop.outer = tuple(number for number, body in bodies.items() if body > set(loop.body))
    return loops


def _region(join: int, nodes: list[GraphNode], edges: list[GraphEdge]) -> frozenset[int]:
    """Return the nodes whose every way leads to a join: what they do matters to it alone."""
    back = _table(nodes, ((edge.target, edge.source) for edge in edges if edge.loop is None and edge.target != TO_END))
    before = _reached([edges[number].source for number in nodes[join].incoming], lambda one: back[one])
    elsewhere = {one for one in before if not nodes[one].outgoing}
    changed = True
    while changed:
        changed = False
        for one in before - elsewhere:
            targets = [edges[number].target for number in nodes[one].outgoing]
            if any(target != join and (target not in before or target in elsewhere) for target in targets):
                elsewhere.add(one)
                changed = True
    return frozenset(before - elsewhere - {0})


def _table(nodes: list[GraphNode], pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    table: list[list[int]] = [[] for _ in nodes]
    for one, other in pairs:
        if other != TO_END:
            table[one].append(other)
    return table


def _reached(begin: list[int], onward: Callable[[int], list[int]]) -> set[int]:
    found: set[int] = set()
    waiting = list(begin)
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += onward(one)
    return found
