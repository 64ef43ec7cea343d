"""The sockets beside a store keep the contract of a transport, and a process that joins knows the agents of the others."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import pytest

from comity.engines.memory.journal import MemoryJournal
from comity.engines.sqlite import transport as transport_module
from comity.engines.sqlite.engine import SqliteEngine
from comity.engines.sqlite.leases import StoreLeases
from comity.engines.sqlite.transport import SocketTransport, _is_own, socket_path
from comity.errors import UnavailableError
from comity.ports import Transport
from comity.testing.contracts.cluster import TransportContract


@contextmanager
def folder() -> Iterator[Path]:
    """A folder whose name is short enough for the address of a socket."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


class TestSocketTransport(TransportContract):
    def check(self, case: Callable[[Transport, Transport], Awaitable[None]]) -> None:
        async def main() -> None:
            with folder() as beside:
                one, other = (SocketTransport(beside / "work.db", lambda node_id: True) for _ in range(2))
                try:
                    await case(one, other)
                finally:
                    await one.close()
                    await other.close()

        asyncio.run(main())

    async def settle(self) -> None:
        for _ in range(100):  # both ends run in this loop: each turn takes what the one before has sent
            await asyncio.sleep(0)

    def test_a_message_that_cannot_be_taken_does_not_end_the_connection(self, caplog: pytest.LogCaptureFixture) -> None:
        async def case(one: Transport, other: Transport) -> None:
            arrived: list[int] = []

            def receive(sender: str, message: bytes) -> None:
                arrived.append(int(message))

            await one.open("n1", receive)
            await other.open("n2", receive)
            other.send("n1", b"odd")
            await self.settle()
            other.send("n1", b"7")
            await self.settle()
            assert (arrived, list(one.peers())) == ([7], ["n2"])

        self.check(case)
        assert "a message of the node n2 could not be taken" in caplog.text


def test_a_process_that_has_joined_knows_the_agents_of_the_others_at_once() -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            store = stack.enter_context(folder()) / "work.db"

            async def opened(node_id: str, *agents: str) -> SqliteEngine:
                engine = SqliteEngine(store, node_id)
                await engine.open()
                stack.push_async_callback(engine.close)
                await engine.listen(_runs_nothing)
                engine.transport.announce(agents)
                await engine.join()
                return engine

            await opened("n1", "A")
            await opened("n2", "B")
            third = await opened("n3")
            assert [list(third.transport.hosts(agent)) for agent in "ABC"] == [["n1"], ["n2"], []]

    asyncio.run(main())


async def _runs_nothing() -> None:
    pass


class Members:
    """Processes of which a test says how long they still count as alive, in milliseconds."""

    def __init__(self, **left_ms: int) -> None:
        self.left = left_ms

    def beat(self) -> int | None:
        return self.left["n1"] or None

    def left_ms(self, node_id: str) -> int:
        return self.left.get(node_id, 0)


def leases_of(members: Members) -> StoreLeases:
    journal = MemoryJournal("n1")
    journal.open()
    return StoreLeases(journal, members)


async def test_a_process_whose_own_leases_have_run_out_takes_no_address() -> None:
    leases = leases_of(Members(n1=0))
    with pytest.raises(UnavailableError, match="have run out"):
        await leases.acquire("A")
    assert leases.find("A") is None


async def test_giving_back_an_old_lease_leaves_the_newer_one_of_the_same_process() -> None:
    members = Members(n1=50)
    leases = leases_of(members)
    old = await leases.acquire("A")
    await leases.release(old)
    assert leases._held == {}
    new = await leases.acquire("A")
    await leases.release(old)
    assert leases.find("A") == new
    members.left["n1"] = 0  # it comes too late: everything that it holds is given up, the newer lease too
    assert await leases.keep() is None
    members.left["n1"] = 50
    assert leases.find("A") is None
    assert (await leases.acquire("A")).token > new.token


@pytest.mark.parametrize(("uid", "gid", "is_heard"), [(1000, 7, True), (0, 7, True), (1001, 1000, False), (1001, 0, False)])
def test_only_processes_of_this_user_and_of_root_are_heard(
    monkeypatch: pytest.MonkeyPatch, uid: int, gid: int, is_heard: bool
) -> None:
    class Connected:
        def getsockopt(self, *_: int) -> bytes:
            return struct.pack("iII", 1, uid, gid)

    monkeypatch.setattr(os, "getuid", lambda: 1000)
    assert _is_own(Connected()) is is_heard


async def test_what_waits_for_a_process_is_bounded_and_its_socket_is_for_its_user_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport_module, "BACKLOG_BYTES_MAX", 100)
    store, heard = tmp_path / "s.db", list[bytes]()
    one, other = (SocketTransport(store, lambda _: True) for _ in range(2))
    try:
        await one.open("n1", lambda _, message: heard.append(message))
        assert socket_path(store, "n1").stat().st_mode & 0o777 == 0o600
        await other.open("n2", lambda *_: None)
        for letter in (b"a", b"b"):  # before they are connected, with the words that say who sends
            other.send("n1", letter * 50)
        while not heard:
            await asyncio.sleep(0)
        other.send("n1", b"c")
        while heard[-1] != b"c":
            await asyncio.sleep(0)
        assert heard == [b"a" * 50, b"c"]
    finally:
        await one.close()
        await other.close()


async def test_nothing_is_sent_to_a_socket_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, heard = tmp_path / "s.db", list[tuple[str, bytes]]()
    monkeypatch.setattr(transport_module, "_is_own", lambda connection: not isinstance(connection, socket.socket))
    one, other = (SocketTransport(store, lambda _: True) for _ in range(2))
    try:
        await one.open("n1", lambda sender, message: heard.append((sender, message)))
        await other.open("n2", lambda *_: None)
        assert list(other.peers()) == ["n1"]  # its socket is there; whose it is a connection says
        other.send("n1", b"secret")
        for _ in range(100):
            await asyncio.sleep(0)
        assert (heard, list(other.peers())) == ([], [])
    finally:
        await one.close()
        await other.close()


async def test_a_connection_says_once_who_sends_and_is_cut_if_it_says_another_or_none(tmp_path: Path) -> None:
    store, heard = tmp_path / "s.db", []
    transport = SocketTransport(store, lambda _: True)
    await transport.open("n1", lambda sender, message: heard.append((sender, message)))

    def frame(kind: int, content: bytes) -> bytes:
        return struct.pack(">IB", len(content), kind) + content

    hello, other, nobody = (frame(0, b'{"node_id":"%s"}' % name) for name in (b"n2", b"n3", b""))
    try:
        for sent in ((hello, hello, other), (nobody,), (frame(1, b"x"),), (frame(7, b""),), (hello, frame(0, b"{"))):
            reader, writer = await asyncio.open_unix_connection(socket_path(store, "n1"))
            writer.write(b"".join(sent) + frame(1, b"after"))
            writer.write_eof()
            assert await reader.read() == b""
            writer.close()
        assert heard == []
        _, writer = await asyncio.open_unix_connection(socket_path(store, "n1"))
        writer.write(hello + frame(1, b"good"))
        while not heard:
            await asyncio.sleep(0)
        writer.close()
        assert heard == [("n2", b"good")]
    finally:
        await transport.close()
