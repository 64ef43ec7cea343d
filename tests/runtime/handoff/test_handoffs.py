"""Handoffs go through the one call path and come back: every rule holds, whoever does the work."""

from __future__ import annotations

import asyncio

import pytest

from comity import Agent, Context, Node
from comity.core.handoff import ATTEMPTS_MAX, State
from comity.core.limits import PROGRESS_BYTES_MAX
from comity.errors import ComityError, TargetError
from comity.runtime.handoff.manager import AsyncHandoffManager
from comity.runtime.handoff.receiver import AsyncHandoffReceiver
from death import die

REPORT = {"type": "analysis_report", "fields": ["root_cause", "evidence"]}
FOUND = {"root_cause": "N+1 query", "evidence": ["trace-1"]}


def pair(node, *, agent_id="o11y", capabilities=("investigate",), **more):
    """A manager and a receiver on one node."""
    return AsyncHandoffManager("checkout", "orchestrator", node=node, **more), AsyncHandoffReceiver(
        agent_id, capabilities, node=node
    )


def kinds(node, kind=None):
    return [(row.request_id, row.kind) for row in node.audit.rows() if kind in {None, row.kind}]


async def code_of(awaitable):
    with pytest.raises(ComityError) as raised:
        await awaitable
    return raised.value.code


# --- the protocol of the seed ---


async def test_work_is_handed_off_watched_accepted_completed_and_its_result_found_by_id_and_by_trace(make_node):
    async with make_node() as node:
        manager, receiver = pair(node)
        made = await manager.create_handoff(
            to_agent="o11y", capability_id="investigate", task="Find the cause", inputs={"app": "checkout"}, priority="high",
            expected_output=REPORT,
        )  # fmt: skip
        async for handoff in receiver.watch_handoffs():
            assert (handoff.id, handoff.task, handoff.inputs) == (made, "Find the cause", {"app": "checkout"})
            assert (handoff.from_agent, handoff.to_agent, handoff.status) == ("orchestrator", "o11y", "pending")
            assert (await receiver.accept(handoff.id)).state is State.ACCEPTED
            await receiver.complete(handoff.id, result=FOUND, result_trace_id="trace-9")
            break
        ended = await manager.await_result(made)
        assert (ended.status, ended.result, ended.result_trace_id) == ("completed", FOUND, "trace-9")
        assert (await manager.get_result_from_trace("trace-9")).root_cause == "N+1 query"
        assert (await manager.get_result(made)).evidence == ["trace-1"]
        assert kinds(node) == [(made, "admitted"), (made, "settled")]


async def test_a_watcher_that_waits_is_woken_by_what_comes(make_node):
    async with make_node() as node:
        manager, receiver = pair(node)
        watching = asyncio.ensure_future(anext(receiver.watch_handoffs()))
        await asyncio.sleep(100)
        assert not watching.done()
        began = asyncio.get_running_loop().time()
        made = await manager.create_handoff("o11y", "investigate")
        assert (await watching).id == made
        assert asyncio.get_running_loop().time() == began  # in no time: nothing was polled


async def test_work_for_a_capability_goes_to_any_receiver_that_has_it(make_node):
    async with make_node() as node:
        manager, receiver = pair(node, agent_id="somebody")
        made = await manager.create_handoff(capability_id="investigate", task="whoever can")
        other = await manager.create_handoff(to_agent="else", capability_id="investigate")
        assert [one.id for one in await receiver.poll()] == [made]
        assert [one.id for one in await receiver.take(5)] == [made]
        assert (await manager.get_handoff_status(other)).state is State.PENDING


async def test_urgent_work_is_taken_first(make_node):
    async with make_node() as node:
        manager, receiver = pair(node)
        made = {
            priority: await manager.create_handoff("o11y", "investigate", priority=priority)
            for priority in ("low", "medium", "critical")
        }
        order = [(await receiver.take())[0].id for _ in range(3)]
        assert order == [made["critical"], made["medium"], made["low"]]


async def test_a_handoff_message_of_the_dialect_is_handed_off_unless_it_lies_about_its_sender(make_node):
    message = {"id": "h-7", "from_agent": "orchestrator", "to_agent": "o11y", "capability_id": "investigate", "task": "t"}
    async with make_node() as node:
        manager, receiver = pair(node)
        assert await manager.receive(message) == "h-7"
        assert (await receiver.take())[0].id == "h-7"
        assert await code_of(manager.receive(message | {"id": "h-8", "from_agent": "somebody"})) == "IDENTITY_MISMATCH"


