"""What an operator yields for two values, and tests against a constant made once and run on many spans.

One rule covers every mismatch: values that cannot be compared compare false, whatever the operator. So an attribute that is
missing, or is a text where a number is asked for, satisfies neither `=` nor `!=`. An array satisfies `=` and `=~` if any
element does, and `!=` and `!~` only if every element does.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from comity.core.tracing.query.ast import ARITHMETIC, LOGICAL, ORDERING, REGEX
from comity.core.tracing.query.regex import Regex
from comity.core.tracing.query.values import NUMERIC, Duration, Type, arithmetic, type_of

Test = Callable[[Any], bool]

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_MIRRORED = {"=": "=", "!=": "!=", ">": "<", ">=": "<=", "<": ">", "<=": ">="}
_NEGATIVE = frozenset({"!=", "!~"})
_NUMBER_TYPES = frozenset({int, float, Duration})


def apply(op: str, left: Any, right: Any) -> Any:
    """Return `left op right` for values whose types are only known now."""
    left_type, right_type = type_of(left), type_of(right)
    if left_type is Type.ARRAY or right_type is Type.ARRAY:
        return _apply_to_array(op, left, right)
    both_numbers = left_type in NUMERIC and right_type in NUMERIC
    if not both_numbers and (left_type is not right_type or left_type is Type.NIL):
        return False  # two missing values are not even equal
    if op in ARITHMETIC:
        return arithmetic(op, left, right) if both_numbers else False
    if op in LOGICAL:
        if left_type is not Type.BOOL:
            return False
        return (left and right) if op == "&&" else (left or right)
    if op in REGEX:
        return left_type is Type.STRING and (Regex(right).matches(left) is (op == "=~"))
    if op in ORDERING and not (both_numbers or left_type is Type.STRING):
        return False
    return COMPARE[op](left, right)


def _apply_to_array(op: str, left: Any, right: Any) -> bool:
    if op not in COMPARE:
        return False
    if isinstance(left, tuple) and isinstance(right, tuple):
        return op in ("=", "!=") and COMPARE[op](left, right)
    if isinstance(right, tuple):
        return op in _MIRRORED and _apply_to_array(_MIRRORED[op], right, left)
    quantify = all if op in _NEGATIVE else any
    return bool(left) and quantify(bool(apply(op, element, right)) for element in left)


def make_test(op: str, constant: Any, *, exact_type: bool) -> Test:
    """Return a test of `value op constant`.

    `exact_type` refuses to compare numbers of different types, which is how attributes are stored and looked up: an
    attribute that holds 3.0 is not found by `= 3`. A constant that is an array stands for any, or none, of its elements.
    """
    single = scalar_test(op, constant, exact_type=exact_type)
    if op in _NEGATIVE:
        return lambda value: (bool(value) and all(map(single, value))) if type(value) is tuple else single(value)
    return lambda value: any(map(single, value)) if type(value) is tuple else single(value)


def scalar_test(op: str, constant: Any, *, exact_type: bool) -> Test:
    """Return a test as `make_test` does, for values that are no arrays."""
    elements = constant if type(constant) is tuple else (constant,)
    kind = type(elements[0])
    if op in REGEX:
        patterns = [Regex(pattern) for pattern in elements]
        wanted = op == "=~"
        return lambda value: type(value) is str and any(pattern.matches(value) for pattern in patterns) is wanted
    if kind in _NUMBER_TYPES:
        return _number_test(op, elements, exact_type=exact_type)
    if op in ("=", "!="):
        members, wanted = frozenset(elements), op == "="
        return lambda value: type(value) is kind and (value in members) is wanted
    compare = COMPARE[op]
    return lambda value: type(value) is kind is str and compare(value, constant)


def _number_test(op: str, elements: tuple[Any, ...], *, exact_type: bool) -> Test:
    kinds = frozenset({type(elements[0])}) if exact_type else _NUMBER_TYPES
    if len(elements) > 1:
        members, wanted = frozenset(elements), op == "="
        return lambda value: type(value) in kinds and (value in members) is wanted
    compare, bound = COMPARE[op], elements[0]
    return lambda value: type(value) in kinds and compare(value, bound)
