"""What a run does at its borders: its time is up, its history cannot be read, and what is told to it comes too late or is wrong."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from itertools import pairwise
from typing import Any

import pytest
from death import die
from msgspec.structs import replace

from comity import Agent, Node, Reply
from comity.core.journal.records import Document, Saved, Settled
from comity.core.workflow import history
from comity.errors import CallerError, RefusedError, UnavailableError
from comity.runtime.workflow.run import READ_PAUSE_S
from comity.runtime.workflow.store import Pages
from comity.runtime.workflow.workflows import LATER_MS

ASKS = "workflow: asks\nnodes:\n  x: {call: A/DO}\n  q: {ask: 'Go on?', after: [x]}\n  y: {call: A/DO, after: [q]}\noutput: '{{q.data.answer}}'\n"


def worker(said: list[str]) -> Agent:
    agent = Agent("A")

    @agent.capability("DO")
    async def do() -> str:
        said.append("done")
        return "done"

    @agent.capability("SLOW", timeout_ms=300_000)
    async def slow() -> None:
        said.append("begun")
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            said.append("stopped")
            raise

    return agent


async def waiting(node: Any, text: str = ASKS, **more: Any) -> Any:
    node.workflows.add(text)
    handle = await node.workflows.start("asks", user_id="ann", run_id="r", **more)
    while handle.record.status != "waiting":
        await asyncio.sleep(0)
    return handle


@pytest.mark.parametrize("beside", ["", "  b: {call: A/SLOW}\n"])
async def test_a_run_whose_time_is_up_stops_the_step_it_waits_for_alone_or_among_others(make_node, beside):
    said: list[str] = []
    async with make_node([worker(said)]) as node:
        node.workflows.add(f"workflow: w\nlimits: {{runtime_max: 2s}}\nnodes:\n  a: {{call: A/SLOW}}\n{beside}")
        began = asyncio.get_running_loop().time()
        reply = await node.workflows.run("w", user_id="u")
        assert (reply.error.code, asyncio.get_running_loop().time() - began) == ("WORKFLOW_LIMIT_REACHED", pytest.approx(2))
        await asyncio.sleep(0)
        assert said == (["begun", "begun", "stopped", "stopped"] if beside else ["begun", "stopped"])


async def test_an_event_and_a_timer_of_a_node_stop_no_step_that_runs(make_node):
    said: list[str] = []
    async with make_node([worker(said)]) as node:
        node.workflows.add("workflow: w\nnodes:\n  a: {call: A/SLOW}\n  b: {wait: 1s}\n")
        handle = await node.workflows.start("w", user_id="u")
        await asyncio.sleep(0.5)
        await handle.signal("anything", 1)
        assert (await handle.result()).ok
        assert said == ["begun"]


@pytest.mark.parametrize("failures", [1, 3])
async def test_a_run_whose_history_cannot_be_read_goes_on_a_little_later_and_loses_nothing(make_node, monkeypatch, failures):
    said: list[str] = []
    async with make_node([worker(said)]) as node:
        handle = await waiting(node)
        (question,) = handle.record.questions
        read, tries = node.workflows.store.walk, []

        def unreadable(run_id: str) -> Any:
            tries.append(asyncio.get_running_loop().time())
            if len(tries) <= failures:
                raise UnavailableError("the store cannot be read", code="STORE_UNAVAILABLE")
            return read(run_id)

        with monkeypatch.context() as patched:
            patched.setattr(node.workflows.store, "walk", unreadable)
            answered = asyncio.ensure_future(handle.answer(question.question_id, "yes"))
            await asyncio.sleep(failures * (LATER_MS / 1000 + 0.1) + 1)
        answered.cancel()
        assert len(tries) == failures + 1
        assert [later - one for one, later in pairwise(tries)] == [pytest.approx(LATER_MS / 1000, abs=0.1)] * failures
        node.workflows.sweep()  # the answer is in the store
        assert ((await handle.result()).data, said) == ("yes", ["done", "done"])


async def test_a_step_that_fails_in_a_resumed_run_is_no_store_that_cannot_be_read(make_node):
    unlucky = Agent("UNLUCKY")

    @unlucky.capability("FAIL")
    async def fail() -> Reply:
        return Reply.failure("no luck", code="NO_LUCK")

    async with make_node([worker([]), unlucky]) as node:
        handle = await waiting(node, ASKS.replace("y: {call: A/DO", "y: {call: UNLUCKY/FAIL"))
        (question,) = handle.record.questions
        began = asyncio.get_running_loop().time()
        await handle.answer(question.question_id, "yes")
        assert (await handle.result()).error.code == "NO_LUCK"
        assert asyncio.get_running_loop().time() - began < READ_PAUSE_S


@pytest.mark.parametrize(
    ("schema", "answer", "told"), [({"type": "integer"}, "x", "does not fit"), ({"type": "integer"}, 5, "")]
)
async def test_an_answer_has_to_fit_the_schema_of_its_question(make_node, schema, answer, told):
    async with make_node([worker([])]) as node:
        handle = await waiting(node, ASKS.replace("'Go on?'", f"'Go on?', answer: {schema}"))
        (question,) = handle.record.questions
        if told:
            with pytest.raises(CallerError, match=told):
                await handle.answer(question.question_id, answer)
            assert handle.record.questions == (question,)
        else:
            await handle.answer(question.question_id, answer)
            assert (await handle.result()).data == answer


async def test_a_run_that_has_ended_takes_no_answer_and_no_event_and_cancelling_it_changes_nothing(make_node):
    async with make_node([worker([])]) as node:
        handle = await waiting(node)
        with pytest.raises(CallerError, match="has no open question 99; open are: "):
            await handle.answer("99", "yes")
        (question,) = handle.record.questions
        await handle.answer(question.question_id, "yes")
        assert (await handle.result()).data == "yes"
        events = handle.record.events
        for late in (handle.signal("paid", 1), handle.answer(question.question_id, "no")):
            with pytest.raises(CallerError) as raised:
                await late
            assert raised.value.code == "WORKFLOW_STATE_CONFLICT"
        await handle.cancel(reason="late")
        assert (handle.record.events, handle.record.status) == (events, "completed")


@pytest.mark.parametrize("has_ended", [False, True])
def test_a_step_that_was_being_stopped_when_its_node_died_is_not_begun_again(tmp_path, has_ended):
    said: list[str] = []

    async def main() -> None:
        first = Node([worker(said)], store=tmp_path / "w.db", lag_ms=None)
        await first.start()
        first.workflows.add("workflow: w\nnodes:\n  a: {call: A/SLOW}\n  b: {call: A/SLOW}\n")
        await first.workflows.start("w", user_id="u", run_id="r")
        while said != ["begun", "begun"]:
            await asyncio.sleep(0)
        now_ms, journal = first.workflows.now_ms(), first._path._journal
        journal.append((Pages("r", 1).add(history.encode_event(history.Cancelled(now_ms, "no", ""))),))
        if has_ended:
            step = first._path.calls["r.2"].request
            journal.append((Settled(step, replace(Reply.success("in time"), request_id="r.2"), now_ms),))
        await die(first)
        said.clear()
        async with Node([worker(said)], store=tmp_path / "w.db", lag_ms=None) as node:
            reply = await node.workflows.result("r")
            assert (reply.status, said) == ("cancelled", [])
            told = {
                one.step: one.reply["status"] for one in node.workflows.store.events("r") if isinstance(one, history.Settled)
            }
            assert told == {2: "success" if has_ended else "failure", 3: "failure"}

    asyncio.run(main())


async def test_only_the_records_of_a_run_that_was_not_let_in_are_removed_and_only_from_a_store_that_took_them(make_node):
    async with make_node([worker([])]) as node:
        handle, journal = await waiting(node), node._path._journal
        journal.append((Saved(Document.RUN, "out", 1, b"{}"), Pages("out").add(b"{}")))
        for run_id, error in (("out", UnavailableError("not written")), (handle.run_id, None)):
            node.workflows._forget(run_id, error)
            assert journal.load(Document.RUN, run_id) is not None
            assert journal.documents_below(Document.RUN_EVENT, run_id)
        node.workflows._forget("out", None)
        assert journal.load(Document.RUN, "out") is None
        assert not journal.documents_below(Document.RUN_EVENT, "out")


async def test_a_run_without_a_question_says_that_none_is_open(make_node):
    async with make_node([worker([])]) as node:
        node.workflows.add("workflow: w\nnodes: {w: {wait: 90s}}")
        handle = await node.workflows.start("w", user_id="u")
        with pytest.raises(CallerError, match=r"has no open question 1; open are: none$"):
            await handle.answer("1", "yes")


async def test_a_run_is_forked_into_another_version_with_another_input_under_a_chosen_id(make_node):
    said: list[str] = []
    async with make_node([worker(said)]) as node:
        handle = await waiting(node)
        other = "workflow: other\nnodes:\n  x: {call: A/DO}\noutput: '{{x.data}} and done'\n"
        node.workflows.add(other)
        fork = await node.workflows.fork("r", new_run_id="f", workflow="other")
        assert (await fork.result()).data == "done and done"
        record = node.workflows.get("f")
        assert (record.workflow, record.forked_from, record.user_id) == ("other", "r", "ann")
        assert handle.record.status == "waiting"
        with pytest.raises(CallerError):
            await node.workflows.fork("r", workflow="none such")
        with pytest.raises(RefusedError, match="who alone may fork it") as caught:
            await node.workflows.fork("r", user_id="bob")
        assert caught.value.code == "IDENTITY_MISMATCH"
        with pytest.raises(CallerError, match="new_run_id"):
            await node.workflows.fork("r", new_run_id="")


async def test_a_waiter_for_a_run_that_is_erased_is_told_so(make_node):
    async with make_node([worker([])]) as node:
        handle = await waiting(node, session_id="s")
        waiters = [asyncio.ensure_future(handle.result()) for _ in range(2)]
        await asyncio.sleep(0)
        await node.erase_session("s")
        for waiter in waiters:
            with pytest.raises(CallerError, match="there is no run r: it was erased") as caught:
                await waiter
            assert caught.value.code == "WORKFLOW_UNKNOWN"


def test_a_run_of_which_the_store_has_no_record_ends_as_interrupted(tmp_path):
    store = tmp_path / "s.db"

    async def begin() -> None:
        async with Node([worker([])], store=store, lag_ms=None) as node:
            await waiting(node)

    async def go_on() -> None:
        async with Node([worker([])], store=store, lag_ms=None) as node:
            await node._path.durable()
            end = node._journal.call("r")
            assert (end.reply.status, end.reply.error.code, end.reply.request_id) == ("error", "CALL_INTERRUPTED", "r")
            assert "no record of this run" in end.reply.error.message

    asyncio.run(begin())
    with closing(sqlite3.connect(store)) as connection, connection:
        assert connection.execute("DELETE FROM documents WHERE kind = 'run'").rowcount == 1
    asyncio.run(go_on())
