"""Links between processes: frames go out together and are taken whole; what is too much, senseless or foreign is not."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import Any

import msgspec
import pytest

from comity.engines.sqlite.transport import (
    _CREDENTIALS,
    _HEADER,
    BACKLOG_BYTES_MAX,
    FRAME_BYTES_MAX,
    Hello,
    _Inbound,
    _Link,
)


class Wire(asyncio.WriteTransport):
    """What the link writes to."""

    def __init__(self, waiting: int = 0) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.waiting, self.limit, self.is_closed = waiting, 0, False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.limit = high or 0

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def write(self, data: bytes) -> None:  # type: ignore[override]
        self.written.append(data)

    def close(self) -> None:
        self.is_closed = True


def frame(kind: int, content: bytes) -> bytes:
    return _HEADER.pack(len(content), kind) + content


async def test_frames_of_one_turn_of_the_loop_go_out_together_and_those_before_the_connection_with_it():
    gone, wire = [], Wire()
    link = _Link(asyncio.get_running_loop(), "n2", gone.append)
    link.write(1, b"first")
    link.write(2, b"second")
    link.connection_made(wire)
    assert (wire.written, wire.limit) == ([frame(1, b"first") + frame(2, b"second")], BACKLOG_BYTES_MAX)
    link.write(2, b"third")
    link.write(2, b"fourth")
    assert len(wire.written) == 1
    await asyncio.sleep(0)
    assert wire.written[1:] == [frame(2, b"third") + frame(2, b"fourth")]
    await asyncio.sleep(0)
    link.write(2, b"last")
    link.close()
    assert (wire.written[2:], wire.is_closed, gone) == ([frame(2, b"last")], True, [])
    link.connection_lost(None)
    assert gone == [link]


async def test_what_does_not_fit_in_the_backlog_is_dropped():
    wire = Wire()
    link = _Link(asyncio.get_running_loop(), "n2", lambda _: None)
    link.write(1, b"x" * (BACKLOG_BYTES_MAX - 1))
    link.write(1, b"y")
    link.write(1, b"z")
    link.connection_made(wire)
    assert [len(one) for one in wire.written] == [BACKLOG_BYTES_MAX + 2 * _HEADER.size]
    link.write(1, b"z")
    await asyncio.sleep(0)
    assert wire.written[1:] == [frame(1, b"z")], "there is place again"


@pytest.mark.parametrize(("waiting", "is_sent"), [(BACKLOG_BYTES_MAX - 1, True), (BACKLOG_BYTES_MAX, False)])
async def test_nothing_more_is_written_to_a_process_that_does_not_read(waiting, is_sent):
    wire = Wire(waiting)
    link = _Link(asyncio.get_running_loop(), "n2", lambda _: None)
    link.connection_made(wire)
    assert wire.written == []
    link.write(1, b"x")
    await asyncio.sleep(0)
    assert bool(wire.written) is is_sent


async def test_closing_waits_for_no_connection():
    link = _Link(asyncio.get_running_loop(), "n2", lambda _: None)
    link.close()
    link.task = asyncio.ensure_future(asyncio.Event().wait())
    link.close()
    async with asyncio.timeout(1):
        await asyncio.wait([link.task])
    assert link.task.cancelled()


class End:
    """The transport to which inbound connections belong."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def heard(self, inbound: _Inbound, hello: Hello) -> None:
        self.told.append(hello)

    def received(self, sender: str, message: bytes) -> None:
        self.told.append((sender, message))

    def hung_up(self, inbound: _Inbound) -> None:
        self.told.append("hung up")


class Line(asyncio.Transport):
    """A connection from a process of the user `uid`."""

    def __init__(self, uid: int | None = None) -> None:
        super().__init__()
        self.uid = os.getuid() if uid is None else uid
        self.is_aborted = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self

    def getsockopt(self, *_: int) -> bytes:
        return _CREDENTIALS.pack(1, self.uid, 1)

    def abort(self) -> None:
        self.is_aborted = True


def connected(uid: int | None = None) -> tuple[_Inbound, End, Line]:
    end, line = End(), Line(uid)
    inbound = _Inbound(end)  # type: ignore[arg-type]
    inbound.connection_made(line)
    return inbound, end, line


def hello(node_id: str = "n2", *agents: str) -> bytes:
    return frame(0, msgspec.json.encode(Hello(node_id, agents)))


@pytest.mark.parametrize("size", [1, 4, 5, 6, 1_000])
def test_frames_are_taken_whole_however_they_arrive(size):
    inbound, end, line = connected()
    data = hello("n2", "A") + frame(1, b"one") + frame(1, b"") + hello("n2", "A", "B") + frame(1, b"two" * 50)
    for begin in range(0, len(data), size):
        inbound.data_received(data[begin : begin + size])
    assert end.told == [Hello("n2", ("A",)), ("n2", b"one"), ("n2", b""), Hello("n2", ("A", "B")), ("n2", b"two" * 50)]
    assert (inbound._rest, line.is_aborted) == (b"", False)
    inbound.connection_lost(None)
    assert end.told[-1] == "hung up"


@pytest.mark.parametrize(
    ("data", "taken"),
    [
        (frame(1, b"before hello"), 0),
        (hello("n2") + hello("n3"), 1),
        (hello(""), 0),
        (frame(0, b"{"), 0),
        (frame(2, b"x"), 0),
        (hello("n2") + frame(2, b"x") + frame(1, b"after"), 1),
        (hello("n2") + _HEADER.pack(FRAME_BYTES_MAX, 1), 1),
    ],
)
def test_what_makes_no_sense_ends_the_connection_and_nothing_behind_it_is_taken(data, taken):
    inbound, end, line = connected()
    inbound.data_received(data)
    assert (len(end.told), line.is_aborted) == (taken, True)


def test_a_frame_that_is_one_byte_short_of_the_longest_is_waited_for():
    inbound, end, line = connected()
    inbound.data_received(hello("n2") + _HEADER.pack(FRAME_BYTES_MAX - 1, 1) + b"x")
    assert (len(end.told), line.is_aborted) == (1, False)


@pytest.mark.skipif(not hasattr(socket, "SO_PEERCRED"), reason="elsewhere the mode of the file decides")
@pytest.mark.parametrize(("uid", "is_refused"), [(None, False), (0, False), (os.getuid() + 1, True)])
def test_only_processes_of_the_same_user_or_of_root_may_connect(uid, is_refused):
    assert connected(uid)[2].is_aborted is is_refused
