"""Every refusal the call path knows, each provoked once, in an order that the seed decides."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from comity.core.agent.agent import Agent, Status
from comity.core.agent.tool import Tool
from comity.core.call.guardrail import Allow, Guardrail, Stop
from comity.core.call.limits import MESSAGE_BYTES_MAX, Limits
from comity.core.envelope.envelope import Reply, Request
from comity.core.guidance.guidance import Constraint, Guidance
from comity.core.redaction import Action, Policy
from comity.core.session.session import EXPIRED_MS
from comity.errors import ComityError, UnavailableError
from comity.runtime.call.context import Context
from comity.runtime.session.privacy import Privacy
from comity.testing.sim.world import World

Provoke = Callable[[World], Awaitable[Any]]


def _agents() -> list[Agent]:
    asker, doer, foe = Agent("ASKER", can_call=["DOER", "ASKER"]), Agent("DOER"), Agent("FOE")
    busy = Agent("BUSY", concurrency=1, pending_max=0)

    @asker.capability("ASK")
    async def ask(ctx: Context, to: str, capability: str = "DO", times: int = 1, objective: str = "") -> list[str]:
        asked = (ctx.call(to, capability, {"ms": 10}, objective=objective) for _ in range(times))
        return [_code(reply) for reply in await ctx.gather(*asked)]

    @asker.capability("USE")
    async def use(ctx: Context, tool: str) -> str:
        try:
            await ctx.use_tool(tool)
        except ComityError as error:
            return error.code
        return ""

    for agent in (asker, doer, busy, foe):

        @agent.capability("DO")
        async def do(ctx: Context, ms: int = 0, tokens: int = 0) -> None:
            await asyncio.sleep(ms / 1000)
            ctx.report_usage(completion_tokens=tokens)

    @doer.capability("FAIL")
    async def fail() -> None:
        raise UnavailableError("as told")

    @doer.capability("OFF", active=False)
    async def off() -> None: ...

    @doer.capability("GUIDED", touches=["topic:money"])
    async def guided() -> None: ...

    @doer.capability("BROKEN")
    async def broken(what: Any) -> None: ...

    doer.capabilities["BROKEN"].implementations = ()
    return [asker, doer, busy, foe, Agent("OLD", status=Status.RETIRED), Agent("ILL", status=Status.MAINTENANCE)]


def _code(reply: Reply) -> str:
    return "" if reply.error is None else reply.error.code


def _call(target: str, capability: str, inputs: dict[str, Any] | None = None, **more: Any) -> Provoke:
    more.setdefault("user_id", "u")
    return lambda world: world.call(target, capability, inputs, **more)


async def _busy(world: World) -> None:
    await asyncio.gather(*(world.call("BUSY", "DO", {"ms": 50}, user_id="u") for _ in range(2)))


async def _breaker(world: World) -> None:
    for _ in range(6):
        await world.call("DOER", "FAIL", user_id="u")


async def _reused(world: World) -> None:
    for ms in (1, 2):
        await world.call("DOER", "DO", {"ms": ms}, user_id="u", request_id="same")


async def _stolen(world: World) -> None:
    for user in ("one", "two"):
        await world.call("DOER", "DO", user_id=user, session_id="mine", message="hello")


async def _expired(world: World) -> None:
    for wait_ms in (EXPIRED_MS + 1, 0):
        await world.call("DOER", "DO", user_id="u", session_id="old", message="hello")
        await asyncio.sleep(wait_ms / 1000)


async def _tokens(world: World) -> None:
    await world.call("ASKER", "SPEND", user_id="u", limits=Limits(tokens_max=1))


async def _closing(world: World) -> None:
    node = next(iter(world.nodes.values()))
    long = asyncio.ensure_future(node.call("DOER", "STUBBORN", user_id="u"))
    await asyncio.sleep(0.01)
    closing = asyncio.ensure_future(node.close())
    await asyncio.sleep(0.01)
    if node.node is not None:
        await node.call("DOER", "DO", user_id="u")
    await asyncio.gather(long, closing)
    await node.start()


async def _without_store(world: World) -> None:
    node = next(iter(world.nodes.values()))
    node.break_store()
    await node.call("DOER", "DO", user_id="u")
    if node.life is not None:
        world.crash(node.life)
    await node.until_up()


# Provoked one after the other; the last two take the node down and bring it back.
PROVOKED: Final[dict[str, Provoke]] = {
    "IDENTITY_INVALID": _call("DOER", "DO", user_id=""),
    "INPUT_VALIDATION_FAILED": _call("DOER", "DO", {"ms": "many"}),
    "ENVELOPE_TOO_LARGE": _call("DOER", "DO", message="x" * (MESSAGE_BYTES_MAX + 1)),
    "IDENTITY_MISMATCH": _stolen,
    "SESSION_EXPIRED": _expired,
    "IDENTITY_REQUEST_ID_REUSED": _reused,
    "ROUTING_UNKNOWN_AGENT": _call("NOBODY", "DO"),
    "ROUTING_UNKNOWN_CAPABILITY": _call("DOER", "UNDO"),
    "ROUTING_AGENT_IN_MAINTENANCE": _call("ILL", "DO"),
    "ROUTING_AGENT_RETIRED": _call("OLD", "DO"),
    "ROUTING_CAPABILITY_INACTIVE": _call("DOER", "OFF"),
    "ROUTING_NOT_PERMITTED": _call("ASKER", "ASK", {"to": "FOE"}),
    "ROUTING_CYCLE_DETECTED": _call("ASKER", "ASK", {"to": "ASKER"}),
    "ROUTING_OBJECTIVE_IN_PROGRESS": _call("ASKER", "ASK", {"to": "DOER", "times": 2, "objective": "this"}),
    "TOOL_UNKNOWN": _call("ASKER", "USE", {"tool": "nothing"}),
    "TOOL_NOT_PERMITTED": _call("ASKER", "USE", {"tool": "work"}),
    "PRIVACY_BLOCKED": _call("DOER", "DO", message="my card is 4111 1111 1111 1111"),
    "GUARDRAIL_STOPPED": _call("DOER", "DO", message="forbidden word"),
    "GUIDANCE_BLOCKED": _call("DOER", "GUIDED"),
    "TARGET_MISCONFIGURED": _call("DOER", "BROKEN", {"what": 1}),
    "LIMIT_DEPTH_EXCEEDED": _call("ASKER", "ASK", {"to": "DOER"}, limits=Limits(depth_max=0)),
    "LIMIT_FAN_OUT_EXCEEDED": _call("ASKER", "ASK", {"to": "DOER", "times": 2}, limits=Limits(fan_out_max=1)),
    "LIMIT_DEADLINE_PASSED": _call("DOER", "DO", timeout_ms=0),
    "BUDGET_CALLS_EXHAUSTED": _call("ASKER", "ASK", {"to": "DOER"}, limits=Limits(calls_max=1)),
    "BUDGET_TOKENS_EXHAUSTED": _tokens,
    "AGENT_BUSY": _busy,
    "CAPABILITY_UNAVAILABLE": _breaker,
    "STORE_UNAVAILABLE": _without_store,
    "NODE_CLOSED": _closing,
}


def _guard(request: Request) -> Stop | Allow:
    return Stop(reason="it is forbidden") if "forbidden" in request.message else Allow()


async def refusals(world: World) -> None:
    """Provoke every refusal."""
    agents = _agents()
    asker, doer = agents[0], agents[1]

    @asker.capability("SPEND")
    async def spend(ctx: Context) -> str:
        await ctx.call("DOER", "DO", {"tokens": 5})
        return _code(await ctx.call("DOER", "DO"))

    @doer.capability("STUBBORN")
    async def stubborn() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(1)

    await world.node(
        agents,
        tools=[Tool(name="work", function=lambda: None)],
        guardrails=[Guardrail(name="words", inbound=_guard)],
        privacy=Privacy(policy=Policy({"CARD": Action.BLOCK})),
        guidance=Guidance(constraints=(Constraint(id="money", rule="No money", scope="topic:money"),)),
    )
    last = ("STORE_UNAVAILABLE", "NODE_CLOSED")
    names = [name for name in PROVOKED if name not in last]
    world.chance.shuffle(names)
    for name in (*names, *last):
        before = world.witness.refusals.get(name, 0)
        await PROVOKED[name](world)
        await asyncio.sleep(31)  # breakers close again, and what was refused is on disk
        assert world.witness.refusals.get(name, 0) > before, f"{name} was not provoked"
