"""A pipeline compiled to functions from spansets to spansets, for one trace at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from comity.core.tracing.query import ast
from comity.core.tracing.query.evaluate import Compiler, Predicate, Value
from comity.core.tracing.query.fetch import Request, decides_alone, plan_fetch
from comity.core.tracing.query.normalize import normalize
from comity.core.tracing.query.operators import apply
from comity.core.tracing.query.structure import relate, unique
from comity.core.tracing.query.trace import Trace
from comity.core.tracing.query.values import NUMERIC, Duration, Type, Undefined, groupable, type_of
from comity.core.tracing.span import Span


@dataclass(frozen=True, slots=True)
class Spanset:
    """Some spans of one trace, with what grouping and aggregates found out about them."""

    spans: list[Span]
    attributes: tuple[tuple[str, Any], ...] = ()


_Stage = Callable[[Trace, list[Spanset]], list[Spanset]]


class CompiledPipeline:
    """A pipeline ready to run. `request` says which fields it fetches, and so which it can show."""

    __slots__ = ("_fetched", "_run", "compiler", "is_empty", "regroups", "request")

    def __init__(self, root: ast.Pipeline | ast.PipelineOperation, *, join: bool = True) -> None:
        executable = _normalized(root, join=join)
        self.is_empty = _is_empty(executable)
        self.regroups = _regroups(executable)
        self.request: Request = plan_fetch(executable)
        self.compiler = Compiler(self.request)
        self._run = _pipeline(executable, self.compiler)
        self._fetched = None if _needs_no_fetch(executable) else self.compiler.fetches()

    def run(self, trace: Trace) -> list[Spanset]:
        """Return the spansets of a trace that come out of the pipeline, none of them empty."""
        spans = list(trace.spans)
        if self._fetched is not None:
            fetched = self._fetched
            spans = [span for span in spans if fetched(span, trace)]
        return self._run(trace, [Spanset(spans)]) if spans else []

    def fetcher(self) -> Callable[[Trace], list[Spanset]]:
        """Return the function that gives the spans of a trace that were fetched, before the pipeline judges them."""
        fetched = self.compiler.fetches()

        def fetch(trace: Trace) -> list[Spanset]:
            spans = [span for span in trace.spans if fetched is None or fetched(span, trace)]
            return [Spanset(spans)] if spans else []

        return fetch


def _is_empty(root: ast.Pipeline | ast.PipelineOperation) -> bool:
    """Return whether nothing but filters stands there, and none of them can ever pass."""
    if isinstance(root, ast.PipelineOperation):
        return False
    sides = [side for stage in root.stages for side in _sides(stage)]
    return all(isinstance(side, ast.SpansetFilter) and side.expression == ast.Literal(False) for side in sides)


def _sides(stage: ast.Stage) -> tuple[ast.Stage, ...]:
    return (stage.left, stage.right) if isinstance(stage, ast.SpansetOperation) else (stage,)


def _regroups(root: ast.Pipeline | ast.PipelineOperation) -> bool:
    if isinstance(root, ast.PipelineOperation):
        return _regroups(root.left) or _regroups(root.right)
    return any(isinstance(stage, ast.GroupBy | ast.Coalesce) for stage in root.stages)


def _normalized(root: ast.Pipeline | ast.PipelineOperation, *, join: bool) -> ast.Pipeline | ast.PipelineOperation:
    if isinstance(root, ast.PipelineOperation):
        return ast.PipelineOperation(root.op, _normalized(root.left, join=join), _normalized(root.right, join=join))
    return ast.Pipeline(tuple(_normalized_stage(stage, join=join) for stage in root.stages))


def _normalized_stage(stage: ast.Stage, *, join: bool) -> ast.Stage:
    match stage:
        case ast.SpansetFilter():
            return ast.SpansetFilter(normalize(stage.expression, join=join))
        case ast.SpansetOperation():
            left, right = (_normalized_stage(side, join=join) for side in (stage.left, stage.right))
            assert isinstance(left, ast.SpansetFilter | ast.SpansetOperation)
            assert isinstance(right, ast.SpansetFilter | ast.SpansetOperation)
            return ast.SpansetOperation(stage.op, left, right)
    return stage


def _needs_no_fetch(root: ast.Pipeline | ast.PipelineOperation) -> bool:
    """Return whether filters come first and each lets through only spans that would be fetched anyway."""
    if isinstance(root, ast.PipelineOperation):
        return _needs_no_fetch(root.left) and _needs_no_fetch(root.right)
    first = root.stages[0]
    filters = [stage for stage in root.stages if isinstance(stage, ast.SpansetFilter | ast.SpansetOperation)]
    return isinstance(first, ast.SpansetFilter | ast.SpansetOperation) and all(map(_decides_alone, filters))


def _decides_alone(stage: ast.Spanset) -> bool:
    if isinstance(stage, ast.SpansetOperation):
        return _decides_alone(stage.left) and _decides_alone(stage.right)
    return isinstance(stage.expression, ast.Literal) or decides_alone(stage.expression)


# stages


def _pipeline(root: ast.Pipeline | ast.PipelineOperation, compiler: Compiler) -> _Stage:
    if isinstance(root, ast.PipelineOperation):
        return _combined(root.op, _pipeline(root.left, compiler), _pipeline(root.right, compiler))
    stages = [_stage(stage, compiler) for stage in root.stages]

    def run(trace: Trace, spansets: list[Spanset]) -> list[Spanset]:
        for stage in stages:
            spansets = stage(trace, spansets)
            if not spansets:
                break
        return spansets

    return run


def _stage(stage: ast.Stage, compiler: Compiler) -> _Stage:
    match stage:
        case ast.SpansetFilter():
            return _filtered(compiler.filter_of(stage.expression))
        case ast.SpansetOperation():
            return _combined(stage.op, _stage(stage.left, compiler), _stage(stage.right, compiler))
        case ast.ScalarFilter():
            assert isinstance(stage.left, ast.Aggregate)
            assert isinstance(stage.right, ast.Literal)
            return _compared(stage.left, stage.op, stage.right.value, compiler)
        case ast.GroupBy():
            return _grouped(str(stage), compiler.value_of(stage.expression))
        case ast.Coalesce():
            return _coalesced
    return lambda _trace, spansets: spansets


def _filtered(passes: Predicate) -> _Stage:
    def run(trace: Trace, spansets: list[Spanset]) -> list[Spanset]:
        found = []
        for spanset in spansets:
            kept = [span for span in spanset.spans if passes(span, trace)]
            if kept:
                found.append(Spanset(kept, spanset.attributes))
        return found

    return run


def _combined(op: str, left: _Stage, right: _Stage) -> _Stage:
    def run(trace: Trace, spansets: list[Spanset]) -> list[Spanset]:
        found = []
        for spanset in spansets:
            lefts, rights = _spans(left(trace, [spanset])), _spans(right(trace, [spanset]))
            if op == "||":
                kept = unique(lefts, rights)
            elif op == "&&":
                kept = unique(lefts, rights) if lefts and rights else []
            else:
                kept = relate(op, trace, lefts, rights)
            if kept:
                found.append(Spanset(kept, spanset.attributes))
        return found

    return run


def _spans(spansets: Iterable[Spanset]) -> list[Span]:
    return [span for spanset in spansets for span in spanset.spans]


def _grouped(label: str, value: Value) -> _Stage:
    def run(trace: Trace, spansets: list[Spanset]) -> list[Spanset]:
        found: list[Spanset] = []
        for spanset in spansets:
            groups: dict[Any, tuple[Any, list[Span]]] = {}
            for span in spanset.spans:
                group = groupable(_defined(value, span, trace))
                groups.setdefault((type_of(group), group), (group, []))[1].append(span)
            found.extend(Spanset(spans, (*spanset.attributes, (label, group))) for group, spans in groups.values())
        return found

    return run


def _coalesced(_trace: Trace, spansets: list[Spanset]) -> list[Spanset]:
    return [Spanset(unique(*(spanset.spans for spanset in spansets)))]


def _compared(aggregate: ast.Aggregate, op: str, bound: Any, compiler: Compiler) -> _Stage:
    label = str(aggregate)
    value = compiler.value_of(aggregate.operand) if aggregate.operand is not None else None

    def run(trace: Trace, spansets: list[Spanset]) -> list[Spanset]:
        found = []
        for spanset in spansets:
            if value is None:
                result: Any = len(spanset.spans)
            else:
                values = (_defined(value, span, trace) for span in spanset.spans)
                result = summarize(aggregate.function, [one for one in values if type_of(one) is not Type.NIL])
            if type(result) is not tuple and apply(op, result, bound) is True:
                found.append(Spanset(spanset.spans, (*spanset.attributes, (label, result))))
        return found

    return run


def _defined(value: Value, span: Span, trace: Trace) -> Any:
    try:
        return value(span, trace)
    except Undefined:
        return None


def summarize(function: str, values: list[Any]) -> Any:
    """Return the aggregate of values, in the type of the first; None if there are none.

    Values of different types are in the order of their types, and only those of the first one's type add up.
    """
    if not values:
        return None
    if function in ("min", "max"):
        return (min if function == "min" else max)(values, key=_rank)
    kind = type_of(values[0])
    if kind not in NUMERIC:
        return values[0]
    total = sum(value for value in values if type_of(value) is kind)
    if kind is Type.DURATION:
        total = Duration(total)
    if function == "sum":
        return total
    if kind is Type.DURATION:  # a whole number of nanoseconds, rounded towards zero
        return Duration(total // len(values) if total >= 0 else -(-total // len(values)))
    return total / len(values)


_TYPE_ORDER = (Type.STRING, Type.BOOL, Type.ARRAY, Type.STATUS, Type.KIND)


def _rank(value: Any) -> tuple[int, Any]:
    kind = type_of(value)
    if kind in NUMERIC:
        return 0, value
    return 1 + _TYPE_ORDER.index(kind), str(value) if kind is Type.ARRAY else value
