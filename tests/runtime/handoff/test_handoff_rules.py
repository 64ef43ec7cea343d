"""Every rule of a call holds for a handoff: inputs, bounds, isolation, personal data, repeats."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from handoff_pair import FOUND, REPORT, code_of, declared, kinds, pair
from leftovers import grown, sizes

from comity.contextcore.handoffs.receiver import AsyncHandoffReceiver
from comity.core.call.guardrail import Allow, Guardrail, Stop
from comity.core.redaction import Action, Policy
from comity.errors import CallerError
from comity.runtime.handoff import desk
from comity.runtime.handoff import receiver as receiving
from comity.runtime.session.privacy import Privacy


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


@pytest.mark.parametrize("field", ["to_agent", "capability_id", "handoff_id"])
async def test_an_empty_name_is_refused_and_nothing_takes_its_place(make_node, field):
    async with make_node() as node:
        manager, _ = pair(node)
        with pytest.raises(CallerError, match=f"{field} must not be empty") as refused:
            await manager.create_handoff(**{"to_agent": "o11y", "capability_id": "x", field: ""})
        assert [problem.path for problem in refused.value.facts["problems"]] == [field]
        with pytest.raises(CallerError, match="capability_id must not be empty"):
            await manager.create_handoff("o11y")
        assert node.handoffs.queue.find() == []


async def test_the_bound_on_what_may_wait_for_an_agent_holds(make_node):
    async with make_node([declared()]) as node:
        manager, receiver = pair(node)
        ask = {"to_agent": "eyes", "capability_id": "investigate", "inputs": {"app": "a"}}
        for _ in range(2):
            await manager.create_handoff(**ask)
        assert await code_of(manager.create_handoff(**ask)) == "AGENT_BUSY"
        await receiver.take()
        await manager.create_handoff(**ask)


async def test_a_result_that_its_capability_does_not_declare_is_refused_and_the_work_goes_on(make_node):
    async with make_node([declared()]) as node:
        manager, receiver = pair(node)
        made = await manager.create_handoff("o11y", "investigate", inputs={"app": "a"})
        await receiver.accept(made)
        assert await code_of(receiver.complete(made, "no object")) == "OUTPUT_VALIDATION_FAILED"
        assert (await receiver.complete(made, {"cause": "disk"})).result == {"cause": "disk"}


async def test_the_words_of_a_result_are_hidden_in_the_store_and_shown_to_its_user(make_node):
    async with make_node() as node:
        manager, receiver = pair(node)
        made = await manager.create_handoff("o11y", "investigate")
        await receiver.accept(made)
        await receiver.complete(made, {"cause": "disk"}, message="mail ann@example.com")
        assert node.handoffs.get(made).reply.message.startswith("mail [[EMAIL_1_")
        assert (await manager.await_result(made)).reply.message == "mail ann@example.com"


async def test_a_result_that_a_guardrail_stops_is_no_result(make_node):
    stop = Guardrail(name="g", outbound=lambda _, reply: Stop("no") if reply.data == {"cause": "secret"} else Allow())
    async with make_node(guardrails=[stop]) as node:
        manager, receiver = pair(node)
        made = await manager.create_handoff("o11y", "investigate")
        await receiver.accept(made)
        assert await code_of(receiver.complete(made, {"cause": "secret"})) == "GUARDRAIL_STOPPED"
        assert (await receiver.complete(made, {"cause": "disk"})).result == {"cause": "disk"}


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
        for other in (stranger, AsyncHandoffReceiver("another", node=node)):
            assert await code_of(other.accept(made)) == await code_of(other.reject(made, "no")) == "HANDOFF_UNKNOWN"
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


async def test_a_node_keeps_no_more_after_handoffs_have_ended_in_every_way_than_before(make_node, monkeypatch):
    monkeypatch.setattr(desk, "_MADE_KEPT_MAX", 1)
    monkeypatch.setattr(receiving, "GONE_MAX", 1)
    async with make_node() as node:
        manager, receiver = pair(node)

        async def round_of() -> None:
            for end in (
                lambda made: receiver.complete(made, {"cause": "disk"}),
                lambda made: receiver.fail(made, "no luck"),
                manager.cancel,
                lambda _: asyncio.sleep(20),
            ):
                made = await manager.create_handoff("o11y", "investigate", timeout_ms=10_000)
                await receiver.accept(made)
                await end(made)
                await asyncio.sleep(0.1)
            refused = await manager.create_handoff("o11y", "investigate", timeout_ms=10_000)
            await receiver.reject(refused, "not mine")
            unseen = await manager.create_handoff("o11y", "investigate", timeout_ms=1_000)
            with contextlib.suppress(Exception):
                await manager.await_result(unseen)
            await asyncio.sleep(100)

        found = []
        for _ in range(3):
            await round_of()
            found.append(sizes(receiver))
        assert grown(found[1], found[2]) == {}
        assert node.handoffs.leases._held == {}


LONG = "ann@example.com " * 4_000


async def test_a_long_handoff_that_the_policy_blocks_is_not_handed_off_and_its_words_are_not_recorded(make_node):
    async with make_node(privacy=Privacy(policy=Policy({"EMAIL": Action.BLOCK}))) as node:
        manager, _ = pair(node)
        assert await code_of(manager.create_handoff("o11y", "investigate", LONG, handoff_id="h")) == "PRIVACY_BLOCKED"
        assert node.handoffs.queue.find() == []
        assert kinds(node) == [("h", "refused")]


async def test_a_long_handoff_that_is_asked_for_twice_at_once_is_handed_off_once(make_node):
    async with make_node() as node:
        manager, receiver = pair(node)
        asked = (manager.create_handoff("o11y", "investigate", LONG, handoff_id="h") for _ in range(2))
        assert await asyncio.gather(*asked) == ["h", "h"]
        assert [one.id for one in await receiver.take(5)] == ["h"]


async def test_a_lane_is_counted_from_the_store_at_first_when_it_seems_full_and_after_a_while(make_node):
    async with make_node([declared()]) as node:
        at, handoffs, counted = node.handoffs, node.handoffs.queue, []
        free = 0

        def count_free(lane: str) -> int:
            counted.append(lane)
            return free

        handoffs.count_free = count_free
        now_ms = 1_000_000
        assert [at.count_waiting("lane", 3, now_ms) for _ in range(3)] == [0, 1, 2]
        assert counted == ["lane"]
        free = 2
        assert [at.count_waiting("lane", 3, now_ms), at.count_waiting("lane", 3, now_ms)] == [2, 2]
        assert counted == ["lane"] * 3
        free = 0
        again_ms = now_ms + desk._COUNT_AGAIN_MS
        assert [at.count_waiting("lane", 9, again_ms), at.count_waiting("lane", 9, again_ms + 1)] == [3, 0]
        at._waiting = {str(number): (0, 0) for number in range(desk.SETTLED_KEPT_MAX + 1)}
        assert (at.count_waiting("lane", 3, now_ms), list(at._waiting)) == (0, ["lane"])


async def test_of_the_handoffs_that_a_node_made_a_bounded_number_is_kept_in_memory(make_node, monkeypatch):
    monkeypatch.setattr(desk, "_MADE_KEPT_MAX", 2)
    async with make_node([declared()]) as node:
        manager, _ = pair(node)
        made = [await manager.create_handoff(f"o{number}", "look") for number in range(3)]
        assert list(node.handoffs._made) == made[1:]
        node.handoffs.forget(made[1])
        assert list(node.handoffs._made) == made[2:]
        assert [node.handoffs.get(one).id for one in made] == made
