"""What a refused call did to the state of its agent is not saved with the end of the next call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from cluster_world import World
from msgspec.structs import replace

from comity import Agent, Context, Node, Reply
from comity.core.journal.records import Accepted, Record, Settled
from comity.core.journal.terms import Terms
from comity.engines.memory.cluster import MemoryLeases, SharedJournal
from comity.engines.memory.engine import JournalEngine
from comity.engines.memory.journal import MemoryJournal
from comity.ports import Then
from comity.testing import VirtualClock, run_virtual


class Held(SharedJournal):
    """A journal whose appends can be made to wait, as for a writer's thread."""

    def __init__(self, shared: MemoryJournal, node_id: str) -> None:
        super().__init__(shared, node_id)
        self.waiting: list[Callable[[], None]] | None = None
        self.seen: list[Accepted] = []

    def append(self, records: Sequence[Record], then: Then | None = None, terms: Terms | None = None) -> None:
        self.seen += (one for one in records if type(one) is Accepted)
        if self.waiting is None:
            super().append(records, then, terms)
        else:
            self.waiting.append(lambda: SharedJournal.append(self, records, then, terms))

    def let_go(self) -> None:
        waiting, self.waiting = self.waiting or [], None
        for one in waiting:
            one()


def test_a_state_that_builds_on_a_refused_call_is_refused_with_it() -> None:
    runs: list[str] = []
    agent = Agent("COUNT", concurrency=1)

    @agent.capability("ADD")
    async def add(ctx: Context) -> int:
        runs.append(ctx.request.request_id)
        ctx.state["done"] = ctx.state.get("done", 0) + 1
        return ctx.state["done"]

    async def main() -> None:
        world = World()
        journal = Held(world.store, "n1")
        engine = JournalEngine(journal, MemoryLeases(world.leases, journal), world.network.transport())
        async with Node([agent], engine=engine, clock=VirtualClock(), lag_ms=None) as node:
            assert (await node.call("COUNT", "ADD", user_id="u")).data == 1
            journal.waiting = []
            calls = [asyncio.ensure_future(node.call("COUNT", "ADD", user_id="u", request_id=one)) for one in ("x", "y")]
            while len(runs) < 3:
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.01)  # both have run, and nothing of it is written
            (accepted,) = (one for one in journal.seen if one.request.request_id == "x")
            ended = Reply.success(0, request_id="x")  # by another node, which had the call before
            world.store.append((replace(accepted, node_id="n2"), Settled(accepted.request, ended, accepted.at_ms)))
            journal.let_go()
            replies = await asyncio.gather(*calls)
            assert [reply.data for reply in replies] == [0, 2]
            assert (await node.call("COUNT", "ADD", user_id="u")).data == 3

    run_virtual(main())
