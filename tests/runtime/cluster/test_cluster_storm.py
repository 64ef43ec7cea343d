"""Random trees of calls over three nodes that lose messages, leases and each other: whatever happens, the record is sound."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from typing import Any

import pytest
from cluster_world import World

from comity import Agent, Context, Limits, Node
from comity.core.cluster import messages as wire
from comity.engines.clock import SystemIds
from comity.testing import run_virtual

NAMES = ("A", "B", "C", "D")
SEEDS = 20
ROOTS = 10
CALLS_MAX = 20


class Seeded(SystemIds):
    """Ids that a seed decides."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = random.Random(seed)
        self._bits = self._random.getrandbits


def agents(chance: random.Random) -> list[Agent]:
    made = []
    for name in NAMES:
        agent = Agent(name, concurrency=chance.choice([1, 1, 2, 64]), pending_max=chance.choice([2, 1000]))

        @agent.capability("GO", timeout_ms=20_000)
        async def go(ctx: Context, plan: list) -> None:
            ctx.state["runs"] = ctx.state.get("runs", 0) + 1
            await asyncio.sleep(chance.random() * 0.2)
            for together in plan:
                await ctx.gather(*(ctx.call(to, "GO", {"plan": below}) for to, below in together))

        made.append(agent)
    return made


def plan(chance: random.Random, depth: int) -> list[Any]:
    """Steps one after the other, each of one or two calls side by side."""
    steps = range(chance.choice([0, 1, 1, 2]) if depth else 0)
    return [[[chance.choice(NAMES), plan(chance, depth - 1)] for _ in range(chance.choice([1, 1, 2]))] for _ in steps]


async def storm(world: World, chance: random.Random) -> None:
    """Let leases run out, cut nodes off from each other and from the leases, and heal everything in the end."""
    for _ in range(chance.choice([0, 2, 6])):
        await asyncio.sleep(chance.random() * 3)
        if chance.random() < 0.5:
            world.leases.expire(chance.choice(NAMES))
        broken = chance.choice([world.network.cut, world.leases.deaf])
        broken.add(f"n{chance.randint(1, 3)}")
        await asyncio.sleep(chance.random() * 4)
        broken.clear()


async def live(seed: int) -> tuple[World, list[Any]]:
    """Return the world after the storm, and whatever its nodes still hold."""
    chance = random.Random(seed)
    world = World()
    nodes = [world.node(f"n{number}", agents(chance), ids=Seeded(seed * 10 + number)) for number in (1, 2, 3)]
    for node in nodes:
        await node.start()
    loss, double = chance.choice([0, 0.1, 0.3]), chance.choice([0, 0.2])
    is_over = asyncio.Event()

    def fault(sender: str, receiver: str, message: wire.Message) -> list[float]:
        if is_over.is_set():
            return [0.001]
        copies = (0 if chance.random() < loss else 1) + (1 if chance.random() < double else 0)
        return [chance.random() * chance.choice([0.01, 0.01, 0.5]) for _ in range(copies)]

    async def root(number: int) -> None:
        await asyncio.sleep(chance.random() * 5)
        limits = Limits(calls_max=chance.choice([5, CALLS_MAX]), timeout_ms=chance.choice([1_000, 20_000]))
        inputs = {"plan": plan(chance, 4)}
        await chance.choice(nodes).call(chance.choice(NAMES), "GO", inputs, user_id="u", request_id=f"r{number}", limits=limits)

    world.network.fault = fault
    raging = asyncio.ensure_future(storm(world, chance))
    await asyncio.gather(*(root(number) for number in range(ROOTS)))
    await raging
    is_over.set()
    await asyncio.sleep(60)
    left = [one for node in nodes for one in held(node)]
    for node in nodes:
        await node.close()
    return world, left


def held(node: Node) -> list[Any]:
    """The calls a node has not put away, and what it still waits for from others or does for them."""
    cluster = node._path.placement
    return [*node._path.calls, *cluster.errands, *cluster.carrier._sent, *cluster._server._served]


@pytest.mark.parametrize("block", range(4))
def test_every_call_that_was_accepted_ends_once_and_nothing_stays_behind(block: int) -> None:
    logging.disable(logging.ERROR)
    try:
        for seed in range(block, SEEDS, 4):
            world, left = run_virtual(live(seed))
            rows = world.store.rows()
            admitted = Counter(row.request_id for row in rows if row.kind == "admitted")
            spent = Counter(row.root_id for row in rows if row.kind == "admitted")
            assert left == []
            assert world.store.verify().ok
            assert set(admitted.values()) <= {1}
            assert Counter(row.request_id for row in rows if row.kind == "settled") == admitted
            assert max(spent.values()) <= CALLS_MAX
    finally:
        logging.disable(logging.NOTSET)
