"""The sockets beside a store keep the contract of a transport, and a process that joins knows the agents of the others."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import pytest

from comity.engines.sqlite.engine import SqliteEngine
from comity.engines.sqlite.transport import SocketTransport
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
