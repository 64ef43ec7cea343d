"""Arithmetic: whole numbers of 64 bits that never wrap, unsigned ones, doubles, texts, lists, and times."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from comity.core.expression.errors import EvaluationError
from comity.core.expression.values import Duration, Timestamp, Uint, is_list, no_overload, unsigned, whole

TEXT_BYTES_MAX: Final = 1_000_000


def add(left: Any, right: Any) -> Any:
    """Return a sum, or two texts, bytes or lists in a row."""
    one, other = type(left), type(right)
    if one is other:
        if one is int:
            return whole(left + right)
        if one is float:
            return left + right
        if one is Uint:
            return unsigned(int(left) + int(right))
        if one in (str, bytes, list):
            if len(left) + len(right) > TEXT_BYTES_MAX:
                raise EvaluationError(f"a value may be {TEXT_BYTES_MAX} long")
            return left + right
        if one is Duration:
            return Duration(left.ns + right.ns)
    if is_list(left) and is_list(right):
        if len(left) + len(right) > TEXT_BYTES_MAX:
            raise EvaluationError(f"a value may be {TEXT_BYTES_MAX} long")
        return [*left, *right]
    if {one, other} == {Timestamp, Duration}:
        return Timestamp(left.ns + right.ns)
    raise no_overload("+", left, right)


def subtract(left: Any, right: Any) -> Any:
    """Return a difference."""
    one, other = type(left), type(right)
    if one is other:
        if one is int:
            return whole(left - right)
        if one is float:
            return left - right
        if one is Uint:
            return unsigned(int(left) - int(right))
        if one in (Timestamp, Duration):
            return Duration(left.ns - right.ns)
    if (one, other) == (Timestamp, Duration):
        return Timestamp(left.ns - right.ns)
    raise no_overload("-", left, right)


def multiply(left: Any, right: Any) -> Any:
    """Return a product."""
    one = type(left)
    if one is type(right):
        if one is int:
            return whole(left * right)
        if one is float:
            return left * right
        if one is Uint:
            return unsigned(int(left) * int(right))
    raise no_overload("*", left, right)


def divide(left: Any, right: Any) -> Any:
    """Return a quotient; of whole numbers it is cut towards zero."""
    one = type(left)
    if one is type(right) and one in (int, Uint):
        if right == 0:
            raise EvaluationError("division by zero")
        found = abs(int(left)) // abs(int(right))
        return unsigned(found) if one is Uint else whole(found if (left < 0) == (right < 0) else -found)
    if one is type(right) is float:
        if right:
            return left / right
        is_negative = math.copysign(1.0, left) != math.copysign(1.0, right)
        return math.nan if left == 0 or math.isnan(left) else -math.inf if is_negative else math.inf
    raise no_overload("/", left, right)


def remainder(left: Any, right: Any) -> Any:
    """Return what is left of a division; it has the sign of the dividend."""
    one = type(left)
    if one is type(right) and one in (int, Uint):
        if right == 0:
            raise EvaluationError("division by zero")
        found = abs(int(left)) % abs(int(right))
        return Uint(found) if one is Uint else -found if left < 0 else found
    raise no_overload("%", left, right)


def negate(value: Any) -> Any:
    """Return a number with the other sign."""
    if type(value) is int:
        return whole(-value)
    if type(value) is float:
        return -value
    if type(value) is Duration:
        return Duration(-value.ns)
    raise no_overload("-", value)


OPERATORS: Final[dict[str, Callable[..., Any]]] = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "%": remainder,
    "neg": negate,
}
