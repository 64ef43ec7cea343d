"""Runs on a node: governed steps, questions, waits, cancel, limits, time travel; in memory and with a store."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest
from death import die
from msgspec.structs import replace

from comity import Agent, Context, Limits, Node, Reply
from comity.core.call.machine import SETTLED
from comity.core.document.slices import ONE_GO_BYTES
from comity.core.journal.records import Document
from comity.core.workflow.history import Answered, Received, encode_event
from comity.errors import CallerError, RefusedError, UnavailableError
from comity.runtime.call.replay import WORKFLOW as AGENT
from comity.runtime.workflow.run import Run
from comity.runtime.workflow.schedules import run_id_of
from comity.runtime.workflow.store import Pages
from comity.runtime.workflow.watching import MOMENTS_A_SLICE
from comity.workflow import DefinitionError, Status, load

CALLS: list[tuple[str, object]] = []


@pytest.fixture(autouse=True)
def _fresh():
    CALLS.clear()


def team() -> list[Agent]:
    worker, slow = Agent("A"), Agent("SLOW")

    @worker.capability("ADD")
    async def add(n: int = 0) -> dict:
        CALLS.append(("ADD", n))
        return {"n": n + 1}

    @worker.capability("FAIL")
    async def fail() -> Reply:
        CALLS.append(("FAIL", None))
        return Reply.failure("no luck", code="NO_LUCK")

    @worker.capability("UNDO")
    async def undo(n: int = 0) -> dict:
        CALLS.append(("UNDO", n))
        return {}

    @worker.capability("CLARIFY")
    async def clarify(ctx: Context, answer: str = "") -> Reply:
        CALLS.append(("CLARIFY", answer))
        return Reply.success({"year": answer, "said": ctx.request.message}) if answer else Reply.needs_input("Which year?")

    @slow.capability("WORK")
    async def work() -> dict:
        CALLS.append(("WORK", "begun"))
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            CALLS.append(("WORK", "stopped"))
            raise
        return {}

    return [worker, slow]


SEQUENCE = """
workflow: sequence
nodes:
  x: {call: A/ADD, input: {n: "{{input.n}}"}}
  y: {call: A/ADD, after: [x], input: {n: "{{x.data.n}}"}}
output: {n: "{{y.data.n}}"}
"""
LOOPS = """
workflow: loops
nodes:
  x: {call: A/ADD, input: {n: "{{x.data.n ?? 0}}"}}
  y: {set: 1}
edges: [{from: x, to: x, when: 'response.data.n < 140', max: 140}, {from: x, to: y, else: true}]
"""
LOOPS_AND_ASKS = LOOPS.replace("y: {set: 1}", 'y: {ask: "Go on?", options: [yes, no]}')
ASKS = """
workflow: asks
nodes:
  x: {call: A/ADD, input: {n: 1}}
  q: {ask: "Go on with {{x.data.n}}?", options: [yes, no], after: [x]}
  y: {call: A/ADD, after: [q], input: {n: "{{x.data.n}}"}}
output: {n: "{{y.data.n}}", answer: "{{q.data.answer}}"}
"""


@pytest.fixture(params=["memory", "store"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path / "w.db" if request.param == "store" else None


async def until(node: Node, run_id: str, status: str):
    for _ in range(2_000):
        record = node.workflows.get(run_id)
        if record.status == status:
            return record
        await asyncio.sleep(0.001)
    raise AssertionError(f"{record}")


def test_a_run_is_one_tree_of_governed_calls(store):
    async def main():
        async with Node(team(), store=store) as node:
            node.workflows.add(SEQUENCE)
            handle = await node.workflows.start("sequence", {"n": 1}, user_id="u", session_id="s")
            reply = await handle.result()
            assert reply.data == {"n": 3}
            rows = [row for row in node.audit.rows() if row.kind == "settled"]
            assert [(row.request_id, row.parent_id) for row in rows] == [
                (f"{handle.run_id}.2", handle.run_id),
                (f"{handle.run_id}.3", handle.run_id),
                (handle.run_id, None),
            ]
            assert {row.root_id for row in rows} == {handle.run_id}
            record = handle.record
            assert (record.status, record.steps, record.events) == (Status.COMPLETED, 2, 3)
            assert (await handle.result()).data == {"n": 3}

    asyncio.run(main())


def test_a_run_waits_for_a_person_outside_of_memory_and_goes_on_with_the_answer(store):
    async def main():
        async with Node(team(), store=store) as node:
            node.workflows.add(ASKS)
            handle = await node.workflows.start("asks", user_id="u")
            record = await until(node, handle.run_id, "waiting")
            assert handle.run_id not in node._path.calls
            (question,) = record.questions
            assert (question.text, question.options) == ("Go on with 2?", ("yes", "no"))
            with pytest.raises(CallerError, match="one of yes, no"):
                await handle.answer(question.question_id, "maybe")
            with pytest.raises(CallerError, match="no open question"):
                await handle.answer("99", "yes")
            await handle.answer(question.question_id, "yes", by="bob")
            assert (await handle.result()).data == {"n": 3, "answer": "yes"}
            assert [one for one in CALLS if one[0] == "ADD"] == [("ADD", 1), ("ADD", 2)]

    asyncio.run(main())


def test_a_clarification_of_an_agent_is_a_question_and_its_answer_reaches_the_agent(store):
    async def main():
        async with Node(team(), store=store) as node:
            node.workflows.add("workflow: c\nnodes: {a: {call: A/CLARIFY}}")
            handle = await node.workflows.start("c", user_id="u")
            record = await until(node, handle.run_id, "waiting")
            assert record.questions[0].text == "Which year?"
            await handle.answer(record.questions[0].question_id, "2027")
            assert (await handle.result()).data == {"year": "2027", "said": "2027"}

    asyncio.run(main())


def test_cancel_stops_the_code_that_runs_and_takes_back_what_was_done(store):
    text = """
