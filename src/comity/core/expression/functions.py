"""The functions and methods of expressions, by name: sizes, conversions among types, and the extensions."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

from comity.core.expression import numbers, texts, times
from comity.core.expression.errors import CostError, EvaluationError
from comity.core.expression.macros import PATTERNS, STEPS, STEPS_MAX, Variables, spend
from comity.core.expression.values import (
    INT_MAX,
    INT_MIN,
    NONE,
    UINT_MAX,
    Duration,
    Map,
    Optional,
    Timestamp,
    Type,
    Uint,
    is_list,
    no_overload,
    type_name,
)
from comity.core.tracing.query.pattern import PatternError
from comity.core.tracing.query.regex import Regex


class Function(NamedTuple):
    """A function, how many arguments it takes (a method's target counts), and whether its cost grows with their size.

    One that is metered gets the variables of the evaluation first, and spends steps by itself.
    """

    function: Callable[..., Any]
    counts: frozenset[int]
    is_costly: bool = False
    is_metered: bool = False


TYPE_NAMES: Final = {
    name: Type(name)
    for name in (
        "bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type",
        "google.protobuf.Timestamp", "google.protobuf.Duration", "optional_type",
    )
}  # fmt: skip
SHORT_CHARS: Final = 256
_DIGITS_MAX: Final = 4_000  # Python reads no longer text as a number
_INTEGER: Final = re.compile(r"[+-]?\d+")
_UNSIGNED: Final = re.compile(r"\+?\d+")
_DOUBLE: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|(?i:inf(?:inity)?|nan))")
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})


def size(value: Any) -> int:
    """Return how many characters, bytes, elements or keys a value has."""
    if isinstance(value, str | bytes | list | tuple | dict | Map):
        return len(value)
    raise no_overload("size()", value)


def to_int(value: Any) -> int:
    """Return a value as a whole number."""
    if type(value) is int:
        return value
    if type(value) is Uint and value <= INT_MAX:
        return int(value)
    if type(value) is float and INT_MIN < value < INT_MAX:
        return int(value)
    if type(value) is Timestamp:
        return value.ns // 10**9
    if type(value) is str and len(value) <= _DIGITS_MAX and _INTEGER.fullmatch(value) and value.isascii():
        found = int(value)
        if INT_MIN <= found <= INT_MAX:
            return found
    raise _not_convertible(value, "int")


def to_uint(value: Any) -> Uint:
    """Return a value as an unsigned number."""
    if type(value) is Uint:
        return value
    if type(value) is int and value >= 0:
        return Uint(value)
    if type(value) is float and 0 <= value < UINT_MAX:
        return Uint(int(value))
    if type(value) is str and len(value) <= _DIGITS_MAX and _UNSIGNED.fullmatch(value) and value.isascii():
        found = int(value)
        if found <= UINT_MAX:
            return Uint(found)
    raise _not_convertible(value, "uint")


def to_double(value: Any) -> float:
    """Return a value as a double."""
    if type(value) in (int, float, Uint):
        return float(value)
    if type(value) is str and _DOUBLE.fullmatch(value) and value.isascii():
        return float(value)
    raise _not_convertible(value, "double")


def to_string(value: Any) -> str:
    """Return a value as text."""
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind in (int, Uint):
        return str(int(value))
    if kind is float:
        return texts.double(value)
    if kind is bytes:
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            raise EvaluationError("the bytes are no UTF-8") from None
    if kind is Timestamp:
        return times.timestamp_text(value)
    if kind is Duration:
        return times.duration_text(value)
    raise _not_convertible(value, "string")


def to_bytes(value: Any) -> bytes:
    """Return a text as its UTF-8 bytes."""
    if type(value) is bytes:
        return value
    if type(value) is str:
        try:
            return value.encode()
        except UnicodeEncodeError:
            raise EvaluationError("the text has no UTF-8 form") from None
    raise _not_convertible(value, "bytes")


def to_bool(value: Any) -> bool:
    """Return a value as true or false."""
    if type(value) is bool:
        return value
    if type(value) is str and value in _TRUE | _FALSE:
        return value in _TRUE
    raise _not_convertible(value, "bool")


def _not_convertible(value: Any, kind: str) -> EvaluationError:
    return EvaluationError(f"this {type_name(value)} cannot become {kind}")


def type_of(value: Any) -> Type:
    """Return the type of a value."""
    return Type(type_name(value))


@lru_cache(maxsize=256)
def _pattern(text: str) -> Regex:
    try:
        return Regex(f".*(?:(?-s:{text})).*")
    except PatternError as error:
        raise EvaluationError(f"the pattern cannot be read: {error}") from None


@lru_cache(maxsize=1024)
def _alone(pattern: str, text: str) -> tuple[bool, int]:
    """Return whether a short text holds a pattern that is not remembered yet, and the steps that takes."""
    left = [STEPS_MAX]
    try:
        found = _pattern(pattern).metered(partial(spend, {STEPS: left})).matches(text)
    except CostError:
        found = False
    return found, STEPS_MAX - left[0]


def matches(variables: Variables, value: Any, pattern: Any) -> bool:
    """Return whether a text holds something that fits an RE2 pattern; in linear time.

    What is remembered of a pattern is that of one evaluation, so that equal evaluations take equal steps. Most evaluations
    ask about one short text: the answer is remembered beyond them, with its steps.
    """
    if type(value) is not str or type(pattern) is not str:
        raise no_overload("matches()", value, pattern)
    remembered = variables[PATTERNS]
    if (known := remembered.get(pattern)) is None and len(value) <= SHORT_CHARS:
        found, steps = _alone(pattern, value)
        spend(variables, steps)
        remembered[pattern] = value
        return found
    if not isinstance(known, Regex):
        left = variables[STEPS].copy()
        regex = remembered[pattern] = _pattern(pattern).metered(partial(spend, variables))
        if known is not None:
            regex.matches(known)
            variables[STEPS][:] = left  # these steps were taken before
        known = regex
    return known.matches(value)


# --- optionals ---


def _optional(value: Any) -> Optional:
    if type(value) is not Optional:
        raise no_overload("an optional's method", value)
    return value


def _of_non_zero(value: Any) -> Optional:
    if isinstance(value, Timestamp | Duration):
        return Optional(value) if value.ns else NONE
    is_zero = value is None or (isinstance(value, bool | int | float | str | bytes | list | tuple | dict | Map) and not value)
    return NONE if is_zero else Optional(value)


def _value(target: Any) -> Any:
    if not _optional(target).has_value:
        raise EvaluationError("the optional has no value")
    return target.value


def _first(target: Any) -> Optional:
    if not is_list(target):
        raise no_overload("first()", target)
    return Optional(target[0]) if target else NONE


def _last(target: Any) -> Optional:
    if not is_list(target):
        raise no_overload("last()", target)
    return Optional(target[-1]) if target else NONE


def _or(target: Any, other: Any) -> Optional:
    return target if _optional(target).has_value else _optional(other)


def _or_value(target: Any, other: Any) -> Any:
    return target.value if _optional(target).has_value else other


def _unwrap(target: Any) -> list[Any]:
    if not is_list(target):
        raise no_overload("unwrap()", target)
    return [one.value for one in target if _optional(one).has_value]


def _one(function: Callable[..., Any], *counts: int, is_costly: bool = False) -> Function:
    return Function(function, frozenset(counts), is_costly)


FUNCTIONS: Final[dict[str, Function]] = {
    "size": _one(size, 1),
    "int": _one(to_int, 1, is_costly=True),
    "uint": _one(to_uint, 1, is_costly=True),
    "double": _one(to_double, 1, is_costly=True),
    "string": _one(to_string, 1, is_costly=True),
    "bytes": _one(to_bytes, 1, is_costly=True),
    "bool": _one(to_bool, 1),
    "type": _one(type_of, 1),
    "dyn": _one(lambda value: value, 1),
    "matches": Function(matches, frozenset({2}), is_costly=True, is_metered=True),
    "timestamp": _one(times.to_timestamp, 1),
    "duration": _one(times.to_duration, 1),
    "optional.of": _one(Optional, 1),
    "optional.none": _one(lambda: NONE, 0),
    "optional.ofNonZeroValue": _one(_of_non_zero, 1),
    "optional.unwrap": _one(_unwrap, 1, is_costly=True),
    **{name: Function(*one) for name, one in numbers.FUNCTIONS.items()},
    **{name: Function(*one, is_costly=True) for name, one in texts.FUNCTIONS.items()},
}
METHODS: Final[dict[str, Function]] = {
    "size": _one(size, 1),
    "matches": Function(matches, frozenset({2}), is_costly=True, is_metered=True),
    "hasValue": _one(lambda target: _optional(target).has_value, 1),
    "value": _one(_value, 1),
    "or": _one(_or, 2),
    "orValue": _one(_or_value, 2),
    "first": _one(_first, 1),
    "last": _one(_last, 1),
    "unwrapOpt": _one(_unwrap, 1, is_costly=True),
    **{name: Function(*one, is_costly=True) for name, one in texts.METHODS.items()},
    **{name: Function(*one) for name, one in times.METHODS.items()},
}