# --- the rules of every call ---


def declared():
    agent = Agent("o11y", aliases=["eyes"], pending_max=2)

    @agent.capability("investigate", output_schema={"type": "object"})
    async def investigate(ctx: Context, app: str):
        return {}

    return agent


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"capability_id": "dance"}, "ROUTING_UNKNOWN_CAPABILITY"),
        ({"inputs": {"app": 3}}, "INPUT_VALIDATION_FAILED"),
        ({"inputs": {"app": float("nan")}}, "INPUT_VALIDATION_FAILED"),
        ({"to_agent": "no such name!"}, "ROUTING_UNKNOWN_AGENT"),
        ({"to_agent": "orchestrator", "capability_id": "x"}, "ROUTING_CYCLE_DETECTED"),
        ({"timeout_ms": 0}, "LIMIT_DEADLINE_PASSED"),
        ({"timeout_ms": -1}, "INPUT_VALIDATION_FAILED"),
        ({"priority": "urgent"}, "INPUT_VALIDATION_FAILED"),
        ({"task": "x" * 200_000}, "ENVELOPE_TOO_LARGE"),
    ],
)
async def test_what_a_rule_refuses_is_not_handed_off_and_leaves_one_row(make_node, given, code):
    async with make_node([declared()]) as node:
        manager, _ = pair(node)
        asked = {"to_agent": "o11y", "capability_id": "investigate", "inputs": {"app": "checkout"}} | given
        assert await code_of(manager.create_handoff(**asked)) == code
        assert node.handoffs.queue.find() == []
        assert [kind for _, kind in kinds(node)] == ["refused"]


async def test_the_bound_on_what_may_wait_for_an_agent_holds(make_node):
    async with make_node([declared()]) as node:
        manager, receiver = pair(node)
        ask = {"to_agent": "eyes", "capability_id": "investigate", "inputs": {"app": "a"}}
        for _ in range(2):
            await manager.create_handoff(**ask)
        assert await code_of(manager.create_handoff(**ask)) == "AGENT_BUSY"
        await receiver.take()
        await manager.create_handoff(**ask)


async def test_an_expectation_that_makes_no_sense_is_refused(make_node):
    async with make_node() as node:
        manager, _ = pair(node)
        assert (
            await code_of(manager.create_handoff("o11y", "x", expected_output={"colour": "red"})) == "INPUT_VALIDATION_FAILED"
        )


async def test_another_user_or_tenant_sees_nothing_and_changes_nothing(make_node):
    async with make_node() as node:
        manager, receiver = pair(node, user_id="ann")
        made = await manager.create_handoff("o11y", "investigate")
        for more in ({"user_id": "bob"}, {"user_id": "ann", "tenant_id": "acme"}):
            other, _ = pair(node, **more)
            for attempt in (other.get_handoff_status, other.await_result, other.cancel, other.get_result):
                assert await code_of(attempt(made)) == "HANDOFF_UNKNOWN"
            assert await other.list_handoffs() == []
            assert await code_of(other.create_handoff("o11y", "investigate", handoff_id=made)) == "IDENTITY_REQUEST_ID_REUSED"
        stranger = AsyncHandoffReceiver("o11y", node=node, tenant_id="acme")
        assert await stranger.poll() == []
        assert await code_of(stranger.accept(made)) == "HANDOFF_UNKNOWN"
        (taken,) = await receiver.take()
        await receiver.complete(taken.id, "secret", "trace-1")
        assert await code_of(pair(node, user_id="bob")[0].get_result_from_trace("trace-1")) == "HANDOFF_UNKNOWN"


async def test_a_handoff_that_names_no_session_has_one_of_its_own(make_node):
    async with make_node() as node:
        made = [await pair(node, user_id=user)[0].create_handoff("o11y", "investigate") for user in ("ann", "bob")]
        assert [node.handoffs.queue.get(one).request.session_id for one in made] == made


async def test_a_session_of_somebody_else_cannot_be_used(make_node):
    async with make_node() as node:
        node_session = pair(node, user_id="ann", session_id="s-1")[0]
        await node_session.create_handoff("o11y", "investigate", "call ann@example.com")
        assert await code_of(pair(node, user_id="bob", session_id="s-1")[0].create_handoff("o11y", "x")) == "IDENTITY_MISMATCH"


