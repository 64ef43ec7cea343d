"""An agent's state: a tenant's own; one that cannot be saved fails the call that made it so, and nothing else."""

from __future__ import annotations

import asyncio

import pytest

from comity import Agent, Context, Node, Status
from comity.core.call.limits import STATE_BYTES_MAX
from comity.core.journal.records import Document, Saved
from comity.engines.memory.journal import MemoryJournal

BAD = {"object": object(), "too large": "x" * (STATE_BYTES_MAX + 1), "half a character": "\ud800", "not a number": float("nan")}


def counter(**options) -> Agent:
    agent = Agent("counter", **options)

    @agent.capability("SPOIL")
    async def spoil(ctx: Context, how: str, and_fail: bool = False) -> str:
        ctx.state["bad"] = BAD[how]
        ctx.state["n"] = 100
        if and_fail:
            raise RuntimeError("at the end")
        return "done"

    @agent.capability("COUNT")
    async def count(ctx: Context) -> int:
        ctx.state["n"] = ctx.state.get("n", 0) + 1
        return ctx.state["n"]

    @agent.capability("HOLD")
    async def hold(ctx: Context) -> int:
        held = ctx.state
        await asyncio.sleep(1)
        held["held"] = 1
        return len(held)

    @agent.capability("SHOW")
    async def show(ctx: Context) -> dict:
        return ctx.state

    return agent


@pytest.mark.parametrize("how", BAD)
async def test_a_change_that_cannot_be_saved_fails_its_call_and_is_dropped(make_node, how):
    async with make_node([counter()]) as node:
        await node.call("counter", "COUNT", user_id="u")
        bad = await node.call("counter", "SPOIL", {"how": how}, user_id="u")
        seen = await node.call("counter", "SHOW", user_id="u")
        further = await node.call("counter", "COUNT", user_id="u")
    assert (bad.status, bad.error.code) == (Status.ERROR, "OUTPUT_VALIDATION_FAILED")
    assert bad.error.problems[0].path in {"state", "state.bad"}
    assert (seen.data, further.data) == ({"n": 1}, 2)


async def test_a_call_that_failed_anyway_keeps_its_own_error_and_says_what_was_dropped(make_node):
    async with make_node([counter()]) as node:
        bad = await node.call("counter", "SPOIL", {"how": "object", "and_fail": True}, user_id="u")
        seen = await node.call("counter", "SHOW", user_id="u")
    assert (bad.error.code, seen.data) == ("TARGET_CRASHED", {})
    assert bad.warnings == ("the state of counter cannot be kept: state.bad: object has no JSON form",)


async def test_a_call_that_runs_beside_it_still_writes_to_the_state_that_is_kept(make_node):
    async with make_node([counter()]) as node:
        holding = node.start_call("counter", "HOLD", user_id="u")
        await asyncio.sleep(0.5)
        await node.call("counter", "SPOIL", {"how": "object"}, user_id="u")
        assert (await holding.reply()).data == 1
        seen = await node.call("counter", "SHOW", user_id="u")
    assert seen.data == {"held": 1}


@pytest.mark.parametrize("hook", ["on_activate", "on_deactivate"])
async def test_what_a_hook_makes_of_the_state_harms_no_later_call_and_no_other_agent(make_node, hook, caplog):
    def spoil(_address: str, state: dict) -> None:
        if "done" not in spoiled:
            state["bad"] = object()
            spoiled.append("done")

    spoiled: list[str] = []
    other = Agent("other", idle_ms=100)

    @other.capability("HI")
    async def hi(ctx: Context) -> int:
        ctx.state["n"] = ctx.state.get("n", 0) + 1
        return ctx.state["n"]

    async with make_node([counter(idle_ms=100, **{hook: spoil}), other]) as node:
        first = await node.call("counter", "COUNT", user_id="u")
        await asyncio.sleep(1)
        second = await node.call("counter", "COUNT", user_id="u")
        assert (await node.call("other", "HI", user_id="u")).data == 1
        await asyncio.sleep(1)
        assert (await node.call("other", "HI", user_id="u")).data == 2  # the sweep goes on
    assert first.ok is (hook == "on_deactivate")
    assert second.data == (1 if hook == "on_activate" else 2)
    assert "state.bad" in caplog.text


