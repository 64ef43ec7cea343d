"""Named scenarios: the eight that ADR-028 lists, each with what its opposite would break, and those the origin got wrong.

Each is a whole small world that asserts what it is about; `mesh` is the large one.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from comity.core.agent.agent import Agent
from comity.core.call.limits import Limits
from comity.core.envelope.envelope import Reply
from comity.runtime.call.context import Context
from comity.testing.sim.campaign import Campaign, Play
from comity.testing.sim.faults import BETWEEN_NODES, Fault, Kind
from comity.testing.sim.world import World
from workloads.mesh import CLUSTER_MARKS, MARKS, STORM, mesh
from workloads.receivers import MARKS as ERRAND_MARKS
from workloads.receivers import handoffs
from workloads.refusals import PROVOKED, refusals
from workloads.runs import MARKS as RUN_MARKS
from workloads.runs import runs
from workloads.trees import FAULTS as OF_TREES
from workloads.trees import MARKS as TREE_MARKS
from workloads.trees import trees


def relay(name: str, *, wait_s: float = 0.0, **more: Any) -> Agent:
    """Return an agent that waits, asks the next of its route to go on with the rest, and tells who answered."""
    agent = Agent(name, **more)

    @agent.capability("GO")
    async def go(ctx: Context, route: list[str], timeout_ms: int | None = None) -> list[str]:
        if wait_s:
            await asyncio.sleep(wait_s)
        if not route:
            return [name]
        reply = await ctx.call(route[0], "GO", {"route": route[1:]}, timeout_ms=timeout_ms)
        return [name, *(reply.data if reply.ok else [_code(reply)])]

    return agent


def _code(reply: Reply) -> str:
    return "" if reply.error is None else reply.error.code


async def test_agent_calls_agent_success(world: World) -> None:
    """A calls B, B answers, A answers."""
    await world.node([relay("A"), relay("B")])
    reply = await world.call("A", "GO", {"route": ["B"]}, user_id="u")
    assert (reply.status, reply.data, reply.usage.calls) == ("success", ["A", "B"], 1)


async def test_agent_call_cycle_detection(world: World) -> None:
    """A → B → A is refused at once: the reply says so, no time passes, and the second A never runs."""
    await world.node([relay("A"), relay("B")])
    begun = world.loop.time()
    reply = await world.call("A", "GO", {"route": ["B", "A"]}, user_id="u")
    assert reply.data == ["A", "B", "ROUTING_CYCLE_DETECTED"]
    assert world.loop.time() - begun < 0.1
    assert world.witness.refusals == {"ROUTING_CYCLE_DETECTED": 1}


async def test_agent_call_timeout(world: World) -> None:
    """A slow agent is given up a margin before its caller's deadline, and its caller gets the error and answers."""
    await world.node([relay("A"), relay("SLOW", wait_s=60)])
    begun = world.loop.time()
    reply = await world.call("A", "GO", {"route": ["SLOW"]}, user_id="u", timeout_ms=2_000)
    assert reply.data == ["A", "CALL_TIMEOUT"]
    assert 1.9 <= world.loop.time() - begun < 2.0


async def test_agent_call_depth_limit(world: World) -> None:
    """The chain goes as deep as it may and no deeper."""
    names = [f"A{number}" for number in range(5)]
    await world.node([relay(name) for name in names])
    reply = await world.call("A0", "GO", {"route": names[1:]}, user_id="u", limits=Limits(depth_max=3))
    assert reply.data == ["A0", "A1", "A2", "A3", "LIMIT_DEPTH_EXCEEDED"]


async def test_agent_call_under_network_partition(world: World) -> None:
    """An agent that cannot be reached costs its caller no more than the deadline; healed, the same call goes through."""
    await world.node([relay("A")], is_clustered=True)
    await world.node([relay("B")], is_clustered=True)
    assert (await world.call("A", "GO", {"route": ["B"]}, user_id="u")).data == ["A", "B"]
    world.network.cut([("n1", "n2"), ("n2", "n1")], 60)
    begun = world.loop.time()
    first = world.nodes["n1"]
    reply = await first.call("A", "GO", {"route": ["B"], "timeout_ms": 2_000}, user_id="u", timeout_ms=10_000)
    assert reply.data == ["A", "CALL_TIMEOUT"], reply
    assert 2.0 <= world.loop.time() - begun < 3.0
    world.network.heal()
    assert (await first.call("A", "GO", {"route": ["B"]}, user_id="u")).data == ["A", "B"]


