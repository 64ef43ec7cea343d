"""The sockets beside a store."""

from __future__ import annotations

import asyncio
from pathlib import Path

from comity.engines.sqlite.transport import FRAME_BYTES_MAX, SocketTransport


async def test_the_folder_of_a_long_path_is_open_for_as_long_as_a_socket_is_made_in_it(tmp_path, monkeypatch):
    """Its address leads through the number of the folder, which a file of another thread may have once it is closed."""
    store = tmp_path / ("a" * 100) / "store.db"
    store.parent.mkdir()
    loop, seen = asyncio.get_running_loop(), []
    create = loop.create_unix_server

    async def create_and_look(*args, sock, **options):
        server = await create(*args, sock=sock, **options)
        seen.append(Path(sock.getsockname()).parent.resolve())
        return server

    monkeypatch.setattr(loop, "create_unix_server", create_and_look)
    transport = SocketTransport(store, lambda _: True)
    await transport.open("n1", lambda *_: None)
    assert seen == [store.parent.resolve()]
    await transport.close()
    assert list(store.parent.iterdir()) == []


async def test_a_node_that_left_and_took_its_socket_along_is_told_as_gone(tmp_path):
    living, gone = {"n1", "n2"}, asyncio.Event()
    first, second = (SocketTransport(tmp_path / "store.db", living.__contains__) for _ in range(2))
    met = asyncio.Event()
    await first.open("n1", lambda *_: None, met=lambda _: met.set(), lost=lambda _: gone.set())
    await second.open("n2", lambda *_: None)
    async with asyncio.timeout(10):
        await met.wait()
        living.remove("n2")
        await second.close()
        await gone.wait()
    assert list(first.peers()) == []
    await first.close()


def test_a_message_reaches_a_node_that_listens_and_no_other(tmp_path):
    async def main() -> None:
        store, heard = tmp_path / "store.db", []
        first, second = (SocketTransport(store, lambda _: True) for _ in range(2))
        first.send("n2", b"before it is open")
        await first.open("n1", lambda *_: None)
        first.send("n2", b"to none")
        first.greet(["n2"])
        assert list(first.peers()) == []
        got = asyncio.Event()

        def receive(*told: object) -> None:
            heard.append(told)
            got.set()

        await second.open("n2", receive)
        first.greet(["n2", "n3"])
        assert list(first.peers()) == ["n2"]
        first.send("n2", b"x" * FRAME_BYTES_MAX)  # too long
        first.send("n2", b"one")
        async with asyncio.timeout(10):
            await got.wait()
        assert [message for message in heard if b"one" in message] == heard
        assert len(heard) == 1
        await first.close()
        first.send("n2", b"after it is closed")
        assert list(first.peers()) == []
        await second.close()

    asyncio.run(main())
    assert list(tmp_path.iterdir()) == []
