"""What people tell runs and give with them: no wrong value is written, and none of one run stands in the way of another run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from comity import Agent, Node
from comity.core.journal.records import Document, Saved, below
from comity.core.workflow.activities import RECEIVED_MAX
from comity.errors import CallerError
from comity.runtime.workflow import telling
from comity.runtime.workflow.handle import RunHandle
from comity.runtime.workflow.store import Question

ASKS = "workflow: w\nnodes: {q: {ask: 'Sure?', options: [1, 2, true]}}"
STEPS = "workflow: f\nnodes:\n  a: {call: A/GO}\n  q: {ask: 'Sure?', after: [a]}"


def agent(begun: asyncio.Event | None = None, gate: asyncio.Event | None = None) -> Agent:
    """Return an agent whose capability sets `begun` and waits for `gate`, where they are given."""
    made = Agent("A", concurrency=8)

    @made.capability("GO")
    async def go() -> dict[str, int]:
        if begun is not None and gate is not None:
            begun.set()
            await gate.wait()
        return {"n": 1}

    return made


async def asked(run: RunHandle) -> Question:
    """Return the one question of a run, once it is asked."""
    while not run.record.questions:
        await asyncio.sleep(0)
    (question,) = run.record.questions
    return question


@pytest.mark.parametrize(
    "wrong",
    [
        {"user_id": 5}, {"user_id": ""}, {"user_id": "a\x00"}, {"tenant_id": "a\x1fb"}, {"tenant_id": ""}, {"session_id": 5},
        {"session_id": "ann\x1ebob"}, {"session_id": ["x"]}, {"session_id": "s" * 5_000},
    ],
)  # fmt: skip
async def test_a_run_or_a_schedule_for_an_id_that_no_call_may_have_is_refused_and_leaves_nothing(wrong: dict[str, Any]) -> None:
    async with Node() as node:
        node.workflows.add(ASKS)
        with pytest.raises(CallerError) as refused:
            await node.workflows.start("w", **{"user_id": "u", **wrong})
        assert refused.value.code == "IDENTITY_INVALID"
        if "session_id" not in wrong:
            with pytest.raises(CallerError):
                await node.workflows.schedules.add("s", "w", every="1d", **{"user_id": "u", **wrong})
        assert (node.workflows.list(), node.workflows.schedules.list()) == ([], [])


async def test_an_event_an_answer_or_a_cancellation_with_a_name_that_is_no_text_is_refused() -> None:
    async with Node() as node:
        node.workflows.add(ASKS)
        run = await node.workflows.start("w", user_id="u")
        question = await asked(run)
        for wrong in (
            node.workflows.signal(run.run_id, 5),  # type: ignore[arg-type]
            node.workflows.answer(run.run_id, question.question_id, 1, by=5),  # type: ignore[arg-type]
            node.workflows.cancel(run.run_id, by=5),  # type: ignore[arg-type]
            node.workflows.cancel(run.run_id, reason=["x"]),  # type: ignore[arg-type]
            node.workflows.signal(run.run_id, "\ud800"),
        ):
            with pytest.raises(CallerError):
                await wrong
        assert (node.workflows.store.signalled(), run.record.status) == ([], "waiting")


async def test_a_truth_value_is_no_number_among_the_options_of_a_question() -> None:
    async with Node() as node:
        node.workflows.add(ASKS.replace(", 2, true", ""))
        run = await node.workflows.start("w", user_id="u")
        question = await asked(run)
        with pytest.raises(CallerError, match="must be one of"):
            await run.answer(question.question_id, True)
        await run.answer(question.question_id, 1)
        assert (await run.result()).ok


async def test_an_event_that_a_run_could_not_keep_is_refused_and_one_that_a_node_waits_for_is_taken() -> None:
    async with Node() as node:
        node.workflows.add("workflow: w\nnodes: {e: {wait: {event: paid}}}")
        run = await node.workflows.start("w", user_id="u")
        for _ in range(RECEIVED_MAX):
            await run.signal("noise")
        with pytest.raises(CallerError, match="keeps 1,000 events"):
            await run.signal("noise")
        await run.signal("paid", {"n": 1})
        assert (await run.result()).data == {"n": 1}


async def test_events_that_wait_for_one_run_are_bounded_and_stand_in_the_way_of_no_other_run(monkeypatch) -> None:
    monkeypatch.setattr(telling, "SIGNALS_MAX", 3)
    begun, gate = asyncio.Event(), asyncio.Event()
    async with Node([agent(begun, gate)]) as node:
        node.workflows.add(STEPS)
        node.workflows.add(ASKS)
        busy = await node.workflows.start("f", user_id="evil", run_id="a")
        asks = await node.workflows.start("w", user_id="ann", run_id="b")
        await begun.wait()
        for number in range(3):
            await busy.signal("noise", number)
        with pytest.raises(CallerError, match="wait for run a"):
            await busy.signal("noise")
        question = await asked(asks)
        await asks.answer(question.question_id, 2)
        assert (await asks.result()).data == {"answer": 2}
        gate.set()


async def test_a_signal_or_a_record_that_cannot_be_read_is_left_out_and_stops_no_other_run(caplog) -> None:
    async with Node() as node:
        node.workflows.add(ASKS)
        run = await node.workflows.start("w", user_id="u", run_id="b")
        broken = (Document.RUN_SIGNAL, below("b", "0"), b'{"type":"received","at_ms":1,"event":5}')
        node.workflows.journal.append((Saved(*broken[:2], 1, broken[2]), Saved(Document.RUN, "a", 1, b'{"run_id":5}')))
        await node.workflows.path.durable()
        question = await asked(run)
        await run.answer(question.question_id, 2)
        assert (await run.result()).ok
        assert [one.run_id for one in node.workflows.list()] == ["b"]
        assert (node.workflows.store.record("a"), "cannot be read" in caplog.text) == (None, True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"status": []}, {"status": "great"}, {"message": 5}, {"error": "text"}, {"warnings": 5}, {"confidence": 7}, 5,
        {"status": "failure", "error": {"code": 5}}, {"status": "clarification_needed", "message": 5}, {"more": 1},
    ],
)  # fmt: skip
async def test_a_fork_with_a_reply_that_no_node_gives_is_refused_with_its_path(wrong: Any) -> None:
    async with Node([agent()]) as node:
        node.workflows.add(STEPS)
        run = await node.workflows.start("f", user_id="u")
        await asked(run)
        with pytest.raises(CallerError, match=r"replies\.a is no reply of a node"):
            await node.workflows.fork(run.run_id, replies={"a": wrong})
        assert len(node.workflows.list()) == 1


async def test_a_fork_with_a_reply_of_any_status_is_a_run_that_can_be_listed() -> None:
    async with Node([agent()]) as node:
        node.workflows.add(STEPS)
        run = await node.workflows.start("f", user_id="u")
        await asked(run)
        ends = {}
        for status in ("partial", "failure", "cancelled", "clarification_needed", "completed", "retry_with_instruction"):
            fork = await node.workflows.fork(run.run_id, replies={"a": {"status": status}})
            while fork.record.status == "running":
                await asyncio.sleep(0)
            ends[status] = fork.record.status
        assert ends == {
            "partial": "waiting", "failure": "failed", "cancelled": "failed", "clarification_needed": "waiting",
            "completed": "completed", "retry_with_instruction": "failed",
        }  # fmt: skip
        assert len(node.workflows.list()) == 7


async def test_a_fork_goes_on_with_the_parts_that_its_run_was_pinned_to() -> None:
    top, parts = "workflow: top\nnodes: {s: {run: sub}}", "workflow: sub\nnodes:\n  z: {ask: 'First?'}\n"
    async with Node([agent()]) as node:
        node.workflows.add(parts)
        node.workflows.add(top)
        run = await node.workflows.start("top", user_id="u")
        await asked(run)
        node.workflows.add("workflow: sub\nversion: '2'\nnodes:\n  a: {call: A/GO}\n  z: {ask: 'Second?', after: [a]}\n")
        node.workflows.add(top)
        fork = await node.workflows.fork(run.run_id)
        assert fork.record.definition == run.record.definition
        question = await asked(fork)
        assert question.text == "First?"
        await fork.answer(question.question_id, "yes")
        assert (await fork.result()).ok
