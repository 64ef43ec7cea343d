"""The values of expressions: JSON's, and the types that JSON does not have. Equality, order and names of types.

`1`, `1u` and `1.0` are equal; `true` is no number. Values of different types are not equal and have no order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from comity.core.expression.errors import EvaluationError, MissingError

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
UINT_MAX: Final = 2**64 - 1
SECOND_NS: Final = 10**9
# The first and last moment of the years 1 to 9999, and the longest duration between two moments.
TIMESTAMP_MIN_NS: Final = -62_135_596_800 * SECOND_NS
TIMESTAMP_MAX_NS: Final = 253_402_300_800 * SECOND_NS - 1
DURATION_MAX_NS: Final = 315_576_000_000 * SECOND_NS


class Uint(int):
    """An unsigned number of 64 bits."""

    __slots__ = ()


class Timestamp:
    """A moment, in nanoseconds since 1970."""

    __slots__ = ("ns",)

    def __init__(self, ns: int) -> None:
        if not TIMESTAMP_MIN_NS <= ns <= TIMESTAMP_MAX_NS:
            raise EvaluationError("the timestamp is outside the years 1 to 9999")
        self.ns = ns


class Duration:
    """A span of time, in nanoseconds."""

    __slots__ = ("ns",)

    def __init__(self, ns: int) -> None:
        if not -DURATION_MAX_NS <= ns <= DURATION_MAX_NS:
            raise EvaluationError("the duration is out of range")
        self.ns = ns


class Type:
    """A type as a value."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Optional:
    """A value that may be absent."""

    __slots__ = ("has_value", "value")

    def __init__(self, value: Any = None, *, has_value: bool = True) -> None:
        self.value = value
        self.has_value = has_value


NONE: Final = Optional(has_value=False)


class Map:
    """A map whose keys are not all texts. `1`, `1u` and `1.0` are one key; `true` is another."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[Any, tuple[Any, Any]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Any]:
        return (key for key, _ in self._entries.values())

    def __contains__(self, key: Any) -> bool:
        return _place(key) in self._entries

    def __getitem__(self, key: Any) -> Any:
        return self._entries[_place(key)][1]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._entries[_place(key)] = (key, value)

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Return keys and values."""
        return iter(self._entries.values())


def _place(key: Any) -> Any:
    kind = type(key)
    if kind is str or kind is int:
        return key
    if kind is bool:
        return (key,)
    if kind is Uint:
        return int(key)
    if kind is float and key.is_integer():
        return int(key)
    return ("no key",)


def make_map(entries: list[tuple[Any, Any]]) -> dict[str, Any] | Map:
    """Return a map of these entries. Raises `EvaluationError` for a key of a wrong type or a repeated key."""
    found: dict[str, Any] | Map = {} if all(type(key) is str for key, _ in entries) else Map()
    for key, value in entries:
        if type(key) not in (str, int, bool, Uint):
            raise EvaluationError(f"{type_name(key)} cannot be a key")
        if key in found:
            raise EvaluationError(f"the key {key!r} is there twice")
        found[key] = value
    return found


TYPES: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    tuple: "list",
    dict: "map",
    Map: "map",
    type(None): "null_type",
    Type: "type",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
    Optional: "optional_type",
}
_NUMBERS: Final = frozenset({int, float, Uint})
_LISTS: Final = frozenset({list, tuple})
_MAPS: Final = frozenset({dict, Map})
_ORDERED: Final = frozenset({str, bytes, bool})
_TIMES: Final = frozenset({Timestamp, Duration})


def type_name(value: Any) -> str:
    """Return the name of a value's type."""
    return TYPES.get(type(value), type(value).__name__)


def is_number(value: Any) -> bool:
    """Return whether a value is a number; a bool is not."""
    return type(value) in _NUMBERS


def is_list(value: Any) -> bool:
    """Return whether a value is a list."""
    return type(value) in _LISTS


def is_map(value: Any) -> bool:
    """Return whether a value is a map."""
    return type(value) in _MAPS


