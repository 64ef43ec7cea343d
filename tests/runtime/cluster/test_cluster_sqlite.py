"""Two nodes with leases on one store file, in real time: what holds in memory holds on disk."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from comity import Agent, Context, Node


def team(began: asyncio.Queue[str], gates: dict[str, asyncio.Event]) -> list[Agent]:
    runs = 0
    front, back = Agent("FRONT"), Agent("BACK")

    @front.capability("ASK")
    async def ask(ctx: Context) -> list:
        return [(await ctx.call("BACK", "DO")).data for _ in range(3)]

    @back.capability("DO")
    async def do(ctx: Context, message: str = "") -> int:
        nonlocal runs
        runs += 1
        began.put_nowait(ctx.request.request_id)
        ctx.state["runs"] = ctx.state.get("runs", 0) + 1
        gate = gates.get(f"{ctx.request.request_id} {runs}")
        while gate is not None and not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:  # it goes on all the same
                continue
        return ctx.state["runs"]

    return [front, back]


def test_calls_cross_nodes_and_a_former_holder_is_stopped_by_the_file(tmp_path: Path) -> None:
    async def main() -> None:
        began: asyncio.Queue[str] = asyncio.Queue()
        gates: dict[str, asyncio.Event] = {}
        agents = team(began, gates)

        def node() -> Node:
            return Node(agents, store=tmp_path / "work.db")

        async with node() as one, node() as two:
            assert (await two.call("BACK", "DO", user_id="u")).data == 1
            reply = await one.call("FRONT", "ASK", user_id="u", request_id="r")
            assert (reply.data, reply.usage.calls) == ([2, 3, 4], 3)
            private = await one.call("BACK", "DO", user_id="u", session_id="s", message="write to ann@example.com")
            assert private.data == 5

            gates["z 6"], gates["z 7"] = asyncio.Event(), asyncio.Event()
            zombie = asyncio.ensure_future(two.call("BACK", "DO", user_id="u", request_id="z"))
            while await began.get() != "z":
                pass
            for task in two._path.placement._tasks:
                task.cancel()
            os.utime(two._journal.members.path, ns=(1, 1))  # as if it had stood still, which it does not know
            taken = asyncio.ensure_future(one.call("BACK", "DO", user_id="u", request_id="z"))
            one._path.placement.holds.doubt("BACK", two._journal.node_id)
            assert await began.get() == "z"
            gates["z 6"].set()
            await two._path.durable()
            assert not taken.done()
            gates["z 7"].set()
            assert (await taken).data == (await zombie).data == 6
            rows = one.audit.rows()
            assert [row.kind for row in rows if row.request_id == "z"] == ["admitted", "settled"]
            assert [row.kind for row in rows if row.request_id == "r.2"] == ["admitted", "settled"]
            assert one.audit.verify().ok

    asyncio.run(main())
