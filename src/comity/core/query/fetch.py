"""Which spans Tempo's storage hands to its engine for a query, before the engine decides.

This is part of the language, not of its speed. From every filter Tempo takes the plain conditions (`field op constant`, or
just the field) without minding a `!` around them. If the query is one conjunction, a span is only looked at if each field
named satisfies one of its conditions; otherwise it must satisfy at least one condition of all. So
`{ kind = client && !(status = error) }` finds nothing: only spans with `status = error` are fetched, and then the filter
refuses them. The recorded answers of a real Tempo contain this, so it is reproduced.

Attributes are looked up by type as well: `span.ratio = 3` asks for integers and never sees 3.0, unless another condition of
the query fetched the value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from comity.core.query import ast
from comity.core.query.values import NUMERIC

_TRACE_LEVEL = frozenset(
    {
        ast.Intrinsic.ROOT_NAME,
        ast.Intrinsic.ROOT_SERVICE_NAME,
        ast.Intrinsic.TRACE_DURATION,
        ast.Intrinsic.TRACE_ID,
    }
)
EXISTS, ABSENT = "exists", "absent"

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Condition:
    """A field, and what is asked of it: that it exists, is absent, or compares so with a constant."""

    field: ast.Field
    op: str = EXISTS
    literal: ast.Literal | None = None

    @property
    def key(self) -> Key:
        return key_of(self.field)


@dataclass(slots=True)
class Request:
    """All conditions of a query, and whether each field must satisfy one of its own."""

    conditions: list[Condition] = field(default_factory=list)
    is_conjunction: bool = True
    has_constant_filter: bool = False
    selected: list[ast.Field] = field(default_factory=list)

    def by_field(self) -> dict[Key, list[Condition]]:
        found: dict[Key, list[Condition]] = {}
        for condition in self.conditions:
            found.setdefault(condition.key, []).append(condition)
        return found

    @property
    def requires_every_field(self) -> bool:
        # An attribute without a scope may be on the span or its resource, so it cannot be required of either.
        return self.is_conjunction and not any(
            isinstance(c.field, ast.Attribute) and c.field.scope is ast.Scope.NONE for c in self.conditions
        )

    @property
    def requires_any_field(self) -> bool:
        return bool(self.conditions) and not self.has_constant_filter and not self._asks_about_the_trace()

    def _asks_about_the_trace(self) -> bool:
        return any(isinstance(c.field, ast.IntrinsicField) and c.field.intrinsic in _TRACE_LEVEL for c in self.conditions)

    def is_loose(self, found: ast.Attribute) -> bool:
        """Return whether the query fetches this attribute whatever it holds, so that 3.0 can be compared with 3."""
        return any(c.key == key_of(found) and c.op in (EXISTS, ABSENT) for c in self.conditions)

    def mixes_numbers(self, found: ast.Attribute) -> bool:
        """Return whether the attribute is compared with numbers of several types."""
        kinds = {
            type(_first(c.literal)) for c in self.conditions if c.key == key_of(found) and c.literal and _is_number(c.literal)
        }
        return len(kinds) > 1


def key_of(found: ast.Field) -> Key:
    """Return what makes two ways of writing a field the same field."""
    if isinstance(found, ast.Attribute):
        return found.scope, found.name
    return "intrinsic", found.intrinsic


def _first(literal: ast.Literal) -> object:
    return literal.value[0] if isinstance(literal.value, tuple) else literal.value


def _is_number(literal: ast.Literal) -> bool:
    return ast.Literal(_first(literal)).type in NUMERIC


def plan_fetch(root: ast.Pipeline | ast.PipelineOperation) -> Request:
    """Return the conditions of a pipeline whose expressions are already in executable form."""
    request = Request()
    _collect(root, request)
    return request


def _collect(node: ast.Pipeline | ast.PipelineOperation | ast.Stage, request: Request) -> None:
    match node:
        case ast.Pipeline():
            for stage in node.stages:
                _collect(stage, request)
        case ast.PipelineOperation() | ast.SpansetOperation():
            request.is_conjunction = False
            _collect(node.left, request)
            _collect(node.right, request)
        case ast.SpansetFilter(ast.Literal()):
            request.has_constant_filter = True
        case ast.SpansetFilter():
            request.conditions.extend(conditions_of(node.expression))
            request.is_conjunction &= not _has_alternatives(node.expression)
        case ast.ScalarFilter():
            request.is_conjunction = False
            if isinstance(node.left, ast.Aggregate) and node.left.operand is not None:
                request.conditions.extend(conditions_of(node.left.operand))
        case ast.GroupBy():
            request.is_conjunction = False
            request.conditions.extend(conditions_of(node.expression))
        case ast.Select():
            request.selected.extend(node.fields)


def conditions_of(node: ast.Expression) -> Iterator[Condition]:
    """Yield the plain conditions of an expression in executable form."""
    match node:
        case ast.Attribute() | ast.IntrinsicField():
            yield Condition(node)
        case ast.Unary():
            yield from conditions_of(node.operand)
        case ast.Binary(op, ast.Attribute() | ast.IntrinsicField() as found, ast.Literal() as literal) if op in ast.COMPARISONS:
            if literal.value is None:
                yield Condition(found, ABSENT if op == "=" else EXISTS)
            else:
                yield Condition(found, op, literal)
        case ast.Binary():
            yield from conditions_of(node.left)
            yield from conditions_of(node.right)


def _has_alternatives(node: ast.Expression) -> bool:
    match node:
        case ast.Unary():
            return _has_alternatives(node.operand)
        case ast.Binary():
            return node.op == "||" or _has_alternatives(node.left) or _has_alternatives(node.right)
    return False


def decides_alone(node: ast.Expression) -> bool:
    """Return whether every span that satisfies the expression would be fetched, so that fetching need not be checked.

    That holds as long as the truth of the whole rests on some condition that is true, which a negation or a constant breaks.
    """
    match node:
        case ast.Unary():
            return node.op == "-"
        case ast.Binary() if node.op in ast.LOGICAL:
            return decides_alone(node.left) and decides_alone(node.right)
        case ast.Literal():
            return False
        case ast.Binary():
            return isinstance(node.right, ast.Literal)  # two missing fields are equal, and neither was fetched
    return True