def equal(left: Any, right: Any) -> bool:
    """Return whether two values are equal; values of different types are not."""
    one, other = type(left), type(right)
    if one in _NUMBERS and other in _NUMBERS:
        return bool(float(left) == float(right)) if (one is float) is not (other is float) else bool(left == right)
    if one is not other and not (one in _MAPS and other in _MAPS) and not (one in _LISTS and other in _LISTS):
        return False
    if one in _LISTS:
        return len(left) == len(right) and all(equal(*pair) for pair in zip(left, right, strict=True))
    if one in _MAPS:
        return len(left) == len(right) and all(key in right and equal(value, right[key]) for key, value in left.items())
    if one in _TIMES:
        return bool(left.ns == right.ns)
    if one is Type:
        return bool(left.name == right.name)
    if one is Optional:
        return left.has_value == right.has_value and equal(left.value, right.value)
    return bool(left == right)


def less(left: Any, right: Any) -> bool:
    """Return whether one value comes before another. Raises `EvaluationError` where they have no order."""
    found = _comes_before(left, right)
    if found is None:
        raise no_overload("<", left, right)
    return found


def _comes_before(left: Any, right: Any) -> bool | None:
    """Return whether one value comes before another; None where they have no order."""
    one, other = type(left), type(right)
    if one in _NUMBERS and other in _NUMBERS:
        # A double and a whole number are compared as doubles, which cannot tell the largest whole numbers apart.
        return bool(float(left) < float(right)) if (one is float) is not (other is float) else bool(left < right)
    if one is other and one in _ORDERED:
        return bool(left < right)
    if one is other and one in _TIMES:
        return bool(left.ns < right.ns)
    return None


def _is_nan(value: Any) -> bool:
    return type(value) is float and math.isnan(value)


def in_order(sign: str, left: Any, right: Any) -> bool:
    """Return whether `left sign right`, for one of `<`, `<=`, `>`, `>=`. Raises `EvaluationError` where they have no order."""
    is_strict = len(sign) == 1
    found = _comes_before(left, right) if (sign[0] == "<") is is_strict else _comes_before(right, left)
    if found is None:
        raise no_overload(sign, left, right)
    if is_strict:
        return found
    return not found and not _is_nan(left) and not _is_nan(right)


_KEYS: Final = frozenset({str, int, Uint, float, bool})  # what a key of a map can be looked up by


def contains(container: Any, value: Any) -> bool:
    """Return whether a list has an element, or a map a key."""
    if is_list(container):
        return any(equal(one, value) for one in container)
    if is_map(container) and type(value) in _KEYS:
        return _has_key(container, value)
    raise no_overload("in", value, container)


def _has_key(container: Any, key: Any) -> bool:
    return key in container if type(key) is str or type(container) is Map else False


def at(container: Any, index: Any) -> Any:
    """Return an element of a list or the value of a key. Raises `MissingError` if it is not there."""
    if is_list(container):
        if type(index) is float and index.is_integer():
            index = int(index)
        if type(index) not in (int, Uint):
            raise no_overload("an index of a list", index)
        if not 0 <= index < len(container):
            raise MissingError(f"the index {index} is outside of a list of {len(container)}")
        return container[index]
    if is_map(container):
        if _has_key(container, index):
            return container[index]
        raise MissingError(f"there is no key {index!r}" if type(index) in (str, int, bool) else "there is no such key")
    raise no_overload("[]", container, index)


def whole(number: int) -> int:
    """Return a whole number that fits 64 bits. Raises `EvaluationError` for an overflow."""
    if INT_MIN <= number <= INT_MAX:
        return number
    raise EvaluationError("the whole number overflows 64 bits")


def unsigned(number: int) -> Uint:
    """Return an unsigned number that fits 64 bits. Raises `EvaluationError` for an overflow."""
    if 0 <= number <= UINT_MAX:
        return Uint(number)
    raise EvaluationError("the unsigned number overflows 64 bits")


def no_overload(what: str, *values: object) -> EvaluationError:
    """Return the error for an operation that these types do not have."""
    return EvaluationError(f"{what} does not take {' and '.join(type_name(value) for value in values)}")