workflow: long
nodes:
  a: {call: A/ADD, input: {n: 7}, undo: {call: A/UNDO, input: {n: "{{a.data.n}}"}}}
  w: {call: SLOW/WORK, after: [a]}
"""

    async def main():
        async with Node(team(), store=store) as node:
            node.workflows.add(text)
            handle = await node.workflows.start("long", user_id="u")
            while ("WORK", "begun") not in CALLS:
                await asyncio.sleep(0.001)
            await handle.cancel(reason="enough", by="bob")
            reply = await handle.result()
            assert reply.status == "cancelled"
            assert "enough" in reply.error.message
            assert CALLS == [("ADD", 7), ("WORK", "begun"), ("WORK", "stopped"), ("UNDO", 8)]
            assert handle.record.status is Status.CANCELLED

    asyncio.run(main())


def test_a_failed_run_says_its_code_and_where(store):
    async def main():
        async with Node(team(), store=store) as node:
            node.workflows.add("workflow: f\nnodes: {a: {call: A/FAIL}}")
            handle = await node.workflows.start("f", user_id="u")
            reply = await handle.result()
            assert (reply.status, reply.error.code, reply.error.facts["node"]) == ("error", "NO_LUCK", "a")
            assert (handle.record.status, handle.record.error_code) == (Status.FAILED, "NO_LUCK")

    asyncio.run(main())


def test_a_killed_node_leaves_a_run_that_the_next_one_goes_on_with_and_no_step_runs_twice(tmp_path):
    text = """
workflow: k
nodes:
  a: {call: A/ADD, input: {n: 1}}
  b: {call: A/ADD, input: {n: 10}}
  w: {call: SLOW/WORK, timeout: 2m}
  e: {wait: {event: paid}, after: [a, b]}
