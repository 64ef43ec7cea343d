"""What managers and receivers are given is checked before anything is done: a wrong value is named, and nothing is written."""

from __future__ import annotations

import asyncio

import pytest
from handoff_pair import code_of, pair

from comity import AsyncHandoffManager, AsyncHandoffReceiver, Node
from comity.core.agent.declaration import DeclarationError
from comity.core.envelope.envelope import ExpectedOutput
from comity.core.handoff.machine import State
from comity.errors import CallerError, RefusedError


class Text(str):
    """A kind of `str` no encoder knows."""

    __slots__ = ()


NO_NAMES = (17, True, b"x", "a\x00b", "\ud800", Text("x"), "x" * 1_000, ["x"], {})


async def problems_of(awaitable):
    with pytest.raises(CallerError) as refused:
        await awaitable
    return [problem.path for problem in refused.value.facts["problems"]]


@pytest.mark.parametrize("handoff_id", NO_NAMES, ids=ascii)
async def test_what_cannot_be_an_id_names_no_handoff(make_node, handoff_id):
    async with make_node() as node:
        manager, receiver = pair(node)
        assert await code_of(manager.create_handoff("o11y", "investigate", handoff_id=handoff_id)) == "IDENTITY_INVALID"
        for attempt in (
            manager.get_handoff_status(handoff_id),
            manager.await_result(handoff_id),
            manager.cancel(handoff_id),
            manager.provide_input(handoff_id, 1),
            anext(manager.events(handoff_id)),
            receiver.accept(handoff_id),
            receiver.reject(handoff_id, "no"),
            receiver.progress(handoff_id, 1),
            receiver.request_input(handoff_id, "why"),
            receiver.complete(handoff_id),
            receiver.fail(handoff_id, "no"),
            receiver.release(handoff_id),
        ):
            assert await problems_of(attempt) == ["handoff_id"]
        assert (node.handoffs.queue.find(), node.failure) == ([], None)


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"attempts_max": 0}, "attempts_max"),
        ({"attempts_max": "x"}, "attempts_max"),
        ({"expected_output": ExpectedOutput(fields=5)}, "expected_output.fields"),
        ({"expected_output": {"type": "\ud800"}}, "expected_output.type"),
        ({"expected_output": {"bytes_max": 1.5}}, "expected_output.bytes_max"),
        ({"inputs": {"a": {1, object()}}}, "inputs.a"),
        ({"inputs": {"a": "\ud800"}}, "inputs.a"),
        ({"timeout_ms": float("nan")}, "timeout_ms"),
        ({"priority": 3}, "priority"),
        ({"task": Text("x")}, "message"),
        ({"objective": 5}, "objective"),
        ({"context": {"facts": []}}, "context"),
        ({"limits": {"depth_max": 1}}, "limits"),
    ],
)
async def test_a_wrong_value_is_named_and_nothing_is_handed_off(make_node, given, path):
    async with make_node() as node:
        manager, _ = pair(node)
        assert path in str(await problems_of(manager.create_handoff("o11y", "investigate", **given)))
        assert (node.handoffs.queue.find(), node.failure) == ([], None)


@pytest.mark.parametrize("given", [{"agent_id": 17}, {"agent_id": ""}, {"project_id": 5}, {"project_id": "a\x00"}])
async def test_who_hands_off_has_a_name_that_can_be_written_down(make_node, given):
    async with make_node() as node:
        manager = AsyncHandoffManager(node=node, user_id="u", **given)
        assert await problems_of(manager.create_handoff("o11y", "investigate")) == list(given)
        assert (node.handoffs.queue.find(), node.failure) == ([], None)


