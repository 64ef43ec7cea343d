"""Asking for a call whose agent cannot be found, or whose node leaves, and ending a call that was withdrawn meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from cluster_world import World, play
from msgspec.structs import replace

from comity import Agent, Context, Node, Reply
from comity.core.cluster import messages as wire
from comity.core.envelope.usage import Usage
from comity.core.journal.records import Accepted, Settled
from comity.runtime.agent.activations import STAND_INS_MAX
from comity.testing.contracts.records import request


def worker(runs: list[str] | None = None) -> Agent:
    agent = Agent("BACK")

    @agent.capability("DO", timeout_ms=20_000)
    async def do(ctx: Context) -> str:
        if runs is not None:
            runs.append(ctx.request.request_id)
        await asyncio.sleep(3)
        return "done"

    return agent


def asker() -> Agent:
    agent = Agent("FRONT")

    @agent.capability("ASK")
    async def ask(ctx: Context, asks: bool = True) -> Any:
        before = ctx.limits.calls_max
        reply = await ctx.call("BACK", "DO", timeout_ms=2_000) if asks else Reply.success("")
        return [reply.data if reply.ok else reply.error.code, before - ctx.limits.calls_max]

    return agent


def test_a_call_for_which_no_node_says_in_time_which_node_holds_its_agent_is_refused() -> None:
    async def case(world: World, one: Node) -> None:
        world.leases.deaf.add("n1")
        began = asyncio.get_running_loop().time()
        reply = await one.call("BACK", "DO", user_id="u", request_id="r", timeout_ms=2_000)
        assert (reply.status, reply.error.code, world.kinds("r")) == ("refused", "NODE_UNREACHABLE", ["refused"])
        assert 0.5 < asyncio.get_running_loop().time() - began < 2

    play(case, [worker()])


@pytest.mark.parametrize("is_settled", [False, True])
def test_a_call_that_was_begun_and_whose_node_cannot_be_found_counts_and_its_caller_gets_its_end(is_settled: bool) -> None:
    """Dies where it is not counted, or where an end that the store has is not the reply."""

    async def case(world: World, one: Node) -> None:
        await one.call("FRONT", "ASK", {"asks": False}, user_id="u")
        world.leases.deaf.add("n1")
        now_ms = one._path.clock.now_ns() // 1_000_000
        child = replace(
            request("r.1", parent_id="r", user_id="u"),
            target="BACK",
            capability="DO",
            session_id="r",
            deadline_at=now_ms + 2_000,
        )
        world.store.append((Accepted(child, now_ms, "n9"),))
        if is_settled:
            told = replace(Reply.success("stored"), request_id="r.1", usage=Usage(prompt_tokens=5, calls=3))
            world.store.append((Settled(child, told, now_ms),))
        reply = await one.call("FRONT", "ASK", user_id="u", request_id="r")
        told, calls, tokens = ("stored", 4, 5) if is_settled else ("NODE_UNREACHABLE", 1, 0)
        assert (reply.data, reply.usage.calls, reply.usage.prompt_tokens) == ([told, calls], calls, tokens)
        assert world.kinds("r.1") == ["admitted", "settled"]
        assert world.store.call("r.1").reply.ok is is_settled

    play(case, [asker(), worker()])


@pytest.mark.parametrize("has_ended", [False, True])
def test_a_call_that_left_its_node_and_was_cancelled_meanwhile_ends_once(has_ended: bool) -> None:
    """Dies where it stays open in the store, for the next holder to go on with, or where another end is overwritten."""
    runs: list[str] = []

    async def case(world: World, one: Node) -> None:
        handle = one.start_call("BACK", "DO", user_id="u", request_id="r", timeout_ms=20_000)
        await asyncio.sleep(0.5)
        stored = world.store.call("r").request
        world.leases.deaf.add("n1")
        one._path.placement.holds.lost("BACK", 9)
        await asyncio.sleep(0.3)
        if has_ended:
            end = replace(Reply.success("elsewhere"), request_id="r")
            world.store.append((Settled(stored, end, one._path.clock.now_ns() // 1_000_000),))
        assert handle.cancel()
        reply = await handle.reply()
        assert (reply.status, reply.data) == (("success", "elsewhere") if has_ended else ("cancelled", None))
        assert world.kinds("r") == ["admitted", "settled"]
        assert (world.store.call("r").reply.status, runs) == (reply.status, ["r"])
        assert not handle.cancel()

    play(case, [worker(runs)])


@pytest.mark.parametrize("is_watched", [False, True])
def test_a_call_on_a_node_that_has_gone_is_begun_elsewhere_at_once(is_watched: bool) -> None:
    runs: list[str] = []

    async def case(world: World, one: Node, two: Node) -> None:
        await two.call("BACK", "DO", user_id="u", request_id="first")
        task = asyncio.ensure_future(one.call("BACK", "DO", user_id="u", request_id="r", timeout_ms=20_000))
        await asyncio.sleep(1 if is_watched else 0.05)
        world.network.cut.add("n2")
        world.leases.bury("n2")
        one._path.placement._gone("n9")
        await asyncio.sleep(0.01)
        assert runs == ["first", "r"]
        one._path.placement._gone("n2")
        await asyncio.sleep(2 if is_watched else 0.01)  # between two inquiries it sleeps
        assert runs == ["first", "r", "r"]
        assert (await task).data == "done"
        assert "r" not in one._path.placement.carrier._sent

    play(case, [worker(runs)], [worker(runs)])


def test_a_call_for_an_agent_that_one_node_has_no_more_goes_to_the_next_that_has_it() -> None:
    async def case(world: World, one: Node, two: Node, three: Node) -> None:
        hosts = one._path.placement.peers.transport.hosts
        one._path.placement.peers.transport.hosts = lambda name: ["n2", "n3"] if name == "BACK" else hosts(name)
        reply = await one.call("BACK", "DO", user_id="u", timeout_ms=20_000)
        assert reply.data == "done"
        asked = [receiver for _, receiver, message in world.network.sent if isinstance(message, wire.Ask)]
        assert asked == ["n2", "n3"]

    play(case, [asker()], [asker()], [worker()])


@pytest.mark.parametrize(
    ("capability", "inputs", "code"),
    [("DO", {"unknown": 1}, "INPUT_VALIDATION_FAILED"), ("NONE", {}, "ROUTING_UNKNOWN_CAPABILITY")],
)
def test_a_request_that_this_node_knows_to_be_wrong_is_refused_here_wherever_its_agent_is(capability, inputs, code) -> None:
    async def case(world: World, one: Node, two: Node) -> None:
        await two.call("BACK", "DO", user_id="u")
        assert (await one.call("BACK", "DO", user_id="u")).ok
        sent = len(world.network.sent)
        reply = await one.call("BACK", capability, inputs, user_id="u", request_id="r")
        assert (reply.status, reply.error.code, world.kinds("r")) == ("refused", code, ["refused"])
        assert len(world.network.sent) == sent

    play(case, [worker()], [worker()])


def test_a_node_that_sends_a_call_away_seats_no_agent_for_it_and_remembers_a_bounded_number_of_addresses() -> None:
    async def case(world: World, one: Node, two: Node) -> None:
        await two.call("BACK", "DO", user_id="u")
        activations = one._path.activations
        activations._stand_ins = {str(number): None for number in range(STAND_INS_MAX)}
        assert (await one.call("BACK", "DO", user_id="u")).data == "done"
        assert ("BACK" in activations.addresses(), list(activations._stand_ins)) == (False, ["BACK"])
        stand_in = activations._stand_ins["BACK"]
        assert (await one.call("BACK", "DO", user_id="u")).data == "done"
        assert activations._stand_ins == {"BACK": stand_in}

    play(case, [worker()], [worker()])
