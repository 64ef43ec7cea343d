"""Requests of a client: sent again where that is safe, answered with a value or the error class that says who must act."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import msgspec

from comity.errors import UnavailableError, family

ATTEMPTS_MAX: Final = 4
CONNECT_S: Final = 10.0
EVENT_BYTES_MAX: Final = 4 * 1024 * 1024
_FIRST_PAUSE_S: Final = 0.1


class Connection:
    """An HTTP client bound to one server and one token."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url.rstrip("/")
        self._token = token
        self._session: Any = None

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def ask(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        is_safe: bool = False,
    ) -> tuple[int, bytes, str]:
        """Return status, body and media type of an answer; sent again after a broken connection where that `is_safe`."""
        pause_s = _FIRST_PAUSE_S
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                async with self._http().request(method, f"{self.url}{path}", **_sent(body, query, headers)) as answer:
                    return answer.status, await answer.read(), answer.content_type
            except _errors() as error:
                if attempt == ATTEMPTS_MAX or not is_safe:
                    message = f"{self.url} cannot be reached: {error or type(error).__name__}"
                    raise UnavailableError(message, code="NODE_UNREACHABLE") from None
            await asyncio.sleep(pause_s)
            pause_s *= 2
        raise AssertionError("the last attempt returns or raises")

    async def value(self, method: str, path: str, **more: Any) -> Any:
        """Return the JSON of an answer. Raises the error class of a problem."""
        status, body, _ = await self.ask(method, path, **more)
        if status >= 400:
            raise problem(status, body, self.url)
        return msgspec.json.decode(body)

    async def events(self, path: str, after: int) -> AsyncIterator[tuple[int, str, bytes]]:
        """Yield number, name and data of the events of a stream, resumed where the connection breaks, until it ends."""
        failures = 0
        while True:
            headers = {"Last-Event-ID": str(after)} if after else {}
            try:
                async with self._http().get(f"{self.url}{path}", headers=headers) as answer:
                    if answer.status != 200:
                        raise problem(answer.status, await answer.content.read(64 * 1024), self.url)
                    async for number, name, data in _read_events(answer.content.iter_any()):
                        after, failures = number or after, 0
                        yield after, name, data
                        if name == "reply":
                            return
            except _errors() as error:
                failures += 1
                if failures >= ATTEMPTS_MAX:
                    raise UnavailableError(f"{self.url} cannot be reached: {error}", code="NODE_UNREACHABLE") from None
            else:
                failures += 1
                if failures >= ATTEMPTS_MAX:
                    raise UnavailableError(f"{self.url} ended the stream", code="NODE_UNREACHABLE")
            await asyncio.sleep(_FIRST_PAUSE_S * 2**failures)

    def _http(self) -> Any:
        if self._session is None:
            aiohttp = _aiohttp()
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
            headers = {"Authorization": f"Bearer {self._token}"}
            self._session = aiohttp.ClientSession(timeout=timeout, headers=headers, trust_env=False)
        return self._session


def problem(status: int, body: bytes, url: str) -> Exception:
    """Return the error that a problem detail stands for."""
    told: Any = None
    with contextlib.suppress(msgspec.MsgspecError):
        told = msgspec.json.decode(body)
    if not isinstance(told, dict) or not isinstance(told.get("code"), str):
        return UnavailableError(f"{url} answered {status}", code="NODE_UNREACHABLE")
    return family(told["code"])(str(told.get("detail", "")), code=told["code"], status=status)


def _sent(body: Any, query: Mapping[str, Any] | None, headers: Mapping[str, str] | None) -> dict[str, Any]:
    given: dict[str, Any] = {"headers": dict(headers or {})}
    if body is not None:
        given["data"] = msgspec.json.encode(body)
        given["headers"]["Content-Type"] = "application/json"
    if query:
        given["params"] = {name: _word(value) for name, value in query.items() if value is not None}
    return given


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


async def _read_events(chunks: AsyncIterator[bytes]) -> AsyncIterator[tuple[int, str, bytes]]:
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n\n")
        if len(rest) > EVENT_BYTES_MAX:
            raise UnavailableError("the server sent an event without end", code="NODE_UNREACHABLE")
        for one in whole:
            fields = dict(line.split(b": ", 1) for line in one.split(b"\n") if b": " in line)
            if b"event" in fields:
                number = int(fields.get(b"id", b"0"))
                yield number, fields[b"event"].decode("latin-1"), fields.get(b"data", b"null")


def _aiohttp() -> Any:
    try:
        import aiohttp  # noqa: PLC0415  an extra
    except ImportError as error:
        message = f"the client needs the extra `server`: pip install 'comity[server]' ({error})"
        raise UnavailableError(message, retryable=False) from None
    return aiohttp


def _errors() -> tuple[type[BaseException], ...]:
    return (_aiohttp().ClientError, OSError)