def test_a_state_that_cannot_be_saved_does_not_keep_a_node_from_closing(tmp_path):
    started = asyncio.Event()
    agent = Agent("agent")

    @agent.capability("HANG")
    async def hang(ctx: Context) -> None:
        ctx.state["bad"] = object()
        started.set()
        await asyncio.sleep(60)

    async def run() -> None:
        node = Node([agent], store=tmp_path / "s.db", lag_ms=None)
        await node.start()
        handle = node.start_call("agent", "HANG", user_id="u")
        await started.wait()
        await node.close()
        assert (await handle.reply()).status is Status.CANCELLED
        assert node._journal._thread is None  # the store is closed

    asyncio.run(run())


def test_what_an_agent_notes_when_it_wakes_is_stored_when_its_node_closes(tmp_path):
    def wake(_address: str, state: dict) -> None:
        woken.append(state.get("woken", 0))
        state["woken"] = len(woken)

    async def run() -> None:
        async with Node([counter(on_activate=wake)], store=tmp_path / "s.db", lag_ms=None) as node:
            assert (await node.call("counter", "SPOIL", {"how": "object"}, user_id="u")).status is Status.ERROR

    woken: list[int] = []
    asyncio.run(run())
    asyncio.run(run())
    assert woken == [0, 1]


async def counted(node, *tenants: str) -> list[int]:
    return [(await node.call("counter/42", "COUNT", user_id="u", tenant_id=one)).data for one in tenants]


async def test_the_state_of_an_address_is_a_tenants_own(make_node):
    async with make_node([counter(idle_ms=1_000)]) as node:
        assert await counted(node, "acme", "acme") == [1, 2]
        await asyncio.sleep(10)  # put away and brought back
        assert await counted(node, "evil", "default", "acme") == [1, 1, 3]


def test_the_state_of_an_address_is_a_tenants_own_in_a_store(tmp_path):
    async def lives() -> None:
        for found in ([1, 2, 1, 1], [3, 4, 2, 2]):
            async with Node([counter()], store=tmp_path / "s.db", lag_ms=None) as node:
                assert await counted(node, "acme", "acme", "evil", "default") == found

    asyncio.run(lives())


async def test_a_tenants_calls_wait_for_no_other_tenants(make_node):
    async with make_node([counter(concurrency=1)]) as node:
        holding = node.start_call("counter", "HOLD", user_id="u", tenant_id="acme")
        await asyncio.sleep(0.1)
        begun = asyncio.get_running_loop().time()
        assert (await node.call("counter", "SHOW", user_id="u", tenant_id="evil")).data == {}
        assert asyncio.get_running_loop().time() == begun
        await holding.reply()


async def test_a_state_from_before_tenants_had_their_own_is_the_default_tenants(make_node):
    journal = MemoryJournal("n")
    journal.open()
    journal.append((Saved(Document.STATE, "counter", 1, b'{"n":7}'),))
    async with make_node([counter()], journal=journal) as node:
        assert (await node.call("counter", "COUNT", user_id="u", tenant_id="acme")).data == 1
        assert (await node.call("counter", "COUNT", user_id="u")).data == 8


async def test_a_hook_is_given_the_state_of_the_tenant_whose_call_wakes_the_agent(make_node):
    woken = []
    agent = counter(on_activate=lambda address, state: woken.append((address, dict(state))))
    async with make_node([agent]) as node:
        await node.call("counter", "COUNT", user_id="u", tenant_id="acme")
        await node.call("counter", "COUNT", user_id="u", tenant_id="evil")
    assert woken == [("counter", {}), ("counter", {})]
