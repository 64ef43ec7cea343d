"""What Tempo's storage hands to its engine for a query, before the engine decides.

This is part of the language, not of its speed. From every filter Tempo takes the plain conditions (`field op constant`, or
just the field) without minding a `!` around them. If the query is one conjunction, a span is only looked at if each field
named was found; otherwise it is enough that one was. So `{ kind = client && !(status = error) }` finds nothing: only spans
with `status = error` are fetched, and then the filter refuses them.

Found is a field whose value satisfies a condition, and only what was found is seen: of an array the elements that do, of
everything else all or nothing. The attributes of one place (the span, its resource, an event …) are looked up together, so
what one condition lets through is let through for all of them; and by type, so `span.ratio = 3` asks for integers and never
sees 3.0, unless another condition there asks for such floats, or for any value. A constant on the left is looked up as if it
stood on the right: `10 < span.x` fetches what is below 10, and then finds nothing. All of this is in the answers of a real
Tempo, so it is reproduced.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from comity.core.tracing.query import ast

_TRACE_LEVEL = frozenset(
    {
        ast.Intrinsic.ROOT_NAME,
        ast.Intrinsic.ROOT_SERVICE_NAME,
        ast.Intrinsic.TRACE_DURATION,
        ast.Intrinsic.TRACE_ID,
    }
)
READ, EXISTS, ABSENT = "read", "exists", "absent"
# Attributes that Tempo keeps apart from the others unless configured otherwise; a missing attribute is read as the text `nil`.
APART: dict[ast.Scope, frozenset[str]] = {
    ast.Scope.SPAN: frozenset(
        {
            "http.request.method",
            "http.response.status_code",
            "url.path",
            "url.route",
            "server.address",
            "server.port",
            "http.method",
            "http.url",
            "http.route",
            "http.status_code",
        }
    ),
    ast.Scope.RESOURCE: frozenset({"k8s.cluster.name", "k8s.namespace.name", "k8s.pod.name", "k8s.container.name"}),
}
_ALWAYS_THERE = (ast.Scope.RESOURCE, "service.name")

Key = tuple[str, str]
Place = tuple[str, str | None]
"""What is looked up together: a field that is alone by its key, the other attributes of a scope without a name."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A field, and what is asked of it: its value whatever it is, that it exists, is absent, or compares so with a constant."""

    field: ast.Field
    op: str = READ
    literal: ast.Literal | None = None

    @property
    def key(self) -> Key:
        return key_of(self.field)


@dataclass(slots=True)
class Request:
    """All conditions of a query, and whether each field must satisfy one of its own."""

    conditions: list[Condition] = field(default_factory=list)
    is_conjunction: bool = True
    fetches_all: bool = False  # a filter that asks nothing, or a relation between spans
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
        return bool(self.conditions) and not self.fetches_all and not self._asks_about_the_trace()

    def _asks_about_the_trace(self) -> bool:
        return any(isinstance(c.field, ast.IntrinsicField) and c.field.intrinsic in _TRACE_LEVEL for c in self.conditions)

    def is_all_there_is(self, others: Iterable[ast.Field]) -> bool:
        """Return whether Tempo measures what was fetched without judging it: if all fields, these too, are on every span.

        Then what was fetched is taken to be what was asked for, also where a `!` says otherwise.
        """
        fields = [condition.field for condition in self.conditions]
        return (
            self.is_conjunction
            and len({key_of(one) for one in fields}) == len(fields)
            and all(isinstance(one, ast.IntrinsicField) or key_of(one) == _ALWAYS_THERE for one in (*fields, *others))
        )

    def loses(self, intrinsic: ast.Intrinsic) -> bool:
        """Return whether something of the trace was read with the spans, and so is gone once these are grouped anew."""
        return any(
            isinstance(c.field, ast.IntrinsicField) and c.field.intrinsic is intrinsic and (c.op == READ or self.is_conjunction)
            for c in self.conditions
        )

    def asked(self) -> dict[Key, set[str]]:
        """Return what is asked of each field; of one without a scope also under the scopes where it is looked up."""
        found: dict[Key, set[str]] = {}
        for condition in self.conditions:
            for one in {condition.field, *placed(condition.field)}:
                found.setdefault(key_of(one), set()).add(condition.op)
        return found

    def by_place(self) -> dict[Place, tuple[Condition, ...] | None]:
        """Return the conditions of each place one of which a value must satisfy to be seen, or None if every value is."""
        found: dict[Place, list[Condition]] = {}
        for condition in self.conditions:
            for one in placed(condition.field):
                found.setdefault(place_of(one), []).append(condition)
        return {
            place: None
            if any(condition.op in (READ, EXISTS) for condition in together)
            else tuple(condition for condition in together if condition.op != ABSENT)
            for place, together in found.items()
        }


