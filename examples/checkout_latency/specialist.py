"""The specialist: waits for handoffs, looks into the traces, says what it found, and is held to what people allow.

python specialist.py FOLDER
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from comity import Agent, AsyncHandoffReceiver, Context, Node, Tool
from comity.engines.files.guidance import GuidanceFile, GuidanceResponder
from comity.engines.sqlite.spans.store import SpanStore
from comity.errors import RefusedError

PROJECT = "checkout-service"
SLOW = '{ name = "POST /checkout" && duration > 500ms } >> { name = "db.query" } | count() > 10'
FOLDER = Path(sys.argv[1]) if __name__ == "__main__" else Path()

o11y = Agent("o11y", description="Finds out why services are slow", tools_allowed=["edit_file"])


def edit_file(path: str, text: str) -> str:
    """Change a file of the service."""
    file = FOLDER / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return path


@o11y.capability("investigate_error", timeout_ms=60_000)
async def investigate_error(ctx: Context, error_context: str, time_range: str, app_name: str) -> dict[str, Any]:
    """Find the root cause of an error or a slowdown from the traces of a service."""
    with SpanStore(FOLDER / "telemetry.db") as telemetry:
        found = telemetry.search(SLOW, limit=100, spss=0)
    worst = max(found.traces, key=lambda trace: sum(one.matched for one in trace.spansets))
    queries = sum(one.matched for one in worst.spansets)
    evidence = [
        {"type": "trace", "ref": worst.trace_id, "description": f"{queries} database queries in one checkout"},
        {"type": "traceql", "ref": SLOW, "description": f"{len(found.traces)} slow checkouts within {time_range}"},
    ]
    cause = f"N+1 database query in payment verification: {queries} queries for one checkout of {app_name}"
    discovery = ctx.insight("discovery", summary=cause, confidence=0.95, rationale=error_context, evidence=evidence)
    fix = "Load all order lines of a payment with one query"
    try:
        await ctx.use_tool("edit_file", path="src/api/checkout.py", text="def checkout(order, *, batch): ...\n")
    except RefusedError as refused:  # a person said what must not be touched; the fix goes elsewhere
        ctx.insight(
            "decision",
            summary=f"{fix}, in the payment code and not in the API",
            confidence=0.9,
            rationale=refused.message,
            evidence=[{"type": "file", "ref": "src/payments/verify.py"}],
        )
        await ctx.use_tool("edit_file", path="src/payments/verify.py", text="# one query for all order lines\n")
    ctx.insight("risk", summary="The fix has no test yet", confidence=0.8, evidence=evidence[:1])
    return {"root_cause": cause, "evidence": evidence, "recommended_fix": fix, "insight_id": discovery.id}


async def main() -> None:
    """Serve one handoff and leave."""
    guidance = GuidanceFile(FOLDER / "project.yaml")
    tools = [Tool(name="edit_file", function=edit_file, touches=["$.path"])]
    async with (
        Node([o11y], store=FOLDER / "work.db", tools=tools, guidance=guidance, takes_handoffs=False) as node,
        AsyncHandoffReceiver("o11y", ["investigate_error"], node=node) as receiver,
    ):
        print("specialist: watching", flush=True)
        async for handoff in receiver.watch_handoffs():
            await receiver.accept(handoff.id)
            print(f"specialist: accepted {handoff.task}", flush=True)
            asked = handoff.request
            reply = await node.call(
                "o11y",
                asked.capability,
                asked.inputs,
                user_id=asked.user_id,
                traceparent=handoff.traceparent,
            )
            if not reply.ok:
                await receiver.fail(handoff.id, reply.message)
                return
            for warning in reply.warnings:
                print(f"specialist: warned: {warning}")
            responder = GuidanceResponder(node.spans, project_id=PROJECT, agent_id="o11y", source=guidance)
            responder.answer_question(
                "q-latency-cause", answer=reply.data["root_cause"], confidence=0.95, evidence=reply.data["evidence"]
            )
            await receiver.complete(handoff.id, result=reply.data, result_trace_id=asked.trace_id)
            print("specialist: completed", flush=True)
            return


if __name__ == "__main__":
    asyncio.run(main())