async def test_single_activation_during_cross_call(world: World) -> None:
    """One agent on three nodes: a paused node that loses the agent changes nothing, and nothing is counted twice or lost."""
    cart, buyer = Agent("CART", concurrency=1), Agent("BUYER")

    @cart.capability("ADD")
    async def add(ctx: Context) -> int:
        await asyncio.sleep(0.05)
        ctx.state["items"] = ctx.state.get("items", 0) + 1
        return int(ctx.state["items"])

    @buyer.capability("BUY")
    async def buy(ctx: Context) -> int:
        return int((await ctx.call("CART", "ADD")).unwrap())

    nodes = await world.cluster(3, [cart, buyer])
    buying = [asyncio.ensure_future(world.call("BUYER", "BUY", user_id="u")) for _ in range(20)]
    await asyncio.sleep(0.3 * world.chance.random())
    world.pause(world.chance.choice(nodes), 8)
    replies = await asyncio.gather(*buying)
    await world.heal()
    total = (await world.call("CART", "ADD", user_id="u")).unwrap()
    seen = sorted(reply.data for reply in replies if reply.ok)
    assert len(set(seen)) == len(seen), f"two buyers were told the same: {seen}"
    assert total > len(seen), f"{len(seen)} were added and {total - 1} are there"


async def nodes(world: World) -> None:
    """The mesh on three nodes that share a store, leases and a network."""
    await mesh(world, nodes=3, is_clustered=True)


async def test_agent_call_with_storage_faults(world: World) -> None:
    """A store that fails now and then costs time, and no answer: every answer that is given is right and survives."""
    await world.node([relay("A"), relay("B")])
    for _ in range(12):
        reply = await world.call("A", "GO", {"route": ["B"]}, user_id="u")
        assert reply.ok or _code(reply) in {"STORE_UNAVAILABLE", "CALL_INTERRUPTED"}, reply
        assert not reply.ok or reply.data[0] == "A", reply


async def test_determinism_multi_agent(world: World) -> None:
    """Many agents at once; the trace of a seed is compared byte by byte by the test that runs this twice."""
    names = [f"A{number}" for number in range(4)]
    await world.node([relay(name, wait_s=0.01, concurrency=world.knob(1, 4)) for name in names])
    routes = [world.chance.sample(names, 3) for _ in range(20)]
    replies = await asyncio.gather(*(world.call(one[0], "GO", {"route": one[1:]}, user_id="u") for one in routes))
    assert all(reply.data[0] == route[0] for reply, route in zip(replies, routes, strict=True) if reply.ok)


async def hanging(world: World) -> None:
    """Agents that never answer, on nodes that die: what was accepted ends at its deadline all the same, asked for or not."""
    await world.node([relay("A"), relay("HANG", wait_s=1e9)])
    node = next(iter(world.nodes.values()))
    for _ in range(5):
        asking = asyncio.ensure_future(node.call("A", "GO", {"route": ["HANG"]}, user_id="u", timeout_ms=1_000))
        await asyncio.sleep(0.3)
        if world.chance.random() < 0.5 and node.life is not None:
            world.crash(node.life)
        await asyncio.wait([asking], timeout=0.1)
        asking.cancel()
        await node.until_up()


async def standstill(world: World) -> None:
    """A process stands still past the deadline of what it works on: what it then finds done is late, and no success."""
    node = await world.node([relay("A", wait_s=0.1), relay("B", wait_s=0.1)])
    asking = [asyncio.ensure_future(world.call("A", "GO", {"route": ["B"]}, user_id="u", timeout_ms=1_000)) for _ in range(5)]
    await asyncio.sleep(0.05 + 0.1 * world.chance.random())
    world.pause(node, 5)
    assert {str(reply.status) for reply in await asyncio.gather(*asking)} == {"timeout"}


async def cross_root_deadlock(world: World) -> None:
    """Two users hold a serial agent each and ask for the other's: neither chain has a cycle, and still neither could end."""
    agents = []
    both = asyncio.Barrier(2)
    for name, other in (("A", "B"), ("B", "A")):
        agent = Agent(name, concurrency=1)

        @agent.capability("ASK")
        async def ask(ctx: Context, _other: str = other) -> str:
            await both.wait()
            return _code(await ctx.call(_other, "ANSWER"))

        @agent.capability("ANSWER")
        async def answer() -> str:
            return "yes"

        agents.append(agent)
    await world.node(agents)
    begun = world.loop.time()
    replies = await asyncio.gather(*(world.call(name, "ASK", user_id=name) for name in ("A", "B")))
    assert sorted(reply.data for reply in replies) == ["", "ROUTING_DEADLOCK_PREVENTED"]
    assert world.loop.time() - begun < 1, "somebody waited for a timeout"


