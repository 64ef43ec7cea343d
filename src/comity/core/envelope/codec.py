"""Requests and replies as bytes from outside: one JSON form, this version of it and the two before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from comity.core.call.limits import INPUTS_BYTES_MAX, REPLY_BYTES_MAX, REQUEST_BYTES_MAX
from comity.core.document.checks import UNKNOWN, UNREADABLE, problems_of, rejected, sentence
from comity.core.document.payload import PayloadError, Problem, check, check_keys, pack, unpack
from comity.core.envelope.envelope import VERSION, Reply, Request, encode, reply_problems, request_problems
from comity.errors import CallerError

# --- versions -----------------------------------------------------------------------------------------------------------

# What a version called a field that has another name now. A document is read by the names of its own version only.
_RENAMED: dict[str, dict[str, str]] = {
    "0.9": {"deadline_ms": "deadline_at"},
    "0.8": {"deadline_ms": "deadline_at", "call_chain": "chain"},
}
VERSIONS_ACCEPTED: Final = (VERSION, *_RENAMED)


def _renewed(old: dict[str, Any], version: str) -> dict[str, Any]:
    """Return a document of an older version, which has no name that came later, as one of today's."""
    new = {_RENAMED[version].get(name, name): value for name, value in old.items()} | {"version": VERSION}
    if version == "0.8" and type(new.get("confidence")) in {int, float}:
        new["confidence"] /= 100  # it was in percent
    return new


# --- decoding -----------------------------------------------------------------------------------------------------------

Envelope = TypeVar("Envelope", Request, Reply)

_decode_request = msgspec.json.Decoder(Request).decode
_decode_reply = msgspec.json.Decoder(Reply).decode


def decode_request(raw: bytes) -> Request:
    """Return the request in `raw`, which came from outside, or raise `CallerError` naming the path of what is wrong."""
    request, version = _decode(raw, _decode_request, REQUEST_BYTES_MAX)
    problems = request_problems(request)
    try:
        if not isinstance(unpack(request.body), dict):  # inputs are bytes until now, which may hold anything
            problems += (Problem("inputs", "must be an object"),)
    except UNREADABLE as error:
        problems += problems_of(error, request.body, "inputs")
    if problems:
        raise _malformed(problems, version)
    try:
        check(bytes(request.body), path="inputs", bytes_max=INPUTS_BYTES_MAX)
        check_keys(raw)
    except PayloadError as error:
        raise rejected(error) from None
    return request


def decode_reply(raw: bytes, *, is_ours: bool = False) -> Reply:
    """Return the reply in `raw`, or raise `CallerError` naming the path of what is wrong; `is_ours` if this node wrote it."""
    reply, version = _decode(raw, _decode_reply, 2 * REPLY_BYTES_MAX)  # REPLY_BYTES_MAX is for its data; the rest is small
    problems = reply_problems(reply)
    if problems:
        raise _malformed(problems, version)
    try:
        pack(reply.data, path="data", bytes_max=REPLY_BYTES_MAX)
        if not is_ours:
            check_keys(raw)
    except PayloadError as error:
        raise rejected(error) from None
    return reply


def _decode(raw: bytes, typed: Callable[[bytes], Envelope], bytes_max: int) -> tuple[Envelope, str]:
    """Return the envelope and the version it was written in."""
    if len(raw) > bytes_max:
        raise CallerError(f"{len(raw):,} bytes exceed the {bytes_max:,} an envelope may have", code="ENVELOPE_TOO_LARGE")
    try:
        envelope = typed(raw)
        if envelope.version == VERSION:
            return envelope, VERSION
    except UNREADABLE:
        pass  # an older version, or wrong: the slow way below tells which
    version: Any = VERSION
    try:
        document = unpack(raw)
        if not isinstance(document, dict):
            raise CallerError("the envelope must be a JSON object", code="ENVELOPE_MALFORMED")
        version = document.get("version", VERSION)
        if version not in VERSIONS_ACCEPTED:
            problem = Problem("version", f"must be one of {', '.join(VERSIONS_ACCEPTED)}")
            raise CallerError(sentence((problem,)), code="ENVELOPE_VERSION_UNSUPPORTED", problems=(problem,))
        if version == VERSION:
            return typed(raw), VERSION
        if unknown := tuple(Problem(name, UNKNOWN) for name in document if name in _RENAMED[version].values()):
            raise CallerError(sentence(unknown), code="ENVELOPE_MALFORMED", problems=unknown)
        return typed(encode(_renewed(document, version))), version
    except UNREADABLE as error:
        raise _malformed(problems_of(error, raw, ""), version) from None


def _malformed(problems: tuple[Problem, ...], version: str) -> CallerError:
    """Return the error for these problems, each at the name that the sender's version has for the field."""
    for old, new in _RENAMED.get(version, {}).items():
        names = ((*problem.path.partition("["), problem.message) for problem in problems)
        problems = tuple(Problem((old if name == new else name) + mark + rest, message) for name, mark, rest, message in names)
    return CallerError(sentence(problems), code="ENVELOPE_MALFORMED", problems=problems)
