"""What agents and programs hand in, looked at where it comes in: nothing is kept that could not be read again.

What is wrong is a `CallerError` that names the path, as it is for the inputs of a call. Nothing has happened by then.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw

from comity.core.call.limits import INPUTS_BYTES_MAX, MESSAGE_BYTES_MAX
from comity.core.document.payload import PayloadError, Problem, out_of_range, pack, step, text_problem, unpack
from comity.errors import CallerError

UNREADABLE: Final = (msgspec.MsgspecError, RecursionError, ValueError)  # broken UTF-8 is a ValueError
UNKNOWN: Final = "is not a field of this"
_NAMED_FIELD = re.compile(r"Object (?:missing required|contains unknown) field `(.*)`", re.DOTALL)
_T = TypeVar("_T")


def read(value: Any, path: str, typed: Callable[[bytes], _T], bytes_max: int = INPUTS_BYTES_MAX) -> _T:
    """Return a copy of a value as its decoder reads it back. Raises `PayloadError` if it would not be what was written."""
    raw = pack(value, path, bytes_max)
    try:
        return typed(raw)
    except UNREADABLE as error:
        raise PayloadError("INPUT_VALIDATION_FAILED", problems_of(error, raw, path)) from None


def take(value: Any, path: str, typed: Callable[[bytes], _T] = unpack, bytes_max: int = INPUTS_BYTES_MAX) -> _T:
    """Return a copy of what was handed in, or raise `CallerError`."""
    try:
        return read(value, path, typed, bytes_max)
    except PayloadError as error:
        raise rejected(error) from None


def take_text(value: Any, path: str, bytes_max: int = MESSAGE_BYTES_MAX) -> str:
    """Return a text that was handed in, or raise `CallerError`."""
    if problem := text_problem(value, path=path, bytes_max=bytes_max):
        raise rejected(PayloadError("INPUT_VALIDATION_FAILED", (problem,)))
    return str(value)


def take_whole(value: Any, path: str, most: int) -> int:
    """Return a whole number from 0 that was handed in, or raise `CallerError`."""
    if type(value) is not int or not 0 <= value <= most:
        problem = Problem(path, f"must be a whole number from 0 to {most:,}")
        raise rejected(PayloadError("INPUT_VALIDATION_FAILED", (problem,)))
    return value


def take_share(value: Any, path: str) -> float:
    """Return a number from 0 to 1 that was handed in, or raise `CallerError`."""
    if type(value) not in (int, float) or not 0 <= value <= 1:
        raise rejected(PayloadError("INPUT_VALIDATION_FAILED", (Problem(path, "must be a number between 0 and 1"),)))
    return float(value)


def rejected(error: PayloadError) -> CallerError:
    """Return the error for who handed something in."""
    problems = tuple(Problem(problem.path or "$", problem.message) for problem in error.problems)
    return CallerError(sentence(problems), code=error.code, problems=problems)


def sentence(problems: tuple[Problem, ...]) -> str:
    """Return problems in words."""
    return "; ".join(f"{problem.path}: {problem.message}" for problem in problems)


def problems_of(error: Exception, raw: bytes | Raw, path: str) -> tuple[Problem, ...]:
    """Turn a decoder's complaint into paths below `path` and messages; the decoder's path stands at its end as `$.a[0].b`."""
    if isinstance(error, RecursionError):
        return (Problem(path or "$", "is nested too deep"),)
    if isinstance(error, UnicodeDecodeError):
        return (Problem(path or "$", "is not valid UTF-8"),)
    message, mark, where = str(error).rpartition(" - at `")
    if "out of range" in message and (problems := out_of_range(bytes(raw), path)):
        return problems
    if mark:
        path = (path + where.removesuffix("`").removeprefix("$")).removeprefix(".")
    else:
        message = str(error)
    if field := _NAMED_FIELD.fullmatch(message):
        return (Problem(step(path, field[1]), "is required" if "missing" in message else UNKNOWN),)
    return (Problem(path or "$", message),)
