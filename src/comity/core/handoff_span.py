"""What the span of a handoff says, under the names of ContextCore's protocol and of OpenTelemetry's GenAI conventions."""

from __future__ import annotations

from typing import Any

from comity.core.handoff import Handoff


def handoff_attributes(handoff: Handoff) -> dict[str, Any]:
    """Return what a span says about a handoff; its inputs and its result are content, and stay out."""
    request = handoff.request
    said = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.call.id": handoff.id,
        "gen_ai.tool.name": request.capability,
        "gen_ai.tool.type": "agent_handoff",
        "gen_ai.agent.id": request.target,
        "gen_ai.conversation.id": request.session_id if request.session_id != request.root_id else "",
        "handoff.id": handoff.id,
        "handoff.capability_id": request.capability,
        "handoff.from_agent": request.source or "",
        "handoff.to_agent": request.target,
        "handoff.receiver": handoff.receiver,
        "handoff.priority": request.priority.value,
        "handoff.status": handoff.state.value,
        "handoff.attempts": handoff.attempts,
        "handoff.result_trace_id": handoff.result_trace_id,
        "comity.tenant.id": request.tenant_id if request.tenant_id != "default" else "",
    }
    return {name: value for name, value in said.items() if value != ""}
