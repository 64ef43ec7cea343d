"""Several nodes on one store file work together, and what a dead one left is taken up by one that runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from death import die

from comity import Agent, Context, Node, Reply


def worker(runs: list[str], gate: asyncio.Event) -> Agent:
    agent = Agent("WORK")

    @agent.capability("DO")
    async def do() -> str:
        runs.append("run")
        await gate.wait()
        return "done"

    return agent


def test_two_nodes_that_are_asked_for_the_same_at_once_run_it_once(tmp_path: Path) -> None:
    async def main() -> None:
        runs: list[str] = []
        gate = asyncio.Event()
        store = tmp_path / "work.db"
        async with Node([worker(runs, gate)], store=store) as one, Node([worker(runs, gate)], store=store) as two:
            for number in range(20):
                runs.clear()
                gate.clear()
                asked = [
                    asyncio.ensure_future(node.call("WORK", "DO", user_id="u", request_id=f"r{number}")) for node in (one, two)
                ]
                while not runs:
                    await asyncio.sleep(0.001)
                gate.set()
                assert [reply.data for reply in await asyncio.gather(*asked)] == ["done", "done"]
                assert runs == ["run"]
            later = await asyncio.gather(*(node.call("WORK", "DO", user_id="u", request_id="r0") for node in (one, two)))
            assert [reply.data for reply in later] == ["done", "done"]
            assert [row.kind for row in one.audit.rows() if row.request_id == "r3"] == ["admitted", "settled"]

    asyncio.run(main())


def test_a_call_that_two_nodes_asked_for_is_cancelled_by_both(tmp_path: Path) -> None:
    async def main() -> None:
        runs: list[str] = []
        gate = asyncio.Event()
        store = tmp_path / "work.db"
        async with Node([worker(runs, gate)], store=store) as one, Node([worker(runs, gate)], store=store) as two:
            handles = [node.start_call("WORK", "DO", user_id="u", request_id="r") for node in (one, two)]
            assert all(handle.cancel() for handle in handles)
            assert [str((await handle.reply()).status) for handle in handles] == ["cancelled", "cancelled"]
            assert runs == []

    asyncio.run(main())


def test_a_node_that_runs_takes_up_what_one_that_died_left_open(tmp_path: Path) -> None:
    async def main() -> None:
        runs: list[str] = []
        gate = asyncio.Event()
        store = tmp_path / "work.db"
        survivor = Node([worker(runs, gate)], store=store)
        async with survivor:
            doomed = Node([worker(runs, gate)], store=store)
            await doomed.start()
            handle = doomed.start_call("WORK", "DO", user_id="u", request_id="r")
            while not runs:
                await asyncio.sleep(0.001)
            await doomed._path.durable()
            await die(doomed)
            del handle
            while "r" not in survivor._path.calls:
                await asyncio.sleep(0.001)
            gate.set()
            reply = await survivor.call("WORK", "DO", user_id="u", request_id="r")
            assert reply.data == "done"
            assert runs == ["run", "run"]

    asyncio.run(main())


def test_calls_that_run_when_a_second_node_comes_go_on_under_leases(tmp_path: Path) -> None:
    """The first node is alone until the second opens the store; nothing that runs meanwhile is lost or run twice."""
    agent, boss = Agent("COUNT", concurrency=2), Agent("BOSS")
    runs: list[str] = []
    gate = asyncio.Event()

    @agent.capability("UP")
    async def up(ctx: Context, wait: bool = True) -> int:
        runs.append(ctx.request.request_id)
        if wait:
            await gate.wait()
        ctx.state["count"] = ctx.state.get("count", 0) + 1
        return ctx.state["count"]

    @boss.capability("ASK")
    async def ask(ctx: Context) -> list[int]:
        first = (await ctx.call("COUNT", "UP")).data
        return [first, (await ctx.call("COUNT", "UP", {"wait": False})).data]

    async def main() -> None:
        store = tmp_path / "work.db"
        async with Node([agent, boss], store=store) as one:
            asked = asyncio.ensure_future(one.call("BOSS", "ASK", user_id="u", request_id="r"))
            waiting = [asyncio.ensure_future(one.call("COUNT", "UP", user_id="u", request_id=f"q{n}")) for n in range(3)]
            while len(runs) < 2:
                await asyncio.sleep(0)
            assert one._path.placement.takes_over
            async with Node([agent, boss], store=store) as two:
                assert not one._path.placement.takes_over
                assert {call.way.fence.address for call in one._path.calls.values()} == {"COUNT", "BOSS"}
                there = asyncio.ensure_future(two.call("COUNT", "UP", {"wait": False}, user_id="u"))
                await asyncio.sleep(0.05)
                gate.set()
                counts = [(await reply).data for reply in waiting] + (await asked).data + [(await there).data]
                assert sorted(counts) == [1, 2, 3, 4, 5, 6]
            assert len(runs) == 6
            assert one.audit.verify().ok

    asyncio.run(main())


def clerk() -> Agent:
    agent = Agent("CLERK")

    @agent.capability("SEND")
    async def send(to: str) -> str:
        return f"sent to {to}"

    @agent.capability("LEARN")
    async def learn(ctx: Context, key: str) -> dict[str, Any]:
        ctx.session.learn(key, 1)
        return ctx.session.facts

    @agent.capability("COUNT")
    async def count(ctx: Context) -> int:
        ctx.state["count"] = ctx.state.get("count", 0) + 1
        return ctx.state["count"]

    return agent


def in_turn(store: Path, ask: Callable[[Node, int], Coroutine[Any, Any, Reply]]) -> list[Any]:
    """Ask two nodes of one store in turn, then one that has just come while the first is still there, then that again."""

    async def main() -> list[Any]:
        replies = []
        async with Node([clerk()], store=store) as one:
            async with Node([clerk()], store=store) as two:
                replies += [await ask((one, two)[number % 2], number) for number in range(4)]
            async with Node([clerk()], store=store) as visitor:
                replies.append(await ask(visitor, 4))
            replies.append(await ask(one, 5))
        return [reply.unwrap() for reply in replies]

    return asyncio.run(main())


def test_what_two_nodes_hide_in_one_session_in_turn_is_given_back_as_it_was(tmp_path: Path) -> None:
    store = tmp_path / "work.db"

    async def ask(node: Node, number: int) -> Reply:
        inputs = {"to": f"person{number}@example.com"}
        return await node.call("CLERK", "SEND", inputs, user_id="u", session_id="s", request_id=f"r{number}")

    expected = [f"sent to person{number}@example.com" for number in range(6)]
    assert in_turn(store, ask) == expected

    async def repeated() -> list[Any]:
        async with Node([clerk()], store=store) as node:
            return [(await ask(node, number)).data for number in range(6)]

    assert asyncio.run(repeated()) == expected


def test_what_nodes_learn_in_one_session_in_turn_is_all_known(tmp_path: Path) -> None:
    async def ask(node: Node, number: int) -> Reply:
        return await node.call("CLERK", "LEARN", {"key": f"k{number}"}, user_id="u", session_id="s")

    assert in_turn(tmp_path / "work.db", ask)[-1] == {f"k{number}": 1 for number in range(6)}


def test_an_agents_state_goes_on_from_node_to_node_in_turn(tmp_path: Path) -> None:
    async def ask(node: Node, number: int) -> Reply:
        return await node.call("CLERK", "COUNT", user_id="u")

    assert in_turn(tmp_path / "work.db", ask) == [1, 2, 3, 4, 5, 6]


def test_a_session_that_a_visitor_erased_is_not_brought_back(tmp_path: Path) -> None:
    store = tmp_path / "work.db"

    async def main() -> Any:
        async with Node([clerk()], store=store) as one:
            await one.call("CLERK", "LEARN", {"key": "old"}, user_id="u", session_id="s")
            async with Node([clerk()], store=store) as visitor:
                await visitor.erase_session("s")
            return (await one.call("CLERK", "LEARN", {"key": "new"}, user_id="u", session_id="s")).unwrap()

    assert asyncio.run(main()) == {"new": 1}


def test_of_two_users_who_name_a_new_session_in_two_processes_at_once_one_gets_it(tmp_path: Path) -> None:
    agent = Agent("NOTES")

    @agent.capability("LEARN")
    async def learn(ctx: Context) -> list[str]:
        ctx.session.learn(f"{ctx.request.user_id}'s", 1)
        return list(ctx.session.facts)

    async def main() -> None:
        store = tmp_path / "work.db"
        async with Node([agent], store=store) as one, Node([agent], store=store) as two:
            for number in range(20):
                named = {"session_id": f"s{number}"}
                asked = [node.call("NOTES", "LEARN", user_id=user, **named) for node, user in ((one, "ann"), (two, "bob"))]
                replies = await asyncio.gather(*asked)
                assert sorted(reply.error.code if reply.error else "" for reply in replies) == ["", "IDENTITY_MISMATCH"]
                owner = "ann" if replies[0].ok else "bob"
                for node in (one, two):
                    reply = await node.call("NOTES", "LEARN", user_id=owner, **named)
                    assert reply.data == [f"{owner}'s"]

    asyncio.run(main())


def test_of_two_users_who_name_a_new_session_at_once_the_one_who_loses_keeps_nothing_of_it(tmp_path: Path) -> None:
    agent = Agent("WORK")

    @agent.capability("DO")
    async def do(ctx: Context) -> str:
        ctx.session.learn("mine", ctx.request.user_id)
        return ctx.request.user_id

    async def main() -> None:
        async with Node([agent], store=tmp_path / "s.db") as one, Node([agent], store=tmp_path / "s.db") as two:
            nodes = {"ann": one, "bob": two}
            replies = await asyncio.gather(
                *(node.call("WORK", "DO", user_id=user, session_id="s") for user, node in nodes.items())
            )
            (winner,) = [reply.data for reply in replies if reply.ok]
            (refused,) = [reply.error.code for reply in replies if reply.error]
            assert refused == "IDENTITY_MISMATCH"
            loser = next(user for user in nodes if user != winner)
            live = nodes[loser]._path.sessions._live.get(("default", "s"))
            assert live is None or live.session.user_id == winner
            assert (await nodes[loser].call("WORK", "DO", user_id=winner, session_id="s")).data == winner
            again = await nodes[loser].call("WORK", "DO", user_id=loser, session_id="s")
            assert again.error is not None
            assert again.error.code == "IDENTITY_MISMATCH"

    asyncio.run(main())