@pytest.mark.parametrize("session_id", [None, "s-1"])
async def test_personal_data_is_hidden_from_both_sides_and_shown_to_its_user(make_node, session_id):
    async with make_node() as node:
        manager, receiver = pair(node, session_id=session_id)
        made = await manager.create_handoff(
            "o11y", "investigate", "write to ann@example.com", {"to": "ann@example.com"}, session_id and REPORT
        )
        (taken,) = await receiver.take()
        seen = f"{taken.task} {taken.inputs}"
        assert "ann@" not in seen
        assert "EMAIL_1" in seen
        await receiver.progress(taken.id, {"asked": "bob@example.com"})
        found = FOUND | {"also": "bob@example.com", "echo": taken.inputs["to"]}
        await receiver.complete(taken.id, found, message="told bob@example.com")
        stored = node.handoffs.queue.get(made)
        assert "bob@" not in str(stored)
        assert "ann@" not in str(stored)
        ended = await manager.await_result(made)
        assert (ended.result["also"], ended.result["echo"]) == ("bob@example.com", "ann@example.com")
        assert ended.reply.message == "told bob@example.com"
        assert ended.inputs == {"to": "ann@example.com"}
        assert [one.data for one in ended.history if one.kind == "progress"] == [{"asked": "bob@example.com"}]
        assert "example.com" not in str(node.audit.rows())


async def test_a_repeated_id_hands_nothing_off_twice(make_node):
    async with make_node() as node:
        manager, receiver = pair(node)
        first = await manager.create_handoff("o11y", "investigate", inputs={"n": 1}, handoff_id="mine")
        assert await manager.create_handoff("o11y", "investigate", inputs={"n": 1}, handoff_id="mine") == first == "mine"
        reused = manager.create_handoff("o11y", "investigate", inputs={"n": 2}, handoff_id="mine")
        assert await code_of(reused) == "IDENTITY_REQUEST_ID_REUSED"
        assert len(await receiver.take(5)) == 1


# --- how it ends ---


async def test_a_result_that_is_not_what_was_asked_for_is_refused_and_the_work_goes_on(make_node):
    async with make_node() as node:
        manager, receiver = pair(node)
        made = await manager.create_handoff("o11y", "investigate", expected_output=REPORT | {"bytes_max": 200})
        await receiver.take()
        for wrong in ("a text", {"root_cause": "x"}, FOUND | {"type": "poem"}, FOUND | {"more": "x" * 200}):
            with pytest.raises(TargetError) as raised:
                await receiver.complete(made, wrong)
            assert raised.value.code == "OUTPUT_VALIDATION_FAILED"
        assert await code_of(receiver.complete(made, object())) == "OUTPUT_VALIDATION_FAILED"
        await receiver.complete(made, FOUND)
        assert (await manager.await_result(made)).state is State.COMPLETED


async def test_a_result_must_fit_what_the_capability_declares(make_node):
    async with make_node([declared()]) as node:
        manager, receiver = pair(node)
        made = await manager.create_handoff("o11y", "investigate", inputs={"app": "a"})
        await receiver.take()
        assert await code_of(receiver.complete(made, "no object")) == "OUTPUT_VALIDATION_FAILED"
        await receiver.complete(made, {})


async def test_a_deadline_that_passes_is_written_down_by_whoever_waits(make_node):
    async with make_node() as node:
        manager, _ = pair(node)
        made = await manager.create_handoff("o11y", "investigate", timeout_ms=5_000)
        ended = await manager.await_result(made)
        assert (ended.state, ended.reply.error.code) == (State.TIMEOUT, "CALL_TIMEOUT")
        assert asyncio.get_running_loop().time() == pytest.approx(5, abs=0.1)
        assert node.handoffs.queue.get(made).state is State.TIMEOUT
        assert kinds(node, "settled") == [(made, "settled")]


async def test_a_deadline_that_passes_is_written_down_by_whoever_asks(make_node):
    async with make_node() as node:
        manager, receiver = pair(node)
        made = await manager.create_handoff("o11y", "investigate", timeout_ms=5_000)
        await receiver.take()
        await asyncio.sleep(6)
        assert (await manager.get_handoff_status(made)).state is State.TIMEOUT
        assert await code_of(receiver.complete(made, "late")) in {"HANDOFF_ENDED", "HANDOFF_LEASE_LOST"}
        assert (await manager.get_handoff_status(made)).result is None


