"""Comparing a number inside an encoded body without decoding the body, for conditions such as `span.tokens > 1000`.

SQLite calls `compares` once per row of a scan. It looks for the bytes of the attribute's name and reads the value that
stands behind them. A name may also occur in an event or a nested value, so every occurrence is tried.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable
from typing import Any, Final

OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
# The MessagePack types of numbers that take more than one byte.
_NUMBERS: Final = {
    code: struct.Struct(form)
    for code, form in {
        0xCA: ">f",
        0xCB: ">d",
        0xCC: ">B",
        0xCD: ">H",
        0xCE: ">I",
        0xCF: ">Q",
        0xD0: ">b",
        0xD1: ">h",
        0xD2: ">i",
        0xD3: ">q",
    }.items()
}
_NIL, _POSITIVE_MAX, _NEGATIVE_MIN = 0xC0, 0x7F, 0xE0


def compares(body: bytes, name: bytes, op: str, bound: float) -> bool:
    """Return whether some value behind the encoded name is a number that compares so with the bound."""
    compare = OPERATORS[op]
    at = body.find(name)
    while at >= 0:
        at += len(name)
        code = body[at] if at < len(body) else _NIL
        if (number := _NUMBERS.get(code)) is not None:
            # Bytes that only look like the name may stand too near to the end.
            if at + number.size < len(body) and compare(number.unpack_from(body, at + 1)[0], bound):
                return True
        elif (code <= _POSITIVE_MAX and compare(code, bound)) or (code >= _NEGATIVE_MIN and compare(code - 256, bound)):
            return True
        at = body.find(name, at)
    return False
