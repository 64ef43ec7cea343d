"""What a watcher sees of a call that tells more than is kept."""

from __future__ import annotations

import asyncio
from pathlib import Path

from comity import Agent, Context
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


async def test_a_caller_who_joins_a_running_call_sees_what_happens_from_then_on_in_it_and_below(make_node):
    orc, leaf = Agent("ORC"), Agent("LEAF")

    @orc.capability("GO")
    async def go(ctx: Context) -> None:
        await ctx.call("LEAF", "WORK")
        ctx.progress("done below")

    @leaf.capability("WORK")
    async def work(ctx: Context) -> None:
        await asyncio.sleep(2)
        ctx.progress("half")

    async with make_node([orc, leaf]) as node:
        first = asyncio.create_task(node.call("ORC", "GO", user_id="u", request_id="r"))
        await asyncio.sleep(1)
        joined = node.start_call("ORC", "GO", user_id="u", request_id="r")
        told = [(event.request_id, event.data) async for event in joined.events() if event.kind is Kind.PROGRESS]
        await first
    assert told == [("r.1", "half"), ("r", "done below")]
