"""Expressions about one span, compiled to functions of the span and its trace.

A query runs over far more spans than it has nodes, so the tree is walked once and what remains per span is a few calls.
Two forms exist: `value_of` for a field or computed value, and `holds` for a condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from comity.core.query import ast
from comity.core.query.ast import Intrinsic, Scope
from comity.core.query.fetch import EXISTS, Condition, Request, conditions_of, key_of
from comity.core.query.operators import COMPARE, apply, make_test
from comity.core.query.trace import Trace
from comity.core.query.values import NUMERIC, Duration, Type, Undefined, type_of, wrap
from comity.core.span import Span

Value = Callable[[Span, Trace], Any]
Predicate = Callable[[Span, Trace], bool]
_Values = Callable[[Span, Trace], Iterable[Any]]

_INTRINSIC_VALUES: dict[Intrinsic, Value] = {
    Intrinsic.DURATION: lambda span, _: Duration(span.duration_ns),
    Intrinsic.NAME: lambda span, _: span.name,
    Intrinsic.STATUS: lambda span, _: span.status,
    Intrinsic.STATUS_MESSAGE: lambda span, _: span.status_message,
    Intrinsic.KIND: lambda span, _: span.kind,
    Intrinsic.CHILD_COUNT: lambda span, trace: len(trace.children.get(span.span_id, ())),
    Intrinsic.SPAN_ID: lambda span, _: span.span_id,
    Intrinsic.PARENT_ID: lambda span, _: span.parent_id,
    Intrinsic.ROOT_NAME: lambda _, trace: trace.root_name,
    Intrinsic.ROOT_SERVICE_NAME: lambda _, trace: trace.root_service_name,
    Intrinsic.TRACE_DURATION: lambda _, trace: Duration(trace.duration_ns),
    # Tempo shows and compares trace ids without leading zeros.
    Intrinsic.TRACE_ID: lambda span, _: span.trace_id.lstrip("0"),
    Intrinsic.NESTED_SET_LEFT: lambda span, trace: trace.position(span).left,
    Intrinsic.NESTED_SET_RIGHT: lambda span, trace: trace.position(span).right,
    Intrinsic.NESTED_SET_PARENT: lambda span, trace: trace.position(span).parent,
    Intrinsic.INSTRUMENTATION_NAME: lambda span, _: span.scope_name,
    Intrinsic.INSTRUMENTATION_VERSION: lambda span, _: span.scope_version,
}
_INTRINSIC_LISTS: dict[Intrinsic, _Values] = {
    Intrinsic.EVENT_NAME: lambda span, trace: [event.name for event in trace.events(span)],
    Intrinsic.EVENT_TIME_SINCE_START: lambda span, trace: [
        Duration(event.time_ns - span.start_ns) for event in trace.events(span)
    ],
    Intrinsic.LINK_TRACE_ID: lambda span, trace: [link.trace_id.lstrip("0") for link in trace.links(span)],
    Intrinsic.LINK_SPAN_ID: lambda span, trace: [link.span_id for link in trace.links(span)],
}
_TRACE_IDS = frozenset({Intrinsic.TRACE_ID, Intrinsic.LINK_TRACE_ID})
_EVENT_KEYS = frozenset({Intrinsic.EVENT_NAME, Intrinsic.EVENT_TIME_SINCE_START})
_LINK_KEYS = frozenset({Intrinsic.LINK_TRACE_ID, Intrinsic.LINK_SPAN_ID})


def lists_of(field: ast.Field) -> _Values | None:
    """Return the values of a field that a span has once per event or link, or None if it has but one."""
    if isinstance(field, ast.IntrinsicField):
        return _INTRINSIC_LISTS.get(field.intrinsic)
    name = field.name
    if field.scope is Scope.EVENT:
        return lambda span, trace: [event.attributes.get(name) for event in trace.events(span)]
    if field.scope is Scope.LINK:
        return lambda span, trace: [link.attributes.get(name) for link in trace.links(span)]
    return None


def field_value(field: ast.Field) -> Value:
    """Return the function that reads a field; of several events or links the first that has it counts."""
    if (several := lists_of(field)) is not None:
        values = several
        return lambda span, trace: next((value for value in values(span, trace) if value is not None), None)
    if isinstance(field, ast.IntrinsicField):
        return _INTRINSIC_VALUES[field.intrinsic]
    name = field.name
    match field.scope:
        case Scope.SPAN:
            return lambda span, _: span.attributes.get(name)
        case Scope.RESOURCE:
            return lambda span, _: span.resource.get(name)
        case Scope.INSTRUMENTATION:
            return lambda span, _: span.scope_attributes.get(name)

    def unscoped(span: Span, _trace: Trace) -> Any:
        found = span.attributes.get(name)
        return span.resource.get(name) if found is None else found

    return unscoped


class Compiler:
    """Compiles the expressions of one query, knowing what the whole query fetches."""

    __slots__ = ("request",)

    def __init__(self, request: Request) -> None:
        self.request = request

    # values

    def value_of(self, node: ast.Expression) -> Value:
        """Return the function that computes an expression; it may raise `Undefined`."""
        match node:
            case ast.Literal(value):
                return lambda _span, _trace: value
            case ast.Attribute() | ast.IntrinsicField():
                return self._read(node)
            case ast.Unary("-"):
                return _negated(self.value_of(node.operand))
            case ast.Unary():
                return self._inverted(node.operand)
        if node.op in ast.COMPARISONS or node.op in ast.LOGICAL:
            return self.holds(node)
        left, right, op = self.value_of(node.left), self.value_of(node.right), node.op
        return lambda span, trace: apply(op, left(span, trace), right(span, trace))

    def _read(self, field: ast.Field) -> Value:
        read = field_value(field)
        if not isinstance(field, ast.Attribute) or not self.request.mixes_numbers(field) or self.request.is_loose(field):
            return read
        # Compared with integers and floats, so fetched only where one of those comparisons holds.
        tests = [
            make_test(c.op, c.literal.value, exact_type=True)
            for c in self.request.conditions
            if c.key == key_of(field) and c.literal is not None
        ]

        def fetched(span: Span, trace: Trace) -> Any:
            value = read(span, trace)
            return value if any(test(value) for test in tests) else None

        return fetched

    # conditions

    def holds(self, node: ast.Expression) -> Predicate:
        """Return the function that says whether a condition holds; it may raise `Undefined`."""
        match node:
            case ast.Literal(value):
                return lambda _span, _trace: value is True
            case ast.Binary("&&"):
                left, right = self.holds(node.left), self.holds(node.right)
                return lambda span, trace: left(span, trace) and right(span, trace)
            case ast.Binary("||"):
                left, right = self.holds(node.left), self.holds(node.right)
                return lambda span, trace: left(span, trace) or right(span, trace)
            case ast.Binary(op, ast.Attribute() | ast.IntrinsicField() as field, ast.Literal() as literal) if (
                op in ast.COMPARISONS
            ):
                return self._compared(op, field, literal)
            case ast.Binary(op) if op in ast.COMPARISONS:
                left, right = self.value_of(node.left), self.value_of(node.right)
                return lambda span, trace: apply(op, left(span, trace), right(span, trace)) is True
            case ast.Unary("!"):
                return self._inverted(node.operand)
        value = self.value_of(node)
        return lambda span, trace: value(span, trace) is True

    def _inverted(self, operand: ast.Expression) -> Predicate:
        value = self.value_of(operand)

        def inverted(span: Span, trace: Trace) -> bool:
            found = value(span, trace)
            if not isinstance(found, bool):
                raise Undefined
            return not found

        return inverted

    def _compared(self, op: str, field: ast.Field, literal: ast.Literal) -> Predicate:
        if literal.value is None:
            return _existence(field, wanted=op == "!=")
        exact_type = isinstance(field, ast.Attribute) and not (
            self.request.is_loose(field) or self.request.mixes_numbers(field)
        )
        return self._tested(op, field, literal, exact_type=exact_type)

    def _tested(self, op: str, field: ast.Field, literal: ast.Literal, *, exact_type: bool) -> Predicate:
        constant = literal.value
        if isinstance(field, ast.IntrinsicField):
            constant = _as_stored(field.intrinsic, constant)
            if field.intrinsic is Intrinsic.DURATION and literal.type in NUMERIC:
                # The commonest filter of all: no duration object is made, the numbers are compared.
                compare, bound = COMPARE[op], constant
                return lambda span, _: compare(span.duration_ns, bound)
        test = make_test(op, constant, exact_type=exact_type)
        if (several := lists_of(field)) is not None:
            values = several
            return lambda span, trace: any(map(test, values(span, trace)))
        read = self._read(field)
        return lambda span, trace: test(read(span, trace))

    # filters

    def filter_of(self, node: ast.Expression) -> Predicate:
        """Return whether a span passes a filter: what is undefined does not pass."""
        condition = self.holds(node)

        def passes(span: Span, trace: Trace) -> bool:
            try:
                return condition(span, trace)
            except Undefined:
                return False

        guarded = passes if _may_be_undefined(node) else condition
        if not self.request.requires_every_field:
            return guarded
        keys = {c.key for c in conditions_of(node)}
        # A conjunction about events is about one event, not about one event each.
        if sum(key[0] == Scope.EVENT or key[1] in _EVENT_KEYS for key in keys) > 1:
            guarded = _for_some("event", guarded)
        if sum(key[0] == Scope.LINK or key[1] in _LINK_KEYS for key in keys) > 1:
            guarded = _for_some("link", guarded)
        return guarded

    def fetches(self) -> Predicate | None:
        """Return whether a span is fetched at all, or None if every span is."""
        groups = [[self._satisfied(c) for c in conditions] for conditions in self.request.by_field().values()]
        if self.request.requires_every_field:
            return lambda span, trace: all(any(test(span, trace) for test in group) for group in groups)
        if not self.request.requires_any_field:
            return None
        return lambda span, trace: any(test(span, trace) for group in groups for test in group)

    def _satisfied(self, condition: Condition) -> Predicate:
        if condition.literal is None:
            return _existence(condition.field, wanted=condition.op == EXISTS)
        exact_type = isinstance(condition.field, ast.Attribute)
        return self._tested(condition.op, condition.field, condition.literal, exact_type=exact_type)


def _negated(value: Value) -> Value:
    def negated(span: Span, trace: Trace) -> Any:
        found = value(span, trace)
        if type_of(found) not in NUMERIC:
            raise Undefined
        if type(found) is int:
            return wrap(-found)
        return Duration(-found) if isinstance(found, Duration) else -found

    return negated


def _existence(field: ast.Field, *, wanted: bool) -> Predicate:
    if (several := lists_of(field)) is not None:
        values = several
        return lambda span, trace: any((value is not None) is wanted for value in values(span, trace))
    if isinstance(field, ast.IntrinsicField):
        return lambda _span, _trace: wanted
    read = field_value(field)
    return lambda span, trace: (type_of(read(span, trace)) is not Type.NIL) is wanted


def _as_stored(intrinsic: Intrinsic, constant: Any) -> Any:
    return constant.lstrip("0") if intrinsic in _TRACE_IDS and isinstance(constant, str) else constant


def _may_be_undefined(node: ast.Expression) -> bool:
    match node:
        case ast.Unary():
            return True
        case ast.Binary():
            return node.op in ("/", "%") or _may_be_undefined(node.left) or _may_be_undefined(node.right)
    return False


def _for_some(slot: str, passes: Predicate) -> Predicate:
    """Return whether the filter passes while it sees only one of the span's events or links, whichever `slot` names."""

    def some(span: Span, trace: Trace) -> bool:
        try:
            for one in getattr(span, f"{slot}s"):
                setattr(trace, slot, one)
                if passes(span, trace):
                    return True
            return False
        finally:
            setattr(trace, slot, None)

    return some
