"""What a caller asked to get back, beyond what the capability's own schema says: a type, fields, a size."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from comity.core.document.checks import read
from comity.core.document.payload import PayloadError, Problem
from comity.core.envelope.envelope import ExpectedOutput

_decode: Final = msgspec.json.Decoder(ExpectedOutput).decode

_JSON_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}


def read_expected(given: Any) -> tuple[ExpectedOutput | None, tuple[Problem, ...]]:
    """Return what is expected, as it can be written and read again, or what is wrong with it."""
    if given is None:
        return None, ()
    try:
        return read(given, "expected_output", _decode), ()
    except PayloadError as error:
        return None, error.problems


def output_problems(expected: ExpectedOutput | None, data: Any, size_bytes: int) -> tuple[Problem, ...]:
    """Return how a result differs from what was asked for: its type, its fields, its size.

    A type is one of JSON's, or a name of the caller's own. A result of a named type is an object; if it says its type, it is
    the type that was asked for.
    """
    if expected is None:
        return ()
    problems = []
    if expected.bytes_max is not None and size_bytes > expected.bytes_max:
        problems.append(Problem("result", f"has {size_bytes:,} bytes; {expected.bytes_max:,} were allowed"))
    kinds = _JSON_TYPES.get(expected.type)
    if kinds is not None:
        if not isinstance(data, kinds) or (isinstance(data, bool) and bool not in kinds):
            problems.append(Problem("result", f"must be {expected.type}, not {_type_of(data)}"))
    elif (expected.type or expected.fields) and not isinstance(data, dict):
        problems.append(Problem("result", f"must be {expected.type or 'an object'} with named fields, not {_type_of(data)}"))
    elif expected.type and isinstance(data, dict) and data.get("type", expected.type) != expected.type:
        problems.append(Problem("result.type", f"must be {expected.type}"))
    if expected.fields and isinstance(data, dict):
        problems += [Problem(f"result.{name}", "is required") for name in expected.fields if data.get(name) is None]
    return tuple(problems)


def _type_of(data: Any) -> str:
    return next(name for name, kinds in reversed(_JSON_TYPES.items()) if isinstance(data, kinds))
