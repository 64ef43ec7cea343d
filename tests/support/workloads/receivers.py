"""Work that is handed off: users who ask for something to be done later, and receivers on nodes that die under it.

What a receiver is to do comes with the handoff as a plan: work for a while, tell how far it is, ask, give it back, hold on to
it for ever, fail, or answer. Receivers get their work in every way there is, so that some always want the same.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from typing import Any, Final, TypeVar

from comity.contextcore.handoffs.manager import AsyncHandoffManager
from comity.contextcore.handoffs.receiver import AsyncHandoffReceiver
from comity.core.agent.agent import Agent
from comity.core.envelope.envelope import Reply
from comity.core.handoff.machine import Handoff, State
from comity.errors import ComityError, UnavailableError
from comity.node.node import Node
from comity.runtime.call.context import Context
from comity.testing.sim.nodes import CrashedError, SimNode
from comity.testing.sim.world import TRIES_MAX, World

ERRANDS: Final = 100
NODES: Final = 3
ANYBODY: Final = "fix"  # a capability that every receiver has
RECEIVERS: Final = ("plumber", "painter")
USERS: Final = ("ada", "bob")
MARKS: Final = (
    "errand answered",
    "errand cancelled",
    "errand given back",
    "former receiver refused",
    "handoff dead-lettered",
    "handoff re-delivered",
    "two wanted one errand",
)
# What is slow to come is not waited for longer than this; that it ends all the same, the world sees.
PATIENCE_MS: Final = 3_000
ANSWER_S_MAX: Final = 2.0

Result = TypeVar("Result")


# --- who receives ---


async def do(world: World, receiver: AsyncHandoffReceiver, handoff: Handoff) -> None:
    """Do what the plan says. A receiver that has lost the handoff meanwhile gets an error."""
    plan, handoff_id = handoff.inputs, handoff.id
    await asyncio.sleep(plan["ms"] / 1000)
    if plan["progress"]:
        await receiver.progress(handoff_id, {"percent": 50})
        await asyncio.sleep(plan["ms"] / 1000)
    if plan["asks"]:
        await _ask(world, receiver, handoff_id)
    match plan["ends"]:
        case "release":
            await receiver.release(handoff_id)
            world.reached("errand given back")
        case "hang":
            await asyncio.sleep(1e6)
        case "fail":
            await receiver.fail(handoff_id, "as told")
        case _:
            await receiver.complete(handoff_id, {"for": handoff.request.user_id})


async def _ask(world: World, receiver: AsyncHandoffReceiver, handoff_id: str) -> None:
    """Ask, and go on without an answer if none comes."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(ANSWER_S_MAX):
            await receiver.request_input(handoff_id, "which colour?")
            world.reached("errand answered")


async def _take(world: World, receiver: AsyncHandoffReceiver) -> None:
    """Take what comes, two at a time."""
    while True:
        taken = await receiver.take(2)
        await _all(world, receiver, taken)


async def _all(world: World, receiver: AsyncHandoffReceiver, taken: list[Handoff]) -> None:
    outcomes = await asyncio.gather(*(do(world, receiver, one) for one in taken), return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException) and not isinstance(outcome, ComityError):
            raise outcome


async def _look_first(world: World, receiver: AsyncHandoffReceiver) -> None:
    """Look at what comes, kept from others meanwhile, and accept or reject it."""
    async for handoff in receiver.watch_handoffs():
        if handoff.inputs["ends"] == "reject":
            await receiver.reject(handoff.id, "not mine")
        else:
            await receiver.accept(handoff.id)
            await _all(world, receiver, [handoff])


async def _snatch(world: World, receiver: AsyncHandoffReceiver) -> None:
    """Look at what waits, and try to be the first."""
    async for handoff in receiver.peek_handoffs():
        try:
            mine = await receiver.accept(handoff.id)
        except ComityError as error:
            if error.code == "HANDOFF_TAKEN":
                world.reached("two wanted one errand")
            elif isinstance(error, UnavailableError):
                raise
        else:
            await _all(world, receiver, [mine])


