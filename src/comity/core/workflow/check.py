"""The checks of a definition beyond its form: the graph, the agents it calls, and every path and type of its mappings.

`check` finds all mistakes at once. It needs a catalog of agents to judge calls, and the other workflows to judge sub-workflows;
without them it judges what it can.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from itertools import combinations
from typing import Any, Final, NamedTuple

import jsonschema_rs

from comity.core.expression import Expression
from comity.core.expression.ast import Call as CallTree
from comity.core.expression.ast import Has, Literal, Name, Select, walk
from comity.core.expression.ast import Node as Tree
from comity.core.orchestration.aggregate import OPTIONS
from comity.core.workflow.graph import forward, reachable
from comity.core.workflow.mapping import Path, Template, is_whole, shown_path, templates_of
from comity.core.workflow.model import END, START, Ask, Call, Definition, Edge, Kind, Node
from comity.core.workflow.read import read_in_part
from comity.core.workflow.source import Mistake, Source, of_document, read_source, shown
from comity.core.workflow.types import ERROR, RUN, enum_of, fits, response_schema, schemas_at, type_of, types_of

Schema = dict[str, Any]
_EXCLUSIVE_MAX: Final = 12  # incoming edges of a join whose combinations are tried
_SPECIAL: Final = frozenset({"input", "run", "error", "response", "item", "index", "event"})


class Offer(NamedTuple):
    """What a capability takes and gives; None where nothing is declared."""

    inputs: Schema | None
    outputs: Schema | None


Catalog = Mapping[str, Mapping[str, Offer]]  # capabilities by agent, aliases included


def check_text(
    text: str,
    catalog: Catalog | None = None,
    library: Mapping[str, Definition] | None = None,
    strategies: Iterable[str] | None = None,
) -> list[Mistake]:
    """Return every mistake of a YAML or JSON definition, in the order of the text."""
    source = read_source(text)
    definition, mistakes = read_in_part(source)
    if definition is None:
        return mistakes
    if mistakes:  # what follows from the graph cannot be judged; whom it calls can
        return sorted({*mistakes, *_unknown_callees(definition, source, catalog)})
    return check(definition, source, catalog, library, strategies)


def _unknown_callees(definition: Definition, source: Source, catalog: Catalog | None) -> Iterator[Mistake]:
    """Yield the calls of agents and capabilities that the catalog does not have."""
    for node in definition.nodes.values():
        path = ("nodes", node.name)
        for call, at in ((node.call, path), (node.undo, (*path, "undo"))):
            if call is not None and (message := _unknown_callee(call, catalog)):
                line, column = source.place((*at, "call"))
                yield Mistake(line, column, shown((*at, "call")), message)


def _unknown_callee(call: Call, catalog: Catalog | None) -> str:
    """Return what is wrong with whom a call names; nothing if a catalog has it, or there is none."""
    if catalog is None:
        return ""
    agent = call.agent.partition("/")[0]
    offers = catalog.get(agent)
    if offers is None:
        return f"there is no agent `{agent}`{_near(agent, catalog)}"
    if call.capability not in offers:
        return f"agent {agent} has no capability `{call.capability}`{_near(call.capability, offers)}"
    return ""


def check(
    definition: Definition,
    source: Source | None = None,
    catalog: Catalog | None = None,
    library: Mapping[str, Definition] | None = None,
    strategies: Iterable[str] | None = None,
) -> list[Mistake]:
    """Return every mistake of a definition whose form is sound."""
    return _Check(definition, source or of_document(definition.document), catalog, library, strategies).run()


class _Check:
    """One check of one definition."""

    def __init__(
        self,
        definition: Definition,
        source: Source,
        catalog: Catalog | None,
        library: Mapping[str, Definition] | None,
        strategies: Iterable[str] | None,
    ) -> None:
        self._definition = definition
        self._source = source
        self._catalog = catalog
        self._library = library
        self._strategies = None if strategies is None else sorted(strategies)
        self._mistakes: list[Mistake] = []
        self._targets = forward(definition)
        self._before = self._ancestors()
        self._schemas: dict[str, Schema] = {}

    def run(self) -> list[Mistake]:
        """Return the mistakes."""
        if self._check_cycles():  # what comes after needs an order
            self._check_reach()
            self._check_joins()
            for node in self._definition.nodes.values():
                self._check_node(node)
            for place, edge in enumerate(self._definition.edges):
                self._check_edge(place, edge)
            self._check_templates(self._definition.output, ("output",), None)
        return sorted(set(self._mistakes))

    def _wrong(self, path: Path, message: str) -> None:
        line, column = self._source.place(path)
        self._mistakes.append(Mistake(line, column, shown(path), message))

    def _edge_path(self, place: int) -> Path:
        edge = self._definition.edges[place]
        written = self._definition.document.get("edges") or []
        short = len(self._definition.edges) - len(written)
        if place < short:
            return ("nodes", edge.target, "after")
        return ("edges", place - short)

    # --- the graph ---

    def _ancestors(self) -> dict[str, set[str]]:
        """Return, for every node, the nodes that may have run before it: also those of an earlier turn of its loops."""
        back: dict[str, list[str]] = {}
        for edge in self._definition.edges:
            back.setdefault(edge.target, []).append(edge.source)
        return {name: reachable(back.get(name, ()), back) for name in (*self._definition.nodes, END)}

    def _check_cycles(self) -> bool:
        """Note cycles that no edge bounds, and bounds on edges that close none; return whether there is an order."""
        is_ordered = True
        for cycle in _cycles(self._targets):
            is_ordered = False
            closing = (cycle[-2], cycle[-1])
            place = next(
                place
                for place, edge in enumerate(self._definition.edges)
                if (edge.source, edge.target) == closing and edge.max is None
            )
            what = f"the cycle {' → '.join(cycle)} has no bound; give the edge that closes it `max`"
            self._wrong(self._edge_path(place), what)
        for place, edge in enumerate(self._definition.edges):
            if edge.max is not None and edge.source not in reachable([edge.target], self._targets):
                what = f"`max` bounds a loop, and this edge closes none: nothing leads from {edge.target} to {edge.source}"
                self._wrong((*self._edge_path(place), "max"), what)
                is_ordered = False
        return is_ordered

    def _check_reach(self) -> None:
        ends = {name for name, node in self._definition.nodes.items() if node.kind is Kind.FINISH}
        targets = {name: [] if name in ends else onward for name, onward in self._targets.items()}
        found = reachable([START], targets)
        for name in self._definition.nodes:
            if name not in found:
                self._wrong(("nodes", name), "nothing leads to it; add an edge, or `after`")
        for place, edge in enumerate(self._definition.edges):
            if edge.source in ends:
                self._wrong(self._edge_path(place), f"{edge.source} ends the run, so that this edge is never taken")

    def _check_joins(self) -> None:
        for name, node in self._definition.nodes.items():
            path = ("nodes", name, "join")
            incoming = [edge for edge in self._definition.edges if edge.target == name and edge.max is None]
            if not isinstance(node.join, int):
                continue
            if node.join > len(incoming):
                self._wrong(path, f"waits for {node.join} edges, and {len(incoming)} lead to it: it never fires")
            elif len(incoming) <= _EXCLUSIVE_MAX and node.join > (most := self._most_taken(incoming)):
                self._wrong(path, f"waits for {node.join} edges, and at most {most} can be taken together: it never fires")

    def _most_taken(self, incoming: list[Edge]) -> int:
        """Return how many of these edges can be taken in one turn: of those behind different edges of a decision, one."""
        needs = [{edge.id, *self._needed(edge.source)} for edge in incoming]
        first = {name for name, node in self._definition.nodes.items() if node.route == "first"}
        rivals = [{edge.id for edge in self._definition.edges if edge.source == name} for name in first]

        def exclude(one: set[str], other: set[str]) -> bool:
            return any((one & rival) and (other & rival) and (one & rival) != (other & rival) for rival in rivals)

        for size in range(len(incoming), 1, -1):
            for chosen in combinations(needs, size):
                if not any(exclude(one, other) for one, other in combinations(chosen, 2)):
                    return size
        return 1

    def _needed(self, name: str) -> set[str]:
        """Return the ids of the edges without which a node is not reached."""
        needed = set()
        for edge in self._definition.edges:
            targets: dict[str, list[str]] = {source: [] for source in self._targets}
            for other in self._definition.edges:
                if other.id != edge.id and other.max is None and other.target != END:
                    targets[other.source].append(other.target)
            starts = [one for one in self._targets[START] if one != edge.target or edge.source != START]
            if name not in reachable(starts, targets):
                needed.add(edge.id)
        return needed

    # --- nodes ---

    def _check_node(self, node: Node) -> None:
        path = ("nodes", node.name)
        if node.call is not None:
            self._check_call(node, node.call, path)
        if node.undo is not None:
            self._check_call(node, node.undo, (*path, "undo"))
        if node.when:
            self._check_condition(node.when, (*path, "when"), node, None)
        if node.each is not None:
            self._check_over(node, path)
        for field, value in (("ask", node.ask and node.ask.text), ("output", node.output)):
            self._check_templates(value, (*path, field), node)
        if node.kind in {Kind.SET, Kind.DECIDE}:
            self._check_templates(node.data, (*path, node.kind.value), node)
        if node.wait is not None:
            self._check_templates(node.wait.until, (*path, "wait", "until"), node)
            if node.wait.match:
                self._check_condition(node.wait.match, (*path, "wait", "match"), node, None)
        if node.aggregate is not None:
            self._check_aggregate(node, path)
        if node.ask is not None and node.ask.has_default and node.ask.options:
            self._check_default(node.ask, (*path, "default"))
        if node.kind is Kind.RUN:
            self._check_run(node, path)

    def _check_call(self, node: Node, call: Call, path: Path) -> None:
        for field in ("input", "message"):
            self._check_templates(getattr(call, field), (*path, field), node, is_undo=path[-1] == "undo")
        if self._catalog is None:
            return
        if message := _unknown_callee(call, self._catalog):
            self._wrong((*path, "call"), message)
            return
        agent = call.agent.partition("/")[0]
        offer = self._catalog[agent][call.capability]
        if offer.inputs is not None:
            self._check_inputs(call.input, offer.inputs, (*path, "input"), node, f"{agent}/{call.capability}")

    def _check_inputs(self, given: Any, schema: Schema, path: Path, node: Node, whose: str) -> None:
        """Check a mapping against the schema of what takes it."""
        given = {} if given is None else given
        properties = schema.get("properties") or {}
        for name in schema.get("required") or ():
            if name not in given:
                self._wrong(path, f"{whose} needs the input `{name}`")
        for name, value in given.items():
            if name not in properties:
                if schema.get("additionalProperties") is False:
                    self._wrong((*path, name), f"{whose} has no input `{name}`{_near(name, properties)}")
                continue
            self._check_value(value, schema, name, (*path, name), node, whose)

    def _check_value(self, value: Any, schema: Schema, name: str, path: Path, node: Node, whose: str) -> None:
        wanted = types_of(schemas_at(schema, (name,)))
        template = is_whole(value) if isinstance(value, str) else None
        if template is not None:
            given = self._type_of(template, node)
            if not fits(given, wanted):
                have, want = " or ".join(sorted(given or ())), " or ".join(sorted(wanted or ()))
                self._wrong(path, f"{{{{{template.text}}}}} is {have}, and `{name}` of {whose} is {want}")
        elif not any(templates_of(value)):
            below = {**schema.get("properties", {})[name], "$defs": schema.get("$defs", {})}
            error = next(iter(jsonschema_rs.validator_for(below).iter_errors(value)), None)
            if error is not None:
                self._wrong(path, f"`{name}` of {whose}: {error.message}")
        elif not fits(frozenset({type_of(value)}), wanted):
            self._wrong(path, f"is {type_of(value)}, and `{name}` of {whose} is {' or '.join(sorted(wanted or ()))}")

    def _check_over(self, node: Node, path: Path) -> None:
        assert node.each is not None
        self._check_templates(node.each.over, (*path, "map", "over"), node, is_over=True)
        template = is_whole(node.each.over) if isinstance(node.each.over, str) else None
        if template is not None and not fits(self._type_of(template, node), frozenset({"array"})):
            self._wrong((*path, "map", "over"), f"{{{{{template.text}}}}} is no list")

    def _check_aggregate(self, node: Node, path: Path) -> None:
        assert node.aggregate is not None
        strategy = node.aggregate.strategy
        if self._strategies is not None and strategy not in self._strategies:
            self._wrong((*path, "aggregate"), f"there is no strategy `{strategy}`{_near(strategy, self._strategies)}")
        known = OPTIONS.get(strategy, node.aggregate.options)  # a strategy of the node's own takes what it likes
        for name in node.aggregate.options:
            if name not in known:
                self._wrong((*path, "aggregate", name), f"`{strategy}` has no option `{name}`{_near(name, known)}")
        for place, name in enumerate(node.aggregate.of):
            if name not in self._definition.nodes:
                self._wrong(
                    (*path, "aggregate", "of", place), f"there is no node `{name}`{_near(name, self._definition.nodes)}"
                )
            elif name not in self._before[node.name]:
                self._wrong((*path, "aggregate", "of", place), f"{name} does not run before {node.name}")
        self._check_templates(node.aggregate.options, (*path, "aggregate"), node)

    def _check_default(self, ask: Ask, path: Path) -> None:
        is_known = not any(True for _ in templates_of([ask.default, *ask.options]))
        if is_known and ask.default not in ask.options:
            options = [str(one) for one in ask.options]
            near = _near(str(ask.default), options)
            self._wrong(path, f"`{ask.default}` is none of the options {', '.join(options)}{near}")

    def _check_run(self, node: Node, path: Path) -> None:
        self._check_templates(node.input, (*path, "input"), node)
        if self._library is None:
            return
        part = self._library.get(node.workflow)
        if part is None:
            self._wrong((*path, "run"), f"there is no workflow `{node.workflow}`{_near(node.workflow, self._library)}")
            return
        if self._definition.name in _parts(part, self._library):
            self._wrong((*path, "run"), f"workflow {node.workflow} runs {self._definition.name} again: this would never end")
        if part.input_schema is not None:
            self._check_inputs(node.input, part.input_schema, (*path, "input"), node, f"workflow {node.workflow}")

    # --- edges and conditions ---

    def _check_edge(self, place: int, edge: Edge) -> None:
        if edge.when:
            self._check_condition(edge.when, (*self._edge_path(place), "when"), None, edge)

    def _check_condition(self, text: str, path: Path, node: Node | None, edge: Edge | None) -> None:
        expression = Expression(text)
        before = self._before[node.name] if node is not None else self._before.get(edge.source, set()) | {edge.source}  # type: ignore[union-attr]
        at = edge.source if edge is not None else None
        for name in sorted(expression.names):
            self._check_name(name, path, before, text)
        for one in walk(expression.tree):
            found = _path_of(one)
            if found is not None and len(found) > 1:
                self._check_path(found, path, at, f"`{text}`")
            if isinstance(one, CallTree) and one.function in {"==", "!="}:
                self._check_equality(one, path, at, text)

    def _check_equality(self, one: CallTree, path: Path, at: str | None, text: str) -> None:
        """Note a comparison with a value that the schema rules out."""
        for side, other in (one.arguments, reversed(one.arguments)):
            found = _path_of(side)
            if found is None or not isinstance(other, Literal):
                continue
            schemas = self._at(found, at)
            values = enum_of(schemas)
            if values is not None and other.value not in values:
                said = f"it is one of {', '.join(map(str, values))}"
                self._wrong(path, f"{shown_path(found)} is never {other.value!r} in `{text}`: {said}")
            elif not fits(frozenset({type_of(other.value)}), types_of(schemas)) and schemas:
                kinds = " or ".join(sorted(types_of(schemas) or ()))
                self._wrong(path, f"{shown_path(found)} is {kinds}, never {other.value!r}, in `{text}`")

    def _check_name(self, name: str, path: Path, before: set[str], text: str) -> None:
        if name in _SPECIAL:
            return
        if name not in self._definition.nodes:
            near = _near(name, [*self._definition.nodes, *_SPECIAL])
            self._wrong(path, f"there is no node `{name}`, which `{text}` reads{near}")
        elif name not in before:
            self._wrong(path, f"{name} does not run before this, and `{text}` reads it")

    def _check_templates(
        self, value: Any, path: Path, node: Node | None, *, is_over: bool = False, is_undo: bool = False
    ) -> None:
        before = set(self._definition.nodes) if node is None else self._before[node.name]
        if is_undo or (node is not None and path[-1] == "output"):
            before = before | ({node.name} if node is not None else set())
        for where, template in templates_of(value, path):
            for name in sorted(template.names):
                if name in {"item", "index"} and (node is None or node.each is None or is_over):
                    self._wrong(where, f"{{{{{template.text}}}}} reads `{name}`, which only a node with `map` has")
                self._check_name(name, where, before, f"{{{{{template.text}}}}}")
            if template.path is not None and template.path[0] in {*self._definition.nodes, "input", "run", "error"}:
                self._check_path(template.path, where, None, f"{{{{{template.text}}}}}", has_default=template.has_default)

    def _check_path(self, path: Path, where: Path, at: str | None, text: str, *, has_default: bool = False) -> None:
        schemas = self._at(path, at)
        if schemas == [] and not has_default:
            for length in range(2, len(path) + 1):
                if self._at(path[:length], at) == []:
                    self._wrong(where, f"{shown_path(path[:length])} does not exist, and {text} reads it")
                    return

    # --- types ---

    def _at(self, path: Path, at: str | None) -> list[Schema] | None:
        """Return the schemas of what a path reads; `at` is the node whose response `response` is."""
        first = path[0]
        match first:
            case "input":
                schema: Schema | None = self._definition.input_schema
            case "run":
                schema = RUN
            case "error":
                schema = ERROR
            case "response":
                schema = None if at is None else self._response(at)
            case _:
                schema = self._response(str(first)) if first in self._definition.nodes else None
        return None if schema is None else schemas_at(schema, path[1:])

    def _response(self, name: str) -> Schema | None:
        if name == START:
            return response_schema(self._definition.input_schema)
        if name not in self._schemas:
            self._schemas[name] = response_schema(self._data(self._definition.nodes[name]))
        return self._schemas[name]

    def _data(self, node: Node) -> Schema | None:
        """Return the schema of a node's data, as far as it is known."""
        found = node.output_schema
        if found is None and node.has_output:
            return None
        if found is None and node.kind is Kind.ASK:
            answer = (node.ask and node.ask.answer_schema) or {}
            return {
                "type": "object",
                "properties": {"answer": answer, "by": {"type": "string"}, "defaulted": {"type": "boolean"}},
            }
        if found is None and node.call is not None and self._catalog is not None:
            offer = self._catalog.get(node.call.agent.partition("/")[0], {}).get(node.call.capability)
            found = None if offer is None else offer.outputs
        if found is None and node.kind is Kind.RUN and self._library is not None and node.workflow in self._library:
            found = self._library[node.workflow].output_schema
        if node.each is not None and node.output_schema is None:
            return {"type": "array", "items": found or {}, "$defs": (found or {}).get("$defs", {})}
        return found

    def _type_of(self, template: Template, node: Node) -> frozenset[str] | None:
        if template.is_json:
            return frozenset({"string"})
        if template.path is None or template.has_default:
            return None
        if template.path[0] == "item" and node.each is not None and len(template.path) == 1:
            over = is_whole(node.each.over) if isinstance(node.each.over, str) else None
            schemas = None if over is None or over.path is None else self._at((*over.path, 0), None)
            return types_of(schemas)
        if template.path[0] == "index":
            return frozenset({"integer"})
        found = self._at(template.path, None)
        return types_of(found) or None


