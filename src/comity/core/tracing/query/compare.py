"""`compare({filter})`: what sets the spans that pass a filter apart from those that do not.

Every span is put into one of two groups and each of its fields counted there by value. The answer has a series for each of
the commonest values of each field in each group, and the total per field, so that shares can be told from counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from comity.core.tracing.query import ast
from comity.core.tracing.query.evaluate import Compiler, field_value
from comity.core.tracing.query.fetch import APART, Condition, Request, conditions_of
from comity.core.tracing.query.normalize import normalize
from comity.core.tracing.query.series import NIL, SeriesSet, check_size, label
from comity.core.tracing.query.trace import Trace
from comity.core.tracing.query.values import Type, type_of
from comity.core.tracing.span import Attributes, Span

TOP_N_DEFAULT = 10
TYPE_LABEL = "__meta_type"
_INTRINSICS = tuple(
    (written, field_value(ast.IntrinsicField(written)))
    for written in (
        "name",
        "kind",
        "status",
        "statusMessage",
        "span:childCount",
        "rootName",
        "rootServiceName",
        "instrumentation:name",
        "instrumentation:version",
    )
)

_Counts = dict[tuple[str, Any], list[float]]


class Comparison:
    """The two groups while spans pass by."""

    __slots__ = ("_groups", "_passes", "_steps", "_top_n", "_window_ns")

    def __init__(self, node: ast.Compare, steps: int) -> None:
        # The filter sees spans the pipeline has fetched already, and all there is of them.
        selection = normalize(node.selection.expression)
        fields = [Condition(condition.field) for condition in conditions_of(selection)]
        self._passes = Compiler(Request(fields, is_conjunction=False, fetches_all=True)).filter_of(selection)
        self._steps = steps
        self._top_n = TOP_N_DEFAULT if node.top_n is None else node.top_n
        self._window_ns = node.window_ns
        self._groups: dict[str, _Counts] = {"baseline": {}, "selection": {}}

    def add(self, span: Span, trace: Trace, at: int) -> None:
        group = "selection" if self._is_selected(span, trace) else "baseline"
        counts = self._groups[group]
        for pair in _fields(span, trace):
            if pair not in counts:
                check_size(len(counts) + 1, self._steps)
                counts[pair] = [0.0] * self._steps
            counts[pair][at] += 1

    def _is_selected(self, span: Span, trace: Trace) -> bool:
        if self._window_ns and not self._window_ns[0] < span.start_ns <= self._window_ns[1]:
            return False
        return self._passes(span, trace)

    def series(self) -> SeriesSet:
        found: SeriesSet = {}
        for group, counts in self._groups.items():
            for field, values in _by_field(counts).items():
                ranked = sorted(values, key=lambda value: (-sum(counts[label(field, value)]), str(value)))
                for value in ranked[: self._top_n]:
                    found[(TYPE_LABEL, group), label(field, value)] = counts[label(field, value)]
                total = [sum(step) for step in zip(*(counts[label(field, value)] for value in values), strict=True)]
                found[(TYPE_LABEL, f"{group}_total"), (field, NIL)] = total
        return found


def _fields(span: Span, trace: Trace) -> Iterator[tuple[str, Any]]:
    for written, read in _INTRINSICS:
        yield label(written, read(span, trace))
    for scope, attributes in _scopes(span):
        for name, value in attributes.items():
            if type_of(value) is not Type.NIL:
                yield label(str(ast.Attribute(scope, name)), NIL if type(value) is tuple else value)
        for name in APART.get(scope, frozenset()) - attributes.keys():
            yield str(ast.Attribute(scope, name)), NIL


def _scopes(span: Span) -> tuple[tuple[ast.Scope, Attributes], ...]:
    return (
        (ast.Scope.SPAN, span.attributes),
        (ast.Scope.RESOURCE, span.resource),
        (ast.Scope.INSTRUMENTATION, span.scope_attributes),
    )


def _by_field(counts: _Counts) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for field, value in counts:
        found.setdefault(field, []).append(value)
    return found