async def test_who_waits_no_longer_gets_what_there_is_and_the_work_goes_on(make_node):
    async with make_node() as node:
        manager, receiver = pair(node)
        made = await manager.create_handoff("o11y", "investigate")
        await receiver.take()
        assert (await manager.await_result(made, timeout_ms=1_000)).state is State.ACCEPTED
        await receiver.complete(made, 1)
        assert (await manager.await_result(made, timeout_ms=1_000)).result == 1


async def test_a_receiver_rejects_what_is_not_for_it_and_cannot_reject_what_it_accepted(make_node):
    async with make_node() as node:
        manager, receiver = pair(node)
        first, second = [await manager.create_handoff("o11y", "investigate") for _ in range(2)]
        watched = await anext(receiver.watch_handoffs())
        await receiver.reject(watched.id, "not my field")
        assert (await manager.await_result(first)).reason == "not my field"
        await receiver.take()
        assert await code_of(receiver.reject(second, "too late")) == "HANDOFF_STATE_CONFLICT"
        await receiver.complete(second, "still mine")


async def test_dead_letters_say_why_and_what_was_withdrawn_is_none(make_node):
    async with make_node() as node:
        manager, receiver = pair(node)
        made = [
            await manager.create_handoff("o11y", "investigate", handoff_id=f"h{number}", timeout_ms=9_000)
            for number in range(4)
        ]
        for handoff in await receiver.take(3):
            match handoff.id:
                case "h0":
                    await receiver.fail(handoff.id, reason="no data")
                case "h1":
                    await receiver.complete(handoff.id)
        await manager.cancel("h2", "changed my mind")
        await manager.await_result(made[3])
        dead = {one.id: one.reason for one in await manager.dead_letters()}
        assert dead == {"h0": "no data", "h3": "investigate for o11y was pending when its 9000 ms had passed"}
        assert [one.id for one in await manager.list_handoffs(states=["cancelled"])] == ["h2"]


# --- talking while it lasts ---


async def test_a_question_goes_back_and_its_answer_lets_the_work_go_on(make_node):
    async with make_node() as node:
        manager, receiver = pair(node)
        made = await manager.create_handoff("o11y", "investigate")
        (taken,) = await receiver.take()
        asking = asyncio.ensure_future(
            receiver.request_input(taken.id, "Which year?", input_type="choice", options=["2025", "2026"])
        )
        events = manager.events(made)
        seen = [await anext(events) for _ in range(3)]
        assert [one.kind for one in seen] == ["created", "accepted", "input_required"]
        asked = await manager.get_handoff_status(made)
        assert (asked.question.text, asked.question.options, asked.reason) == ("Which year?", ("2025", "2026"), "Which year?")
        await manager.provide_input(made, {"year": "2026", "ask": "eve@example.com"})
        answer = await asking
        assert answer["year"] == "2026"
        assert "eve@" not in answer["ask"]
        await receiver.complete(made, "done")
        rest = [one async for one in events]
        assert [one.kind for one in rest] == ["in_progress", "completed"]
        assert rest[0].data["answer"]["ask"] == "eve@example.com"
        assert await code_of(manager.provide_input(made, "again")) == "HANDOFF_ENDED"


async def test_progress_is_pushed_in_order_and_bounded(make_node):
    async with make_node() as node:
        manager, receiver = pair(node)
        made = await manager.create_handoff("o11y", "investigate")
        await receiver.take()
        watching = asyncio.ensure_future(anext(manager.events(made, after=2)))
        await asyncio.sleep(50)
        await receiver.progress(made, {"percent": 50})
        assert (await watching).data == {"percent": 50}
        assert await code_of(receiver.progress(made, "x" * PROGRESS_BYTES_MAX)) == "INPUT_VALIDATION_FAILED"


async def test_what_is_cancelled_stops_where_it_is_being_done(make_node):
    async with make_node() as node:
        manager, receiver = pair(node)
        stopped = asyncio.Event()

        async def work(handoff):
            try:
                await asyncio.sleep(1_000)
            finally:
                stopped.set()

        serving = asyncio.ensure_future(receiver.serve(work))
        made = await manager.create_handoff("o11y", "investigate")
        await asyncio.sleep(5)
        await manager.cancel(made)
        await asyncio.wait_for(stopped.wait(), 1)
        assert (await manager.await_result(made)).state is State.CANCELLED
        serving.cancel()