@pytest.mark.parametrize(
    "given",
    [{"agent_id": one} for one in NO_NAMES]
    + [{"capabilities": [5]}, {"capabilities": ["a\x00"]}, {"tenant_id": 5}, {"lease_ms": "x"}, {"lease_ms": 0}],
    ids=ascii,
)
def test_a_receiver_whose_names_cannot_be_written_down_is_not_made(given):
    with pytest.raises(DeclarationError, match=next(iter(given))):
        AsyncHandoffReceiver(**({"agent_id": "o11y", "node": Node()} | given))


@pytest.mark.parametrize(
    ("verb", "given", "path"),
    [
        ("complete", {"result_trace_id": 5}, "result_trace_id"),
        ("complete", {"message": 5}, "message"),
        ("complete", {"confidence": float("nan")}, "confidence"),
        ("complete", {"confidence": "high"}, "confidence"),
        ("fail", {"reason": 5}, "reason"),
        ("fail", {"reason": "\ud800"}, "reason"),
        ("fail", {"reason": "no", "code": 5}, "code"),
        ("release", {"reason": 5}, "reason"),
        ("progress", {"data": {"a": object()}}, "progress.a"),
        ("request_input", {"question": 5}, "question"),
        ("request_input", {"question": "why", "input_type": 5}, "input_type"),
        ("request_input", {"question": 5, "input_type": 5, "options": "yes"}, "question input_type options"),
        ("request_input", {"question": "why", "options": "yes"}, "options"),
        ("request_input", {"question": "why", "options": [1]}, "options"),
        ("request_input", {"question": "why", "default": object()}, "question.default"),
    ],
)
async def test_a_wrong_value_about_work_is_named_and_the_work_goes_on(make_node, verb, given, path):
    async with make_node() as node:
        manager, receiver = pair(node)
        made = await manager.create_handoff("o11y", "investigate")
        await receiver.take()
        assert await problems_of(getattr(receiver, verb)(made, **given)) == path.split()
        assert node.handoffs.queue.get(made).state is State.ACCEPTED
        assert (await receiver.complete(made, {"ok": 1})).state is State.COMPLETED


async def test_a_wrong_reason_neither_withdraws_nor_turns_down(make_node):
    async with make_node() as node:
        manager, receiver = pair(node)
        made = await manager.create_handoff("o11y", "investigate")
        assert await problems_of(manager.cancel(made, 5)) == ["reason"]
        assert await problems_of(receiver.reject(made, Text("no"))) == ["reason"]
        assert node.handoffs.queue.get(made).is_free


async def test_a_question_is_asked_of_the_queue_in_its_own_words_or_not_at_all(make_node):
    async with make_node() as node:
        manager, receiver = pair(node)
        for attempt, path in (
            (manager.list_handoffs(limit="x"), "limit"),
            (manager.list_handoffs(limit=2**70), "limit"),
            (manager.list_handoffs(states=["done"]), "states"),
            (manager.list_handoffs(states="pending"), "states"),
            (manager.list_handoffs(to_agent=5), "to_agent"),
            (manager.get_result_from_trace(5), "trace_id"),
            (manager.await_result("h", timeout_ms="x"), "timeout_ms"),
            (anext(manager.events("h", after="x")), "after"),
            (receiver.take(0), "most"),
            (receiver.take("x"), "most"),
            (receiver.poll(2**70), "most"),
            (receiver.serve(print, concurrency=0), "concurrency"),
        ):
            assert await problems_of(attempt) == [path]


async def test_what_work_raises_ends_it_whatever_it_says(make_node):
    async with make_node() as node:
        manager, receiver = pair(node)
        said = iter([RefusedError("a\x1b[2Jb \ud800"), RefusedError("no", code=5), RefusedError("x" * 2_000_000)])

        async def work(_):
            raise next(said)

        serving = asyncio.ensure_future(receiver.serve(work))
        ended = [await manager.create_and_await("o11y", "investigate") for _ in range(3)]
        serving.cancel()
        assert [one.state for one in ended] == [State.FAILED] * 3
        assert ended[0].reason == "RefusedError: ROUTING_NOT_PERMITTED: a?[2Jb ?"
