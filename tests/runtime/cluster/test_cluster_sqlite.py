"""Two nodes with leases on one store file, in real time: what holds in memory holds on disk."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from comity import Agent, Context, Node


def team(began: asyncio.Queue[str], gates: list[asyncio.Event]) -> list[Agent]:
    """Return two agents; a run of the call z waits at the next gate, and goes on waiting when it is cancelled."""
    waiting = iter(gates)
    front, back = Agent("FRONT"), Agent("BACK")

    @front.capability("ASK")
    async def ask(ctx: Context) -> list:
        return [(await ctx.call("BACK", "DO")).data for _ in range(3)]

    @back.capability("DO")
    async def do(ctx: Context, message: str = "") -> int:
        began.put_nowait(ctx.request.request_id)
        ctx.state["runs"] = ctx.state.get("runs", 0) + 1
        gate = next(waiting) if ctx.request.request_id == "z" else None
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
        gates = [asyncio.Event(), asyncio.Event()]
        agents = team(began, gates)

        def node() -> Node:
            return Node(agents, store=tmp_path / "work.db")

        async with node() as one, node() as two:
            assert (await two.call("BACK", "DO", user_id="u")).data == 1
            reply = await one.call("FRONT", "ASK", user_id="u", request_id="r")
            assert (reply.data, reply.usage.calls) == ([2, 3, 4], 3)
            private = await one.call("BACK", "DO", user_id="u", session_id="s", message="write to ann@example.com")
            assert private.data == 5
            assert began.qsize() == 5  # each ran once

            try:
                await a_former_holder_is_stopped(one, two, began, gates)
            finally:
                for gate in gates:
                    gate.set()
            rows = one.audit.rows()
            assert [row.kind for row in rows if row.request_id == "z"] == ["admitted", "settled"]
            assert [row.kind for row in rows if row.request_id == "r.2"] == ["admitted", "settled"]
            assert one.audit.verify().ok

    asyncio.run(main())


async def a_former_holder_is_stopped(one: Node, two: Node, began: asyncio.Queue[str], gates: list[asyncio.Event]) -> None:
    zombie = asyncio.ensure_future(two.call("BACK", "DO", user_id="u", request_id="z"))
    while await began.get() != "z":
        pass
    for task in two._path.placement._tasks:
        task.cancel()
    os.utime(two._journal.members.path, ns=(1, 1))  # as if it had stood still, which it does not know
    taken = asyncio.ensure_future(one.call("BACK", "DO", user_id="u", request_id="z"))
    one._path.placement.holds.doubt("BACK", two._journal.node_id)
    assert await began.get() == "z"
    gates[0].set()
    await two._path.durable()
    assert not taken.done()
    gates[1].set()
    assert (await taken).data == (await zombie).data == 6


def test_calls_that_name_a_new_session_on_two_nodes_at_once_run_once_each(tmp_path: Path) -> None:
    began: list[str] = []

    def agent(name: str) -> Agent:
        made = Agent(name)

        @made.capability("DO")
        async def do(ctx: Context) -> str:
            began.append(ctx.request.request_id)
            ctx.state["runs"] = ctx.state.get("runs", 0) + 1
            return "done"

        return made

    async def main() -> None:
        agents = [agent("ONE"), agent("TWO")]
        async with Node(agents, store=tmp_path / "work.db") as one, Node(agents, store=tmp_path / "work.db") as two:
            for name, node in (("ONE", one), ("TWO", two)):  # from now on each has its agent
                await node.call(name, "DO", user_id="u")
            for number in range(5):
                told = {"user_id": "u", "session_id": f"s{number}", "message": "hello"}
                await asyncio.gather(
                    one.call("ONE", "DO", request_id=f"a{number}", **told),
                    two.call("TWO", "DO", request_id=f"b{number}", **told),
                )
                for node in (one, two):
                    turns = [(turn.role, turn.request_id) for turn in node.session(f"s{number}").turns]
                    assert sorted(turns) == sorted(
                        [("user", f"a{number}"), ("user", f"b{number}"), ("ONE", f"a{number}"), ("TWO", f"b{number}")]
                    )
            assert len(began) == len(set(began)) == 12

    asyncio.run(main())