def work(handoff):
    number = handoff.inputs["n"]
    if number == 1:
        raise ValueError("one is bad")
    return {"n": number} if number != 2 else {"n": object}


async def work_async(handoff):
    await asyncio.sleep(0)
    return work(handoff)


def work_promised(handoff):
    return work_async(handoff)


@pytest.mark.parametrize("way", [work, work_async, work_promised])
async def test_serving_turns_what_is_returned_and_raised_into_ends(make_node, way):
    async with make_node() as node:
        manager, receiver = pair(node)
        serving = asyncio.ensure_future(receiver.serve(way, concurrency=2))
        made = [await manager.create_handoff("o11y", "investigate", inputs={"n": number}) for number in range(5)]
        ended = [await manager.await_result(one) for one in made]
        assert [one.result for one in ended] == [{"n": 0}, None, None, {"n": 3}, {"n": 4}]
        assert (ended[1].reply.error.code, ended[1].reason) == ("TARGET_CRASHED", "ValueError: one is bad")
        assert ended[2].reply.error.code == "OUTPUT_VALIDATION_FAILED"
        assert not receiver._held
        serving.cancel()


class Stop(BaseException):
    """Ends a program."""


async def test_who_is_stopped_while_serving_has_done_what_was_done_and_gives_the_rest_back(make_node):
    def stop(handoff):
        if handoff.inputs["n"] == 1:
            raise Stop
        return "done"

    async with make_node() as node:
        manager, receiver = pair(node)
        made = [await manager.create_handoff("o11y", "investigate", inputs={"n": number}) for number in range(3)]
        with pytest.raises(Stop):
            await receiver.serve(stop, concurrency=3)
        await receiver.close()
        found = [await manager.get_handoff_status(one) for one in made]
        assert [one.state for one in found] == [State.COMPLETED, State.PENDING, State.PENDING]


# --- receivers that die ---


async def test_a_living_receiver_keeps_its_handoff_however_long_it_takes(make_node):
    async with make_node() as node:
        manager, receiver = pair(node)
        other = AsyncHandoffReceiver("o11y", node=node)
        made = await manager.create_handoff("o11y", "investigate")
        await receiver.take()
        taking = asyncio.ensure_future(other.take())
        await asyncio.sleep(200)
        assert not taking.done()
        await receiver.complete(made, "at last")
        taking.cancel()
        assert (await manager.await_result(made)).attempts == 1


async def test_what_a_silent_receiver_had_goes_to_the_next_and_its_own_result_goes_nowhere(make_node):
    async with make_node() as node:
        manager, receiver = pair(node)
        other = AsyncHandoffReceiver("o11y", node=node)
        made = await manager.create_handoff("o11y", "investigate")
        (taken,) = await receiver.take()
        node.handoffs.let_go(taken.id)  # alive, but it renews no more
        (again,) = await other.take()
        assert (again.id, again.fence) == (made, taken.fence + 1)
        assert asyncio.get_running_loop().time() == pytest.approx(receiver.lease_ms / 1000, abs=0.1)
        assert await code_of(receiver.complete(made, "zombie")) == "HANDOFF_LEASE_LOST"
        await other.complete(made, "second")
        assert (await manager.await_result(made)).result == "second"
        assert [kind for _, kind in kinds(node)] == ["admitted", "late", "settled"]


async def test_after_so_many_silent_receivers_it_is_a_dead_letter(make_node):
    async with make_node() as node:
        manager, receiver = pair(node)
        made = await manager.create_handoff("o11y", "investigate", timeout_ms=300_000)
        for _ in range(ATTEMPTS_MAX):
            await receiver.take()
            node.handoffs.let_go(made)
        waiting = asyncio.ensure_future(receiver.take())
        ended = await manager.await_result(made)
        assert ended.reply.error.code == "HANDOFF_UNDELIVERABLE"
        assert [one.id for one in await manager.dead_letters()] == [made]
        waiting.cancel()


async def test_a_receiver_that_is_closed_gives_back_what_it_has(make_node):
    async with make_node() as node:
        manager, receiver = pair(node)
        made = await manager.create_handoff("o11y", "investigate")
        async with receiver:
            await receiver.take()
        assert (await manager.get_handoff_status(made)).state is State.PENDING
        other = AsyncHandoffReceiver("o11y", node=node)
        assert (await other.take())[0].attempts == 2
        assert asyncio.get_running_loop().time() == 0


