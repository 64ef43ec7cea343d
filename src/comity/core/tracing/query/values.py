"""The values a query computes with: their types, Go's duration text, and arithmetic that behaves as Tempo's.

Strings, numbers and booleans are plain Python values and `None` is nil. Only durations need a class of their own: they
are nanoseconds, but print as durations and turn arithmetic into floats.
"""

from __future__ import annotations

import math
import re
from enum import StrEnum
from typing import Any

from comity.core.tracing.span import INT64_MAX, INT64_MIN, Kind, Status

_UNIT_NS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,  # micro sign
    "μs": 10**3,  # Greek mu
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86_400 * 10**9,
    "w": 7 * 86_400 * 10**9,
    "y": 365 * 86_400 * 10**9,
}
_UNITS = "|".join(sorted(_UNIT_NS, key=len, reverse=True))
DURATION_PART = re.compile(rf"([0-9]++(?:\.[0-9]*+)?|\.[0-9]++)({_UNITS})")  # no digit is tried twice
_NUMBER_CHARACTERS_MAX = 64  # of a part of a duration
SECOND_NS = 10**9


class Type(StrEnum):
    """The types of the language. ATTRIBUTE is an attribute whose type only the data knows."""

    NIL = "nil"
    STRING = "string"
    INT = "int"
    FLOAT = "float"
    DURATION = "duration"
    BOOL = "bool"
    STATUS = "status"
    KIND = "kind"
    ARRAY = "array"
    ATTRIBUTE = "attribute"


NUMERIC = frozenset({Type.INT, Type.FLOAT, Type.DURATION})


class Duration(int):
    """A span of time in nanoseconds, possibly negative."""

    __slots__ = ()

    def __str__(self) -> str:
        return _go_duration(int(self))


class Undefined(Exception):  # noqa: N818  not an error of the query: the span it happens on is left out
    """An expression has no value on this span: a sign change of a text, a division by zero."""


_TYPES: dict[type, Type] = {
    type(None): Type.NIL,
    str: Type.STRING,
    bool: Type.BOOL,
    int: Type.INT,
    float: Type.FLOAT,
    Duration: Type.DURATION,
    Status: Type.STATUS,
    Kind: Type.KIND,
    tuple: Type.ARRAY,
}


def type_of(value: Any) -> Type:
    """Return the type of a value; what the language cannot hold (bytes, key-value lists) is nil."""
    return _TYPES.get(type(value), Type.NIL)


def groupable(value: Any) -> Any:
    """Return the value spans can be grouped by, or None for what the language cannot hold."""
    kind = type_of(value)
    if kind is Type.ARRAY:
        return alone(value) if all(type_of(element) not in (Type.NIL, Type.ARRAY) for element in value) else None
    return None if kind is Type.NIL else value


def alone(array: tuple[Any, ...]) -> Any:
    """Return an array as it is seen: with one element as that element, without any as nil."""
    return array if len(array) > 1 else next(iter(array), None)


def parse_duration(text: str) -> Duration | None:
    """Return the duration a literal such as `1h30m` or `1.5s` means, or None if it is none."""
    total, at = 0, 0
    while at < len(text):
        part = DURATION_PART.match(text, at)
        if part is None:
            return None
        number, unit = part.groups()
        if len(number) > _NUMBER_CHARACTERS_MAX:
            return None
        whole, _, fraction = number.partition(".")
        # Decimal digits, not floats: 54.666666ms must be the 54,666,666 ns that printed it.
        total += int(f"{whole}{fraction}") * _UNIT_NS[unit] // 10 ** len(fraction)
        at = part.end()
    return Duration(total) if at and total <= INT64_MAX else None


def _go_duration(nanos: int) -> str:
    """Return a duration as Go prints it: `1h2m3.5s`, `54.666666ms`, `0s`."""
    sign, nanos = ("-", -nanos) if nanos < 0 else ("", nanos)
    if nanos == 0:
        return "0s"
    if nanos < SECOND_NS:
        for unit, size in (("ns", 1), ("µs", 10**3), ("ms", 10**6)):
            if nanos < size * 1000:
                return f"{sign}{_fraction(nanos, size)}{unit}"
    minutes, rest = divmod(nanos, 60 * SECOND_NS)
    hours, minutes = divmod(minutes, 60)
    text = f"{_fraction(rest, SECOND_NS)}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{text}"
    return f"{sign}{minutes}m{text}" if minutes else f"{sign}{text}"


def _fraction(amount: int, size: int) -> str:
    whole, rest = divmod(amount, size)
    if rest == 0:
        return str(whole)
    digits = len(str(size)) - 1
    return f"{whole}.{str(rest).rjust(digits, '0').rstrip('0')}"


def wrap(value: int) -> int:
    """Return the value as a signed 64-bit integer, wrapping round as Go's integers do."""
    if INT64_MIN <= value <= INT64_MAX:
        return value
    return (value - INT64_MIN) % 2**64 + INT64_MIN


def arithmetic(op: str, left: Any, right: Any) -> int | float:
    """Return `left op right`: integers among themselves stay integers, everything else becomes a float."""
    if type(left) is int and type(right) is int:
        return _integer_arithmetic(op, left, right)
    return _float_arithmetic(op, float(left), float(right))


def _integer_arithmetic(op: str, left: int, right: int) -> int:
    match op:
        case "+":
            return wrap(left + right)
        case "-":
            return wrap(left - right)
        case "*":
            return wrap(left * right)
        case "^":
            return _integer_power(right, left)  # the other way round: so Tempo has it for integers, and only for them
    if right == 0:
        raise Undefined
    quotient = abs(left) // abs(right)
    if (left < 0) != (right < 0):
        quotient = -quotient
    return wrap(quotient) if op == "/" else left - quotient * right


def _integer_power(base: int, exponent: int) -> int:
    power = _float_arithmetic("^", float(base), float(exponent))
    return int(power) if INT64_MIN <= power < 2.0**63 else INT64_MIN  # what Go makes of a float that is no integer


def _float_arithmetic(op: str, left: float, right: float) -> float:
    match op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return _divide(left, right)
        case "%":
            return math.fmod(left, right) if right and math.isfinite(left) else math.nan
    try:
        return math.pow(left, right)
    except OverflowError:
        return -math.inf if left < 0 and right % 2 == 1 else math.inf
    except ValueError:
        return math.nan if left else math.inf


def _divide(left: float, right: float) -> float:
    """Return the quotient with IEEE's answers for a zero divisor, where Python would raise."""
    if right:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)
