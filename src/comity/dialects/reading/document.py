"""What every dialect does alike: take a document in, say what is wrong with it, and check the envelope it became."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Raw

from comity.core.call.limits import INPUTS_BYTES_MAX, REPLY_BYTES_MAX, REQUEST_BYTES_MAX, TIMEOUT_MS_CEILING
from comity.core.document.payload import PayloadError, Problem, check, check_keys, pack, unpack_long
from comity.core.envelope.envelope import Reply, Request, Status, reply_problems, request_problems
from comity.errors import CallerError

# The capability that a message asks for where its dialect has no word for one.
MESSAGE_CAPABILITY: Final = "message"
# What `Reply.success` and `Reply.partial` assume where a dialect says nothing about confidence.
UNSTATED_CONFIDENCE: Final = {Status.SUCCESS: 1.0, Status.PARTIAL: 0.6}

# Up to here a whole number stays itself as a float.
EXACT_MAX: Final = 2**53

Milliseconds = Annotated[int, Meta(ge=0, le=TIMEOUT_MS_CEILING)]
Names = Mapping[str, str]
"""Canonical paths and the dialect's words for them."""


def load(document: Any, *, bytes_max: int = REQUEST_BYTES_MAX) -> dict[str, Any]:
    """Return the JSON object in bytes, text or plain data, as fresh plain data; raise `CallerError` if there is none.

    Bytes and text in which a key stands twice in one object are refused.
    """
    try:
        is_text = isinstance(document, (str, bytes, bytearray, memoryview))
        if isinstance(document, str):
            raw = document.encode()
        else:
            raw = bytes(document) if is_text else pack(document, path="$", bytes_max=bytes_max)
        if len(raw) > bytes_max:
            raise _too_large(raw, bytes_max)
        plain = unpack_long(raw)
        check(raw, path="$", bytes_max=bytes_max)
        if is_text:  # bounded by now, in size and nesting
            check_keys(raw)
    except PayloadError as error:
        raise _refused(error) from None
    except UnicodeError:
        raise malformed([Problem("$", "is not valid UTF-8")]) from None
    except RecursionError:
        raise malformed([Problem("$", "is nested too deep")]) from None
    except msgspec.MsgspecError:
        raise malformed([Problem("$", "is not JSON")]) from None
    if not isinstance(plain, dict):
        raise malformed([Problem("$", "must be a JSON object")])
    return plain


def malformed(problems: Iterable[Problem]) -> CallerError:
    """Return the error that names every problem of a document."""
    found = tuple(problems)
    sentence = "; ".join(f"{problem.path}: {problem.message}" for problem in found)
    return CallerError(sentence, code="ENVELOPE_MALFORMED", problems=found)


def sealed_inputs(inputs: dict[str, Any], *, path: str) -> Raw:
    """Return the inputs of a request as they travel."""
    try:
        return Raw(pack(inputs, path=path, bytes_max=INPUTS_BYTES_MAX))
    except PayloadError as error:
        raise _refused(error) from None


def sound_request(request: Request, names: Names) -> Request:
    """Return the request if its fields keep the envelope's bounds; problems name the dialect's fields, not ours."""
    if problems := request_problems(request):
        raise malformed(Problem(renamed(problem.path, names), problem.message) for problem in problems)
    return request


def sound_reply(reply: Reply, names: Names) -> Reply:
    """Return the reply if its texts, lists and data keep the envelope's bounds."""
    if problems := reply_problems(reply):
        raise malformed(Problem(renamed(problem.path, names), problem.message) for problem in problems)
    try:
        pack(reply.data, path=renamed("data", names), bytes_max=REPLY_BYTES_MAX)
    except PayloadError as error:
        raise _refused(error) from None
    return reply


def renamed(path: str, names: Names) -> str:
    """Return a canonical path in the words of a dialect, as far as it has words for it."""
    head, tail = path, ""
    while head:
        if head in names:
            return names[head] + tail
        head, dot, last = head.rpartition(".")
        tail = dot + last + tail
    return path


def left_ms(deadline_at: int, *, since_ms: int) -> int:
    """Return the time a request still has, as a dialect's relative timeout can say it."""
    return min(max(deadline_at - since_ms, 0), TIMEOUT_MS_CEILING)


def as_object(data: Any) -> dict[str, Any]:
    """Return reply data for a dialect whose data is always an object; what is none goes under `value`."""
    if data is None:
        return {}
    return data if isinstance(data, dict) else {"value": data}


def short_number(number: float) -> float:
    """Return a whole number as an integer, so that 245 is not written as 245.0."""
    return int(number) if float(number).is_integer() and abs(number) < EXACT_MAX else number


def _too_large(raw: bytes, bytes_max: int) -> CallerError:
    return CallerError(f"{len(raw):,} bytes exceed the {bytes_max:,} a document may have", code="ENVELOPE_TOO_LARGE")


def _refused(error: PayloadError) -> CallerError:
    code = error.code if error.code == "ENVELOPE_TOO_LARGE" else "ENVELOPE_MALFORMED"
    return CallerError(str(error), code=code, problems=error.problems)
