"""What every lease service and every transport must do, as suites. A test module subclasses each once for each engine it has."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from comity.core.cluster.lease import Lease
from comity.ports import Leases, Transport


class LeasesContract:
    """`check` runs a case against fresh leases; `wait_out` lets every lease run out."""

    def check(self, case: Callable[[Leases], Awaitable[None]]) -> None:
        raise NotImplementedError

    async def wait_out(self) -> None:
        raise NotImplementedError

    def test_a_free_address_goes_to_who_asks_and_others_are_told_who_has_it(self) -> None:
        async def case(leases: Leases) -> None:
            mine = await leases.acquire("A", "n1")
            told = await leases.acquire("A", "n2")
            assert (mine.address, mine.holder) == ("A", "n1")
            assert (told.holder, told.token) == ("n1", mine.token)
            assert 0 < told.left_ms <= mine.left_ms
            assert (await leases.acquire("B", "n2")).holder == "n2"
            found = await leases.find("A")
            assert found is not None
            assert (found.holder, found.token, 0 < found.left_ms <= mine.left_ms) == ("n1", mine.token, True)

        self.check(case)

    def test_asking_again_keeps_the_token_of_a_holder(self) -> None:
        async def case(leases: Leases) -> None:
            assert (await leases.acquire("A", "n1")).token == (await leases.acquire("A", "n1")).token

        self.check(case)

    def test_a_lease_that_ran_out_goes_to_the_next_with_a_greater_token_and_the_former_holder_cannot_renew(self) -> None:
        async def case(leases: Leases) -> None:
            first = await leases.acquire("A", "n1")
            await self.wait_out()
            assert await leases.find("A") is None
            second = await leases.acquire("A", "n2")
            assert second.holder == "n2"
            assert second.token > first.token
            assert await leases.renew(first) is None

        self.check(case)

    def test_a_holder_whose_lease_ran_out_gets_a_greater_token_too(self) -> None:
        async def case(leases: Leases) -> None:
            first = await leases.acquire("A", "n1")
            await self.wait_out()
            assert await leases.renew(first) is None
            assert (await leases.acquire("A", "n1")).token > first.token

        self.check(case)

    def test_a_renewed_lease_lasts_as_long_as_a_new_one(self) -> None:
        async def case(leases: Leases) -> None:
            first = await leases.acquire("A", "n1")
            await asyncio.sleep(first.left_ms / 2000)
            renewed = await leases.renew(first)
            assert renewed is not None
            assert (renewed.token, renewed.left_ms) == (first.token, first.left_ms)
            await asyncio.sleep(first.left_ms * 0.75 / 1000)
            assert (await leases.acquire("A", "n2")).holder == "n1"

        self.check(case)

    def test_what_is_given_back_is_free_at_once_and_its_token_is_never_used_again(self) -> None:
        async def case(leases: Leases) -> None:
            first = await leases.acquire("A", "n1")
            await leases.release(first)
            assert await leases.find("A") is None
            second = await leases.acquire("A", "n2")
            assert (second.holder, second.token > first.token) == ("n2", True)
            await leases.release(first)  # by one who does not know that it is another's now
            assert (await leases.acquire("A", "n3")).holder == "n2"
            assert await leases.renew(Lease("A", "n2", first.token, 0)) is None

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
            assert (list(one.peers()), list(other.peers())) == (["n1"], ["n2"])

        self.check(case)
