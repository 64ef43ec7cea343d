"""What a query asks for, as SQL over the span store's tables.

Everything here may let too much through and never too little: what comes out is judged by the query engine. A condition
that SQL cannot answer is left out. Two things are made of a condition about one span: the *lookups* that could start from
the index, and the *test* that a row must pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from comity.core.tracing.query import ast
from comity.core.tracing.query.conditions import ANYTHING, EXISTS, AllOf, AnyOf, Condition, Exists, Leaf
from comity.core.tracing.query.values import NUMERIC, type_of
from comity.core.tracing.span import INT64_MIN, Kind, Status
from comity.engines.sqlite.spans.compare import OPERATORS
from comity.engines.sqlite.spans.rows import INDEXED, KEY_OF_NAME, KEY_OF_TRACE, KINDS, STATUSES, encode, indexed_value

VALUES_MAX: Final = 50
LEAVES_MAX: Final = 200
_TRACE_ID_DIGITS = 32
_EXACT_MAX = 2**62

Pair = tuple[int, Any]
Lookup = tuple[Pair, ...]
"""Places in the index of which one must hold the span: key number and value."""


@dataclass(slots=True)
class RowCondition:
    """A SQL condition over a row `s` of the spans; `sql` is None if any row passes."""

    sql: str | None = None
    parameters: list[Any] = field(default_factory=list)


# lookups


def lookups(condition: Condition) -> list[Lookup]:
    """Return the ways to start from the index; each alone finds every span on which the condition holds."""
    match condition:
        case Leaf(found, "=", values):
            lookup = _lookup(found, values)
            return [] if lookup is None else [lookup]
        case AllOf(parts):
            return [lookup for part in parts for lookup in lookups(part)]
        case AnyOf(parts):
            firsts = [next(iter(lookups(part)), None) for part in parts]
            pairs = [pair for lookup in firsts for pair in lookup or ()]
            return [tuple(dict.fromkeys(pairs))] if None not in firsts and len(pairs) <= LEAVES_MAX else []
    return []


def _lookup(found: ast.Field, values: tuple[Any, ...]) -> Lookup | None:
    if len(values) > VALUES_MAX:
        return None
    if isinstance(found, ast.IntrinsicField):
        if not all(isinstance(value, str) for value in values):
            return None
        if found.intrinsic is ast.Intrinsic.NAME:
            return tuple((KEY_OF_NAME, indexed_value(value)) for value in values)
        if found.intrinsic is ast.Intrinsic.TRACE_ID:
            return tuple((KEY_OF_TRACE, value.lstrip("0").rjust(_TRACE_ID_DIGITS, "0")) for value in values)
        return None
    in_index = found.scope in (ast.Scope.SPAN, ast.Scope.RESOURCE, ast.Scope.NONE) and not found.parent
    if not in_index or found.name not in INDEXED:
        return None
    stored = [indexed_value(value) for value in values]
    return tuple((INDEXED[found.name], value) for value in stored if value is not None)


def choose(condition: Condition, cost: Callable[[Condition], float]) -> list[Condition]:
    """Return conditions about one span such that every trace with the condition has a span that meets one of them."""
    match condition:
        case Exists(span):
            return [span]
        case AllOf(parts) if parts:
            return min((choose(part, cost) for part in parts), key=lambda chosen: sum(map(cost, chosen)))
        case AnyOf(parts):
            return list(dict.fromkeys(span for part in parts for span in choose(part, cost)))
    return [ANYTHING]


# tests


def row_condition(condition: Condition) -> RowCondition:
    """Return the SQL condition that every row passes on which the condition holds."""
    if sum(1 for _ in _leaves(condition)) > LEAVES_MAX:
        return RowCondition()  # beyond what SQLite takes in one statement
    test = RowCondition()
    test.sql = _sql(condition, test.parameters)
    return test


def _leaves(condition: Condition) -> Iterator[Leaf]:
    match condition:
        case Leaf():
            yield condition
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from _leaves(part)


def _sql(condition: Condition, parameters: list[Any]) -> str | None:
    match condition:
        case AllOf(parts):
            return _joined(" AND ", [sql for part in parts if (sql := _sql(part, parameters)) is not None])
        case AnyOf(parts):
            mark = len(parameters)
            alternatives = [_sql(part, parameters) for part in parts]
            if None in alternatives:
                del parameters[mark:]
                return None
            return _joined(" OR ", [sql for sql in alternatives if sql is not None])
        case Leaf(ast.IntrinsicField() as found, op, values):
            return _intrinsic(found.intrinsic, op, values, parameters)
        case Leaf(ast.Attribute() as found, op, values):
            return None if found.parent else _attribute(found, op, values, parameters)
    return None


def _joined(word: str, parts: list[str]) -> str | None:
    return f"({word.join(parts)})" if parts else None


def _intrinsic(found: ast.Intrinsic, op: str, values: tuple[Any, ...], parameters: list[Any]) -> str | None:
    if op == EXISTS or len(values) > VALUES_MAX:
        return None
    if found is ast.Intrinsic.DURATION and all(type_of(value) in NUMERIC and _is_exact(value) for value in values):
        parameters += [value if isinstance(value, float) else int(value) for value in values]
        return _joined(" OR ", [f"s.duration_ns {op} ?"] * len(values))
    if op != "=":
        return None
    if found is ast.Intrinsic.NAME and all(isinstance(value, str) for value in values):
        return _one_of("s.name", list(values), parameters)
    if found is ast.Intrinsic.SPAN_ID and all(isinstance(value, str) for value in values):
        return _one_of("s.span_id", list(values), parameters)
    if found is ast.Intrinsic.STATUS and all(isinstance(value, Status) for value in values):
        return _one_of("s.status", [STATUSES.index(value) for value in values], parameters)
    if found is ast.Intrinsic.KIND and all(isinstance(value, Kind) for value in values):
        return _one_of("s.kind", [KINDS.index(value) for value in values], parameters)
    return None


def _one_of(column: str, values: list[Any], parameters: list[Any]) -> str:
    parameters += values
    return f"{column} IN ({', '.join('?' * len(values))})"


def _attribute(found: ast.Attribute, op: str, values: tuple[Any, ...], parameters: list[Any]) -> str:
    match found.scope:
        case ast.Scope.RESOURCE:
            return _in_resource(found.name, op, values, parameters)
        case ast.Scope.NONE:
            on_span = _in_body("s.body", found.name, op, values, parameters)
            return f"({on_span} OR {_in_resource(found.name, op, values, parameters)})"
    return _in_body("s.body", found.name, op, values, parameters)


def _in_resource(name: str, op: str, values: tuple[Any, ...], parameters: list[Any]) -> str:
    test = _in_body("r.body", name, op, values, parameters)
    return f"s.resource IN (SELECT r.id FROM span_resources AS r WHERE {test})"  # noqa: S608  only fixed words and marks


def _in_body(column: str, name: str, op: str, values: tuple[Any, ...], parameters: list[Any]) -> str:
    key = encode(name)
    if op == "=" and len(values) <= VALUES_MAX:
        needles = list(dict.fromkeys(key + tail for value in values for tail in _encodings(value)))
        parameters += needles
        return f"({' OR '.join([f'instr({column}, ?)'] * len(needles)) or '0'})"
    if op in OPERATORS and len(values) == 1 and type_of(values[0]) in NUMERIC and _is_exact(values[0]):
        bound = values[0] if isinstance(values[0], float) else int(values[0])
        parameters += [key, key, op, bound]
        return f"(instr({column}, ?) AND span_compares({column}, ?, ?, ?))"
    parameters.append(key)
    return f"instr({column}, ?)"


def _is_exact(value: float) -> bool:
    """Return whether SQLite compares the number rightly with any stored one, of which the largest were clamped."""
    return abs(value) <= _EXACT_MAX


def _encodings(value: Any) -> Iterator[bytes]:
    """Yield every way in which a value equal to this one may be encoded."""
    if isinstance(value, bool | str):
        yield encode(value)
    elif isinstance(value, int | float):
        if value == 0:
            yield from (encode(0), encode(0.0), encode(-0.0))
            return
        if math.isfinite(value) and value == int(value) and INT64_MIN <= int(value) < 2**64:
            yield encode(int(value))
        if _as_float(value) == value:
            yield encode(_as_float(value))


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.nan
