"""Why a run went the way it did: each edge of a node, whether it was taken, on what values, and what had to differ."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any, Final

from msgspec import Struct

from comity.core.expression import EvaluationError, Expression, bounded
from comity.core.expression.ast import Call, Literal, Name, Node, Select, children
from comity.core.expression.compile import compiled
from comity.core.workflow.graph import GraphEdge, GraphNode, Program
from comity.core.workflow.history import Event
from comity.core.workflow.mapping import shown_path
from comity.core.workflow.planner import Planner
from comity.core.workflow.scope import Scope

_PARTS_MAX: Final = 10
_OPPOSITE: Final = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_MISSING: Final = object()


class Part(Struct, frozen=True):
    """One comparison of a condition: its text, what it read, and whether it held; None if it could not be decided."""

    text: str
    reads: dict[str, Any]
    held: bool | None
    needs: str  # what must be so for it to come out the other way


class Decision(Struct, frozen=True):
    """One edge of a node, as it was decided."""

    place: str
    node: str
    edge: str
    target: str
    taken: bool
    reason: str
    condition: str = ""
    parts: tuple[Part, ...] = ()
    differ: tuple[str, ...] = ()  # the fewest changes that would have turned it round

    def __str__(self) -> str:
        """Return the decision in one sentence."""
        verdict = "taken" if self.taken else "not taken"
        change = (
            f"; it would have been {'left' if self.taken else 'taken'} if {' and '.join(self.differ)}" if self.differ else ""
        )
        return f"{self.place} → {self.target} ({self.edge}) was {verdict}: {self.reason}{change}"


def decisions(program: Program, events: Iterable[Event], place: str | None = None) -> list[Decision]:
    """Return how every edge was decided in a history, or those of one activation (`node`, or `node@2`) or node."""
    found: list[Decision] = []

    def decided(scope: Scope, node: GraphNode, edge: GraphEdge, is_taken: bool, response: dict[str, Any]) -> None:
        here = planner.place_of(scope, node)
        if place is None or place in {here, scope.path + node.spec.name}:
            found.append(_decision(scope, edge, is_taken, response, here))

    planner = Planner(program, decided)
    for event in events:
        planner.apply(event)
    return found


def _decision(scope: Scope, edge: GraphEdge, is_taken: bool, response: dict[str, Any], place: str) -> Decision:
    spec = edge.spec
    parts: tuple[Part, ...] = ()
    differ: tuple[str, ...] = ()
    if edge.condition is not None:
        parts = _parts(edge.condition, scope.variables)
        reason = "; ".join(f"{one.text} is {_word(one.held)} ({_read(one)})" for one in parts) or f"{spec.when} is constant"
        if edge.condition.holds(scope.variables) is not is_taken:
            reason += f", and {_other_reason(scope, edge, response)}"
        else:
            differ = _changes(edge.condition, parts, is_taken)
    elif spec.is_else:
        reason = "no other edge applied" if is_taken else "another edge applied"
        differ = ("another edge had applied",) if is_taken else ("no other edge had applied",)
    else:
        reason = f"the edge is for {spec.on}, and the status was {response['status']}"
        if spec.max is not None and not is_taken:
            reason += f"; it may be taken {spec.max} times"
        differ = (f"the status had {'not ' if is_taken else ''}been {spec.on}",) if spec.on != "always" else ()
    return Decision(
        place, place.rpartition("/")[2].partition("@")[0], spec.id, spec.target, is_taken, reason, spec.when, parts, differ
    )


def _other_reason(scope: Scope, edge: GraphEdge, response: dict[str, Any]) -> str:
    node = scope.graph.nodes[edge.source].spec
    if response.get("next_step_hint") and node.dynamic:
        return f"the hint {response['next_step_hint']} decided"
    if edge.spec.max is not None:
        return f"its bound of {edge.spec.max} was reached"
    return "an edge before it was taken"


# --- the parts of a condition ---


def _parts(condition: Expression, variables: dict[str, Any]) -> tuple[Part, ...]:
    return tuple(_part(one, variables) for one in _atoms(condition.tree)[:_PARTS_MAX])


def _atoms(tree: Node) -> list[Node]:
    """Return the parts of a condition that logic connects."""
    if isinstance(tree, Call) and tree.function in {"&&", "||", "!"}:
        return [atom for one in tree.arguments for atom in _atoms(one)]
    return [] if isinstance(tree, Literal) else [tree]


def _part(tree: Node, variables: dict[str, Any]) -> Part:
    reads = {}
    for path in _paths(tree):
        reads[shown_path(path)] = _value(path, variables)
    try:
        held = compiled(tree)(bounded(variables))
        held = held if isinstance(held, bool) else None
    except EvaluationError:
        held = None
    shown = written(tree)
    return Part(shown, {name: value for name, value in reads.items() if value is not _MISSING}, held, _needs(tree, shown, held))


def _needs(tree: Node, text: str, held: bool | None) -> str:
    if isinstance(tree, Call) and tree.function in _OPPOSITE:
        left, right = (written(one) for one in tree.arguments)
        sign = _OPPOSITE[tree.function] if held else tree.function
        return f"{left} {sign} {right}"
    return f"not {text}" if held else text


def _changes(condition: Expression, parts: tuple[Part, ...], is_taken: bool) -> tuple[str, ...]:
    """Return the fewest parts whose opposite turns the condition round."""
    atoms = _atoms(condition.tree)[:_PARTS_MAX]
    for size in range(1, len(atoms) + 1):
        for chosen in combinations(range(len(atoms)), size):
            values = {id(atom): (place in chosen) is not bool(parts[place].held) for place, atom in enumerate(atoms)}
            if _logic(condition.tree, values) is not is_taken:
                return tuple(parts[place].needs for place in chosen)
    return ()


def _logic(tree: Node, values: dict[int, bool]) -> bool:
    if isinstance(tree, Call) and tree.function in {"&&", "||", "!"}:
        found = [_logic(one, values) for one in tree.arguments]
        return not found[0] if tree.function == "!" else all(found) if tree.function == "&&" else any(found)
    return bool(tree.value) if isinstance(tree, Literal) else values.get(id(tree), False)


def _paths(tree: Node) -> list[tuple[str, ...]]:
    steps: list[str] = []
    one = tree
    while isinstance(one, Select):
        steps.append(one.field)
        one = one.operand
    if isinstance(one, Name):
        return [(one.name, *reversed(steps))]
    return [path for child in children(tree) for path in _paths(child)]


def _value(path: tuple[str, ...], variables: dict[str, Any]) -> Any:
    value: Any = variables
    for step in path:
        if not isinstance(value, dict) or step not in value:
            return _MISSING
        value = value[step]
    return value


def written(tree: Node) -> str:
    """Return a part of an expression as text."""
    match tree:
        case Literal():
            return (
                f'"{tree.value}"'
                if isinstance(tree.value, str)
                else str(tree.value).lower()
                if tree.value is not None
                else "null"
            )
        case Name():
            return tree.name
        case Select():
            return f"{written(tree.operand)}.{tree.field}"
        case Call() if len(tree.arguments) == 2 and not tree.is_method:
            left, right = tree.arguments
            return f"{written(left)} {tree.function} {written(right)}"
        case Call() if tree.is_method:
            target, *rest = tree.arguments
            return f"{written(target)}.{tree.function}({', '.join(map(written, rest))})"
        case Call():
            return f"{tree.function}({', '.join(map(written, tree.arguments))})"
    return "…"


def _read(part: Part) -> str:
    return ", ".join(f"{name} = {value!r}" for name, value in part.reads.items()) or "missing"


def _word(held: bool | None) -> str:
    return "undecided" if held is None else str(held).lower()