output: {a: "{{a.data.n}}", paid: "{{e.data}}"}
"""

    async def main():
        first = Node(team(), store=tmp_path / "k.db")
        await first.start()
        first.workflows.add(text)
        handle = await first.workflows.start("k", user_id="u")
        while first.workflows.get(handle.run_id).events < 3:
            await asyncio.sleep(0.001)
        began = first.workflows.store.events(handle.run_id)
        await die(first)
        CALLS.append(("died", None))
        async with Node(team(), store=tmp_path / "k.db") as second:
            flows = second.workflows
            assert flows.store.events(handle.run_id)[: len(began)] == began, "what has happened is not written anew"
            while ("WORK", "begun") not in CALLS[CALLS.index(("died", None)) :]:
                await asyncio.sleep(0.001)
            await flows.signal(handle.run_id, "paid", 5)
            while flows.get(handle.run_id).events < 4:
                await asyncio.sleep(0.001)
            flows._runs[handle.run_id]._stop(next(iter(flows._runs[handle.run_id]._steps)))
            reply = await flows.result(handle.run_id)
            assert reply.error.code == "CALL_CANCELLED"
            assert [one for one in CALLS if one[0] == "ADD"] == [("ADD", 1), ("ADD", 10)]

    asyncio.run(main())


def test_a_closed_node_leaves_its_runs_open_and_the_next_one_goes_on(tmp_path):
    async def main():
        async with Node(team(), store=tmp_path / "c.db") as node:
            node.workflows.add(ASKS, "workflow: w\nnodes: {w: {call: SLOW/WORK}}")
            waiting = await node.workflows.start("asks", user_id="u")
            running = await node.workflows.start("w", user_id="u")
            await until(node, waiting.run_id, "waiting")
            while ("WORK", "begun") not in CALLS:
                await asyncio.sleep(0.001)
        CALLS.clear()
        async with Node(team(), store=tmp_path / "c.db") as node:
            while ("WORK", "begun") not in CALLS:
                await asyncio.sleep(0.001)
            assert node.workflows.get(running.run_id).status is Status.RUNNING
            (question,) = node.workflows.get(waiting.run_id).questions
            await node.workflows.answer(waiting.run_id, question.question_id, "no")
            assert (await node.workflows.result(waiting.run_id)).data == {"n": 3, "answer": "no"}
            await node.workflows.cancel(running.run_id)
            assert (await node.workflows.result(running.run_id)).status == "cancelled"

    asyncio.run(main())


def test_an_answer_given_in_another_process_reaches_the_node_that_holds_the_run(tmp_path):
    async def main():
        async with Node(team(), store=tmp_path / "s.db") as node:
            node.workflows.add(ASKS)
            handle = await node.workflows.start("asks", user_id="u")
            record = await until(node, handle.run_id, "waiting")
            async with Node(team(), store=tmp_path / "s.db") as other:
                await other.workflows.answer(handle.run_id, record.questions[0].question_id, "yes")
            node.workflows.sweep()
            assert (await handle.result()).data["answer"] == "yes"
            assert node.workflows.store.signalled() == []

    asyncio.run(main())


async def asked_run(node: Node, run_id: str = "r") -> str:
    """Return the id of the open question of a run that `node` holds."""
    node.workflows.add(ASKS)
    await node.workflows.start("asks", user_id="u", run_id=run_id)
    record = await until(node, run_id, "waiting")
    await node.workflows.durable()
    return record.questions[0].question_id


@pytest.mark.parametrize("is_second_held", [True, False], ids=["by the node that holds the run", "by a third node"])
def test_the_first_durable_answer_stands_though_the_holder_of_the_run_has_not_heard_of_it(tmp_path, is_second_held):
    async def main():
        path = tmp_path / "s.db"
        async with Node(team(), store=path) as node, Node(store=path) as other, Node(store=path) as third:
            question = await asked_run(node)
            await other.workflows.answer("r", question, "no", by="boss")
            with pytest.raises(CallerError, match=rf"question {question} of run r was answered by boss at 20") as raised:
                await (node if is_second_held else third).workflows.answer("r", question, "yes", by="clerk")
            assert raised.value.code == "WORKFLOW_STATE_CONFLICT"
            node.workflows.sweep()
            assert (await node.workflows.result("r")).data["answer"] == "no"
            with pytest.raises(CallerError, match="was answered by boss"):
                await other.workflows.answer("r", question, "yes", by="clerk")
            noted = [one.note for one in node.audit.rows() if one.note and "answered" in one.note]
            assert len(noted) == 1

    asyncio.run(main())


def test_of_answers_in_one_instant_the_store_takes_one_and_refuses_the_others(tmp_path):
    async def main():
        path = tmp_path / "s.db"
        async with Node(team(), store=path) as node, Node(store=path) as other, Node(store=path) as third:
            question = await asked_run(node)
            given = [("yes", node), ("no", other), ("yes", third)]
            answers = [one.workflows.answer("r", question, word, by=str(number)) for number, (word, one) in enumerate(given)]
            ends = await asyncio.gather(*answers, return_exceptions=True)
            (first,) = (number for number, end in enumerate(ends) if end is None)
            assert [end.code for end in ends if end is not None] == ["WORKFLOW_STATE_CONFLICT"] * 2
            node.workflows.sweep()
            assert (await node.workflows.result("r")).data["answer"] == given[first][0]

    asyncio.run(main())


def test_a_run_that_another_process_cancelled_takes_no_later_answer_and_no_later_event(tmp_path):
    async def main():
        path = tmp_path / "s.db"
        async with Node(team(), store=path) as node, Node(store=path) as other:
            question = await asked_run(node)
            await other.workflows.cancel("r", by="boss")
            for late in (other.workflows.answer("r", question, "yes"), other.workflows.signal("r", "paid")):
                with pytest.raises(CallerError, match="run r was cancelled by boss"):
                    await late
            with pytest.raises(CallerError) as raised:
                await node.workflows.answer("r", question, "yes")
            assert raised.value.code == "WORKFLOW_STATE_CONFLICT"
            assert (await node.workflows.result("r")).status == "cancelled"

    asyncio.run(main())


def test_an_event_that_another_process_sent_comes_before_a_later_one_of_the_holder(tmp_path):
    async def main():
        path = tmp_path / "s.db"
        async with Node(team(), store=path) as node, Node(store=path) as other:
            node.workflows.add("workflow: w\nnodes:\n  e: {wait: {event: paid}}\noutput: '{{e.data}}'\n")
            await node.workflows.start("w", user_id="u", run_id="r")
            await until(node, "r", "waiting")
            await node.workflows.durable()
            await other.workflows.signal("r", "paid", {"n": 1})
            await node.workflows.signal("r", "paid", {"n": 2})
            assert (await node.workflows.result("r")).data == {"n": 1}

    asyncio.run(main())


def test_an_event_is_acknowledged_while_a_step_is_under_way_and_outlives_the_node(tmp_path):
    async def main():
        path = tmp_path / "s.db"
        flow = "workflow: w\nnodes:\n  w: {call: SLOW/WORK}\n  e: {wait: {event: paid}, after: [w]}\noutput: '{{e.data}}'\n"
        async with Node(team(), store=path) as node:
            node.workflows.add(flow)
            await node.workflows.start("w", user_id="u", run_id="r")
            while ("WORK", "begun") not in CALLS:
                await asyncio.sleep(0.001)
            await asyncio.wait_for(node.workflows.signal("r", "paid", {"n": 1}), 10)
            assert len(node.workflows.store.signals("r")) == 1
        async with Node(store=path) as node:
            assert [event.data for _, event in node.workflows.store.signals("r")] == [{"n": 1}]

    asyncio.run(main())


def test_a_cancellation_that_a_closing_node_cannot_write_fails_and_its_caller_does_not_wait_for_ever(tmp_path):
    async def main():
        async with Node(team(), store=tmp_path / "s.db") as node:
            node.workflows.add("workflow: w\nnodes: {w: {call: SLOW/WORK}}")
            await node.workflows.start("w", user_id="u", run_id="r")
            while ("WORK", "begun") not in CALLS:
                await asyncio.sleep(0.001)
            cancelling = asyncio.ensure_future(node.workflows.cancel("r"))
            await asyncio.sleep(0)
            node.workflows.close()
        with pytest.raises(UnavailableError, match="does not hold the run any more"):
            await asyncio.wait_for(cancelling, 10)

    asyncio.run(main())


def test_a_signal_leaves_the_store_once_it_is_durable_in_the_history_and_a_copy_that_outlived_a_crash_changes_nothing(tmp_path):
    async def main():
        path = tmp_path / "s.db"
        async with Node(team(), store=path) as node, Node(store=path) as other:
            node.workflows.add("workflow: w\nnodes:\n  e: {wait: {event: paid}}\n  f: {wait: {event: paid}, after: [e]}\n")
            await node.workflows.start("w", user_id="u", run_id="r")
            await until(node, "r", "waiting")
            sent = Received(other.workflows.now_ms(), "paid", 1)
            for _ in range(2):
                other.workflows.journal.append((other.workflows.store.signal("r", "1", sent),))
                await other.workflows.durable()
                node.workflows.sweep()
                while node.workflows.store.signalled():
                    await asyncio.sleep(0.001)
                record = await until(node, "r", "waiting")
                assert (record.waits_for, sent in node.workflows.store.events("r")) == (("paid",), True)
            assert len(node.workflows.store.events("r")) == 2

    asyncio.run(main())


def test_the_same_run_id_starts_one_run(store):
    async def main():
        async with Node(team(), store=store) as node:
            node.workflows.add(SEQUENCE)
            first = await node.workflows.start("sequence", {"n": 1}, user_id="u", run_id="r-1")
            await first.result()
            again = await node.workflows.start("sequence", {"n": 1}, user_id="u", run_id="r-1")
            assert (await again.result()).data == {"n": 3}
            assert len(CALLS) == 2
            with pytest.raises(CallerError, match="another run"):
                await node.workflows.start("sequence", {"n": 1}, user_id="v", run_id="r-1")

    asyncio.run(main())


def test_a_run_id_with_another_input_is_refused_while_the_run_goes_on_after_its_end_and_on_the_next_node(tmp_path):
    async def again(node: Node) -> None:
        for other in ({"text": "bob@acme.com"}, {}, None):
            with pytest.raises(CallerError, match="run_id r-1 belongs to a run with another input") as raised:
                await node.workflows.start("asks", other, user_id="u", run_id="r-1")
            assert raised.value.code == "IDENTITY_REQUEST_ID_REUSED"
        assert (await node.workflows.start("asks", {"text": "ann@acme.com"}, user_id="u", run_id="r-1")).run_id == "r-1"

    async def main():
        async with Node(team(), store=tmp_path / "s.db") as node:
            node.workflows.add(ASKS)
            handle = await node.workflows.start("asks", {"text": "ann@acme.com"}, user_id="u", run_id="r-1")
            await again(node)
            record = await until(node, "r-1", "waiting")
            await again(node)
            await handle.answer(record.questions[0].question_id, "yes")
            await handle.result()
            await again(node)
        async with Node(team(), store=tmp_path / "s.db") as node:
            node.workflows.add(ASKS)
            await again(node)

    asyncio.run(main())


def test_a_run_cannot_take_the_id_of_a_call_nor_give_its_reply(store):
    """Whether the call runs or has ended, and though a run of that id was recorded before it began."""

    async def main():
        async with Node(team(), store=store) as node:
            node.workflows.add(SEQUENCE)
            assert (await node.call("A", "ADD", {"n": 41}, user_id="ann", tenant_id="acme", request_id="c-1")).ok
            running = node.start_call("SLOW", "WORK", user_id="ann", tenant_id="acme", request_id="c-2")
            for run_id in ("c-1", "c-2"):
                for user_id, tenant_id in (("eve", "evil"), ("ann", "acme")):
                    with pytest.raises((CallerError, RefusedError), match="belongs to another"):
                        await node.workflows.start("sequence", {"n": 1}, user_id=user_id, tenant_id=tenant_id, run_id=run_id)
                with pytest.raises(CallerError, match="no run"):
                    await node.workflows.result(run_id)
            recorded = await node.workflows.start("sequence", {"n": 1}, user_id="eve", tenant_id="evil")
            await recorded.result()
            of_a_call = replace(node.workflows.get(recorded.run_id), run_id="c-1")
            node._path._journal.append(node.workflows.store.save(of_a_call))
            assert (await node.workflows.result(recorded.run_id)).ok
            assert node.workflows._root(recorded.run_id) is not None
            assert node.workflows._root("c-1") is None
            assert running.cancel()

    asyncio.run(main())


def test_a_run_that_is_refused_leaves_nothing_and_may_be_started_again(store):
    async def main():
        async with Node(team(), store=store) as node:
            node.workflows.add(SEQUENCE)
            assert (await node.call("A", "ADD", {"n": 1}, user_id="ann", session_id="s")).ok
            with pytest.raises(RefusedError, match="session"):
                await node.workflows.start("sequence", {"n": 1}, user_id="bob", session_id="s", run_id="r-1")
            assert node.workflows.list() == []
            with pytest.raises(CallerError, match="no run"):
                node.workflows.get("r-1")
            assert (await node.workflows.run("sequence", {"n": 1}, user_id="bob", run_id="r-1")).data == {"n": 3}
        if store is not None:
            async with Node(team(), store=store) as node:
                assert [one.run_id for one in node.workflows.list()] == ["r-1"]

    asyncio.run(main())


def test_no_caller_can_take_the_id_of_a_run_that_a_node_starts_by_itself(store):
    async def main():
        async with Node(team(), store=store) as node:
            node.workflows.add(SEQUENCE)
            own = run_id_of("nightly", 1_000)
            with pytest.raises(CallerError, match="comity:"):
                await node.workflows.start("sequence", {"n": 1}, user_id="eve", run_id=own)
            refused = await node.call("A", "ADD", {"n": 1}, user_id="eve", request_id=own)
            assert refused.error.code == "IDENTITY_INVALID"
            done = await node.workflows.start("sequence", {"n": 1}, user_id="eve")
            await done.result()
            for taken in (own, f"{done.run_id}.2"):
                with pytest.raises(CallerError, match="new_run_id"):
                    await node.workflows.fork(done.run_id, new_run_id=taken)
            node.workflows.begin_run(load(SEQUENCE), {"n": 1}, "ann", "acme", own)
            assert (await node.workflows.result(own)).data == {"n": 3}

    asyncio.run(main())


def test_a_node_closes_while_the_end_of_a_run_is_on_its_way_to_the_store(tmp_path):
    async def main():
        node = Node(team(), store=tmp_path / "w.db")
        await node.start()
        node.workflows.add(SEQUENCE)
        run_id = run_id_of("nightly", 1_000)
        node.workflows.begin_run(load(SEQUENCE), {"n": 1}, "u", "default", run_id)  # `start` would wait for the writer
        while node.workflows._runs[run_id].call.state is not SETTLED:
            await asyncio.sleep(0)
        node.workflows.close()  # as the node does, before the writer reports
        await node.close()
        async with Node(team(), store=tmp_path / "w.db") as node:
            assert (await node.workflows.result(run_id)).data == {"n": 3}

    asyncio.run(main())


def test_what_is_wrong_is_said_before_anything_starts(store):
    async def main():
        async with Node(team(), store=store) as node:
            with pytest.raises(DefinitionError, match="no capability `AD`"):
                await node.workflows.start(load("workflow: x\nnodes: {a: {call: A/AD}}"), user_id="u")
            with pytest.raises(CallerError, match="no workflow"):
                await node.workflows.start("nothing", user_id="u")
            with pytest.raises(CallerError, match="no run"):
                node.workflows.get("nothing")
            typed = "workflow: t\ninput: {type: object, required: [n]}\nnodes: {a: {set: 1}}"
            with pytest.raises(CallerError, match="n"):
                await node.workflows.start(load(typed), user_id="u")
            assert node.workflows.list() == []

    asyncio.run(main())


def test_a_step_that_guidance_or_a_limit_refuses_is_a_failed_step(store):
    async def main():
        async with Node(team(), store=store, limits=Limits(tokens_max=None)) as node:
            node.workflows.add(
                "workflow: u\nnodes: {a: {call: A/ADD, input: {n: 1}}, b: {call: A/ADD, after: [a], input: {n: x}}}"
            )
            with pytest.raises(DefinitionError, match="n"):
                await node.workflows.start("u", user_id="u")
            text = 'workflow: v\nnodes: {a: {call: A/ADD, input: {n: "{{input.n}}"}}}'
            reply = await node.workflows.run(load(text), {"n": "x"}, user_id="u")
            assert reply.error.code == "INPUT_VALIDATION_FAILED"

    asyncio.run(main())


def test_events_come_live_in_order_and_end_with_the_run(store):
    async def main():
        async with Node(team(), store=store) as node:
            node.workflows.add(ASKS)
            handle = await node.workflows.start("asks", user_id="u")
            seen = []

            async def watch():
                seen.extend([(event.kind, event.place) async for event in handle.events()])

            watcher = asyncio.ensure_future(watch())
            record = await until(node, handle.run_id, "waiting")
            await asyncio.sleep(0)
            await handle.answer(record.questions[0].question_id, "yes")
            await asyncio.wait_for(watcher, 5)
            assert seen == [
                ("started", ""), ("scheduled", "x"), ("settled", "x"), ("asked", "q"), ("answered", "q"), ("scheduled", "y"),
                ("settled", "y"), ("ended", ""),
            ]  # fmt: skip
            assert [one.event.__class__.__name__ for one in node.workflows.replay(handle.run_id)] == [
                "Started", "Settled", "Answered", "Settled",
            ]  # fmt: skip

    asyncio.run(main())


def test_a_reader_that_is_busy_with_one_event_of_a_run_misses_none_of_the_following(store):
    async def main():
        async with Node(team(), store=store) as node:
            node.workflows.add(ASKS)
            handle = await node.workflows.start("asks", user_id="u")
            record = await until(node, handle.run_id, "waiting")
            events = handle.events()
            first = await anext(events)
            await handle.answer(record.questions[0].question_id, "yes")
            assert (await handle.result()).ok
            assert [first.kind] + [event.kind async for event in events] == [
                "started", "scheduled", "settled", "asked", "answered", "scheduled", "settled", "ended",
            ]  # fmt: skip

    asyncio.run(main())


def test_a_run_is_forked_with_another_reply_and_nothing_that_stands_is_called_again(store):
    text = """
