"""A link to another process: frames go out together, what is too much is dropped, and closing waits for no connection."""

from __future__ import annotations

import asyncio

import pytest

from comity.engines.sqlite.transport import _HEADER, BACKLOG_BYTES_MAX, _Link


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
