"""A request of several parts is a run of a workflow: visible, replayable, cancellable, resumed with an answer or after a crash."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from death import die
from office import FLOWS, Office

from comity import Agent, Context, Node, Reply, Status
from comity.agents.orchestrator.parts import PartsRun
from comity.agents.orchestrator.settings import Settings

TWO = "Forecast our costs and then draft a memo about it"


async def ask(node: Node, text: str, inputs: dict[str, Any] | None = None, **more: Any) -> Reply[Any]:
    given = {"text": text, **({"inputs": inputs} if inputs else {})}
    return await node.call("ORC", "ORC_ROUTE", given, user_id="u1", session_id="s1", **more)


async def test_the_parts_are_the_steps_of_a_run_and_each_step_is_a_call_of_the_specialist() -> None:
    office = Office()
    async with Node(agents=office.agents) as node:
        reply = await ask(node, TWO, request_id="r")
        (record,) = node.workflows.list()
        session = node.session("s1")
        moments = node.workflows.replay(record.run_id)
        rows = [row for row in node.audit.rows() if row.kind == "settled" and row.parent_id == record.run_id]
    assert session is not None
    assert "comity.workflow" not in session.prior_agents
    assert reply.data["run_id"] == record.run_id == "comity:run-r"
    assert (record.status, record.user_id, record.session_id, record.steps) == ("completed", "u1", "s1", 2)
    assert [row.target for row in rows] == ["ANL", "DOC"]
    assert len(moments) == record.events
    assert office.seen["DOC_GENERATE"].context.prior_agents == ("ORC", "ANL")
    assert office.codes == ["ANL_PROJECTION", "DOC_GENERATE"]


async def test_a_part_waits_for_the_answer_to_its_question_and_gets_it() -> None:
    office = Office()
    async with Node(agents=office.agents) as node:
        first = await ask(node, "Calculate the net present value, then draft a memo about it", {"discount_rate": 0.12})
        assert office.codes == []
        assert "cash flows" in first.message
        office_text = "Segment our customers and then calculate the net present value"
        second = await ask(node, office_text, {"discount_rate": 0.12})
        (record,) = node.workflows.list(status="waiting")
        assert office.codes == ["AUD_SEGMENT_BUILD"]
        assert "cash flows" in second.message
        third = await ask(node, "[-100000, 25000, 35000, 45000, 55000]")
        assert node.workflows.get(record.run_id).status == "completed"
    assert office.calls[-1] == ("ANL_NPV", FLOWS)
    assert third.data["result"].keys() >= {"npv", "segments"}
    assert office.codes == ["AUD_SEGMENT_BUILD", "ANL_NPV"]


async def test_the_answer_to_a_specialist_reaches_it_in_the_run() -> None:
    office, heard = Office(), []

    @office.writer.capability("DOC_SEND", description="Send the newsletter", utterances=("send the newsletter",))
    async def send(ctx: Context, answer: str = "") -> Reply[Any]:
        heard.append(answer)
        return Reply.success({"sent": answer}) if answer else Reply.needs_input("To which list?")

    async with Node(agents=office.agents) as node:
        first = await ask(node, "Forecast our costs and then send the newsletter")
        second = await ask(node, "customers")
        given = {"text": "send the newsletter"}
        assert (await node.call("ORC", "ORC_ROUTE", given, user_id="u1")).status is Status.NEEDS_INPUT
        counts = (await node.call("ORC", "ORC_MONITOR", user_id="u1")).data["totals"]
    assert counts.get("failed", 0) == 0  # a question is no failure
    assert "to which list?" in first.message
    assert heard == ["", "customers", ""]
    assert second.data["result"]["sent"] == "customers"


async def test_a_run_that_waits_already_is_followed_to_its_last_event() -> None:
    office = Office()

    @office.writer.capability("DOC_SEND", description="Send the newsletter", utterances=("send the newsletter",))
    async def send(ctx: Context) -> Reply[Any]:
        return Reply.needs_input("To which list?")

    async with Node(agents=office.agents) as node:
        await ask(node, "Forecast our costs and then send the newsletter")
        (record,) = node.workflows.list()
        run = PartsRun(Settings(), SimpleNamespace(_path=node._path))
        await run._follow(node.workflows.handle(record.run_id), lambda event: None)
    assert [one.text for one in run.questions] == ["To which list?"]
    assert list(run.views) == ["part_1", "part_2"]


async def test_a_cancelled_request_stops_the_specialists_of_its_run() -> None:
    office, seen = Office(), asyncio.Queue[str]()

    @office.audience.capability("AUD_SLOW", description="Interview every customer", utterances=("interview every customer",))
    async def slow(ctx: Context) -> Reply[Any]:
        seen.put_nowait("begun")
        try:
            await asyncio.Event().wait()
        finally:
            seen.put_nowait("stopped")
        raise AssertionError

    async with Node(agents=office.agents) as node:
        text = {"text": "Interview every customer and then draft a memo"}
        handle = node.start_call("ORC", "ORC_ROUTE", text, user_id="u1", session_id="s1", request_id="r")
        assert await seen.get() == "begun"
        handle.cancel()
        assert (await handle.reply()).status is Status.CANCELLED
        assert await seen.get() == "stopped"
        assert (await node.workflows.result("comity:run-r")).status is Status.CANCELLED
    assert "DOC_GENERATE" not in office.codes


async def test_an_agent_above_the_orchestrator_is_not_called_again_below_its_run() -> None:
    office = Office()
    boss = Agent("BOSS")

    @boss.capability("BOSS_PLAN", description="Decide on the budget", utterances=("decide on the budget",))
    async def plan(ctx: Context) -> Reply[Any]:
        return await ctx.call("ORC", "ORC_ROUTE", {"text": "Forecast our costs and then decide on the budget"})

    async with Node(agents=[*office.agents, boss]) as node:
        reply = await node.call("BOSS", "BOSS_PLAN", user_id="u1")
    assert reply.status is Status.PARTIAL
    assert reply.data["missing"][0]["code"] == "ROUTING_CYCLE_DETECTED"


async def test_an_orchestrator_that_takes_one_call_at_a_time_does_all_parts() -> None:
    office = Office(concurrency=1)
    async with Node(agents=office.agents) as node:
        reply = await ask(node, TWO, timeout_ms=20_000)
    assert reply.ok
    assert office.codes == ["ANL_PROJECTION", "DOC_GENERATE"]


def test_a_request_whose_node_was_killed_goes_on_and_no_finished_part_runs_again(tmp_path: Path) -> None:
    async def main() -> None:
        office, reached = Office(), asyncio.Event()

        @office.audience.capability(
            "AUD_SLOW", description="Interview every customer", utterances=("interview every customer",)
        )
        async def slow(ctx: Context) -> Reply[Any]:
            if reached.is_set():
                return Reply.success({"interviews": 3}, confidence=0.9)
            reached.set()
            await asyncio.Event().wait()
            raise AssertionError

        first = Node(agents=office.agents, store=tmp_path / "s.db")
        await first.start()
        text = {"text": "Forecast our costs and then interview every customer"}
        first.start_call("ORC", "ORC_ROUTE", text, user_id="u1", session_id="s1", request_id="r")
        await reached.wait()
        await die(first)
        async with Node(agents=office.agents, store=tmp_path / "s.db") as second:
            reply = await second.call("ORC", "ORC_ROUTE", text, user_id="u1", session_id="s1", request_id="r")
        assert reply.data["result"]["interviews"] == 3
        assert office.codes == ["ANL_PROJECTION"]

    asyncio.run(main())