async def _serve(world: World, receiver: AsyncHandoffReceiver) -> None:
    """Let the receiver do the whole loop."""

    async def work(handoff: Handoff) -> dict[str, str]:
        plan = handoff.inputs
        await asyncio.sleep(plan["ms"] / 1000)
        if plan["asks"]:
            await _ask(world, receiver, handoff.id)
        if plan["ends"] == "hang":
            await asyncio.sleep(1e6)
        if plan["ends"] == "fail":
            raise ValueError("as told")
        return {"for": handoff.request.user_id}

    await receiver.serve(work, concurrency=2)


async def _keep(world: World, receiver: AsyncHandoffReceiver) -> None:
    """Accept now and end later, as a person does: what this agent accepted before a restart is still its own."""
    desk = await receiver.desk()
    accepted = desk.queue.find(states=(State.ACCEPTED, State.IN_PROGRESS, State.INPUT_REQUIRED))
    await _all(world, receiver, [one for one in accepted if one.holder == receiver._holder])
    await _snatch(world, receiver)


WAYS: Final = (_take, _look_first, _snatch, _serve, _keep)


async def _receive(world: World, node: SimNode, number: int) -> None:
    """Keep a receiver running on a node, over all its lives."""
    chance = world.stream(f"receiver {number}")
    way, agent_id, lease_ms = chance.choice(WAYS), chance.choice(RECEIVERS), world.knob(200, 2_000, 15_000)
    while True:
        await node.until_up()
        assert node.node is not None
        try:
            await node.within(_one_life(world, node.node, way, agent_id, lease_ms))
        except (CrashedError, ComityError):
            await asyncio.sleep(0.05 + 0.2 * chance.random())


Way = Callable[[World, AsyncHandoffReceiver], Awaitable[None]]


async def _one_life(world: World, node: Node, way: Way, agent_id: str, lease_ms: int) -> None:
    async with AsyncHandoffReceiver(agent_id, [ANYBODY], node=node, lease_ms=lease_ms, keeps=way is _keep) as receiver:
        await way(world, receiver)


# --- who hands off ---


@cache
def _boss() -> Agent:
    """Return an agent that has everything done by others."""
    boss = Agent("boss")

    @boss.capability("DELEGATE")
    async def delegate(ctx: Context, to: str, plan: dict[str, Any]) -> str:
        reply = await ctx.hand_off(to, ANYBODY, plan, task="see to it")
        return str(reply.status)

    return boss


class Client:
    """A user at some of the nodes, or all, who tries again where one dies."""

    def __init__(self, world: World, number: int, nodes: Sequence[SimNode] = ()) -> None:
        self._world = world
        self._nodes = nodes or list(world.nodes.values())
        self.chance = world.stream(f"errand {number}")
        self.user_id = self.chance.choice(USERS)

    async def ask(self, what: Callable[[AsyncHandoffManager], Awaitable[Result]]) -> Result:
        """Ask a manager on some node, and another if that node dies or cannot be used."""
        world, chance = self._world, self.chance
        for tried in range(TRIES_MAX):
            node = chance.choice(self._nodes)
            if node.is_up and node.node is not None:
                manager = AsyncHandoffManager(node=node.node, agent_id="client", user_id=self.user_id)
                try:
                    result: Result = await node.within(what(manager))
                except (CrashedError, UnavailableError):
                    world.reached("client asked again")
                else:
                    return result
            await asyncio.sleep(min(0.05 * (tried + 1), 1.0) * (0.5 + chance.random()))
        raise CrashedError(f"no node answered in {TRIES_MAX} tries")