workflow: f
nodes:
  a: {call: A/ADD, input: {n: 1}}
  b: {call: A/ADD, input: {n: "{{a.data.n}}"}}
  c: {call: A/ADD, input: {n: 100}}
edges: [{from: a, to: b, when: 'response.data.n < 10'}, {from: a, to: c, else: true}]
"""

    async def main():
        async with Node(team(), store=store) as node:
            node.workflows.add(text)
            first = await node.workflows.start("f", user_id="u")
            assert (await first.result()).data == {"n": 3}
            CALLS.clear()
            other = await node.workflows.fork(first.run_id, replies={"a": {"data": {"n": 50}}})
            assert (await other.result()).data == {"n": 101}
            assert CALLS == [("ADD", 100)]
            assert other.record.forked_from == first.run_id
            whys = node.workflows.why(other.run_id, "a")
            assert [(one.edge, one.taken) for one in whys] == [("a-b", False), ("a-c", True)]
            again = await node.workflows.fork(first.run_id, at=1)
            assert (await again.result()).data == {"n": 3}

    asyncio.run(main())


def test_others_have_their_turn_while_the_history_of_a_long_run_is_replayed(store):
    async def main():
        async with Node(team(), store=store) as node:
            node.workflows.add(LOOPS)
            run = await node.workflows.start("loops", user_id="u")
            await run.result()
            turns = 0

            async def other():
                nonlocal turns
                while True:
                    turns += 1
                    await asyncio.sleep(0)

            beside = asyncio.create_task(other())
            history = [one.kind async for one in node.workflows.past(run.run_id)]
            beside.cancel()
            assert history[0] == "started"
            assert history[-1] == "ended"
            assert turns >= len(node.workflows.replay(run.run_id)) // MOMENTS_A_SLICE >= 2

    asyncio.run(main())


def test_the_changed_input_of_a_fork_is_checked_as_the_input_of_a_run_is(store):
    text = "workflow: t\ninput: {properties: {n: {type: integer}}}\nnodes: {a: {call: A/ADD, input: {n: '{{input.n}}'}}}"

    async def main():
        async with Node(team(), store=store) as node:
            node.workflows.add(text)
            first = await node.workflows.start("t", {"n": 1}, user_id="u")
            await first.result()
            with pytest.raises(CallerError, match=r"input\.n"):
                await node.workflows.fork(first.run_id, at=1, input={"n": "two"}, new_run_id="wrong")
            assert [one.run_id for one in node.workflows.list()] == [first.run_id]
            fork = await node.workflows.fork(first.run_id, at=1, input={"n": 2})
            assert (await fork.result()).data == {"n": 3}

    asyncio.run(main())


def test_a_forked_run_that_waits_goes_on_with_its_answer_and_is_accepted_as_any_other(store):
    async def main():
        async with Node(team(), store=store) as node:
            node.workflows.add(ASKS)
            first = await node.workflows.start("asks", user_id="u")
            await until(node, first.run_id, "waiting")
            fork = await node.workflows.fork(first.run_id, at=1)
            record = await until(node, fork.run_id, "waiting")
            assert [row.kind for row in node.audit.rows() if row.request_id == fork.run_id] == ["admitted"]
            await node.workflows.answer(fork.run_id, record.questions[0].question_id, "yes")
            assert (await fork.result()).data == {"n": 3, "answer": "yes"}
            assert first.record.status == "waiting"

    asyncio.run(main())


def test_others_have_their_turn_while_a_long_run_is_forked_or_moved(store):
    async def main():
        async with Node(team(), store=store) as node:
            node.workflows.add(LOOPS_AND_ASKS)
            first = await node.workflows.start("loops", user_id="u")
            await until(node, first.run_id, "waiting")
            slices = node._path.slices
            begun = slices.count
            await node.workflows.fork(first.run_id)
            forked = slices.count
            await node.workflows.migrate(first.run_id, load(f"{LOOPS_AND_ASKS}output: {{new: true}}"))
            assert min(forked - begun, slices.count - forked) >= 140 // MOMENTS_A_SLICE

    asyncio.run(main())


@pytest.mark.parametrize(("given", "planned"), [(["x"], 0), (["x" * ONE_GO_BYTES], 1), (["x" * 1_000] * 40, 1)])
def test_what_follows_from_long_data_is_planned_beside_the_loop(store, given, planned):
    text = "workflow: t\nnodes: {a: {set: '{{size(input.of)}}'}}\noutput: {n: '{{a.data}}'}"

    async def main():
        async with Node(team(), store=store) as node:
            node.workflows.add(text)
            run = await node.workflows.start("t", {"of": given}, user_id="u")
            while not run.record.status.has_ended:  # also while it is planned
                await asyncio.sleep(0)
            assert (await run.result()).data == {"n": len(given)}
            assert node._path.slices.aside.count == planned

    asyncio.run(main())


def test_others_have_their_turn_while_the_long_history_of_a_run_is_replayed(tmp_path):
    async def main():
        async with Node(team(), store=tmp_path / "w.db") as first:
            first.workflows.add(LOOPS_AND_ASKS)
            run = await first.workflows.start("loops", user_id="u")
            (question,) = (await until(first, run.run_id, "waiting")).questions
        async with Node(team(), store=tmp_path / "w.db") as node:
            node.workflows.add(LOOPS_AND_ASKS)
            slices = node._path.slices
            begun = slices.count
            await node.workflows.answer(run.run_id, question.question_id, "yes")
            await until(node, run.run_id, "completed")
            assert (slices.count - begun >= 140 // MOMENTS_A_SLICE, slices.aside.count) == (True, 1)

    asyncio.run(main())


def test_a_run_that_goes_on_while_its_history_is_compared_stays_with_its_version():
    asks_twice = LOOPS_AND_ASKS.replace("140", "600").replace(", options: [yes, no]}", '}\n  z: {ask: "Really?", after: [y]}')

    async def main():
        async with Node(team()) as node:
            node.workflows.add(asks_twice)
            first = await node.workflows.start("loops", user_id="u")
            record = await until(node, first.run_id, "waiting")
            moving = asyncio.create_task(node.workflows.migrate(first.run_id, load(f"{asks_twice}output: {{new: true}}")))
            await asyncio.sleep(0)
            await first.answer(record.questions[0].question_id, "yes")
            with pytest.raises(CallerError, match="does not wait here"):
                await moving
            assert (await until(node, first.run_id, "waiting")).questions[0].text == "Really?"

    asyncio.run(main())


def test_a_waiting_run_moves_to_a_version_that_agrees_and_stays_with_its_own_otherwise(store):
    async def main():
        async with Node(team(), store=store) as node:
            node.workflows.add(ASKS)
            handle = await node.workflows.start("asks", user_id="u")
            record = await until(node, handle.run_id, "waiting")
            with pytest.raises(CallerError, match="x = A/ADD") as refused:
                await node.workflows.migrate(handle.run_id, load(ASKS.replace("input: {n: 1}", "input: {n: 5}")))
            assert refused.value.code == "WORKFLOW_MIGRATION_REFUSED"
            new = load(ASKS.replace("output: {n:", "output: {new: true, n:"))
            await node.workflows.migrate(handle.run_id, new)
            await handle.answer(record.questions[0].question_id, "yes")
            assert (await handle.result()).data == {"new": True, "n": 3, "answer": "yes"}

    asyncio.run(main())


def test_erasing_a_session_takes_its_runs_and_their_events(store):
    async def main():
        async with Node(team(), store=store) as node:
            node.workflows.add(SEQUENCE)
            mine = await node.workflows.start("sequence", {"n": 1}, user_id="u", session_id="mine")
            other = await node.workflows.start("sequence", {"n": 1}, user_id="u", session_id="other")
            await mine.result(), await other.result()
            await node._path.durable()
            await node.erase_session("mine")
            assert [one.run_id for one in node.workflows.list()] == [other.run_id]
            assert node._journal.documents_below(Document.RUN_EVENT, mine.run_id) == []
            assert node.workflows.store.count(other.run_id) == 3

    asyncio.run(main())


def test_personal_data_stays_hidden_in_the_history_and_comes_back_in_the_reply(store):
    text = 'workflow: p\nnodes: {a: {call: MAIL/FIND, input: {who: "{{input.who}}"}}}\noutput: {mail: "{{a.data.mail}}"}'
    seen = []
    mail = Agent("MAIL")

    @mail.capability("FIND")
    async def find(who: str) -> dict:
        seen.append(who)
        return {"mail": "jdoe@acme.com"}

    async def main():
        async with Node([mail], store=store) as node:
            handle = await node.workflows.start(load(text), {"who": "ann@example.com"}, user_id="u", session_id="s")
            assert (await handle.result()).data == {"mail": "jdoe@acme.com"}
            kept = b"".join(data for _, data in node._journal.documents_below(Document.RUN_EVENT, handle.run_id))
            assert b"acme.com" not in kept
            assert b"ann@example.com" not in kept
            assert "ann@example.com" not in seen[0]

    asyncio.run(main())


async def test_a_run_is_begun_by_no_call_of_the_agent_that_runs_belong_to(make_node):
    async with make_node(team()) as node:
        flows = node.workflows
        reply = await node.call(AGENT, "run", user_id="u")
        assert (reply.error.code, flows.list()) == ("ROUTING_UNKNOWN_AGENT", [])


async def test_a_run_that_left_memory_comes_back_once_when_its_time_has_come(make_node):
    async with make_node(team()) as node:
        flows, loop = node.workflows, asyncio.get_running_loop()
        began = loop.time()
        handle = await flows.start(load("workflow: w\nnodes: {w: {wait: 1h}, x: {call: A/ADD, after: [w]}}"), user_id="u")
        await asyncio.sleep(1)
        assert (len(flows._runs), len(flows._parked)) == (0, 1)
        assert (await handle.result()).ok
        assert loop.time() - began == pytest.approx(3600, abs=0.1)
        events = [one.event.__class__.__name__ for one in flows.replay(handle.run_id)]
        assert (events, len(flows.timers)) == (["Started", "Fired", "Settled"], 0)


def test_thousands_of_waiting_runs_are_rows_alone():
    async def main():
        async with Node(team()) as node:
            node.workflows.add('workflow: q\nnodes: {q: {ask: "?"}}')
            for _ in range(200):
                await node.workflows.start("q", user_id="u")
            flows = node.workflows
            async with asyncio.timeout(60):
                while len(flows._parked) < 200 or flows._runs or node._path.calls:
                    await asyncio.sleep(0.001)
            assert (len(flows._runs), len(flows._parked), len(node._path.calls)) == (0, 200, 0)
            first, *_ = waiting = flows.list(status="waiting", limit=500)
            assert len(waiting) == 200
            await flows.answer(first.run_id, first.questions[0].question_id, "yes", by="u")
            assert (await flows.result(first.run_id)).ok  # it came back to memory, and left it with its end
            assert (first.run_id in flows._runs, first.run_id in flows._parked, len(flows._parked)) == (False, False, 199)

    asyncio.run(main())


def test_a_waiter_that_was_cancelled_takes_no_other_waiter_the_end_of_a_run():
    """Dies where the end of a run is set on a future that is done, which raises before the others are told."""

    async def main():
        async with Node(team()) as node:
            node.workflows.add('workflow: q\nnodes: {q: {ask: "?"}}')
            handle = await node.workflows.start("q", user_id="u")
            gone, waits = (asyncio.ensure_future(handle.result()) for _ in range(2))
            await until(node, handle.run_id, "waiting")
            gone.cancel()
            (question,) = node.workflows.get(handle.run_id).questions
            await node.workflows.answer(handle.run_id, question.question_id, "yes", by="u")
            async with asyncio.timeout(30):
                assert (await waits).ok

    asyncio.run(main())


def test_a_waiting_run_is_not_in_memory_any_more(store):
    def in_memory() -> int:
        gc.collect()
        return sum(type(one) is Run for one in gc.get_objects())

    gc.freeze()  # what other tests left is no work for the collections below

    async def main():
        async with Node(team(), store=store) as node:
            node.workflows.add(ASKS)
            before = in_memory()
            handles = [await node.workflows.start("asks", user_id="u") for _ in range(5)]
            for handle in handles:
                await until(node, handle.run_id, "waiting")
            while node.workflows._runs:
                await asyncio.sleep(0.001)
            await asyncio.sleep(0)  # the task that drove the last one ends
            assert in_memory() <= before

    asyncio.run(main())


def test_steps_side_by_side_need_no_task_that_waits_for_them():
    seen: list[str] = []
    agent = Agent("T")

    @agent.capability("LOOK")
    async def look() -> dict:
        seen.extend(task.get_name() for task in asyncio.all_tasks())
        return {}

    async def main() -> Reply:
        async with Node([agent]) as node:
            node.workflows.add("workflow: wide\nnodes: {x: {call: T/LOOK}, y: {call: T/LOOK}, j: {join: all, after: [x, y]}}")
            return await node.workflows.run("wide", user_id="u")

    assert asyncio.run(main()).ok
    assert seen
    assert not [name for name in seen if name.endswith("of a workflow")]


def test_a_parallel_map_keeps_its_bound(store):
    most = running = 0
    agent = Agent("P")

    @agent.capability("WORK")
    async def work(n: int) -> int:
        nonlocal most, running
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        return n * n

    async def main():
        async with Node([agent], store=store) as node:
            text = 'workflow: m\nnodes: {a: {call: P/WORK, map: {over: "{{input.l}}", concurrency: 3}, input: {n: "{{item}}"}}}'
            reply = await node.workflows.run(load(text), {"l": list(range(20))}, user_id="u")
            assert reply.data == [n * n for n in range(20)]
            assert most == 3

    asyncio.run(main())


def test_an_aggregate_is_made_by_a_strategy_of_the_node(store):
    async def main():
        async with Node(team(), store=store) as node:
            text = "workflow: g\nnodes: {a: {call: A/ADD, input: {n: 1}}, b: {call: A/ADD, input: {n: 5}}, s: {aggregate: total, after: [a, b]}}"

            async def total(parts, options, ask):
                more = await ask("A", "ADD", {"n": 100})
                return Reply.success({"sum": sum(one["data"]["n"] for _, one in parts) + more.data["n"]})

            node.workflows.strategies["total"] = total
            assert (await node.workflows.run(load(text), user_id="u", run_id="r")).data == {"sum": 109}
            assert {"r.4", "r.4.1"} >= {row.request_id for row in node.audit.rows() if row.request_id.startswith("r.4")}

    asyncio.run(main())


def test_a_run_that_is_waited_for_by_a_node_that_closes_says_so(tmp_path):
    async def main():
        async with Node(team(), store=tmp_path / "x.db") as node:
            node.workflows.add(ASKS)
            handle = await node.workflows.start("asks", user_id="u")
            waiting = asyncio.ensure_future(handle.result())
            await until(node, handle.run_id, "waiting")
        with pytest.raises(UnavailableError, match="goes on when a node opens the store"):
            await waiting

    asyncio.run(main())


def test_without_a_store_a_run_is_forgotten_with_its_root_call(monkeypatch):
    monkeypatch.setattr("comity.engines.memory.journal.SETTLED_KEPT_MAX", 6)  # two runs of three calls each

    async def main():
        async with Node(team()) as node:
            node.workflows.add(SEQUENCE)
            for number in range(4):
                await node.workflows.run("sequence", {"n": 1}, user_id="u", run_id=f"r{number}")
            assert [one.run_id for one in node.workflows.list()] == ["r3", "r2"]
            assert node.workflows.store.count("r0") == 0

    asyncio.run(main())


def test_each_definition_is_checked_also_one_in_the_place_of_one_that_is_gone():
    async def main():
        async with Node(team()) as node:
            flows = node.workflows
            flows.add(SEQUENCE)
            for _ in range(30):
                await flows.run(load(SEQUENCE), {"n": 1}, user_id="u")  # known by name, so that the library does not keep it
                flows.store.unpin()
                with pytest.raises(DefinitionError):
                    await flows.run(load(SEQUENCE.replace("A/ADD", "A/NONE")), {"n": 1}, user_id="u")

    asyncio.run(main())


LONG = """
workflow: long
nodes:
  x: {call: L/LONG}
  q: {ask: "Go on?", after: [x]}
