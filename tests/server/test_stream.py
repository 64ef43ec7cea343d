"""Streams of server-sent events: what a client gets, in which order, and when a stream ends."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from comity.server.stream import Streams, frame


class Event(NamedTuple):
    seq: int


class Log:
    """A source that keeps some events."""

    def __init__(self, *numbers: int) -> None:
        self.events = [Event(number) for number in numbers]
        self.is_closed = False
        self.waiters: list[asyncio.Future[None]] = []

    def since(self, after: int) -> list[Event]:
        return [event for event in self.events if event.seq > after]

    def notify(self, waiter: asyncio.Future[None]) -> None:
        self.waiters.append(waiter)

    def close(self) -> None:
        self.is_closed = True
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)


class Client:
    """One that notes what it is sent, and may do something with each part."""

    def __init__(self, streams: Streams, log: Log, after: int = 0) -> None:
        self.parts: list[bytes] = []
        self.is_complete = False
        self.on_part = lambda: None
        self.connection = SimpleNamespace(is_lost=False, waiter=None)
        scope: Any = {"comity.connection": self.connection}
        serving = streams.serve(scope, self._send, log, after, lambda event: frame("step", {}, event.seq), self._last)
        self.task = asyncio.ensure_future(serving)

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.body":
            self.parts.append(message["body"])
            self.is_complete = not message.get("more_body", False)
            self.on_part()

    async def _last(self) -> bytes:
        return frame("reply", "end")

    @property
    def said(self) -> bytes:
        return b"".join(self.parts[1:])  # after the time a client waits before it connects again


async def some_turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def steps(*numbers: int) -> bytes:
    return b"".join(frame("step", {}, number) for number in numbers)


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (0, steps(5, 6)),  # a client that has seen nothing misses nothing
        (2, frame("gap", {"from": 3, "to": 4}) + steps(5, 6)),
        (4, steps(5, 6)),
        (5, steps(6)),
    ],
)
async def test_a_client_gets_what_came_after_its_last_event_and_is_told_what_is_gone(after, told):
    streams, log = Streams(60), Log(5, 6)
    log.is_closed = True
    client = Client(streams, log, after)
    await client.task
    assert (client.said, client.is_complete, streams.open) == (told + frame("reply", "end"), True, 0)


async def test_an_event_that_comes_while_another_is_sent_is_sent_at_once():
    streams, log = Streams(60), Log(1)
    client = Client(streams, log)
    client.on_part = lambda: len(client.parts) == 2 and log.events.append(Event(2))
    await some_turns()
    assert (client.said, len(log.waiters), streams.open) == (steps(1, 2), 1, 1)
    log.close()
    await client.task
    assert (client.said, streams.open) == (steps(1, 2) + frame("reply", "end"), 0)


async def test_heartbeats_come_while_a_stream_is_open_and_not_after():
    streams, log = Streams(10), Log()
    client = Client(streams, log)
    await asyncio.sleep(25)
    assert client.said == b": alive\n\n" * 2
    log.close()
    await client.task
    await asyncio.sleep(10)
    assert (streams.open, streams._timer) == (0, None)


async def test_a_server_that_drains_ends_its_streams_and_says_so_and_a_lost_client_is_told_nothing():
    streams, log = Streams(60), Log(1)
    client, lost = Client(streams, log), Client(streams, log)
    await some_turns()
    lost.connection.is_lost = True
    lost.connection.waiter.set_result(None)
    await lost.task
    streams.drain()
    await client.task
    assert (client.said, lost.said) == (steps(1) + frame("drain", {}), steps(1))
    late = Client(streams, log)
    await late.task
    assert (late.said, streams.open) == (frame("drain", {}), 0)


async def test_a_client_that_is_lost_while_it_is_sent_an_event_is_not_waited_for():
    streams, log = Streams(60), Log(1)
    client = Client(streams, log)

    def go() -> None:
        client.connection.is_lost = len(client.parts) == 2

    client.on_part = go
    await some_turns()
    assert (client.task.done(), client.said, log.waiters, streams.open) == (True, steps(1), [], 0)


async def test_what_a_source_does_not_show_is_passed_over_and_a_stream_without_a_last_word_just_ends():
    streams, log, parts = Streams(60), Log(1, 2), []

    async def send(message: Any) -> None:
        parts.append(message.get("body"))

    log.is_closed = True
    await streams.serve({}, send, log, 0, lambda event: frame("step", {}, event.seq) if event.seq == 2 else None)
    assert (parts[2:], streams.open) == ([steps(2)], 0)