async def test_what_was_yielded_and_not_accepted_comes_again_after_a_while(make_node):
    async with make_node() as node:
        manager, receiver = pair(node)
        made = await manager.create_handoff("o11y", "investigate")
        watch = receiver.watch_handoffs()
        assert (await anext(watch)).id == made
        other = AsyncHandoffReceiver("o11y", node=node)
        assert await code_of(other.accept(made)) == "HANDOFF_TAKEN"
        assert (await anext(watch)).id == made
        assert asyncio.get_running_loop().time() == pytest.approx(receiver.lease_ms / 1000, abs=0.1)


# --- processes and time ---


def test_the_store_is_shared_by_nodes_and_outlives_them(tmp_path):
    store = tmp_path / "store.db"

    async def make():
        async with AsyncHandoffManager(agent_id="maker", store=store) as manager:
            return await manager.create_handoff("o11y", "investigate", "a@example.com")

    async def work(made):
        async with (
            AsyncHandoffReceiver("o11y", store=store) as receiver,
            AsyncHandoffManager(agent_id="maker", store=store) as other,
        ):
            waiting = asyncio.ensure_future(other.await_result(made))  # it did not make it
            (taken,) = await receiver.take()
            await receiver.complete(taken.id, {"wrote": taken.task})
            return await asyncio.wait_for(waiting, 10)

    made = asyncio.run(make())
    ended = asyncio.run(work(made))
    assert (ended.id, ended.result) == (made, {"wrote": "a@example.com"})
    assert not list(tmp_path.glob("*.bell")) + list(tmp_path.glob("*.lock"))


def test_who_waits_on_the_node_that_hands_off_has_it_as_soon_as_it_is_durable(tmp_path):
    async def scenario():
        async with Node(store=tmp_path / "store.db", lag_ms=None) as node:
            manager, receiver = pair(node)
            for _ in range(2):
                taking = asyncio.ensure_future(receiver.take())
                while not node.handoffs._ears:
                    await asyncio.sleep(0)
                made = await manager.create_handoff("o11y", "investigate")
                assert node.handoffs.queue.get(made).state is State.ACCEPTED
                assert [one.id for one in await taking] == [made]
                await receiver.complete(made, "done")

    asyncio.run(scenario())


def test_who_only_hands_off_leaves_the_calls_of_a_dead_node_alone(tmp_path):
    store = tmp_path / "store.db"
    agent, lives = Agent("SLOW"), []

    @agent.capability("WAIT")
    async def wait() -> str:
        lives.append(1)
        if len(lives) == 1:
            await asyncio.sleep(60)
        return "done"

    async def begin():
        node = Node([agent], store=store, lag_ms=None)
        await node.start()
        node.start_call("SLOW", "WAIT", user_id="u", request_id="r")
        await die(node)

    async def visit():
        async with AsyncHandoffManager(store=store) as manager:
            await manager.create_handoff("o11y", "x")

    async def resume():
        async with Node([agent], store=store) as node:
            return await node.call("SLOW", "WAIT", user_id="u", request_id="r")

    asyncio.run(begin())
    asyncio.run(visit())
    assert asyncio.run(resume()).data == "done"


async def test_the_end_of_a_handoff_is_a_span_of_its_trace(make_node):
    async with make_node() as node:
        manager, receiver = pair(node)
        made = await manager.create_handoff("o11y", "investigate", inputs={"secret": 1})
        await receiver.take()
        await receiver.complete(made, FOUND)
        handoff = await manager.await_result(made)
        await node.flush_spans()
        (span,) = [one for one in node.spans.trace(handoff.request.trace_id) if one.name == "handoff investigate"]
        assert span.attributes["gen_ai.tool.type"] == "agent_handoff"
        assert (span.attributes["handoff.id"], span.attributes["handoff.status"]) == (made, "completed")
        assert "secret" not in str(span.attributes)


async def test_what_has_been_closed_says_so(make_node):
    async with make_node() as node:
        manager, _ = pair(node)
        await manager.close()
        assert await code_of(manager.create_handoff("o11y", "x")) == "NODE_CLOSED"


def test_a_manager_has_one_place():
    with pytest.raises(ValueError, match="not both"):
        AsyncHandoffManager(node=Node(), store="x.db")
    with pytest.raises(ValueError, match="list"):
        AsyncHandoffReceiver("o11y", "investigate", store="x.db")
