"""A small model provider on a real socket, for tests of what talks to one: it answers by script and fails on demand.

It speaks OpenAI's chat completions under `base_url`, and Anthropic's and Google's interfaces under `root_url`. It listens on
the loopback only, checks no key, and keeps what it was asked for the test to look at.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

from msgspec.structs import replace

from comity.core.envelope.usage import Usage
from comity.core.model.tokens import estimate
from comity.core.units import MS_PER_S
from comity.testing.provider.wire import Wire, wire_of
from comity.testing.scripted import Answer, ScriptError, Step, answer_of, completion_of

PIECE_CHARS = 6
HEAD_BYTES_MAX = 64 * 1024
BODY_BYTES_MAX = 16 * 1024 * 1024
OUT_OF_SCRIPT = "the script has no answer left for this request"


class Cut(StrEnum):
    """How an answer breaks off."""

    STALL = "stall"  # nothing more comes, and the connection stays open
    END = "end"  # the body ends in good order, too early
    CLOSE = "close"  # the connection is closed inside the body
    RESET = "reset"  # the connection is reset


@dataclass(frozen=True, slots=True)
class Broken:
    """An answer that breaks off after some events, or amid a body that is not streamed. 0: before the first byte."""

    cut: Cut
    answer: Step = ""
    after_events: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    """An error the provider reports as it does: 429 with or without `Retry-After`, 500, 503, 529, 401, 400 …"""

    status: int
    message: str = "the provider cannot serve this"
    code: str = ""
    retry_after: str | None = None  # seconds or an HTTP date, as the header has it


@dataclass(frozen=True, slots=True)
class Garbage:
    """Bytes that no provider would send, or that it sends under the wrong name."""

    body: bytes
    content_type: str = "application/json"
    status: int = 200


Turn = Step | Broken | Failure | Garbage
"""What the provider does with one request: a step of a script, or one of the faults."""


@dataclass(frozen=True, slots=True)
class Received:
    """One request to the provider."""

    path: str
    headers: dict[str, str]  # names in lower case
    body: dict[str, Any]

    @property
    def model(self) -> str:
        """The model that was asked for."""
        return str(self.body.get("model") or self.path.rpartition("/models/")[2].partition(":")[0])

    @property
    def streams(self) -> bool:
        """Whether the answer is to come as a stream of events."""
        return bool(self.body.get("stream")) or self.path.endswith(":streamGenerateContent")

    @property
    def wants_usage(self) -> bool:
        """Whether usage is to be sent; a chat stream sends it only to those who ask for it."""
        is_chat_stream = self.path.endswith("/chat/completions") and self.streams
        return not is_chat_stream or bool((self.body.get("stream_options") or {}).get("include_usage"))


Rule = Callable[[Received], Turn]


class ModelServer:
    """Take turns one by one from a list, or as a rule says. Use it as an async context manager.

    Steps are those of `ScriptedModel`. Text and arguments of tool calls are streamed in pieces of `piece_chars` characters,
    6 if the answer does not say. An answer whose usage counts nothing is sent without usage, as some servers do.
    """

    def __init__(self, script: Iterable[Turn] | Rule) -> None:
        self._rule = script if callable(script) else _take(iter(script))
        self._connections: set[asyncio.Task[None]] = set()
        self._ids = itertools.count(1)
        self._ended: list[asyncio.Task[None]] = []
        self._quiet = asyncio.Event()
        self._quiet.set()
        self.requests: list[Received] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=HEAD_BYTES_MAX)
        host, port = self._server.sockets[0].getsockname()
        self.root_url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await self.all_closed()
        await self._server.wait_closed()
        for connection in await _settled(self._ended):
            connection.result()  # a rule that raises fails the test, not only the request

    @property
    def base_url(self) -> str:
        """Where clients of OpenAI's interface ask."""
        return f"{self.root_url}/v1"

    @property
    def connections_open(self) -> int:
        """How many clients are connected, idle ones included."""
        return len(self._connections)

    async def all_closed(self) -> None:
        """Wait until no client is connected any more."""
        await self._quiet.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        self._quiet.clear()
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while (received := await _read(reader)) is not None:
                    self.requests.append(received)
                    if not await self._answer(received, reader, writer):
                        break
        finally:
            self._connections.discard(task)
            self._ended.append(task)
            writer.close()
            if not self._connections:
                self._quiet.set()

    async def _answer(self, received: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return whether the connection lives on."""
        wire = wire_of(received.path)
        if wire is None:
            return await _send(writer, 404, json.dumps({"error": {"message": f"nothing at {received.path}"}}).encode())
        match self._rule(received):
            case Broken(cut=cut, answer=step, after_events=after):
                if after or cut is Cut.END:
                    await self._say(received, wire, answer_of(step), writer, after, ends=cut is Cut.END)
                if cut is Cut.STALL:
                    await reader.read()  # returns when the client closes
                elif cut is Cut.RESET:
                    _reset(writer)
                return cut is Cut.END
            case Failure(status=status, message=message, code=code, retry_after=retry_after):
                headers = {"Retry-After": retry_after} if retry_after is not None else {}
                return await _send(writer, status, json.dumps(wire.error(status, code, message)).encode(), **headers)
            case Garbage(body=body, content_type=content_type, status=status):
                return await _send(writer, status, body, content_type=content_type)
            case step:
                answer = answer_of(step)
                if answer.stalls or answer.fails:
                    raise ScriptError("a provider stalls and fails by Broken and Failure")
                await self._say(received, wire, answer, writer, None)
                return True

    async def _say(
        self,
        received: Received,
        wire: Wire,
        answer: Answer,
        writer: asyncio.StreamWriter,
        after: int | None,
        *,
        ends: bool = True,
    ) -> None:
        """Send an answer, or its first events only; `ends` closes the body in good order."""
        await asyncio.sleep(answer.delay_ms / MS_PER_S)
        said = completion_of(answer, model=received.model, ids=self._ids, count=lambda: estimate(json.dumps(received.body)))
        if not received.wants_usage:
            said = replace(said, usage=Usage())
        if not received.streams:
            body = json.dumps(wire.whole(said)).encode()
            part = body if after is None else body[: len(body) // 2]
            writer.write(_head(200, "application/json", {"Content-Length": str(len(part if ends else body))}) + part)
            await writer.drain()
            return
        size = answer.piece_chars or PIECE_CHARS
        writer.write(_head(200, "text/event-stream", {"Transfer-Encoding": "chunked"}))
        events = wire.events(said, lambda text: (text[at : at + size] for at in range(0, len(text), size)))
        for event in itertools.islice(events, after):
            data = event.encode()
            writer.write(b"%x\r\n%b\r\n" % (len(data), data))
            await writer.drain()
            # At 0 too: one event, one packet, which helps no client to join.
            await asyncio.sleep(answer.piece_delay_ms / MS_PER_S)
        if ends:
            writer.write(b"0\r\n\r\n")
            await writer.drain()


async def _settled(tasks: list[asyncio.Task[None]]) -> list[asyncio.Task[None]]:
    if tasks:
        await asyncio.wait(tasks)
    return tasks


def _take(turns: Iterator[Turn]) -> Rule:
    return lambda _received: next(turns, Failure(400, OUT_OF_SCRIPT))


async def _read(reader: asyncio.StreamReader) -> Received | None:
    """Return the next request of a connection, or nothing if the client is gone or sends what this server does not read."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return None
    first, *lines = head.rstrip().split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    length = int(headers.get("content-length", "0"))
    if length > BODY_BYTES_MAX:
        return None
    body = await reader.readexactly(length)
    return Received(first.split(" ")[1].partition("?")[0], headers, json.loads(body) if body else {})


def _head(status: int, content_type: str, headers: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} Answer", f"Content-Type: {content_type}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def _send(
    writer: asyncio.StreamWriter, status: int, body: bytes, *, content_type: str = "application/json", **headers: str
) -> bool:
    headers["Content-Length"] = str(len(body))
    writer.write(_head(status, content_type, headers) + body)
    await writer.drain()
    return True


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close so that the client sees a reset instead of an end."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
