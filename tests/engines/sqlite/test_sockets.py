"""The sockets beside a store."""

from __future__ import annotations

import asyncio
from pathlib import Path

from comity.engines.sqlite.transport import SocketTransport


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
