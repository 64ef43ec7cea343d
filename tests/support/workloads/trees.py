"""Trees of calls over three nodes, one agent on each: watched, put aside for a person, cancelled, handed off.

The seed chooses the order of the steps, the node at which a person answers, and when a call is cancelled. What holds for the
tree as a whole is checked here; the invariants of the simulator hold for each of its calls as ever.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, Final

from comity.core.agent.agent import Agent
from comity.core.agent.tool import Risk, Tool
from comity.core.envelope.envelope import Reply, Status
from comity.runtime.call.context import Context
from comity.runtime.cluster.cluster import SWEEP_MS
from comity.testing.sim.faults import Fault, Kind
from comity.testing.sim.invariants import ViolationError
from comity.testing.sim.nodes import SimNode
from comity.testing.sim.world import World

ROUNDS: Final = 8
TIMEOUT_MS: Final = 60_000
# In which a cancellation reaches the leaf: its messages may be late, and a node that lost the agent in between passes none on.
GRACE_S: Final = 2.0 * SWEEP_MS / 1000
SHOWN: Final = ("A asks", "B asks", 1, 2, 3)  # the steps of a watched tree, in order
MARKS: Final = ("tree was watched", "tree waited and was granted", "tree waited and was denied", "tree was cancelled",
                "work was handed off")  # fmt: skip
FAULTS: Final = Fault.each(
    Kind.MESSAGE_DELAYED, Kind.MESSAGE_DUPLICATED, Kind.MESSAGE_REORDERED, probability=0.1, must_strike=False
)


class Tally:
    """What agents of all nodes did, by the id of the root."""

    def __init__(self) -> None:
        self.begun: Counter[str] = Counter()  # runs: more than one for each agent if one has moved meanwhile
        self.hanging: Counter[str] = Counter()
        self.went_on: Counter[str] = Counter()
        self.paid: Counter[str] = Counter()
        self.done: Counter[str] = Counter()


def relay(name: str, below: str, tally: Tally) -> Agent:
    """Return an agent that asks the next, and goes on once that has answered."""
    agent = Agent(name)

    @agent.capability("DO", timeout_ms=TIMEOUT_MS)
    async def do(ctx: Context, what: str) -> Any:
        tally.begun[_root(ctx)] += 1
        ctx.progress(f"{name} asks")
        reply = await ctx.call(below, "DO", {"what": what})
        tally.went_on[_root(ctx)] += 1
        return reply.unwrap()

    @agent.capability("HAND", timeout_ms=TIMEOUT_MS)
    async def hand(ctx: Context) -> Any:
        return (await ctx.hand_off("C", "TAKE", {"mark": _root(ctx)}, timeout_ms=TIMEOUT_MS // 2)).unwrap()

    return agent


def leaf(tally: Tally) -> Agent:
    """Return the agent that does what the tree is for."""
    agent = Agent("C", tools_allowed=["pay"])

    @agent.capability("DO", timeout_ms=TIMEOUT_MS)
    async def do(ctx: Context, what: str) -> Any:
        tally.begun[_root(ctx)] += 1
        if what == "pay":
            return await ctx.use_tool("pay", mark=_root(ctx))
        if what == "hang":
            tally.hanging[_root(ctx)] += 1
            try:
                await asyncio.sleep(TIMEOUT_MS)
            finally:
                tally.hanging[_root(ctx)] -= 1
        for number in (1, 2, 3):
            ctx.progress(number)
            await asyncio.sleep(0.05)
        return "done"

    @agent.capability("TAKE", timeout_ms=TIMEOUT_MS)
    async def take(mark: str) -> str:
        tally.done[mark] += 1
        return f"did {mark}"

    return agent


def _root(ctx: Context) -> str:
    return str(ctx.request.root_id)


def _payment(tally: Tally) -> Tool:
    def pay(mark: str) -> int:
        tally.paid[mark] += 1
        return 7

    return Tool(name="pay", function=pay, risk=Risk.HIGH)


async def trees(world: World) -> None:
    """Trees over three nodes are watched, wait for a person, are cancelled and hand work off as one."""
    tally, chance = Tally(), world.stream("trees")
    agents, tools = (relay("A", "B", tally), relay("B", "C", tally), leaf(tally)), [_payment(tally)]
    nodes = [await world.node([one], is_clustered=True, tools=tools) for one in agents]
    steps = (_watch, _ask, _cancel, _hand)
    first = chance.sample(steps, len(steps))  # each at least once
    for number, step in enumerate((*first, *chance.choices(steps, k=ROUNDS - len(first)))):
        await step(world, nodes, tally, f"r{number}")


async def _watch(world: World, nodes: list[SimNode], tally: Tally, root_id: str) -> None:
    """Watch a tree from the node of its root."""
    seen: list[Any] = []
    before = len(world.faults.fired)

    async def watch() -> Reply:
        handle = _node(nodes[0]).start_call("A", "DO", {"what": "watch"}, user_id="u", request_id=root_id)
        seen.extend([event.data async for event in handle.events() if event.kind == "progress"])
        reply: Reply = await handle.reply()
        return reply

    reply = await nodes[0].within(watch())
    _hold(reply.data == "done", "TreeEnds", f"{root_id} ended with {reply}")
    left = iter(SHOWN)
    is_again = tally.begun[root_id] > len(nodes)  # steps of a second run come again
    _hold(is_again or all(one in left for one in seen), "StepsInOrder", f"{root_id} showed {seen}")
    # A step that a later one overtakes is not shown, so not all need be; that all are overtaken takes more than chance.
    _hold(len(world.faults.fired) > before or 3 in seen, "StepsShown", f"{root_id} showed {seen}")
    world.reached("tree was watched")


async def _ask(world: World, nodes: list[SimNode], tally: Tally, root_id: str) -> None:
    """Let a tree wait for a person, and go on with the answer, given at any node."""
    asked = await nodes[0].call("A", "DO", {"what": "pay"}, user_id="u", request_id=root_id)
    _hold(asked.status is Status.NEEDS_INPUT, "TreeWaitsAsOne", f"{root_id} was answered with {asked}")
    await asyncio.sleep(1)
    _hold(not tally.went_on[root_id] + tally.paid[root_id], "TreeWaitsAsOne", f"{root_id} went on without its answer")
    place = world.chance.choice(nodes)
    approval = next(one for one in _node(place).approvals() if one.root_id == root_id)
    is_granted = world.chance.random() < 0.5
    await place.decide(approval.id, granted=is_granted)
    reply = await world.call("A", "DO", {"what": "pay"}, user_id="u", request_id=root_id)
    paid = tally.paid[root_id]
    is_unknown = reply.error is not None and reply.error.code == "TOOL_OUTCOME_UNKNOWN"  # its agent moved while it paid
    _hold(reply.ok is is_granted or is_unknown, "TreeEnds", f"{root_id} ended with {reply}")
    _hold(paid == is_granted or (is_unknown and paid <= is_granted), "PaidOnce", f"{root_id} paid {paid} times")
    _hold(not reply.ok or tally.went_on[root_id] >= 2, "TreeGoesOn", f"{tally.went_on[root_id]} agents of {root_id} went on")
    world.reached(f"tree waited and was {'granted' if is_granted else 'denied'}")


async def _cancel(world: World, nodes: list[SimNode], tally: Tally, root_id: str) -> None:
    """Cancel a tree at some moment; its leaf stops long before its deadline."""

    async def begin() -> Any:
        return _node(nodes[0]).start_call("A", "DO", {"what": "hang"}, user_id="u", request_id=root_id)

    handle = await nodes[0].within(begin())
    await asyncio.sleep(world.chance.random())

    async def cancel() -> Reply:
        handle.cancel()
        reply: Reply = await handle.reply()
        return reply

    reply = await nodes[0].within(cancel())
    _hold(reply.status is Status.CANCELLED, "TreeEnds", f"{root_id} ended with {reply}")
    await asyncio.sleep(GRACE_S)
    _hold(not tally.hanging[root_id], "CancelReachesTheLeaf", f"the leaf of {root_id} runs {GRACE_S} s after its cancellation")
    world.reached("tree was cancelled")


async def _hand(world: World, nodes: list[SimNode], tally: Tally, root_id: str) -> None:
    """Hand work off to an agent of another node, and wait for it."""
    reply = await nodes[0].call("A", "HAND", user_id="u", request_id=root_id)
    _hold(reply.data == f"did {root_id}", "TreeEnds", f"{root_id} ended with {reply}")
    _hold(tally.done[root_id] == 1, "HandedOffOnce", f"what {root_id} handed off was done {tally.done[root_id]} times")
    world.reached("work was handed off")


def _node(place: SimNode) -> Any:
    assert place.node is not None  # no process of this scenario dies
    return place.node


def _hold(is_so: object, name: str, why: str) -> None:
    if not is_so:
        raise ViolationError(name, why)
