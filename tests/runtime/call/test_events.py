"""What a watcher sees of a call that tells more than is kept."""

from __future__ import annotations

import asyncio
from pathlib import Path

from comity.core.call.limits import EVENTS_KEPT_MAX, Limits
from comity.core.envelope.envelope import Request
from comity.runtime.call.events import EventLog, Kind

REQUEST = Request("r1", "A", "GO", "u1", Limits(), 0)


def test_the_newest_events_are_kept_and_the_numbers_show_what_a_late_watcher_missed():
    log = EventLog()
    for _ in range(EVENTS_KEPT_MAX + 3):
        log.add(Kind.PROGRESS, 0, REQUEST)
    log.close()

    async def watch() -> list[int]:
        return [event.seq async for event in log.watch()]

    assert asyncio.run(watch()) == list(range(4, EVENTS_KEPT_MAX + 4))


def test_the_guide_says_how_many_are_kept():
    guide = (Path(__file__).parents[3] / "docs" / "guide.md").read_text()
    assert f"newest {EVENTS_KEPT_MAX:,} events" in " ".join(guide.split())
