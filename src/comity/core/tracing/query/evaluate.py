"""Expressions about one span, compiled to functions of the span and its trace.

A query runs over far more spans than it has nodes, so the tree is walked once and what remains per span is a few calls.
Two forms exist: `value_of` for a field or computed value, and `holds` for a condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from comity.core.tracing.query import ast
from comity.core.tracing.query.ast import Intrinsic, Scope
from comity.core.tracing.query.fetch import (
    ABSENT,
    EXISTS,
    Condition,
    Request,
    conditions_of,
    is_apart,
    key_of,
    place_of,
    placed,
)
from comity.core.tracing.query.operators import COMPARE, Test, apply, make_test, scalar_test
from comity.core.tracing.query.trace import Trace
from comity.core.tracing.query.values import NUMERIC, Duration, Type, Undefined, alone, type_of, wrap
from comity.core.tracing.span import Span

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
# What is read of a span that has no parent, event or link, where the value is not compared but asked for.
_BLANK: dict[Intrinsic, Any] = {
    Intrinsic.PARENT_ID: "0" * 16,
    Intrinsic.EVENT_NAME: "",
    Intrinsic.EVENT_TIME_SINCE_START: Duration(0),
    Intrinsic.LINK_TRACE_ID: "",
    Intrinsic.LINK_SPAN_ID: "0" * 16,
}
_MISSING = "nil"
_NUMBERS = frozenset({int, float, Duration})
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


def _raw(field: ast.Field) -> Value:
    """Return the function that reads what a span has of a field; of several events or links the first that has it counts."""
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
    return _on_either(name, _raw(ast.Attribute(Scope.SPAN, name)), _raw(ast.Attribute(Scope.RESOURCE, name)))


def field_value(field: ast.Field) -> Value:
    """Return the function that reads a field as Tempo shows it: what every span has in a column is blank, not missing."""
    read = _raw(field)
    blank = _blank(field)

    def shown(span: Span, trace: Trace) -> Any:
        found = read(span, trace)
        if found is None:
            return blank
        return alone(found) if type(found) is tuple else found

    return shown


def absence(field: ast.Field) -> Value:
    """Return what is shown of a field that was asked to be absent: that it is."""
    is_absent = _existence(field, wanted=False)
    return lambda span, trace: _MISSING if is_absent(span, trace) else None


def _blank(field: ast.Field) -> Any:
    if isinstance(field, ast.IntrinsicField):
        return _BLANK.get(field.intrinsic)
    return _MISSING if is_apart(field) else None


def _on_either(name: str, own: Value, inherited: Value) -> Value:
    return lambda span, trace: own(span, trace) if name in span.attributes else inherited(span, trace)


@dataclass(frozen=True, slots=True)
class _Lookup:
    """What lets the values of one place through: any of the tests. `number_types` are those of the constants in them."""

    tests: tuple[Test, ...]
    number_types: frozenset[type]


_NOT_LOOKED_UP = _Lookup((), frozenset())


def _lookup(conditions: Iterable[Condition]) -> _Lookup:
    equal: dict[type, set[Any]] = {}
    others: dict[tuple[str, type, ast.Literal], Any] = {}
    is_exact = False
    for condition in conditions:
        assert condition.literal is not None
        constant = condition.literal.value
        if isinstance(condition.field, ast.IntrinsicField):
            constant = _as_stored(condition.field.intrinsic, constant)
        else:
            is_exact = True
        kind = _kind(constant)
        if condition.op == "=":  # all of one type are one test, so that a value costs the same however many there are
            equal.setdefault(kind, set()).update(constant if isinstance(constant, tuple) else (constant,))
        else:
            others[condition.op, kind, condition.literal] = constant
    tests = [scalar_test("=", tuple(members), exact_type=is_exact) for members in equal.values()]
    tests += [scalar_test(op, constant, exact_type=is_exact) for (op, _, _), constant in others.items()]
    return _Lookup(tuple(tests), _NUMBERS & (equal.keys() | {kind for _, kind, _ in others}))


def _kind(constant: Any) -> type:
    return type(constant[0] if isinstance(constant, tuple) else constant)


class Compiler:
    """Compiles the expressions of one query, knowing what the whole query fetches."""

    __slots__ = ("_asked", "_lookups", "_requires_every_field", "request")

    def __init__(self, request: Request) -> None:
        self.request = request
        self._requires_every_field = request.requires_every_field
        self._asked = request.asked()
        self._lookups = {
            place: None if conditions is None else _lookup(conditions) for place, conditions in request.by_place().items()
        }

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
        """Return the function that reads what the query has been handed of a field; see `fetch`."""
        if isinstance(field, ast.Attribute) and field.scope is Scope.NONE:
            return _on_either(field.name, *map(self._read, placed(field)))
        lookup = self._lookup_of(field)
        if lookup is None:
            return field_value(field)
        tests = lookup.tests
        if (several := lists_of(field)) is not None:
            values = several
            return lambda span, trace: next((v for v in values(span, trace) if any(test(v) for test in tests)), None)
        read = _raw(field)
        return lambda span, trace: _handed_over(read(span, trace), tests)

    def _lookup_of(self, field: ast.Field) -> _Lookup | None:
        """Return what lets values of the field through, or None if every value is seen; an attribute has a scope here."""
        return self._lookups[place_of(field)] if key_of(field) in self._asked else _NOT_LOOKED_UP

    def measured(self, field: ast.Field) -> Value:
        """Return the function that reads what a metrics function measures: what was handed over, if it was asked for."""
        is_asked_for = field not in self.request.selected and self._asked.get(key_of(field), set()) - {ABSENT}
        return self._read(field) if is_asked_for else field_value(field)

    def label_of(self, field: ast.Field) -> Value:
        """Return the function that reads a label of a series; an intrinsic is read anew unless all fields were found."""
        if isinstance(field, ast.IntrinsicField) and not self.request.is_conjunction:
            return field_value(field)
        return self.measured(field)

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
                return self._either(node.left, node.right)
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

    def _either(self, left: ast.Expression, right: ast.Expression) -> Predicate:
        if _is_truth(left) and _is_truth(right):
            first, second = self.holds(left), self.holds(right)
            return lambda span, trace: first(span, trace) or second(span, trace)
        one, other = self.value_of(left), self.value_of(right)

        def either(span: Span, trace: Trace) -> bool:
            # An attribute that is missing is neither true nor false, and then neither is the whole.
            found = one(span, trace), other(span, trace)
            return all(isinstance(side, bool) for side in found) and any(found)

        return either

    def _compared(self, op: str, field: ast.Field, literal: ast.Literal) -> Predicate:
        if key_of(field) not in self._asked:
            return lambda _span, _trace: False
        if literal.value is None:
            return _existence(field, wanted=op == "!=")
        if isinstance(field, ast.IntrinsicField):
            return _tested(field, op, literal)
        if field.scope is Scope.NONE:
            return _on_either(field.name, *(self._compared(op, one, literal) for one in placed(field)))
        test = self._judgement(op, field, literal)
        if (several := lists_of(field)) is not None:
            values = several
            return lambda span, trace: any(map(test, values(span, trace)))
        read = field_value(field) if is_apart(field) and self._lookup_of(field) is None else _raw(field)
        return lambda span, trace: test(read(span, trace))

    def _judgement(self, op: str, field: ast.Attribute, literal: ast.Literal) -> Test:
        """Return the test of an attribute's value, of which the query is handed only what some condition lets through."""
        loose = make_test(op, literal.value, exact_type=False)
        lookup = self._lookup_of(field)
        if lookup is None:
            return loose
        tests = lookup.tests
        exact = scalar_test(op, literal.value, exact_type=True)
        own = _kind(literal.value)
        if own in _NUMBERS and lookup.number_types - {own}:
            return lambda value: loose(_handed_over(value, tests))
        # What satisfies this very condition was let through by it, so that only arrays need a closer look.
        return lambda value: loose(_handed_over(value, tests)) if type(value) is tuple else exact(value)

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
        if not self._requires_every_field:
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
        groups = [self._found(conditions) for conditions in self.request.by_field().values()]
        return self._enough(groups) if self._requires_every_field or self.request.requires_any_field else None

    def _found(self, conditions: list[Condition]) -> Predicate:
        """Return whether a field was found, given all conditions on it."""
        field = conditions[0].field
        tests = [_existence(field, wanted=c.op == EXISTS) for c in conditions if c.op in (EXISTS, ABSENT)]
        if len(tests) < len(conditions):
            read = self._read(field)
            tests.append(lambda span, trace: read(span, trace) is not None)
        return self._enough(tests)

    def _enough(self, tests: list[Predicate]) -> Predicate:
        """Return whether as many hold as the query requires: every one, or one of them."""
        if len(tests) == 1:
            return tests[0]
        enough = all if self._requires_every_field else any
        return lambda span, trace: enough(test(span, trace) for test in tests)


