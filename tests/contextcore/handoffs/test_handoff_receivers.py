"""Receivers at work: questions, progress, cancellation, serving, and what becomes of what they had when they die."""

from __future__ import annotations

import asyncio
import sys

import pytest
from handoff_pair import code_of, kinds, pair

from comity.contextcore.handoffs.receiver import AsyncHandoffReceiver
from comity.core.call.limits import PROGRESS_BYTES_MAX
from comity.core.handoff.machine import ATTEMPTS_MAX, State
from comity.errors import CallerError
from comity.runtime.handoff import receiver as receiver_module

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
    if number == 5:
        sys.exit(2)
    return {"n": number} if number != 2 else {"n": object}


async def work_async(handoff):
    await asyncio.sleep(0)
    return work(handoff)


def work_promised(handoff):
    return work_async(handoff)


@pytest.mark.parametrize("way", [work, work_async, work_promised])
async def test_serving_turns_what_is_returned_and_raised_into_ends(make_node, way, caplog):
    async with make_node() as node:
        manager, receiver = pair(node)
        serving = asyncio.ensure_future(receiver.serve(way, concurrency=2))
        made = [await manager.create_handoff("o11y", "investigate", inputs={"n": number}) for number in range(6)]
        ended = [await manager.await_result(one) for one in made]
        assert [one.result for one in ended] == [{"n": 0}, None, None, {"n": 3}, {"n": 4}, None]
        assert (ended[1].reply.error.code, ended[1].reason) == ("TARGET_CRASHED", "ValueError: one is bad")
        assert ended[2].reply.error.code == "OUTPUT_VALIDATION_FAILED"
        assert (ended[5].reply.error.code, ended[5].reason) == ("TARGET_CRASHED", "SystemExit: its code called sys.exit(2)")
        logged = [(str(one.exc_info[1]), made.index(one.args[1])) for one in caplog.records if one.levelname == "ERROR"]
        assert logged == [("one is bad", 1), ("2", 5)]  # what does not fit is told, and no traceback of anybody's
        assert not receiver._held
        serving.cancel()


class Stop(KeyboardInterrupt):
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
        node.handoffs.leases.let_go(taken.id)  # alive, but it renews no more
        (again,) = await other.take()
        assert (again.id, again.fence) == (made, taken.fence + 1)
        assert asyncio.get_running_loop().time() == pytest.approx(receiver.lease_ms / 1000, abs=0.1)
        assert await code_of(receiver.complete(made, "zombie")) == "HANDOFF_LEASE_LOST"
        await other.complete(made, "second")
        assert (await manager.await_result(made)).result == "second"
        assert [kind for _, kind in kinds(node)] == ["admitted", "late", "settled"]


@pytest.mark.parametrize("ends", ["complete", "fail"])
async def test_a_receiver_that_has_heard_of_its_loss_is_refused_and_its_result_is_recorded_as_late(make_node, ends):
    async with make_node() as node:
        manager, receiver = pair(node)
        other = AsyncHandoffReceiver("o11y", node=node)
        made = await manager.create_handoff("o11y", "investigate")
        (taken,) = await receiver.take()
        node.handoffs.leases.let_go(taken.id)  # as a process that stands still
        await other.take()
        node.handoffs.leases.hold(taken, receiver.lease_ms, receiver._lost)  # and goes on
        await asyncio.sleep(receiver.lease_ms / 1000)
        assert made not in receiver._held
        for _ in range(2):  # once it has been recorded, the receiver knows nothing of it any more
            assert await code_of(getattr(receiver, ends)(made, "zombie")) == "HANDOFF_LEASE_LOST"
        await other.complete(made, "second")
        assert (await manager.await_result(made)).result == "second"
        assert [kind for _, kind in kinds(node)] == ["admitted", "late", "settled"]


async def test_after_so_many_silent_receivers_it_is_a_dead_letter(make_node):
    async with make_node() as node:
        manager, receiver = pair(node)
        made = await manager.create_handoff("o11y", "investigate", timeout_ms=300_000)
        for _ in range(ATTEMPTS_MAX):
            await receiver.take()
            node.handoffs.leases.let_go(made)
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


@pytest.mark.parametrize("look", [AsyncHandoffReceiver.watch_handoffs, AsyncHandoffReceiver.peek_handoffs])
async def test_a_loop_over_handoffs_may_be_left_and_holds_nothing(make_node, look):
    async with make_node() as node:
        manager, receiver = pair(node)
        made = await manager.create_handoff("o11y", "investigate")
        arrivals = look(receiver)
        async for handoff in arrivals:
            assert handoff.id == made
            break
        assert not receiver._ears