def _cycles(targets: Mapping[str, list[str]]) -> Iterator[list[str]]:
    """Yield one cycle for each part of the graph that has one."""
    done: set[str] = set()
    for begin in targets:
        trail: list[str] = []
        waiting: list[tuple[str, Iterator[str]]] = []
        name: str | None = begin
        while True:
            if name is not None and name not in done:
                if name in trail:
                    cycle = [*trail[trail.index(name) :], name]
                    yield cycle
                    done.update(cycle)
                    return
                trail.append(name)
                waiting.append((name, iter(targets[name])))
            if not waiting:
                break
            name = next(waiting[-1][1], None)
            if name is None:
                done.add(waiting.pop()[0])
                trail.pop()


def _parts(definition: Definition, library: Mapping[str, Definition]) -> set[str]:
    """Return the names of the workflow and of all that it runs."""
    found: set[str] = set()
    waiting = [definition.name]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += library[name].uses if name in library else ()
    return found


def _path_of(tree: Tree) -> Path | None:
    """Return the path that a part of an expression is, if it is one."""
    steps: list[str] = []
    if isinstance(tree, Has):
        return None  # asks whether it exists
    while isinstance(tree, Select) and not tree.is_optional:
        steps.append(tree.field)
        tree = tree.operand
    return (tree.name, *reversed(steps)) if isinstance(tree, Name) else None


def _near(name: str, names: Iterable[str]) -> str:
    near = get_close_matches(name, list(names), n=1)
    return f"; did you mean `{near[0]}`?" if near else ""