def _handed_over(value: Any, tests: tuple[Test, ...]) -> Any:
    """Return what is seen of a value. An array of which one element is left cannot be told from that element."""
    if type(value) is not tuple:
        return value if value is not None and any(test(value) for test in tests) else None
    return alone(tuple(element for element in value if any(test(element) for test in tests)))


def _tested(field: ast.IntrinsicField, op: str, literal: ast.Literal) -> Predicate:
    constant = _as_stored(field.intrinsic, literal.value)
    if field.intrinsic is Intrinsic.DURATION and literal.type in NUMERIC:
        # The commonest filter of all: no duration object is made, the numbers are compared.
        compare, bound = COMPARE[op], constant
        return lambda span, _: compare(span.duration_ns, bound)
    test = make_test(op, constant, exact_type=False)
    if (several := lists_of(field)) is not None:
        values = several
        return lambda span, trace: any(map(test, values(span, trace)))
    read = _raw(field)
    return lambda span, trace: test(read(span, trace))


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
    if field.scope is Scope.NONE and not wanted:  # it is missing already if it is missing in one of the two places
        places = [_existence(ast.Attribute(scope, field.name), wanted=False) for scope in (Scope.SPAN, Scope.RESOURCE)]
        return lambda span, trace: any(is_absent(span, trace) for is_absent in places)
    read = _raw(field)
    return lambda span, trace: (type_of(read(span, trace)) is not Type.NIL) is wanted


def _as_stored(intrinsic: Intrinsic, constant: Any) -> Any:
    return constant.lstrip("0") if intrinsic in _TRACE_IDS and isinstance(constant, str) else constant


def _is_truth(node: ast.Expression) -> bool:
    """Return whether the expression is true or false on every span."""
    match node:
        case ast.Literal(value):
            return isinstance(value, bool)
        case ast.Binary(op):
            return op in ast.COMPARISONS or op in ast.LOGICAL
    return False


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
