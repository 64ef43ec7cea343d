"""What every lease service and every transport must do, as suites. A test module subclasses each once for each engine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from comity.core.cluster.lease import Lease
from comity.core.units import MS_PER_S
from comity.errors import UnavailableError
from comity.ports import Leases, Transport


class LeasesContract:
    """`check` runs a case with the ends of two nodes, n1 and n2, at fresh leases; `wait_out` lets every lease run out."""

    def check(self, case: Callable[[Leases, Leases], Awaitable[None]]) -> None:
        raise NotImplementedError

    async def wait_out(self) -> None:
        raise NotImplementedError

    def test_a_free_address_goes_to_the_node_that_asks_and_others_learn_which_has_it(self) -> None:
        async def case(one: Leases, other: Leases) -> None:
            await one.keep()
            await other.keep()
            assert one.find("A") is None
            mine = await one.acquire("A")
            told = await other.acquire("A")
            assert (mine.address, mine.holder) == ("A", "n1")
            assert (told.holder, told.token) == ("n1", mine.token)
            assert told.left_ms > 0
            assert (await other.acquire("B")).holder == "n2"
            found = other.find("A")
            assert found is not None
            assert (found.holder, found.token, found.left_ms > 0) == ("n1", mine.token, True)

        self.check(case)

    def test_asking_again_keeps_the_token_of_a_holder(self) -> None:
        async def case(one: Leases, other: Leases) -> None:
            await one.keep()
            assert (await one.acquire("A")).token == (await one.acquire("A")).token

        self.check(case)

    def test_one_beat_keeps_every_lease_of_a_node(self) -> None:
        async def case(one: Leases, other: Leases) -> None:
            left_ms = await one.keep()
            assert left_ms is not None
            held = [await one.acquire(address) for address in "ABC"]
            await asyncio.sleep(left_ms / 2000)
            assert await one.keep() is not None
            await asyncio.sleep(left_ms * 0.75 / MS_PER_S)
            await other.keep()
            told = [await other.acquire(address) for address in "ABC"]
            assert [(one.holder, one.token) for one in told] == [("n1", one.token) for one in held]

        self.check(case)

    def test_what_ran_out_goes_to_the_next_with_a_greater_token_and_the_former_holder_begins_anew(self) -> None:
        async def case(one: Leases, other: Leases) -> None:
            await one.keep()
            first, kept = await one.acquire("A"), await one.acquire("B")
            await self.wait_out()
            await other.keep()
            assert other.find("A") is None
            second = await other.acquire("A")
            assert (second.holder, second.token > first.token) == ("n2", True)
            with pytest.raises(UnavailableError):
                await one.acquire("B")
            assert await one.keep() is None
            assert (await one.acquire("A")).holder == "n2"
            assert other.find("B") is None
            assert (await one.acquire("B")).token > kept.token

        self.check(case)

    def test_what_is_given_back_is_free_at_once_and_its_token_is_never_used_again(self) -> None:
        async def case(one: Leases, other: Leases) -> None:
            await one.keep()
            await other.keep()
            first = await one.acquire("A")
            await one.release(first)
            assert other.find("A") is None
            second = await other.acquire("A")
            assert (second.holder, second.token > first.token) == ("n2", True)
            await one.release(first)  # by a node that does not know that it is another's now
            await one.release(Lease("never held", "n1", 1, 0))
            assert (await one.acquire("A")).holder == "n2"

        self.check(case)


class TransportContract:
    """`check` runs a case with two ends of a network that is not faulty."""

    def check(self, case: Callable[[Transport, Transport], Awaitable[None]]) -> None:
        raise NotImplementedError

    async def settle(self) -> None:
        """Let everything that was sent arrive."""
        raise NotImplementedError

    def test_a_message_arrives_with_its_senders_name(self) -> None:
        async def case(one: Transport, other: Transport) -> None:
            arrived: list[tuple[str, bytes]] = []
            await one.open("n1", lambda sender, message: arrived.append((sender, message)))
            await other.open("n2", lambda sender, message: arrived.append((sender, message)))
            one.send("n2", b"a")
            other.send("n1", b"b")
            assert arrived == []  # never from within `send`
            await self.settle()
            assert sorted(arrived) == [("n1", b"a"), ("n2", b"b")]

        self.check(case)

    def test_who_is_not_there_hears_nothing_and_nobody_is_told(self) -> None:
        async def case(one: Transport, other: Transport) -> None:
            arrived: list[bytes] = []
            await one.open("n1", lambda sender, message: arrived.append(message))
            await other.open("n2", lambda sender, message: arrived.append(message))
            one.send("n3", b"a")
            one.send("n2", b"b")
            await other.close()
            await self.settle()
            assert arrived == []

        self.check(case)

    def test_peers_are_the_others_in_order(self) -> None:
        async def case(one: Transport, other: Transport) -> None:
            await one.open("n2", lambda sender, message: None)
            assert list(one.peers()) == []
            await other.open("n1", lambda sender, message: None)
            await self.settle()
            assert (list(one.peers()), list(other.peers())) == (["n1"], ["n2"])

        self.check(case)

    def test_agents_are_found_where_they_were_announced(self) -> None:
        async def case(one: Transport, other: Transport) -> None:
            await one.open("n1", lambda sender, message: None)
            one.announce(["A", "B"])
            await other.open("n2", lambda sender, message: None)
            other.announce(["B", "C"])
            await self.settle()
            assert [list(one.hosts(agent)) for agent in "ABC"] == [[], ["n2"], ["n2"]]
            assert [list(other.hosts(agent)) for agent in "ABCD"] == [["n1"], ["n1"], [], []]
            other.announce(["A"])
            await self.settle()
            assert [list(one.hosts(agent)) for agent in "ABC"] == [["n2"], [], []]
            await other.close()
            await self.settle()
            assert list(one.hosts("A")) == []

        self.check(case)
