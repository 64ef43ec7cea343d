"""Running a metrics query: spans in, time series out.

Time is cut into steps that start at multiples of the step. A sample stands at the end of its step and counts the spans that
start after the step before it and not after itself. The range asked for is widened to whole steps, as Tempo does, and its first
sample counts the step that ends where the range begins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from comity.core.tracing.query import ast
from comity.core.tracing.query.compare import Comparison
from comity.core.tracing.query.errors import Fault, QueryError
from comity.core.tracing.query.evaluate import Compiler, Value
from comity.core.tracing.query.pipeline import CompiledPipeline, Spanset
from comity.core.tracing.query.search import prepare
from comity.core.tracing.query.series import NIL, Labels, SeriesSet, check_size, combine, label, order_of, rank, threshold
from comity.core.tracing.query.trace import Trace
from comity.core.tracing.query.values import NUMERIC, SECOND_NS, Duration, Type, groupable, type_of
from comity.core.tracing.span import Span

STEPS_MAX = 11_000
NAME_LABEL, QUANTILE_LABEL, BUCKET_LABEL = "__name__", "p", "__bucket"


class Series(Struct, frozen=True, kw_only=True):
    """One time series: its labels in order, and its samples as (milliseconds, value), gaps left out."""

    labels: tuple[tuple[str, Any], ...]
    samples: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Steps:
    """The time steps of a query. Step 0 ends at the first sample."""

    first_ns: int
    last_ns: int
    step_ns: int

    @classmethod
    def of(cls, start_ns: int, end_ns: int, step_ns: int) -> Steps:
        first_ns = start_ns // step_ns * step_ns
        return cls(first_ns, max(-(-end_ns // step_ns) * step_ns, first_ns), step_ns)

    @property
    def count(self) -> int:
        return (self.last_ns - self.first_ns) // self.step_ns + 1

    def index(self, time_ns: int) -> int | None:
        """Return the step a moment falls into, or None outside the range."""
        if not self.first_ns - self.step_ns < time_ns <= self.last_ns:
            return None
        return -(-(time_ns - self.first_ns) // self.step_ns)

    def time_ms(self, index: int) -> int:
        return (self.first_ns + index * self.step_ns) // 10**6


def query_range(
    query: str | ast.Query, traces: Iterable[Sequence[Span]], *, start_ns: int, end_ns: int, step_ns: int
) -> tuple[Series, ...]:
    """Return the time series of a metrics query over traces, sorted by labels. Each item is all spans of one trace."""
    if step_ns <= 0 or end_ns < start_ns:
        raise QueryError("the time range is empty", fault=Fault.INVALID, expected="an end after the start and a step")
    return _measured(query, traces, Steps.of(start_ns, end_ns, step_ns))


def query_instant(
    query: str | ast.Query, traces: Iterable[Sequence[Span]], *, start_ns: int, end_ns: int
) -> tuple[Series, ...]:
    """Return one sample for each series, over the whole range: a range query of a single step, as Tempo answers it."""
    if end_ns <= start_ns:
        raise QueryError("the time range is empty", fault=Fault.INVALID, expected="an end after the start")
    return _measured(query, traces, Steps(end_ns, end_ns, end_ns - start_ns))


def _measured(query: str | ast.Query, traces: Iterable[Sequence[Span]], steps: Steps) -> tuple[Series, ...]:
    prepared = prepare(query)
    if isinstance(prepared.root, ast.Pipeline | ast.PipelineOperation):
        raise QueryError("this is a search", fault=Fault.INVALID, expected="a metrics function such as | rate()")
    if steps.count > STEPS_MAX:
        raise QueryError(f"the range has {steps.count:,} steps", fault=Fault.INVALID, expected=f"at most {STEPS_MAX:,} steps")
    join = prepared.hint("skip_optimization") is not True
    measures: dict[int, _Measure] = {}
    _compile(prepared.root, steps, measures, join=join)
    for spans in traces:
        if spans:
            trace = Trace(spans)
            for measure in measures.values():
                measure.observe(trace)
    return _rendered(_evaluate(prepared.root, measures), steps)


def _compile(node: ast.MetricsOperand, steps: Steps, measures: dict[int, _Measure], *, join: bool) -> None:
    """Compile every metrics query of the tree, so that one pass over the traces feeds them all."""
    if isinstance(node, ast.MetricsQuery):
        measures[id(node)] = _Measure(node, steps, join=join)
    elif isinstance(node, ast.MetricsOperation):
        _compile(node.left, steps, measures, join=join)
        _compile(node.right, steps, measures, join=join)


def _evaluate(node: ast.Metrics, measures: dict[int, _Measure]) -> SeriesSet:
    if isinstance(node, ast.MetricsQuery):
        found = measures[id(node)].series()
    else:
        left, right = (
            side.value if isinstance(side, ast.Literal) else _evaluate(side, measures) for side in (node.left, node.right)
        )
        found = combine(node.op, left, right)
    for stage in node.second:
        if isinstance(stage, ast.Rank):
            found = rank(found, stage.limit, highest=stage.function == "topk")
        else:
            bound = stage.bound.value
            found = threshold(found, stage.op, bound / SECOND_NS if isinstance(bound, Duration) else bound)
    return found


def _rendered(found: SeriesSet, steps: Steps) -> tuple[Series, ...]:
    rendered = []
    for labels, values in found.items():
        samples = tuple((steps.time_ms(at), value) for at, value in enumerate(values) if not math.isnan(value))
        if samples:
            rendered.append(Series(labels=tuple(labels), samples=samples))
    return tuple(sorted(rendered, key=lambda series: order_of(series.labels)))


class _Measure:
    """One metrics function while traces pass by."""

    __slots__ = ("_comparison", "_is_empty", "_run", "_steps", "_tally")

    def __init__(self, node: ast.MetricsQuery, steps: Steps, *, join: bool) -> None:
        pipeline = CompiledPipeline(node.pipeline, join=join)
        self._is_empty = pipeline.is_empty
        self._run: Callable[[Trace], list[Spanset]] = pipeline.run
        self._steps = steps
        self._comparison: Comparison | None = None
        self._tally: _Tally | None = None
        if isinstance(node.aggregate, ast.Compare):
            self._comparison = Comparison(node.aggregate, steps.count)
        else:
            self._tally = _Tally(node.aggregate, steps, pipeline.compiler)
            measured = () if node.aggregate.field is None else (node.aggregate.field,)
            if pipeline.request.is_all_there_is((*measured, *node.aggregate.by, *pipeline.request.selected)):
                self._run = pipeline.fetcher()

    def observe(self, trace: Trace) -> None:
        for spanset in self._run(trace):
            for span in spanset.spans:
                at = self._steps.index(span.start_ns)
                if at is None:
                    continue
                if self._tally is not None:
                    self._tally.add(span, trace, at)
                elif self._comparison is not None:
                    self._comparison.add(span, trace, at)

    def series(self) -> SeriesSet:
        if self._is_empty:
            return {}
        if self._tally is not None:
            return self._tally.series()
        assert self._comparison is not None
        return self._comparison.series()


class _Tally:
    """The values of one metrics function, by labels and step. A cell stays None until its first span."""

    __slots__ = ("_aggregate", "_by", "_cells", "_fold", "_read", "_steps", "_to_number")

    def __init__(self, aggregate: ast.MetricsAggregate, steps: Steps, compiler: Compiler) -> None:
        self._aggregate = aggregate
        self._steps = steps
        self._by: list[tuple[str, Value]] = [(str(field), compiler.label_of(field)) for field in aggregate.by]
        self._read = None if aggregate.field is None else compiler.measured(aggregate.field)
        self._to_number = _in_seconds if _is_duration(aggregate.field) else _number
        self._fold = _FOLDS[aggregate.function]
        self._cells: dict[Labels, list[Any]] = {}
        if not aggregate.by and aggregate.function in _COUNTS:  # counting nothing gives zeros
            self._cells[()] = [None] * steps.count

    def add(self, span: Span, trace: Trace, at: int) -> None:
        number = 1.0
        if self._read is not None:
            raw = self._read(span, trace)
            measured = _bucket(raw) if self._aggregate.function in _BUCKETED else self._to_number(raw)
            if measured is None:
                return
            number = measured
        labels = self._labels(span, trace)
        cells = self._cells.get(labels)
        if cells is None:
            check_size(len(self._cells) + 1, self._steps.count)
            cells = self._cells[labels] = [None] * self._steps.count
        cells[at] = self._fold(cells[at], number)

    def _labels(self, span: Span, trace: Trace) -> Labels:
        found = tuple((key, groupable(read(span, trace))) for key, read in self._by)
        # No label holds an array.
        known = tuple(label(key, NIL if type(value) is tuple else value) for key, value in found if value is not None)
        # A series needs a label: where all are missing, the first says so, unless a bucket does.
        is_bare = found and not known and self._aggregate.function not in _BUCKETED
        return ((found[0][0], NIL),) if is_bare else known

    def series(self) -> SeriesSet:
        function = self._aggregate.function
        if function == "quantile_over_time":
            return {
                (*labels, label(QUANTILE_LABEL, quantile)): [log2_quantile(quantile, cell or {}) for cell in cells]
                for labels, cells in self._cells.items()
                for quantile in self._aggregate.quantiles
            }
        if function == "histogram_over_time":
            return {
                (*labels, label(BUCKET_LABEL, bucket)): [float((cell or {}).get(bucket, 0)) for cell in cells]
                for labels, cells in self._cells.items()
                for bucket in sorted({bucket for cell in cells if cell for bucket in cell})
            }
        finish = self._finish
        return {labels or ((NAME_LABEL, function),): [finish(cell) for cell in cells] for labels, cells in self._cells.items()}

    def _finish(self, cell: Any) -> float:
        match self._aggregate.function:
            case "rate":
                # Multiplied, not divided: the last digit then agrees with Tempo's.
                return float((cell or 0.0) * (1.0 / (self._steps.step_ns / SECOND_NS)))
            case "count_over_time":
                return float(cell or 0.0)
            case "avg_over_time":
                return math.nan if cell is None else float(cell[0] / cell[1])
        return math.nan if cell is None else float(cell)


def _counted(cell: dict[float, int] | None, bucket: float) -> dict[float, int]:
    cell = {} if cell is None else cell
    cell[bucket] = cell.get(bucket, 0) + 1
    return cell


def _averaged(cell: tuple[float, int] | None, number: float) -> tuple[float, int]:
    return (number, 1) if cell is None else (cell[0] + number, cell[1] + 1)


def _summed(cell: float | None, number: float) -> float:
    return number if cell is None else cell + number


_FOLDS: dict[str, Callable[[Any, float], Any]] = {
    "rate": _summed,
    "count_over_time": _summed,
    "sum_over_time": _summed,
    "min_over_time": lambda cell, number: number if cell is None else min(cell, number),
    "max_over_time": lambda cell, number: number if cell is None else max(cell, number),
    "avg_over_time": _averaged,
    "quantile_over_time": _counted,
    "histogram_over_time": _counted,
}
_COUNTS = frozenset({"rate", "count_over_time"})
_BUCKETED = frozenset({"quantile_over_time", "histogram_over_time"})


def _is_duration(field: ast.Field | None) -> bool:
    return isinstance(field, ast.IntrinsicField) and field.intrinsic is ast.Intrinsic.DURATION


def _in_seconds(raw: Any) -> float:
    # A span whose duration no condition let through counts as one of no duration.
    return 0.0 if raw is None else float(raw / SECOND_NS)


def _number(raw: Any) -> float | None:
    return float(raw) if type_of(raw) in NUMERIC else None  # of every duration but a span's own, the nanoseconds


def _bucket(raw: Any) -> float | None:
    """Return the power of two a whole number or duration is counted under; below 2 and for floats there is none."""
    if type_of(raw) not in (Type.INT, Type.DURATION) or raw < 2:
        return None
    power = float(2 ** (int(raw) - 1).bit_length())
    return power / SECOND_NS if isinstance(raw, Duration) else power


def log2_quantile(quantile: float, counts: Mapping[float, int]) -> float:
    """Return a quantile of values of which only their powers of two are known.

    Within a power the values are taken to be spread exponentially from the next lower power that has any.
    """
    wanted = max(math.ceil(quantile * sum(counts.values())), 1)
    passed, below = 0, 0.0
    for bucket, count in sorted(counts.items()):
        passed += count
        if passed == wanted:
            return float(bucket)
        if passed > wanted:
            high = math.log2(bucket)
            low = math.log2(below) if below else high - 1
            return float(2.0 ** (low + (high - low) * ((wanted - passed + count) / count)))
        below = bucket
    return 0.0
