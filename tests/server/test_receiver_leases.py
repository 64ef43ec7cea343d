"""What receivers behind HTTP hold: for how long without a heartbeat, with which proof, and how much."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from comity.errors import CallerError, RefusedError, UnavailableError
from comity.server.leases import HELD_MAX, RECEIVERS_MAX, Receivers


class Receiver:
    """Notes what is given back; the second time it is another's."""

    def __init__(self) -> None:
        self.released: list[tuple[str, str]] = []

    async def release(self, handoff_id: str, reason: str) -> None:
        self.released.append((handoff_id, reason))
        raise RefusedError("another receiver has it", code="HANDOFF_LEASE_LOST")


def handoff(handoff_id: str) -> SimpleNamespace:
    return SimpleNamespace(id=handoff_id)


async def test_a_lease_lasts_from_the_last_heartbeat_and_what_it_held_is_given_back_once_it_is_over():
    receivers, receiver = Receivers(None), Receiver()
    held = receivers.hold(handoff("h"), receiver, 10_000, now_ms=500)
    other = receivers.hold(handoff("other"), receiver, 60_000, now_ms=500)
    assert (held.until, receivers.held("h", held.id) is held) == (10_500, True)
    await asyncio.sleep(6)
    receivers.renew(held, 6_500)
    assert held.until == 16_500
    question = held.question = ("q", asyncio.get_running_loop().create_future())
    await asyncio.sleep(9.9)
    assert (receivers.held("h", held.id) is held, receiver.released) == (True, [])
    await asyncio.sleep(0.2)
    assert receiver.released == [("h", "its receiver fell silent")]
    assert (question[1].cancelled(), held.question, receivers._tasks) == (True, None, set())
    with pytest.raises(RefusedError, match="the lease of 'h' has ended") as caught:
        receivers.held("h", held.id)
    assert caught.value.code == "HANDOFF_LEASE_LOST"
    assert receivers.held("other", other.id) is other
    receivers.close()
    await asyncio.sleep(60)
    assert len(receiver.released) == 1
    with pytest.raises(RefusedError):
        receivers.held("other", other.id)


async def test_the_newest_lease_of_a_handoff_alone_holds_it():
    receivers, receiver = Receivers(None), Receiver()
    first = receivers.hold(handoff("h"), receiver, 1_000, now_ms=0)
    second = receivers.hold(handoff("h"), receiver, 60_000, now_ms=0)
    for lease in (first.id, "", "\u00e9"):
        with pytest.raises(RefusedError):
            receivers.held("h", lease)
    await asyncio.sleep(2)
    receivers.drop(first)
    assert (receivers.held("h", second.id) is second, receiver.released) == (True, [])
    receivers.drop(second)
    with pytest.raises(RefusedError):
        receivers.held("h", second.id)


async def test_a_server_holds_a_bounded_number_of_handoffs():
    receivers = Receivers(None)
    receivers._held = {str(number): None for number in range(HELD_MAX - 1)}
    receivers.hold(handoff("last"), Receiver(), 1_000, now_ms=0)
    with pytest.raises(UnavailableError, match=r"holds 10,000 handoffs") as caught:
        receivers.hold(handoff("one more"), Receiver(), 1_000, now_ms=0)
    assert caught.value.code == "AGENT_BUSY"
    receivers._held["last"].timer.cancel()


async def test_one_receiver_stands_in_for_an_agent_with_its_capabilities_in_a_tenant(make_node):
    async with make_node() as node:
        receivers = Receivers(node)
        one = receivers.receiver("t", "FAR", ("B", "A", "B"))
        assert receivers.receiver("t", "FAR", ("A", "B")) is one
        others = [
            receivers.receiver(*names) for names in (("o", "FAR", ("A", "B")), ("t", "NEAR", ("A", "B")), ("t", "FAR", ("A",)))
        ]
        assert len({id(each) for each in (one, *others)}) == 4
        with pytest.raises(CallerError) as caught:
            receivers.receiver("t", "", ("A",))
        assert caught.value.code == "INPUT_VALIDATION_FAILED"
        for number in range(RECEIVERS_MAX - len(receivers._receivers)):
            receivers._receivers["t", str(number), ()] = one
        with pytest.raises(UnavailableError) as full:
            receivers.receiver("t", "LAST", ("A",))
        assert (full.value.code, receivers.receiver("t", "FAR", ("A", "B")) is one) == ("AGENT_BUSY", True)
