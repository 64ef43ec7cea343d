"""Agents of the five protocols' examples on a served node, and tokens of agents that call them from outside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from comity import Agent, Context, Node
from comity.core.access import Left, Standing
from comity.orchestrator import Orchestrator

VECTORS = Path(__file__).parents[1] / "dialects" / "vectors"


def document(dialect: str, name: str) -> Any:
    """Return an example of a protocol."""
    return json.loads((VECTORS / dialect / f"{name}.json").read_text())


def node() -> Node:
    """Return a node with the agents that the protocols' examples ask."""
    analyst, byte, researcher, specialist = Agent("ANL"), Agent("byte-doc"), Agent("researcher"), Agent("o11y")
    writer = Agent("DOC")

    @analyst.capability("ANL_NPV")
    async def npv(cash_flows: list[float], discount_rate: float, periods: str = "annual") -> dict[str, Any]:
        return {"npv": round(sum(cash / (1 + discount_rate) ** year for year, cash in enumerate(cash_flows)), 2)}

    @analyst.capability("ANL_PROJECTION")
    async def projection(ctx: Context, years: int = 3) -> dict[str, Any]:
        return {"years": years, "asked": ctx.request.context.original_request, "before": ctx.request.context.prior_agents}

    @writer.capability("DOC_GENERATE")
    async def generate(ctx: Context, topic: str) -> dict[str, Any]:
        return {"document": topic, "position": ctx.request.context.workflow_position}

    @byte.capability("message")
    async def extract(ctx: Context) -> str:
        return f"extracted for {ctx.request.user_id} from {ctx.request.source} at depth {ctx.request.depth}"

    @researcher.capability("message")
    async def research(ctx: Context) -> str:
        return f"about {ctx.request.message}"

    @specialist.capability("investigate_error")
    async def investigate(error_context: str, time_range: str, app_name: str) -> dict[str, Any]:
        return {"root_cause": "N+1 query", "evidence": ["trace"], "recommended_fix": "join"}

    return Node([Orchestrator(), analyst, writer, byte, researcher, specialist], lag_ms=None)


def agent_token(
    served: Any, agent: str, *, user_id: str, chain: tuple[str, ...] = (), scope: str = "call:*/*", **more: Any
) -> str:
    """Return a token of an agent of the served node itself, which runs in another process."""
    tokens, now_ms = served.state.auth.signed.tokens, served.state.now_ms()
    left = Left(**({"deadline": now_ms + 60_000, "calls": 10, "depth": 3, "fan_out": 5} | more.pop("left", {})))
    name = tokens.ring.issuer
    standing = Standing(chain=tuple(f"{one}::{name}" for one in (*chain, agent)), left=left, req=more.pop("req", ""))
    audience = more.pop("audience", name)
    return tokens.for_agent(agent, audience=audience, user_id=user_id, standing=standing, scope=scope, now_ms=now_ms, **more)


def bearer(token: str) -> dict[str, str]:
    """Return the header that shows a token."""
    return {"authorization": f"Bearer {token}"}