TOGETHER: Final = tuple(fault for fault in STORM if fault.kind is not Kind.RING_LOST)
ALONE: Final = tuple(fault for fault in TOGETHER if fault.kind not in BETWEEN_NODES)
OF_ERRANDS: Final = tuple(fault for fault in STORM if not fault.kind.startswith(("Message", "Partition", "Model")))
OF_CALLS: Final = ("call", "activation", "breaker")
OF_RUNS: Final = Fault.each(
    Kind.NODE_CRASH,
    Kind.NODE_CRASH_IN_WRITE,
    Kind.STORE_SLOW,
    Kind.STORE_UNFLUSHED_LOST,
    Kind.AGENT_CRASH,
    Kind.AGENT_BUSY,
    probability=0.02,
    must_strike=False,
)
STORAGE: Final = tuple(
    Fault(kind=kind, probability=0.1)
    for kind in (Kind.STORE_WRITE_FAILED, Kind.STORE_READ_FAILED, Kind.STORE_SLOW, Kind.STORE_FULL, Kind.NODE_CRASH_IN_WRITE)
)
NETWORK: Final = Fault.each(Kind.MESSAGE_LOST, Kind.MESSAGE_DUPLICATED, Kind.MESSAGE_REORDERED, probability=0.05)
DELAYS: Final = (
    Fault(kind=Kind.AGENT_CALL_NETWORK_DELAY, probability=0.3),
    Fault(kind=Kind.AGENT_CALL_TIMEOUT, probability=0.05),
)

SCENARIOS: Final[dict[str, Play]] = {
    "mesh": Play(mesh, ALONE, MARKS, OF_CALLS, is_swarm=True),
    "nodes": Play(nodes, TOGETHER, CLUSTER_MARKS, is_swarm=True),
    "handoffs": Play(handoffs, OF_ERRANDS, ERRAND_MARKS, ("handoff",), is_swarm=True),
    "workflows": Play(runs, OF_RUNS, RUN_MARKS),
    "trees": Play(trees, OF_TREES, TREE_MARKS, is_swarm=True),
    "refusals": Play(refusals),
    "test_agent_calls_agent_success": Play(test_agent_calls_agent_success),
    "test_agent_call_cycle_detection": Play(test_agent_call_cycle_detection),
    "test_agent_call_timeout": Play(test_agent_call_timeout),
    "test_agent_call_depth_limit": Play(test_agent_call_depth_limit),
    "test_agent_call_under_network_partition": Play(test_agent_call_under_network_partition),
    "test_single_activation_during_cross_call": Play(test_single_activation_during_cross_call, NETWORK),
    "test_agent_call_with_storage_faults": Play(test_agent_call_with_storage_faults, STORAGE),
    "test_determinism_multi_agent": Play(test_determinism_multi_agent, DELAYS),
    "cross_root_deadlock": Play(cross_root_deadlock),
    "hanging": Play(hanging),
    "standstill": Play(standstill),
}

# What the seeds of a long run play in turn; in all of it every fault, mark, refusal and step must come up.
_ONE: Final = ("mesh",)
_TEN: Final = (_ONE, _ONE, ("nodes",), _ONE, _ONE, _ONE, _ONE, ("nodes",), _ONE, _ONE)
_HANDING: Final = (*_TEN[:-1], ("mesh", "handoffs"))
IN_TURN: Final[tuple[tuple[str, ...], ...]] = (*_HANDING, *_TEN, *_HANDING, *_TEN, *_TEN[:-1], ("mesh", "refusals"))
LONG_RUN: Final = Play(mesh, STORM, tuple(dict.fromkeys((*MARKS, *CLUSTER_MARKS, *ERRAND_MARKS))), (*OF_CALLS, "handoff"))
REFUSALS: Final = (*PROVOKED, "ROUTING_DEADLOCK_PREVENTED", "NODE_UNREACHABLE")
CAMPAIGN: Final = Campaign(SCENARIOS, IN_TURN, LONG_RUN, REFUSALS)  # what `make sim` plays
