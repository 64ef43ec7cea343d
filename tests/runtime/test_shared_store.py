"""Several nodes on one store file, without leases: one runs a request, and what a dead one left is taken up by one that runs."""

from __future__ import annotations

import asyncio
from pathlib import Path

from comity import Agent, Node, Reply
from comity.engines.sqlite import SqliteJournal
from death import die


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
                done, _ = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
                loser: Reply = done.pop().result()
                assert loser.error is not None
                assert (loser.error.code, loser.error.retryable) == ("AGENT_BUSY", True)
                gate.set()
                replies = await asyncio.gather(*asked)
                assert [reply.data for reply in replies if reply.ok] == ["done"]
                assert runs == ["run"]
            later = await asyncio.gather(*(node.call("WORK", "DO", user_id="u", request_id="r0") for node in (one, two)))
            assert [reply.data for reply in later] == ["done", "done"]
            kinds = [row.kind for row in one.audit.rows() if row.request_id == "r3"]
            assert sorted(kinds) == ["admitted", "refused", "settled"]

    asyncio.run(main())


def test_a_call_that_is_cancelled_before_it_is_known_whose_it_is_ends_only_if_it_is_this_nodes(tmp_path: Path) -> None:
    async def main() -> None:
        runs: list[str] = []
        gate = asyncio.Event()
        store = tmp_path / "work.db"
        async with Node([worker(runs, gate)], store=store) as one, Node([worker(runs, gate)], store=store) as two:
            handles = [node.start_call("WORK", "DO", user_id="u", request_id="r") for node in (one, two)]
            assert all(handle.cancel() for handle in handles)
            replies = [await handle.reply() for handle in handles]
            statuses = [str(reply.status) for reply in replies]  # the other may be told in time how it ended
            assert sorted(statuses) in (["cancelled", "refused"], ["cancelled", "cancelled"])
            assert runs == []
            kinds = [row.kind for row in one.audit.rows() if row.request_id == "r" and row.kind != "refused"]
            assert kinds == ["admitted", "settled"]

    asyncio.run(main())


def test_a_node_that_runs_takes_up_what_one_that_died_left_open(tmp_path: Path) -> None:
    async def main() -> None:
        runs: list[str] = []
        gate = asyncio.Event()
        store = tmp_path / "work.db"
        survivor = Node([worker(runs, gate)], store=store)
        async with survivor:
            doomed = Node([worker(runs, gate)], journal=SqliteJournal(store, "doomed"))
            await doomed.start()
            handle = doomed.start_call("WORK", "DO", user_id="u", request_id="r")
            while not runs:
                await asyncio.sleep(0)
            await doomed._path.durable()
            await die(doomed)
            del handle
            survivor._sweep_idle()
            assert "r" in survivor._path.calls
            gate.set()
            reply = await survivor.call("WORK", "DO", user_id="u", request_id="r")
            assert reply.data == "done"
            assert runs == ["run", "run"]

    asyncio.run(main())