output: {text: "{{x.data.text}}", answer: "{{q.data.answer}}"}
"""


def test_the_data_of_a_long_reply_is_stored_once_and_still_known_after_a_restart(store):
    writer = Agent("L")

    @writer.capability("LONG")
    async def long() -> dict:
        return {"text": "word " * 1_000}

    async def main():
        async with Node([writer], store=store) as node:
            flows = node.workflows
            flows.add(LONG)
            await flows.start("long", user_id="u", run_id="r1")
            await until(node, "r1", "waiting")
            kept = [data for _, data in flows.journal.documents_below(Document.RUN_EVENT, "r1")]
            assert not any(b"word word" in one for one in kept)
            assert flows.replay("r1")[1].event.reply["data"] == {"text": "word " * 1_000}
            if store is None:
                return
        async with Node([writer], store=store) as node:
            run = node.workflows.handle("r1")
            await run.answer(run.record.questions[0].question_id, "yes")
            assert (await run.result()).data == {"text": "word " * 1_000, "answer": "yes"}

    asyncio.run(main())


def test_a_waiter_hears_of_a_run_that_another_process_cancelled(tmp_path):
    async def main():
        path = tmp_path / "w.db"
        async with Node(team(), store=path) as holder, Node(store=path) as other:
            holder.workflows.add(ASKS)
            await holder.workflows.start("asks", user_id="u", run_id="r1")
            await until(holder, "r1", "waiting")
            waiter = asyncio.ensure_future(other.workflows.result("r1"))
            await asyncio.sleep(0)
            await other.workflows.cancel("r1", reason="not needed")
            holder.workflows.sweep()  # as it does every few seconds
            ended = await holder.workflows.result("r1")
            assert ended.status == "cancelled"
            other.workflows.sweep()
            told = await asyncio.wait_for(waiter, 60)
            assert (told.status, told.error.code) == ("cancelled", "CALL_CANCELLED")

    asyncio.run(main())


def test_a_long_reply_that_a_strategy_made_itself_is_in_the_history_after_a_restart(tmp_path):
    text = """
