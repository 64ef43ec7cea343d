"""What a watcher sees of a call that tells more than is kept."""

from __future__ import annotations

import asyncio
from pathlib import Path

from comity import Agent, Context
from comity.core.call.limits import EVENTS_KEPT_MAX, Limits
from comity.core.envelope.envelope import Request
from comity.runtime.call.events import EventLog, Kind
from comity.testing import VirtualClock

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


async def test_each_event_of_a_call_says_when_it_happened(make_node):
    orc, leaf = Agent("ORC"), Agent("LEAF", concurrency=1)

    @orc.capability("GO")
    async def go(ctx: Context) -> None:
        await asyncio.sleep(1)
        ctx.progress("asks")
        await ctx.call("LEAF", "WORK")
        await ctx.call("LEAF", "NONE")
        await asyncio.sleep(1)

    @leaf.capability("WORK")
    async def work(ctx: Context) -> None:
        await asyncio.sleep(2)
        ctx.progress("works")

    clock = VirtualClock()
    async with make_node([orc, leaf], clock=clock) as node:
        busy = asyncio.create_task(node.call("LEAF", "WORK", user_id="u"))
        await asyncio.sleep(0.5)
        began_ms = clock.now_ns() // 1_000_000
        handle = node.start_call("ORC", "GO", user_id="u", request_id="r")
        told = [(event.request_id, str(event.kind), event.at_ms - began_ms) async for event in handle.events()]
        await busy
    assert told == [
        ("r", "queued", 0), ("r", "started", 0), ("r", "progress", 1_000), ("r.1", "queued", 1_000), ("r.1", "started", 1_500),
        ("r.1", "progress", 3_500), ("r.1", "settled", 3_500), ("r.2", "refused", 3_500), ("r", "settled", 4_500),
    ]  # fmt: skip