async def test_looking_yields_each_once_in_the_order_in_which_they_came(make_node):
    async with make_node() as node:
        manager, receiver = pair(node)
        made = [await manager.create_handoff("o11y", "investigate") for _ in range(3)]
        looking = receiver.peek_handoffs()
        assert [(await anext(looking)).id for _ in made] == made
        following = asyncio.ensure_future(anext(looking))
        await asyncio.sleep(1)
        assert not following.done()
        made.append(await manager.create_handoff("o11y", "investigate"))
        assert (await following).id == made[-1]


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


async def test_a_receiver_that_keeps_its_work_between_programs_has_it_after_its_end_and_no_other_receivers(make_node):
    async with make_node() as node:
        manager, other = pair(node)
        made = [await manager.create_handoff("o11y", "investigate") for _ in range(2)]
        async with AsyncHandoffReceiver("o11y", node=node, keeps=True) as first:
            await first.accept(made[0])
        await other.accept(made[1])
        async with AsyncHandoffReceiver("o11y", node=node, keeps=True) as again:
            assert await code_of(again.complete(made[1], "not mine")) == "HANDOFF_LEASE_LOST"
            assert (await again.complete(made[0], "done")).attempts == 1
        assert (await other.complete(made[1], "its own")).result == "its own"


@pytest.mark.parametrize(
    ("agent_id", "tenant_id", "keeps"), [("o12y", "default", True), ("o11y", "evil", True), ("o11y", "default", False)]
)
async def test_what_a_receiver_keeps_is_ended_by_no_other_agent_tenant_or_receiver(make_node, agent_id, tenant_id, keeps):
    async with make_node() as node:
        manager, _ = pair(node)
        made = await manager.create_handoff("o11y", "investigate")
        mine = AsyncHandoffReceiver("o11y", node=node, keeps=True)
        await mine.accept(made)
        other = AsyncHandoffReceiver(agent_id, ["investigate"], node=node, tenant_id=tenant_id, keeps=keeps)
        for attempt in (
            other.complete(made, "theirs"),
            other.fail(made, "broken"),
            other.release(made),
            other.progress(made, 1),
            other.request_input(made, "Why?"),
        ):
            assert await code_of(attempt) == "HANDOFF_LEASE_LOST"
        assert await code_of(other.reject(made, "no")) in {"HANDOFF_UNKNOWN", "HANDOFF_TAKEN"}
        assert (await mine.complete(made, "mine")).result == "mine"


@pytest.mark.parametrize("ending", ["complete", "fail"])
async def test_work_that_ends_its_handoff_itself_is_not_cancelled_by_that(make_node, ending):
    after = []

    async def work(handoff):
        await getattr(receiver, ending)(handoff.id, "over")
        await asyncio.sleep(1)
        after.append(handoff.id)

    async with make_node() as node:
        manager, receiver = pair(node)
        serving = asyncio.ensure_future(receiver.serve(work))
        made = await manager.create_handoff("o11y", "investigate")
        await manager.await_result(made)
        await asyncio.sleep(2)
        assert after == [made]
        assert await code_of(receiver.complete(made, "again")) == "HANDOFF_LEASE_LOST"
        serving.cancel()


async def test_what_the_platform_says_to_a_receivers_code_is_passed_on_and_nothing_that_only_looks_like_it(make_node):
    async def work(handoff):
        if handoff.inputs["n"]:
            raise CallerError("there is no run none", code="WORKFLOW_UNKNOWN")
        return node.workflows.get("none")

    async with make_node() as node:
        manager, receiver = pair(node)
        serving = asyncio.ensure_future(receiver.serve(work))
        made = [await manager.create_handoff("o11y", "investigate", inputs={"n": n}) for n in range(2)]
        codes = [(await manager.await_result(one)).reply.error.code for one in made]
        assert codes == ["WORKFLOW_UNKNOWN", "OUTPUT_RESERVED"]
        serving.cancel()


async def test_a_receiver_remembers_a_bounded_number_of_handoffs_that_it_lost(make_node, monkeypatch):
    monkeypatch.setattr(receiver_module, "GONE_MAX", 2)
    async with make_node() as node:
        manager, receiver = pair(node)
        made = [await manager.create_handoff("o11y", "investigate") for _ in range(3)]
        for one in made:
            await receiver.accept(one)
            receiver._lost(one)
        assert list(receiver._gone) == made[1:]


async def test_a_handoff_has_an_answer_unless_its_time_ran_out(make_node):
    async with make_node() as node:
        manager, receiver = pair(node)
        late, done = [await manager.create_handoff("o11y", "investigate", timeout_ms=1_000) for _ in range(2)]
        assert not node.handoffs.has_answer(done)
        await receiver.accept(done)
        await receiver.complete(done, "in time")
        assert (await manager.await_result(late)).state == "timeout"
        assert [node.handoffs.has_answer(one) for one in (late, done, "none")] == [False, True, False]
