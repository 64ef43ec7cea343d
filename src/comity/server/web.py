"""One HTTP exchange on ASGI: its headers in one pass, its body within bounds, its answer in one piece."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from comity.core.call.limits import ITEMS_MAX
from comity.core.document.checks import UNREADABLE, problems_of, sentence
from comity.core.document.payload import (
    PayloadError,
    Problem,
    check,
    check_count,
    check_keys,
    has_many_exponents,
    unpack_long,
)
from comity.core.document.slices import ONE_GO_BYTES, Sliced, in_one_go, whole
from comity.core.units import MS_PER_S
from comity.errors import CallerError, ComityError
from comity.server.guard import SAFE_HEADERS
from comity.server.problem import PROBLEM_TYPE, problem_of

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

JSON_TYPE: Final = b"application/json"
_NO_STORE: Final = (b"cache-control", b"no-store")
_BACKSLASH: Final = ord("\\")  # a number is looked for in less time than bytes
_OWN_ITEMS: Final = 1_000  # values of a body beside the document in it
encode = msgspec.json.Encoder().encode


class Heads(NamedTuple):
    """The headers that the server itself reads; a header that is given twice counts once, the last, but for the Host."""

    host: bytes = b""
    authorization: bytes = b""
    content_type: bytes = b""
    content_length: bytes = b""
    origin: bytes | None = None
    site: bytes | None = None
    idempotency_key: bytes | None = None
    prefer: bytes = b""
    last_event_id: bytes | None = None
    traceparent: tuple[bytes, ...] = ()
    tracestate: tuple[bytes, ...] = ()


_NAMES: Final = {
    b"host": 0,
    b"authorization": 1,
    b"content-type": 2,
    b"content-length": 3,
    b"origin": 4,
    b"sec-fetch-site": 5,
    b"idempotency-key": 6,
    b"prefer": 7,
    b"last-event-id": 8,
    b"traceparent": 9,
    b"tracestate": 10,
}
_EMPTY: Final = tuple(Heads())
_MANY: Final = 9  # from here on, headers of which several are kept


def read_heads(scope: Scope) -> Heads:
    """Return the headers of a request that the server reads."""
    found: list[Any] = [*_EMPTY]
    for name, value in scope["headers"]:
        index = _NAMES.get(name)
        if index is None:
            continue
        if index >= _MANY:
            found[index] = (*found[index], value)
        elif index == 0 and found[0] and found[0] != value:
            raise CallerError("the request names two hosts", code="HTTP_HOST_UNKNOWN")
        else:
            found[index] = value
    return Heads._make(found)


class BrokenOffError(Exception):
    """The client went away before its request was complete; no client is left to answer."""


async def read_body(receive: Receive, heads: Heads, bytes_max: int) -> bytes:
    """Return the body of a request. Raises `CallerError` ENVELOPE_TOO_LARGE as soon as it has, or announces, too many bytes.

    The pace at which it must arrive is kept by the connection; see `connection`.
    """
    length = heads.content_length
    if length and (not length.isdigit() or int(length) > bytes_max):
        raise _too_large(bytes_max)
    message = await receive()
    body: bytes = message.get("body", b"")
    if message["type"] == "http.disconnect":
        raise BrokenOffError
    if not message.get("more_body", False):
        if len(body) > bytes_max:
            raise _too_large(bytes_max)
        return body
    parts, size = [body], len(body)
    while message.get("more_body", False):
        message = await receive()
        if message["type"] == "http.disconnect":
            raise BrokenOffError
        size += len(message.get("body", b""))
        if size > bytes_max:
            raise _too_large(bytes_max)
        parts.append(message.get("body", b""))
    return b"".join(parts)


def _too_large(bytes_max: int) -> CallerError:
    return CallerError(f"the body may have at most {bytes_max:,} bytes", code="ENVELOPE_TOO_LARGE")


def check_json_type(heads: Heads) -> None:
    """Raise `CallerError` HTTP_MEDIA_TYPE unless the body is declared as JSON."""
    declared = heads.content_type
    if declared != JSON_TYPE and declared.partition(b";")[0].strip().lower() != JSON_TYPE:
        raise CallerError("the body must be declared as application/json", code="HTTP_MEDIA_TYPE")


class Reader:
    """Reads JSON bodies into one type, strictly: no unknown field, no repeated key, no deep nesting."""

    __slots__ = ("_decode", "_is_exact", "_kind")

    def __init__(self, kind: type, is_exact: Callable[[Any], bool] | None = None) -> None:
        """`is_exact` returns True for values that are written without keys that their body need not have, as defaults are."""
        self._is_exact = is_exact
        self._kind = kind
        self._decode: Callable[[bytes], Any] = msgspec.json.Decoder(kind).decode

    def read(self, raw: bytes) -> Any:
        """Return the value in a body. Raises `CallerError` that names each wrong place."""
        return whole(self._steps(raw))

    async def read_long(self, raw: bytes) -> Any:
        """Do as `read`, in steps between which the loop serves others: a megabyte of small values takes tens of ms."""
        work = self._steps(raw)
        while True:
            try:
                next(work)
            except StopIteration as end:
                return end.value
            await asyncio.sleep(0)

    def _steps(self, raw: bytes) -> Sliced[Any]:
        try:
            if is_long := len(raw) >= ONE_GO_BYTES:
                check_count(raw, "$", ITEMS_MAX + _OWN_ITEMS)
                yield
            value = in_one_go(self._decode_long, raw) if is_long else self._decode(raw)
        except PayloadError as error:
            raise _malformed(error.problems, error.code) from None
        except UNREADABLE as error:
            raise _malformed(problems_of(error, raw, "")) from None
        if is_long:
            yield
        # A parser that finds a key twice takes one of the two. Each key has a colon, and texts keep theirs, so how many are
        # written again tells whether it did; unless a text had one as an escape, or more is written than was read.
        is_same = raw.count(b":") == encode(value).count(b":")
        is_exact = self._is_exact is not None and self._is_exact(value) and not (_BACKSLASH in raw and b"\\u003" in raw)
        if not is_same or not is_exact:
            try:
                if not is_same:
                    yield
                    check(raw, path="", bytes_max=len(raw))
                yield
                check_keys(raw)
            except PayloadError as error:
                raise _malformed(error.problems) from None
        return value

    def _decode_long(self, raw: bytes) -> Any:
        return msgspec.convert(unpack_long(raw), self._kind) if has_many_exponents(raw) else self._decode(raw)


def _malformed(problems: tuple[Problem, ...], code: str = "ENVELOPE_MALFORMED") -> CallerError:
    return CallerError(sentence(problems), code=code, problems=problems)


# --- answers ---


class Answer(Struct, frozen=True):
    """What a handler answers: a value that is written as JSON, or bytes as they are."""

    value: Any
    status: int = 200
    headers: tuple[tuple[bytes, bytes], ...] = ()
    media_type: bytes = JSON_TYPE


async def respond(
    send: Send, status: int, body: bytes, media_type: bytes = JSON_TYPE, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> None:
    """Write an answer in one piece."""
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [
                (b"content-type", media_type),
                (b"content-length", b"%d" % len(body)),
                _NO_STORE,
                *SAFE_HEADERS,
                *headers,
            ],
        }
    )
    await send({"type": "http.response.body", "body": body})


def retry_after(wait_ms: int | None) -> tuple[bytes, bytes]:
    """Return the header that says when to ask again: whole seconds, at least one."""
    return b"retry-after", b"%d" % max(1, -(-(wait_ms or MS_PER_S) // MS_PER_S))


async def respond_problem(send: Send, error: ComityError, *, instance: str) -> int:
    """Write the problem detail of an error and return its status."""
    found = problem_of(error, instance=instance)
    headers: tuple[tuple[bytes, bytes], ...] = ()
    if found.status == 401:
        headers = ((b"www-authenticate", b'Bearer realm="comity"'),)
    elif found.status in {429, 503}:
        headers = (retry_after(error.retry_after_ms),)
    elif found.status in {408, 413}:
        headers = ((b"connection", b"close"),)  # the rest of the body is not read
    elif "allow" in error.facts:
        headers = ((b"allow", str(error.facts["allow"]).encode()),)
    await respond(send, found.status, encode(found), PROBLEM_TYPE, headers)
    return found.status
