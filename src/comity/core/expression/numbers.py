"""The math extension: greatest and least, rounding, signs and bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from comity.core.expression.errors import EvaluationError
from comity.core.expression.values import UINT_MAX, Uint, is_list, is_number, less, no_overload, whole

_BITS: Final = 64
_MANY: Final = frozenset(range(1, 32))


def _picked(what: str, given: tuple[Any, ...], *, is_greatest: bool) -> Any:
    numbers = list(given[0]) if len(given) == 1 and is_list(given[0]) else list(given)
    if not numbers or not all(map(is_number, numbers)):
        raise no_overload(what, *given)
    best = numbers[0]
    for number in numbers[1:]:
        if less(best, number) if is_greatest else less(number, best):
            best = number
    return best


def _greatest(*given: Any) -> Any:
    return _picked("math.greatest()", given, is_greatest=True)


def _least(*given: Any) -> Any:
    return _picked("math.least()", given, is_greatest=False)


def _of_double(function: Callable[[float], Any]) -> Callable[[Any], Any]:
    def checked(value: Any) -> Any:
        if type(value) is not float:
            raise no_overload("a function of doubles", value)
        return function(value)

    return checked


def _rounded(function: Callable[[float], float]) -> Callable[[Any], Any]:
    return _of_double(lambda value: value if math.isnan(value) or math.isinf(value) else float(function(value)))


def _half_away(value: float) -> float:
    cut = math.trunc(value)
    return cut + math.copysign(1.0, value) if abs(value - cut) >= 0.5 else float(cut)


def _absolute(value: Any) -> Any:
    if type(value) is int:
        return whole(abs(value))
    if type(value) in (float, Uint):
        return abs(value) if type(value) is float else value
    raise no_overload("math.abs()", value)


def _sign(value: Any) -> Any:
    if type(value) is float:
        return value if math.isnan(value) else float((value > 0) - (value < 0))
    if type(value) in (int, Uint):
        found = (value > 0) - (value < 0)
        return Uint(found) if type(value) is Uint else found
    raise no_overload("math.sign()", value)


def _root(value: Any) -> float:
    if not is_number(value):
        raise no_overload("math.sqrt()", value)
    return math.sqrt(value) if value >= 0 else math.nan


def _bits(operation: Callable[[int, int], int]) -> Callable[[Any, Any], Any]:
    def combined(left: Any, right: Any) -> Any:
        if type(left) is not type(right) or type(left) not in (int, Uint):
            raise no_overload("a function of bits", left, right)
        found = operation(int(left), int(right))
        return Uint(found & UINT_MAX) if type(left) is Uint else found

    return combined


def _inverted(value: Any) -> Any:
    if type(value) is int:
        return ~value
    if type(value) is Uint:
        return Uint(~int(value) & UINT_MAX)
    raise no_overload("math.bitNot()", value)


def _shifted(*, is_left: bool) -> Callable[[Any, Any], Any]:
    def shift(value: Any, by: Any) -> Any:
        if type(value) not in (int, Uint) or type(by) is not int:
            raise no_overload("a shift", value, by)
        if by < 0:
            raise EvaluationError("a shift by a negative number")
        pattern = int(value) & UINT_MAX
        found = 0 if by >= _BITS else (pattern << by) & UINT_MAX if is_left else pattern >> by
        if type(value) is Uint:
            return Uint(found)
        return found - 2**_BITS if found >= 2 ** (_BITS - 1) else found

    return shift


_ONE: Final = frozenset({1})
_TWO: Final = frozenset({2})
FUNCTIONS: Final[dict[str, tuple[Callable[..., Any], frozenset[int]]]] = {
    "math.greatest": (_greatest, _MANY),
    "math.least": (_least, _MANY),
    "math.ceil": (_rounded(math.ceil), _ONE),
    "math.floor": (_rounded(math.floor), _ONE),
    "math.round": (_rounded(_half_away), _ONE),
    "math.trunc": (_rounded(math.trunc), _ONE),
    "math.abs": (_absolute, _ONE),
    "math.sign": (_sign, _ONE),
    "math.sqrt": (_root, _ONE),
    "math.isNaN": (_of_double(math.isnan), _ONE),
    "math.isInf": (_of_double(math.isinf), _ONE),
    "math.isFinite": (_of_double(math.isfinite), _ONE),
    "math.bitAnd": (_bits(lambda left, right: left & right), _TWO),
    "math.bitOr": (_bits(lambda left, right: left | right), _TWO),
    "math.bitXor": (_bits(lambda left, right: left ^ right), _TWO),
    "math.bitNot": (_inverted, _ONE),
    "math.bitShiftLeft": (_shifted(is_left=True), _TWO),
    "math.bitShiftRight": (_shifted(is_left=False), _TWO),
}