def key_of(found: ast.Field) -> Key:
    """Return what makes two ways of writing a field the same field."""
    if isinstance(found, ast.Attribute):
        return found.scope, found.name
    return "intrinsic", found.intrinsic


def is_apart(found: ast.Attribute) -> bool:
    """Return whether the attribute is kept apart from the others of its place."""
    return found.name in APART.get(found.scope, ())


def placed(found: ast.Field) -> tuple[ast.Field, ...]:
    """Return the field in the places where it is looked up: without a scope, on the span and on its resource."""
    if isinstance(found, ast.Attribute) and found.scope is ast.Scope.NONE:
        return ast.Attribute(ast.Scope.SPAN, found.name), ast.Attribute(ast.Scope.RESOURCE, found.name)
    return (found,)


def place_of(found: ast.Field) -> Place:
    """Return with what a field is looked up; an attribute has a scope here."""
    key = key_of(found)
    is_alone = isinstance(found, ast.IntrinsicField) or is_apart(found) or key == _ALWAYS_THERE
    return key if is_alone else (key[0], None)


def plan_fetch(root: ast.Pipeline | ast.PipelineOperation) -> Request:
    """Return the conditions of a pipeline whose expressions are already in executable form."""
    request = Request()
    _collect(root, request)
    return request


def _collect(node: ast.Pipeline | ast.PipelineOperation | ast.Stage, request: Request) -> None:
    match node:
        case ast.Pipeline():
            _collect_stages(node.stages, request)
        case ast.PipelineOperation() | ast.SpansetOperation():
            request.is_conjunction = False
            request.fetches_all |= node.op not in ast.LOGICAL
            _collect(node.left, request)
            _collect(node.right, request)
        case ast.SpansetFilter(ast.Literal()):
            request.fetches_all = True
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


def _collect_stages(stages: tuple[ast.Stage, ...], request: Request) -> None:
    shown: Request | None = None
    for stage in stages:
        if isinstance(stage, ast.Select):
            request.selected.extend(stage.fields)
            shown = shown or Request()
        elif shown is None:
            _collect(stage, request)
        else:  # what is asked for after a select is shown, and too late to decide anything
            _collect(stage, shown)
    if shown is not None:
        request.selected.extend(condition.field for condition in shown.conditions)


def conditions_of(expression: ast.Expression) -> Iterator[Condition]:
    """Yield the plain conditions of an expression in executable form, from left to right."""
    todo = [expression]
    while todo:
        match todo.pop():
            case ast.Attribute() | ast.IntrinsicField() as found:
                yield Condition(found)
            case ast.Unary(_, operand):
                todo.append(operand)
            case ast.Binary(op, ast.Attribute() | ast.IntrinsicField() as found, ast.Literal() as literal) | ast.Binary(
                op, ast.Literal() as literal, ast.Attribute() | ast.IntrinsicField() as found
            ) if op in ast.COMPARISONS:
                if literal.value is None:
                    yield Condition(found, ABSENT if op == "=" else EXISTS)
                else:
                    yield Condition(found, op, literal)
            case ast.Binary(_, left, right):
                todo += (right, left)


def _has_alternatives(node: ast.Expression) -> bool:
    """Return whether fields need not all be found. Tempo overlooks an `||` after a field that stands alone."""
    match node:
        case ast.Unary():
            return _has_alternatives(node.operand)
        case ast.Binary(_, ast.Attribute() | ast.IntrinsicField() | ast.Literal()):
            return _has_alternatives(node.right)
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
        case ast.Binary("||", ast.Attribute()):
            return False
        case ast.Binary() if node.op in ast.LOGICAL:
            return decides_alone(node.left) and decides_alone(node.right)
        case ast.Literal():
            return False
        case ast.Binary():
            return True
    return True
