"""Leases: a receiver is notified once of each handoff that it has no longer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from comity.core.handoff.machine import Handoff
from comity.runtime.agent.clock_watch import ClockWatch
from comity.runtime.handoff.leases import Leases
from comity.testing import VirtualClock
from comity.testing.contracts.records import request

HELD = Handoff(request=request("h"), lane="lane", made_by="node", holder="node/w", fence=2)


@dataclass
class Queue:
    """A queue with at most one handoff."""

    stored: Handoff | None

    def get(self, handoff_id: str) -> Handoff | None:
        return self.stored if self.stored is not None and self.stored.id == handoff_id else None


@pytest.mark.parametrize(
    ("stored", "topics", "lost"),
    [
        (HELD, {"-h"}, []),
        (replace(HELD, lease_until=9), None, []),
        (replace(HELD, fence=3), {"-h"}, ["h"]),  # the same receiver had it once more
        (replace(HELD, holder="node/v"), {"-h"}, ["h"]),
        (None, {"-h"}, ["h"]),
        (None, None, ["h"]),
        (None, {"+h", "-i"}, []),
    ],
)
async def test_a_handoff_is_lost_to_its_receiver_once_it_is_gone_or_held_by_another_or_under_another_number(
    stored, topics, lost
):
    clock, told = VirtualClock(), []
    watch = ClockWatch(clock, asyncio.get_running_loop())
    leases = Leases(Queue(stored), lambda *_: None, clock, asyncio.get_running_loop(), watch)
    leases.hold(HELD, 30_000, told.append)
    leases.look_after(topics)
    leases.look_after(topics)
    assert (told, leases.is_armed) == (lost, not lost)
    leases.close()
