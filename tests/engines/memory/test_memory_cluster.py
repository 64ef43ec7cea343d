"""The leases and the network in memory keep the contracts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from comity.core.cluster.lease import LEASE_MS
from comity.engines.memory.cluster import LeaseService, MemoryLeases, MemoryNetwork, SharedJournal
from comity.engines.memory.journal import MemoryJournal
from comity.ports import Journal, Leases, Transport
from comity.testing import VirtualClock, run_virtual
from comity.testing.contracts.cluster import LeasesContract, TransportContract
from comity.testing.contracts.journal import JournalContract
from comity.testing.contracts.records import accepted, paused


class TestSharedJournal(JournalContract):
    def make(self, folder: Path) -> Journal:
        return SharedJournal(MemoryJournal(), "node")

    def test_one_node_sees_what_another_wrote_and_who_runs_it(self) -> None:
        shared = MemoryJournal()
        one, other = SharedJournal(shared, "n1"), SharedJournal(shared, "n2")
        one.append((accepted("a", node_id="n1"),))
        other.append((paused("b"),))
        found = other.call("a")
        assert found is not None
        assert found.node_id == "n1"
        assert [call.request_id for call in one.take_paused("b")] == ["b"]
        taken = other.call("b")
        assert taken is not None
        assert taken.node_id == "n1"


class TestMemoryLeases(LeasesContract):
    def check(self, case: Callable[[Leases, Leases], Awaitable[None]]) -> None:
        async def main() -> None:
            service, store = LeaseService(VirtualClock()), MemoryJournal()
            await case(*(MemoryLeases(service, SharedJournal(store, node_id)) for node_id in ("n1", "n2")))

        run_virtual(main())

    async def wait_out(self) -> None:
        await asyncio.sleep(LEASE_MS / 1000)

    def test_a_lease_can_be_let_run_out(self) -> None:
        service = LeaseService(VirtualClock())

        async def main() -> None:
            first = service.acquire("A", "n1")
            service.expire("A")
            service.expire("never held")
            assert service.find("A") is None
            assert service.acquire("A", "n2").token == first.token + 1

        run_virtual(main())


class TestMemoryTransport(TransportContract):
    def check(self, case: Callable[[Transport, Transport], Awaitable[None]]) -> None:
        async def main() -> None:
            network = MemoryNetwork()
            await case(network.transport(), network.transport())

        run_virtual(main())

    async def settle(self) -> None:
        await asyncio.sleep(0.001)


async def test_a_message_that_cannot_be_taken_keeps_no_other_from_being_delivered() -> None:
    network, heard = MemoryNetwork(), list[bytes]()

    def hear(sender: str, message: bytes) -> None:
        if message == b"bad":
            raise ValueError("it cannot be taken")
        heard.append(message)

    sender, receiver = network.transport(), network.transport()
    await sender.open("n1", lambda _, __: None)
    await receiver.open("n2", hear)
    asyncio.get_running_loop().set_exception_handler(lambda _, __: None)
    for message in (b"first", b"bad", b"second", b"bad", b"third"):
        sender.send("n2", message)
    assert heard == []
    await asyncio.sleep(0.01)
    assert heard == [b"first", b"second", b"third"]