workflow: g
nodes:
  a: {call: A/ADD, input: {n: 1}}
  s: {aggregate: long, after: [a]}
  q: {ask: "Go on?", options: ["yes"], after: [s]}
output: {text: "{{s.data.text}}"}
"""
    long = {"text": "word " * 1_000}

    async def main():
        async with Node(team(), store=tmp_path / "g.db") as node:
            node.workflows.strategies["long"] = lambda *_: Reply.success(long)
            await node.workflows.start(load(text), user_id="u", run_id="r")
            await until(node, "r", "waiting")
        async with Node(team(), store=tmp_path / "g.db") as node:
            run = node.workflows.handle("r")
            assert node.workflows.replay("r")[2].event.reply["data"] == long
            await run.answer(run.record.questions[0].question_id, "yes")
            assert (await run.result()).data == long

    asyncio.run(main())


def test_a_run_whose_node_died_with_its_answer_written_goes_on_by_itself(tmp_path):
    async def main():
        first = Node(team(), store=tmp_path / "a.db")
        await first.start()
        flows = first.workflows
        flows.add(ASKS)
        handle = await flows.start("asks", user_id="u")
        record = await until(first, handle.run_id, "waiting")
        answered = Answered(flows.now_ms(), int(record.questions[0].question_id), "yes", "bob")
        first._journal.append((Pages(handle.run_id, record.events).add(encode_event(answered)),))
        await first._path.durable()
        await die(first)
        async with Node(team(), store=tmp_path / "a.db") as second:
            reply = await asyncio.wait_for(second.workflows.result(handle.run_id), 30)
            assert reply.data == {"n": 3, "answer": "yes"}

    asyncio.run(main())