def _plan(client: Client) -> dict[str, Any]:
    chance = client.chance
    return {
        "ms": chance.choice((0, 1, 50, 500)),
        "progress": chance.random() < 0.2,
        "asks": chance.random() < 0.2,
        "ends": chance.choice(("complete",) * 6 + ("fail", "release", "reject", "hang")),
    }


async def _errand(world: World, number: int, after_s: float) -> None:
    """Hand something off, wait for it, answer what is asked or withdraw it, and look at the end."""
    client = Client(world, number)
    chance, handoff_id = client.chance, f"h{number}"
    to, plan = chance.choice((*RECEIVERS, None)), _plan(client)
    more: dict[str, Any] = {
        "timeout_ms": chance.choice((300, 5_000, 20_000)),
        "attempts_max": chance.choice((1, 2, 5)),
        "priority": chance.choice(("low", "normal", "high", "critical")),
    }

    def withdraw(manager: AsyncHandoffManager) -> Awaitable[Handoff]:
        return manager.cancel(handoff_id)

    is_withdrawn, patience_ms = chance.random() < 0.1, chance.choice((300, 2_000))
    await asyncio.sleep(after_s)
    try:
        await client.ask(lambda manager: manager.create_handoff(to, ANYBODY, "see to it", plan, handoff_id=handoff_id, **more))
    except ComityError:  # refused: no client has a promise that it will be done
        return
    if is_withdrawn:
        await asyncio.sleep(0.1 * chance.random())
        await _tolerantly(client.ask(withdraw), world, "errand cancelled")
    give_up_ms = world.now_ms() + more["timeout_ms"] + PATIENCE_MS
    while world.now_ms() < give_up_ms:
        found = await client.ask(lambda manager: manager.await_result(handoff_id, patience_ms))
        if found.has_ended:
            again = await client.ask(lambda manager: manager.get_handoff_status(handoff_id))
            assert again.result == found.result, f"{handoff_id} had {found.result} and has {again.result}"
            return
        if found.state is State.INPUT_REQUIRED and chance.random() < 0.7:
            await _tolerantly(client.ask(lambda manager: manager.provide_input(handoff_id, "blue")), world, "")
        elif found.state is State.IN_PROGRESS and chance.random() < 0.2:  # it takes too long
            await _tolerantly(client.ask(withdraw), world, "errand cancelled")


async def _tolerantly(asking: Awaitable[Any], world: World, mark: str) -> None:
    """Do what may come too late."""
    try:
        await asking
    except ComityError as error:
        if error.code not in {"HANDOFF_ENDED", "HANDOFF_STATE_CONFLICT"}:
            raise
    else:
        if mark:
            world.reached(mark)


async def _delegated(world: World, number: int, after_s: float) -> Reply:
    """Call an agent that hands off what it is asked, as part of its own tree."""
    client = Client(world, number)
    chance = client.chance
    inputs = {"to": chance.choice((*RECEIVERS, ANYBODY)), "plan": _plan(client)}
    more = {"user_id": client.user_id, "timeout_ms": chance.choice((300, 5_000)), "request_id": f"r{number}"}
    await asyncio.sleep(after_s)
    return await world.call("boss", "DELEGATE", inputs, **more)


async def handoffs(world: World) -> None:
    """Work handed off to receivers that die, stand still, lose their leases and come back: none is lost, or done twice."""
    nodes = [await world.node([_boss()]) for _ in range(NODES)]
    chance, spread_s = world.stream("users"), world.knob(0.0, 0.5, 5.0)
    receiving = [asyncio.ensure_future(_receive(world, node, number)) for number, node in enumerate(nodes * 2)]
    wishes = [_delegated if chance.random() < 0.2 else _errand for _ in range(ERRANDS)]
    await asyncio.gather(*(wish(world, number, spread_s * chance.random()) for number, wish in enumerate(wishes)))
    await world.heal()
    await world.end_handoffs()
    for task in receiving:
        task.cancel()
    await asyncio.sleep(1)  # they give back what they have
