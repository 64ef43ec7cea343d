"""Small worlds on real nodes, and the traces they leave."""

from __future__ import annotations

import asyncio
import contextlib

from checkers import load_checker

from comity import Agent, Context, Limits, Node
from comity.core.agent.tool import Tool
from comity.engines.memory.journal import MemoryJournal
from comity.engines.sqlite.journal import SqliteJournal
from comity.testing import VirtualClock, run_virtual

trace_check = load_checker("trace_check")
Seat = trace_check.Seat


class RecordingJournal(MemoryJournal):
    """The real journal, which also remembers what was appended together."""

    def __init__(self):
        super().__init__()
        self.appends = []

    def append(self, records, then=None, terms=None):
        self.appends.append(tuple(records))
        super().append(records, then, terms)


class RecordingStore(SqliteJournal):
    """The real store, which also remembers what was appended together."""

    def __init__(self, path, node_id):
        super().__init__(path, node_id)
        self.appends = []

    def append(self, records, then=None, terms=None):
        self.appends.append(tuple(records))
        super().append(records, then, terms)


def record(agents, work, **more) -> list[dict]:
    """Run some work on a node in virtual time and return the trace."""
    journal = RecordingJournal()

    async def main():
        async with Node(agents, journal=journal, clock=VirtualClock(), lag_ms=None, **more) as node:
            await work(node)

    run_virtual(main())
    return trace_check.of_appends(journal.appends)


# --- scenarios ---


def nested(**limits) -> list[dict]:
    """A0 → A1 → A2 → A3, three hops below the root; each uses ten tokens."""
    agents = []
    for index in range(4):
        agent = Agent(f"A{index}")

        @agent.capability("GO")
        async def go(ctx: Context, _next: str = f"A{index + 1}", _is_last: bool = index == 3):
            ctx.report_usage(prompt_tokens=10)
            return 1 if _is_last else (await ctx.call(_next, "GO")).data

        agents.append(agent)
    return record(agents, lambda node: node.call("A0", "GO", user_id="u", request_id="r", limits=Limits(**limits)))


def parallel() -> list[dict]:
    """BOSS asks HELP three times at once and may do so twice."""
    boss, helper = Agent("BOSS"), Agent("HELP")

    @helper.capability("WORK")
    async def work():
        await asyncio.sleep(1)

    @boss.capability("SPREAD")
    async def spread(ctx: Context):
        await ctx.gather(*(ctx.call("HELP", "WORK") for _ in range(3)))

    limits = Limits(fan_out_max=2)
    return record([boss, helper], lambda node: node.call("BOSS", "SPREAD", user_id="u", request_id="r", limits=limits))


def crossing() -> list[dict]:
    """Two roots hold a serial agent each and ask for the other's."""
    agents = []
    barrier = asyncio.Barrier(2)
    for me, other in (("A", "B"), ("B", "A")):
        agent = Agent(me, concurrency=1, pending_max=5)

        @agent.capability("ASK")
        async def ask(ctx: Context, _other: str = other):
            await barrier.wait()
            await ctx.call(_other, "ANSWER")

        @agent.capability("ANSWER")
        async def answer():
            return 1

        agents.append(agent)

    async def work(node):
        await asyncio.gather(*(node.call(one, "ASK", user_id="u", request_id=f"r{one}") for one in "AB"))

    return record(agents, work)


def overrun() -> list[dict]:
    """BOSS waits for SLOW, which does not stop when it is told to: both time out, and SLOW's result comes late."""
    boss, slow = Agent("BOSS"), Agent("SLOW")

    @slow.capability("WAIT")
    async def wait():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        return "too late"

    @boss.capability("PLAN")
    async def plan(ctx: Context):
        return (await ctx.call("SLOW", "WAIT")).data

    async def work(node):
        await node.call("BOSS", "PLAN", user_id="u", request_id="r", timeout_ms=5_000)
        await asyncio.sleep(1)

    return record([boss, slow], work, child_margin=0)


def queued() -> list[dict]:
    """Three users want an agent that runs one call and lets one wait."""
    agent = Agent("A", concurrency=1, pending_max=1)

    @agent.capability("GO")
    async def go():
        await asyncio.sleep(1)

    async def work(node):
        await asyncio.gather(*(node.call("A", "GO", user_id=f"u{n}", request_id=f"r{n}") for n in range(3)))

    return record([agent], work)


def refused() -> list[dict]:
    """An agent that asks itself, asks once too often, and asks too deep."""
    first, second, third = Agent("A"), Agent("B"), Agent("C")

    @first.capability("GO")
    async def go(ctx: Context):
        for target in "ABBB":
            await ctx.call(target, "GO")

    @second.capability("GO")
    async def go_on(ctx: Context):
        await ctx.call("C", "GO")

    @third.capability("GO")
    async def arrive():
        return 1

    limits = Limits(depth_max=1, calls_max=3)
    return record([first, second, third], lambda node: node.call("A", "GO", user_id="u", request_id="r", limits=limits))


def acting() -> list[dict]:
    """An agent that uses a tool."""
    agent = Agent("A", tools_allowed=["pay"])

    @agent.capability("GO")
    async def go(ctx: Context):
        return await ctx.use_tool("pay", amount=5)

    async def pay(amount: int) -> int:
        return amount

    tools = [Tool(name="pay", function=pay)]
    return record([agent], lambda node: node.call("A", "GO", user_id="u", request_id="r"), tools=tools)


def seats_of(scenario):
    """Return the seats of the agents, where the scenario is about them."""
    return {queued: {"A": Seat(1, 1)}, crossing: {"A": Seat(1, 5), "B": Seat(1, 5)}}.get(scenario)
