"""What a store may look up in its indexes before a query is run.

The answer is a necessary condition, never a sufficient one: a trace the prefilter leaves out cannot be in the result, and
what it lets in is judged by the query itself. So a store may ignore any part it cannot answer by taking it as `ANYTHING`,
and must keep these promises for the parts it does answer:

* a `Leaf` holds for a span if its field compares so; an array if any element does; numbers regardless of their type;
* a field without a scope is the span's or the resource's; of several events or links one must satisfy the leaf;
* `AllOf` and `AnyOf` inside an `Exists` speak of one span, outside of one of a trace's `Exists` each.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from comity.core.tracing.query import ast
from comity.core.tracing.query.normalize import normalize
from comity.core.tracing.query.pattern import Characters, Choice, Node, Sequence, parse_pattern

EXISTS = "exists"
_WHOLE_TRACE = frozenset(
    {
        ast.Intrinsic.ROOT_NAME,
        ast.Intrinsic.ROOT_SERVICE_NAME,
        ast.Intrinsic.TRACE_DURATION,
        ast.Intrinsic.CHILD_COUNT,
        ast.Intrinsic.NESTED_SET_LEFT,
        ast.Intrinsic.NESTED_SET_RIGHT,
        ast.Intrinsic.NESTED_SET_PARENT,
    }
)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A field that exists, or compares with one of several constants by `=`, `>`, `>=`, `<` or `<=`."""

    field: ast.Field
    op: str = EXISTS
    values: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class AllOf:
    """All parts hold; none at all is true of anything."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One of the parts holds."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Exists:
    """The trace has a span on which the condition holds."""

    span: Condition


_Chained = TypeVar("_Chained", ast.Expression, ast.Spanset, ast.Pipeline | ast.PipelineOperation)
_CHAINS = ast.Binary | ast.SpansetOperation | ast.PipelineOperation
Condition = Leaf | AllOf | AnyOf | Exists
ANYTHING = AllOf(())


@dataclass(frozen=True, slots=True)
class Prefilter:
    """`trace` holds for every trace in the result. `span`, if given, holds for every span the query measures or returns,
    and the query looks at no other span: then those spans alone give the same metrics.
    """

    trace: Condition
    span: Condition | None


def prefilter(query: ast.Query) -> Prefilter:
    """Return what a store may look up first for a query that has been validated."""
    return _prefilter(query.root)


def _prefilter(root: ast.Pipeline | ast.PipelineOperation | ast.MetricsOperand) -> Prefilter:
    match root:
        case ast.Pipeline():
            return _of_pipeline(root, ())
        case ast.PipelineOperation():
            return Prefilter(_joined(root.op, (_prefilter(side).trace for side in _operands(root))), None)
        case ast.MetricsQuery():
            if isinstance(root.aggregate, ast.Compare):
                return Prefilter(_of_pipeline(root.pipeline, ()).trace, None)
            measured = () if root.aggregate.field is None else (root.aggregate.field,)
            return _of_pipeline(root.pipeline, (*measured, *root.aggregate.by))
        case ast.MetricsOperation():
            sides = [_prefilter(side) for side in (root.left, root.right) if not isinstance(side, ast.Literal)]
            spans = [side.span for side in sides if side.span is not None]
            return Prefilter(_any(side.trace for side in sides), _any(spans) if len(spans) == len(sides) else None)
    raise AssertionError(root)


def _of_pipeline(pipeline: ast.Pipeline, measured: tuple[ast.Field, ...]) -> Prefilter:
    on_one_span: list[Condition] = []
    on_trace: list[Condition] = []
    is_local = not any(map(_needs_whole_trace, measured))
    is_judged = True  # what comes after a select is not, in some metrics
    for stage in pipeline.stages:
        match stage:
            case ast.Select():
                is_judged = False
            case ast.SpansetFilter():
                expression = normalize(stage.expression)
                if is_judged:
                    on_one_span.append(_necessary(expression))
                is_local &= not _needs_whole_trace(expression)
            case ast.SpansetOperation():
                on_trace.append(_of_spanset(stage))
                is_local = False
            case ast.ScalarFilter() | ast.GroupBy() | ast.Coalesce():
                is_local = False
    span = _all(on_one_span)
    return Prefilter(_all([*on_trace, *([Exists(span)] if span != ANYTHING else [])]), span if is_local else None)


def _of_spanset(node: ast.Spanset) -> Condition:
    if isinstance(node, ast.SpansetOperation):
        return _joined(node.op, map(_of_spanset, _operands(node)))
    span = _necessary(normalize(node.expression))
    return ANYTHING if span == ANYTHING else Exists(span)


def _joined(op: str, parts: Iterable[Condition]) -> Condition:
    if op[0] == "!":
        return list(parts)[-1]  # that nothing is related to it holds all the more if there is nothing else
    return _any(parts) if op == "||" else _all(parts)


def _necessary(node: ast.Expression) -> Condition:
    """Return a condition that holds wherever the expression, in executable form, is true."""
    match node:
        case ast.Binary("&&" | "||"):
            return _joined(node.op, map(_necessary, _operands(node)))
        case ast.Binary(op, ast.Attribute() | ast.IntrinsicField() as field, ast.Literal() as literal) if op in ast.COMPARISONS:
            return _comparison(op, field, literal.value)
        case ast.Attribute():
            return Leaf(node)
    return ANYTHING


def _operands(chain: _Chained) -> list[_Chained]:
    """Return what one operator joins, from left to right, however the chain was nested."""
    assert isinstance(chain, _CHAINS)
    found: list[_Chained] = []
    todo: list[_Chained] = [chain]
    while todo:
        node = todo.pop()
        if isinstance(node, _CHAINS) and node.op == chain.op:
            todo += (node.right, node.left)
        else:
            found.append(node)
    return found


def _comparison(op: str, field: ast.Field, value: Any) -> Condition:
    if value is None:
        return ANYTHING if op == "=" else _presence(field)
    values = value if isinstance(value, tuple) else (value,)
    if op == "=~":
        texts = [_literal_texts(pattern) for pattern in values]
        if any(found is None for found in texts):
            return _presence(field)
        return Leaf(field, "=", tuple(dict.fromkeys(text for found in texts for text in found or ())))
    return _presence(field) if op in ("!=", "!~") else Leaf(field, op, values)


def _presence(field: ast.Field) -> Condition:
    return Leaf(field) if isinstance(field, ast.Attribute) else ANYTHING


def _literal_texts(pattern: str) -> list[str] | None:
    """Return the texts a pattern stands for if it is a plain choice between them."""
    node = parse_pattern(pattern)
    texts = [_literal_text(branch) for branch in (node.branches if isinstance(node, Choice) else (node,))]
    found = [text for text in texts if text is not None]
    return found if len(found) == len(texts) else None


def _literal_text(node: Node) -> str | None:
    parts = node.parts if isinstance(node, Sequence) else (node,)
    text = []
    for part in parts:
        if not isinstance(part, Characters) or part.fold or part.negated or part.categories or len(part.ranges) != 1:
            return None
        ((low, high),) = part.ranges
        if low != high:
            return None
        text.append(chr(low))
    return "".join(text)


def _all(parts: Iterable[Condition]) -> Condition:
    kept = tuple(part for part in parts if part != ANYTHING)
    return kept[0] if len(kept) == 1 else AllOf(kept)


def _any(parts: Iterable[Condition]) -> Condition:
    kept = tuple(dict.fromkeys(parts))
    if ANYTHING in kept:
        return ANYTHING
    return kept[0] if len(kept) == 1 else AnyOf(kept)


def _needs_whole_trace(node: ast.Expression) -> bool:
    match node:
        case ast.IntrinsicField():
            return node.intrinsic in _WHOLE_TRACE
        case ast.Unary():
            return _needs_whole_trace(node.operand)
        case ast.Binary():
            return _needs_whole_trace(node.left) or _needs_whole_trace(node.right)
    return False
