"""The project's own workload: agents that do as they are told, and users who tell them everything that could go wrong.

What an agent is to do comes with the call as a plan: wait, use tokens, keep something, use a tool, call others one after the
other or at once, and answer or fail. Plans are drawn from the seed.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import random
from functools import cache
from typing import Any, Final

from comity.core.agent.agent import Agent
from comity.core.agent.breaker import Policy
from comity.core.agent.tool import Risk, Tool
from comity.core.call.limits import Limits
from comity.core.envelope.envelope import Reply
from comity.core.model.exchange import Prompt, User
from comity.errors import ComityError, TargetError, UnavailableError
from comity.runtime.call.context import Context
from comity.testing.scripted import ScriptedModel
from comity.testing.sim.faults import Fault, Kind, Pace
from comity.testing.sim.invariants import ViolationError
from comity.testing.sim.nodes import CrashedError
from comity.testing.sim.world import World, current_world

Plan = dict[str, Any]

# Every fault, with probabilities at which most calls still get through. What a crash does to the disk is decided at the crash.
_OFTEN: Final = {
    Kind.NODE_PAUSE: 0.04, Kind.NODE_CRASH: 0.02, Kind.CLOCK_SKEW: 0.3,
    Kind.STORE_PARTIAL_WRITE: 0.4, Kind.STORE_TORN_TAIL: 0.4, Kind.STORE_UNFLUSHED_LOST: 0.3,
}  # fmt: skip
# These runs last long enough for processes to be hit as time passes.
STORM: Final = tuple(Fault(kind=kind, probability=_OFTEN.get(kind, 0.01), by=Pace.TIME) for kind in Kind)

ROOTS: Final = 36
# Where these made fewer calls than a run should see, more users come.
CALLS_MIN: Final = 100
MORE_ROOTS: Final = 8
ANSWERS_MAX: Final = 50
# What a long run must reach, or it has shown nothing about it.
MARKS: Final = (
    "call had to wait",
    "calls of a dead node taken up",
    "client asked again",
    "late reply",
    "node crashed",
    "node restarted",
    "partial write",
    "paused node came back",
    "repeated request joined",
    "torn tail",
    "tree waited for a person",
    "unflushed writes lost",
    "wait-for cycle refused",
)
CLUSTER_MARKS: Final = (
    "call had to wait",
    "call went on elsewhere",
    "client asked again",
    "damaged message dropped",
    "duplicate refused",
    "late reply",
    "lease takeover",
    "message met a partition",
    "node crashed",
    "node restarted",
    "paused node came back",
    "zombie refused",
)
USERS: Final = ("ada", "bob", "eve")
AGENTS: Final = ("serial", "narrow", "broad", "slow", "cart")
DEPTH: Final = 3
WIDE: Final = Limits(depth_max=9, fan_out_max=99, calls_max=500)  # what a greedy agent asks for, and must not get


async def do(ctx: Context, plan: dict[str, Any]) -> dict[str, Any]:
    """Do as one is told, and say for whom."""
    users = [ctx.request.user_id]
    if plan["ms"]:
        await asyncio.sleep(plan["ms"] / 1000)
    if plan["tokens"]:
        ctx.report_usage(completion_tokens=plan["tokens"])
    if plan["keeps"]:
        users += _keep(ctx)
    if plan["tool"]:
        try:
            await ctx.use_tool(plan["tool"], amount=1)
        except ComityError as error:
            if error.code == "STORE_UNAVAILABLE":
                raise
    if plan["asks"]:
        await _ask_model()
    replies: list[Reply] = []
    if plan["at_once"]:
        replies = await ctx.gather(*(_ask(ctx, one) for one in plan["calls"]))
    else:
        for one in plan["calls"]:
            replies.append(await _ask(ctx, one))
    for reply in replies:
        if reply.ok and isinstance(reply.data, dict):
            users += reply.data["users"]
    if plan["fails"]:
        raise TargetError("as told", code=plan["fails"])
    return {"users": sorted(set(users))}


async def _ask_model() -> None:
    """Ask a model and be content with whatever it says; what its provider does may still fail the call."""
    model = current_world().model(ScriptedModel(lambda _: "yes"))
    async for _ in model.stream(Prompt(messages=(User(text="well?"),))):
        pass


def _keep(ctx: Context) -> list[str]:
    """Leave something behind where only the same user should find it, and return what was there."""
    known = ctx.session.facts.get("user")
    found = [] if known is None else [str(known)]
    ctx.session.learn("user", ctx.request.user_id)
    if "/" in ctx.request.target:
        found += ctx.state.setdefault("users", [])
        ctx.state["users"] = [ctx.request.user_id]
    return found


def _ask(ctx: Context, one: dict[str, Any]) -> Any:
    target = one["to"]
    if target == "cart":
        target = f"cart/{ctx.request.user_id}"
    limits = WIDE if one["is_greedy"] else None
    return ctx.call(
        target, "DO", {"plan": one["plan"]}, timeout_ms=one["timeout_ms"], objective=one["objective"], limits=limits
    )


async def _pay(amount: int, idempotency_key: str) -> str:
    await asyncio.sleep(0.005)
    return f"{amount} under {idempotency_key}"


async def _look(amount: int) -> int:
    await asyncio.sleep(0.001)
    return amount


TOOLS: Final = (
    Tool(name="pay", function=_pay, risk=Risk.MEDIUM, takes_key=True),
    Tool(name="look", function=_look, idempotent=True),
    Tool(name="wire", function=_look, risk=Risk.HIGH),
)


async def _wake(_: str, state: dict[str, Any]) -> None:
    await asyncio.sleep(0.002)
    state["woken"] = state.get("woken", 0) + 1


@cache
def _declared() -> tuple[Agent, ...]:
    """Declare the agents once: building their schemas takes longer than a hundred simulated calls."""
    agents = []
    for name in AGENTS:
        hooks = {"on_activate": _wake, "on_deactivate": _wake} if name == "slow" else {}
        agent = Agent(name, tools_allowed=["pay", "look", "wire"], **hooks)  # type: ignore[arg-type]
        agent.capability("DO", breaker_policy=Policy(failures_max=3, open_ms=400, probes=2, rate_calls_min=8))(do)
        agents.append(agent)
    return tuple(agents)


def agents(world: World) -> list[Agent]:
    """Return the agents with bounds that this seed chose."""
    places = {"serial": 1, "narrow": 2, "broad": 64, "slow": world.knob(1, 4), "cart": 1}
    made = []
    for declared in _declared():
        agent = copy.copy(declared)
        agent.concurrency = places[agent.id]
        agent.pending_max = world.knob(0, 2, 5, 1_000)
        agent.idle_ms = world.knob(200, 300_000)
        made.append(agent)
    return made


class Drawer:
    """Draws plans."""

    def __init__(self, world: World) -> None:
        self._chance = chance = world.stream("plans")
        # Waiting for a person is tried on nodes that are alone: elsewhere only the part of a tree on the asking node waits.
        self._tools = ("pay", "pay", "look") if len(world.nodes) > 1 else ("pay", "pay", "look", "wire")
        self._share_of_tools = world.knob(0.0, 0.1, 0.3)
        self._share_of_failures = world.knob(0.0, 0.05, 0.3)
        self._share_of_models = world.knob(0.0, 0.3)
        self._share_kept = world.knob(0.0, 0.2)
        self._timeouts = world.knob((20, 200, 2_000), (5_000, 30_000), (50,))
        self._most_calls = world.knob(2, 3, 4)
        self._random = chance.random

    def plan(self, depth: int) -> Plan:
        """Return what to do, calls included, down to a depth."""
        chance, draw = self._chance, self._random
        count = 0 if not depth else chance.choice((0, 1, 1, 2, self._most_calls))
        return {
            "ms": chance.choice((0, 0, 0, 1, 10, 100)),
            "tokens": 7 if draw() < 0.1 else 0,
            "keeps": draw() < self._share_kept,
            "tool": chance.choice(self._tools) if draw() < self._share_of_tools else "",
            "asks": draw() < self._share_of_models,
            "at_once": draw() < 0.5,
            "fails": _failure(chance) if draw() < self._share_of_failures else "",
            "calls": [self._call(depth - 1) for _ in range(count)],
        }

    def _call(self, depth: int) -> dict[str, Any]:
        chance = self._chance
        return {
            "to": chance.choice(AGENTS),
            "plan": self.plan(depth),
            "timeout_ms": chance.choice(self._timeouts),
            "objective": "this" if self._random() < 0.1 else "",
            "is_greedy": self._random() < 0.1,
        }

    def limits(self) -> Limits:
        """Return limits, some of them tight."""
        chance = self._chance
        return Limits(
            depth_max=chance.choice((1, 2, 4)),
            fan_out_max=chance.choice((1, 2, 10)),
            calls_max=chance.choice((2, 4, 12, 100)),
            tokens_max=chance.choice((None, None, 10)),
        )


def _failure(chance: random.Random) -> str:
    transient = ("TARGET_TEMPORARY_FAILURE",) * 6
    return chance.choice((*transient, "TARGET_FAILED", "TARGET_FAILED", "TARGET_MISCONFIGURED"))


async def mesh(world: World, nodes: int = 1, *, is_clustered: bool = False) -> None:
    """Several users on several nodes, all at once."""
    made = agents(world)
    for _ in range(nodes):
        await world.node(made, tools=TOOLS, is_clustered=is_clustered)
    drawer, chance = Drawer(world), world.stream("users")
    spread_s = world.knob(0.0, 0.2, 2.0)
    numbers = range(ROOTS)
    while numbers:
        await asyncio.gather(*(_user(world, drawer, number, spread_s * chance.random()) for number in numbers))
        few = world.witness.calls < CALLS_MIN
        numbers = range(numbers.stop, numbers.stop + MORE_ROOTS) if few else range(0)


async def _answered(world: World, call: tuple[str, dict[str, Any], dict[str, Any]]) -> Reply:
    """Call, and answer what the agents ask a person until there is an end; who may answer and dies is asked again."""
    target, inputs, more = call
    for _ in range(ANSWERS_MAX):
        reply = await world.call(target, "DO", inputs, **more)
        if reply.status != "needs_input":
            break
        await asyncio.sleep(0.2)
        node = next(iter(world.nodes.values()))
        with contextlib.suppress(CrashedError, UnavailableError):
            await node.decide(reply.data["approval_id"], granted=not reply.data["approval_id"].endswith("#1"))
    return reply


async def _user(world: World, drawer: Drawer, number: int, after_s: float) -> None:
    chance = world.stream(f"user {number}")
    user = chance.choice(USERS)
    target = chance.choice(AGENTS)
    if target == "cart":
        target = f"cart/{user}"
    request_id = f"r{number}"
    more = {
        "user_id": user,
        "request_id": request_id,
        "session_id": f"{user}-session" if chance.random() < 0.3 else None,
        "timeout_ms": chance.choice((100, 1_000, 10_000)),
        "limits": drawer.limits(),
    }
    inputs = {"plan": drawer.plan(DEPTH)}
    await asyncio.sleep(after_s)
    times = 2 if chance.random() < 0.1 else 1
    asking = [_answered(world, (target, inputs, more)) for _ in range(times)]
    replies = await asyncio.gather(*asking)  # some ask twice under one id
    for reply in replies:
        if reply.ok and isinstance(reply.data, dict) and set(reply.data["users"]) != {user}:
            raise ViolationError("IsolationHolds", f"{user} was told of {reply.data['users']} in {request_id}")
    if len(replies) == 2 and replies[0].status == replies[1].status:
        world.reached("repeated request joined")
