"""The way to another node: signed requests over HTTP, repeated under the same request id until there is a reply.

A call that was sent may have begun though no answer came. It is asked for again under its id, which never runs it twice, until
its deadline; a callee that was restarted on its store goes on with it or answers with what it came to.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import ipaddress
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from comity.core.call.limits import REPLY_BYTES_MAX
from comity.core.envelope.envelope import Error, Reply, Status
from comity.core.units import MS_PER_S, NS_PER_MS
from comity.engines.keys import KeyRing, Tokens
from comity.errors import CallerError, UnavailableError

ANSWER_BYTES_MAX: Final = 4 * REPLY_BYTES_MAX  # of one event or answer
CONNECT_S: Final = 5.0
CANCEL_S: Final = 2.0
RETRY_S_FIRST: Final = 0.05
RETRY_S_MAX: Final = 1.0
DISCOVERY_S: Final = 10.0
AGENT_CALLS: Final = "/v1/agent-calls"
# Another node that is not there, is starting or stopping, or has too much to do: asked again until the deadline.
_AGAIN: Final = frozenset({429, 502, 503, 504})

Told = Callable[[Any], None]
_decode_reply = msgspec.json.Decoder(Reply).decode


class Sending(Struct, frozen=True):
    """One call to another node: its body, how to sign for it, and until when it is tried."""

    request_id: str
    body: bytes
    sign: Callable[[], str]
    headers: dict[str, str]
    deadline_at: int


class Link:
    """The way to one other node."""

    def __init__(
        self, url: str, keys: str | Path | Tokens | None, *, node: str = "", insecure_http: bool = False, now_ms: int
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query or parts.fragment:
            raise CallerError(f"{url!r} is not the address of a node, such as https://node-b:7654", field="url")
        if parts.scheme == "http" and not insecure_http and not _is_loopback(parts.hostname):
            raise CallerError(f"{url} would carry tokens in clear; use https, or say insecure_http=True", field="url")
        self.url = f"{parts.scheme}://{parts.netloc}"
        self.tokens = keys if isinstance(keys, Tokens) else Tokens(KeyRing(keys, now_ms=now_ms))  # without a folder, fresh ones
        self.node = node  # the other node's name: the audience of the tokens for it
        self._sessions: dict[asyncio.AbstractEventLoop, Any] = {}
        self._telling: set[asyncio.Future[None]] = set()

    @property
    def issuer(self) -> str:
        """This node's name in the tokens it signs."""
        return self.tokens.ring.issuer

    # --- what the other node is, asked before calls are taken ---

    def learn_name(self) -> None:
        """Ask the other node for its name, unless it was given."""
        if not self.node:
            told = self.get("/.well-known/comity.json", {})
            name = told.get("node") if isinstance(told, dict) else None
            if not isinstance(name, str) or not name:
                raise UnavailableError(f"{self.url} is no node of Comity: it does not say its name", retryable=False)
            self.node = name

    def get(self, path: str, headers: dict[str, str]) -> Any:
        """Return the JSON at a path of the other node. Blocks; raises `UnavailableError` or `CallerError`."""
        parts = urlsplit(self.url)
        made = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = made(parts.hostname or "", parts.port, timeout=DISCOVERY_S)
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            body = answer.read(ANSWER_BYTES_MAX + 1)
            if answer.status != 200 or len(body) > ANSWER_BYTES_MAX:
                raise UnavailableError(f"{self.url}{path} answered {answer.status}: {_shortened(body)}", retryable=False)
            return json.loads(body)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise UnavailableError(f"{self.url} cannot be asked: {error}") from None
        finally:
            connection.close()

    # --- calls ---

    async def call(self, sending: Sending, *, progress: Told, now_ms: Callable[[], int]) -> Reply:
        """Return the reply of the other node, however often it has to be asked until the deadline.

        A call that is cancelled here is cancelled there.
        """
        pause_s, why = RETRY_S_FIRST, "it does not answer"
        try:
            while (left_s := (sending.deadline_at - now_ms()) / MS_PER_S) > 0:
                try:
                    async with asyncio.timeout(left_s):
                        return await self._ask(sending, progress)
                except (TimeoutError, OSError, _Again) as error:
                    why = str(error) or type(error).__name__
                left_s = (sending.deadline_at - now_ms()) / MS_PER_S
                await asyncio.sleep(min(pause_s, max(left_s, 0)))
                pause_s = min(pause_s * 2, RETRY_S_MAX)
        except asyncio.CancelledError:
            self.tell(self.cancel(sending))
            raise
        silent = Error.of("NODE_UNREACHABLE", f"{self.url} gave no reply in time: {why}")
        return Reply(status=Status.ERROR, error=silent, message=silent.message)

    async def cancel(self, sending: Sending) -> None:
        """Tell the other node that a call is no longer wanted; if that fails, the call ends there by its deadline."""
        with contextlib.suppress(OSError, TimeoutError, _Again, *client_errors()):
            async with asyncio.timeout(CANCEL_S):
                headers = {"Authorization": f"Bearer {sending.sign()}"}
                async with self.session().delete(f"{self.url}{AGENT_CALLS}/{sending.request_id}", headers=headers):
                    pass

    def tell(self, work: Coroutine[Any, Any, None]) -> None:
        """Let a message go out beside what the caller does next; a call that is cancelled ends at once."""
        task = asyncio.ensure_future(work)
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def close(self) -> None:
        """Wait for messages that are on their way, for a while, and close the connections of this loop."""
        if self._telling:
            await asyncio.wait(self._telling, timeout=CANCEL_S)
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()

    async def _ask(self, sending: Sending, progress: Told) -> Reply:
        headers = sending.headers | {
            "Authorization": f"Bearer {sending.sign()}",
            "Content-Type": "application/json",
            "Accept": "text/event-stream",
        }
        try:
            async with self.session().post(
                f"{self.url}{AGENT_CALLS}", data=sending.body, headers=headers, allow_redirects=False
            ) as answer:
                if answer.status in _AGAIN:
                    raise _Again(f"it answered {answer.status}")
                if answer.status != 200:
                    return _problem(answer.status, await answer.content.read(64 * 1024), self.url)
                async for event, data in read_events(answer.content.iter_any()):
                    if event == "reply":
                        return _decode_reply(data)
                    if event == "progress" and (told := _progress(data, sending.request_id)) is not None:
                        progress(told)
        except client_errors() as error:
            raise _Again(str(error) or type(error).__name__) from None
        except msgspec.MsgspecError as error:
            failed = Error.of("TARGET_FAILED", f"{self.url} answered with something that is no reply: {error}")
            return Reply(status=Status.ERROR, error=failed, message=failed.message)
        raise _Again("it ended the stream without a reply")

    def session(self) -> Any:
        """Return the HTTP client of this loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._sessions:
            aiohttp = _aiohttp()
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
            self._sessions[loop] = aiohttp.ClientSession(timeout=timeout, trust_env=False)
        return self._sessions[loop]


class _Again(Exception):  # noqa: N818  no error: the request is sent once more
    """No reply came; the same request is sent again."""


async def read_events(chunks: AsyncIterator[bytes]) -> AsyncIterator[tuple[str, bytes]]:
    """Yield the name and data of server-sent events. Raises `_Again` for an event that is too long to be ours."""
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n\n")
        if len(rest) > ANSWER_BYTES_MAX:
            raise _Again("it sent an event without end")
        for one in whole:
            fields = dict(line.split(b": ", 1) for line in one.split(b"\n") if b": " in line)
            if b"event" in fields:
                yield fields[b"event"].decode("latin-1"), fields.get(b"data", b"null")


def _progress(data: bytes, request_id: str) -> Any:
    """Return what a call itself told of its progress; None for what calls below it told."""
    told = msgspec.json.decode(data)
    return told.get("data") if isinstance(told, dict) and told.get("request_id") == request_id else None


def _problem(status: int, body: bytes, url: str) -> Reply:
    """Return the reply that a refused request stands for: its code, if the node said one."""
    told: Any = None
    with contextlib.suppress(msgspec.MsgspecError):
        told = msgspec.json.decode(body)
    code = told.get("code") if isinstance(told, dict) else None
    message = told.get("detail") if isinstance(told, dict) else None
    if not isinstance(code, str) or not isinstance(message, str):
        code, message = "TARGET_FAILED", f"{url} answered {status}: {_shortened(body)}"
    error = Error.of(code, message)
    is_refused = status in (401, 403)
    return Reply(status=Status.REFUSED if is_refused else Status.ERROR, error=error, message=error.message)


def now_ms() -> int:
    """Return the time in epoch milliseconds, by which tokens are made."""
    return time.time_ns() // NS_PER_MS


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _shortened(body: bytes) -> str:
    return " ".join(body[:200].decode(errors="replace").split())


def _aiohttp() -> Any:
    try:
        import aiohttp  # noqa: PLC0415  an extra
    except ImportError as error:
        message = f"calls to other nodes need the extra `server`: pip install 'comity[server]' ({error})"
        raise UnavailableError(message, retryable=False) from None
    return aiohttp


def client_errors() -> tuple[type[Exception], ...]:
    """Return what the HTTP client raises when a connection fails."""
    return (_aiohttp().ClientError,)
