"""Handoffs go through the one call path and come back, and end as they should, in one process and over several."""

from __future__ import annotations

import asyncio

import pytest
from death import die
from handoff_pair import FOUND, REPORT, code_of, declared, kinds, pair

from comity import Agent, Node
from comity.contextcore.handoffs.manager import AsyncHandoffManager
from comity.contextcore.handoffs.receiver import AsyncHandoffReceiver
from comity.core.handoff.machine import State
from comity.errors import TargetError
from comity.runtime.handoff.desk import LOOK_AGAIN_S
from comity.testing import Fault, Kind, World

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


async def test_each_waiter_learns_of_its_deadline_also_after_another_has_passed(make_node):
    async with make_node() as node:
        manager, _ = pair(node)
        began = asyncio.get_running_loop().time()

        async def ended(timeout_ms):
            made = await manager.create_handoff("o11y", "investigate", timeout_ms=timeout_ms)
            assert (await manager.await_result(made)).state is State.TIMEOUT
            return asyncio.get_running_loop().time() - began

        deadlines_s = [2, 5, 5.5, LOOK_AGAIN_S + 9, 3 * LOOK_AGAIN_S]
        took_s = await asyncio.gather(*(ended(round(one * 1000)) for one in deadlines_s))
        assert took_s == pytest.approx(deadlines_s, abs=0.1)


async def test_a_deadline_that_passes_is_written_down_by_whoever_asks(make_node):
    async with make_node() as node:
        manager, receiver = pair(node)
        made = await manager.create_handoff("o11y", "investigate", timeout_ms=5_000)
        await receiver.take()
        await asyncio.sleep(6)
        assert (await manager.get_handoff_status(made)).state is State.TIMEOUT
        assert await code_of(receiver.complete(made, "late")) in {"HANDOFF_ENDED", "HANDOFF_LEASE_LOST"}
        assert (await manager.get_handoff_status(made)).result is None


async def test_a_receiver_whose_question_outlives_its_handoff_is_told_so(make_node):
    async with make_node() as node:
        manager, receiver = pair(node)
        made = await manager.create_handoff("o11y", "investigate", timeout_ms=5_000)
        await receiver.take()
        asking = asyncio.create_task(code_of(receiver.request_input(made, "Which?")))
        await asyncio.sleep(1)
        await manager.cancel(made)
        assert await asyncio.wait_for(asking, 1) == "HANDOFF_LEASE_LOST"


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


def test_a_second_receiver_of_a_lane_misses_nothing_while_its_node_does_not_listen_yet():
    async def scenario(world):
        boss, worker = await world.node([]), await world.node([])
        first, second, third = (AsyncHandoffReceiver("o11y", ["look"], node=worker.node) for _ in range(3))
        looking = asyncio.ensure_future(worker.within(first.poll()))
        taking = asyncio.ensure_future(worker.within(second.take()))
        await asyncio.sleep(0)
        manager = AsyncHandoffManager(node=boss.node, user_id="u")
        await boss.within(manager.create_handoff("o11y", "look", handoff_id="h"))
        (taken,) = await asyncio.wait_for(taking, LOOK_AGAIN_S / 3)  # the node is not told of what came before it listened
        assert taken.id == "h"
        await looking
        appended = world.appends
        assert await worker.within(third.poll()) == []
        assert world.appends == appended  # the node listens already

    slow = Fault(kind=Kind.STORE_SLOW, probability=1.0, where="n2", until_ms=3_000)
    assert World(1, faults=[slow]).run(scenario).failure == ""


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
