"""Every route of the API, in one table: what is served and what OpenAPI says are both made from it."""

from __future__ import annotations

from typing import Final

from comity import Reply
from comity.core.access import Right
from comity.server import agents, calls, guidance, insights, life, system
from comity.server.calls import AfterQuery, CallBody, CallQuery, Cancelled, Started
from comity.server.routes import Route

EVENTS: Final = "text/event-stream"

LIFE: Final = (
    Route(
        method="GET", path="/healthz", name="health", right=None, handler=life.health, tag="node",
        summary="Whether the process answers", answer=life.Health,
    ),
    Route(
        method="GET", path="/readyz", name="ready", right=None, handler=life.ready, tag="node",
        summary="Whether calls are accepted: the store can be written and the server is not stopping",
        answer=life.Health, others={503: life.Health},
    ),
    Route(
        method="GET", path="/metrics", name="metrics", right=Right.READ, handler=life.metrics, tag="node",
        summary="What is counted, in Prometheus's text format", answer=str, media_type="text/plain",
    ),
    Route(
        method="GET", path="/openapi.json", name="openapi", right=None, handler=life.openapi, tag="node",
        summary="This description", answer=dict,
    ),
    Route(
        method="POST", path="/v1/session", name="sign_in", right=None, handler=life.sign_in, tag="node",
        summary="Exchange a one-time code for a console token", body=life.SignIn, answer=life.Console,
        codes=("IDENTITY_EXPIRED",),
    ),
    Route(
        method="GET", path="/v1/me", name="me", right=None, handler=life.me, tag="node",
        summary="Whose token this is, and which node answers", answer=life.Me,
    ),
)  # fmt: skip

CALLS: Final = (
    Route(
        method="POST", path="/v1/calls", name="create_call", right=Right.CALLS_CREATE, handler=calls.unrouted, tag="calls",
        summary="Call a capability of an agent, and wait for its reply unless `wait=false`",
        query=CallQuery, body=CallBody, answer=Reply, others={202: (Started, Reply)},
    ),
    Route(
        method="POST", path="/v1/calls/{request_id}/cancel", name="cancel_call", right=Right.CALLS_CANCEL, handler=calls.cancel,
        tag="calls", summary="Cancel a call and everything below it", answer=Cancelled, codes=("HTTP_RESOURCE_UNKNOWN",),
    ),
    Route(
        method="GET", path="/v1/calls/{request_id}/events", name="follow_call", right=Right.READ, handler=calls.follow,
        tag="calls", summary="Follow a call and everything below it, then get its reply (server-sent events)",
        query=AfterQuery, answer=str, media_type=EVENTS, codes=("HTTP_RESOURCE_UNKNOWN", "HTTP_EVENTS_GONE"),
    ),
)  # fmt: skip

AGENTS: Final = (
    Route(
        method="GET", path="/v1/agents", name="list_agents", right=Right.READ, handler=agents.find, tag="agents",
        summary="List the agents, or search them and their capabilities by words",
        query=agents.AgentQuery, answer=agents.Agents,
    ),
    Route(
        method="GET", path="/v1/agents/{agent_id}", name="show_agent", right=Right.READ, handler=agents.show, tag="agents",
        summary="Show an agent with the schemas of its capabilities", answer=agents.AgentView, codes=("HTTP_RESOURCE_UNKNOWN",),
    ),
)  # fmt: skip

GUIDANCE: Final = (
    Route(
        method="GET", path="/v1/guidance", name="show_guidance", right=Right.READ, handler=guidance.show, tag="guidance",
        summary="Show the guidance in force", answer=guidance.GuidanceView,
    ),
    Route(
        method="PUT", path="/v1/guidance", name="put_guidance", right=Right.GUIDANCE_WRITE, handler=guidance.put,
        tag="guidance", summary="Put guidance in force, in place of the one before",
        body=guidance.GuidanceBody, answer=guidance.GuidanceView,
        codes=("HTTP_RESOURCE_UNKNOWN", "INPUT_VALIDATION_FAILED", "ENVELOPE_TOO_LARGE"),
    ),
    Route(
        method="POST", path="/v1/guidance/preview", name="preview_guidance", right=Right.READ, handler=guidance.preview,
        tag="guidance", summary="Show which capabilities and tools guidance would concern; nothing changes",
        body=guidance.GuidanceBody, answer=guidance.Preview, codes=("INPUT_VALIDATION_FAILED", "ENVELOPE_TOO_LARGE"),
    ),
    Route(
        method="POST", path="/v1/guidance/questions/{question_id}/answer", name="answer_question", right=Right.GUIDANCE_WRITE,
        handler=guidance.answer, tag="guidance", summary="Answer a question of the guidance",
        body=guidance.AnswerBody, answer=guidance.GuidanceView, codes=("HTTP_RESOURCE_UNKNOWN", "INPUT_VALIDATION_FAILED"),
    ),
)  # fmt: skip

INSIGHTS: Final = (
    Route(
        method="GET", path="/v1/insights", name="list_insights", right=Right.TRACES_READ, handler=insights.find, tag="insights",
        summary="List what agents found out and still holds", query=insights.InsightQuery, answer=insights.Insights,
        codes=("INPUT_VALIDATION_FAILED",),
    ),
    Route(
        method="GET", path="/v1/views/{audience}", name="show_view", right=Right.TRACES_READ, handler=insights.show,
        tag="insights", summary="Show what agents found out as one audience likes to see it",
        query=insights.ViewQuery, answer=insights.Personal, codes=("HTTP_RESOURCE_UNKNOWN", "INPUT_VALIDATION_FAILED"),
    ),
)  # fmt: skip

SYSTEM: Final = (
    Route(
        method="GET", path="/v1/system", name="show_system", right=Right.READ, handler=system.show, tag="node",
        summary="Show how the node and its store stand", answer=system.System,
    ),
)  # fmt: skip

ROUTES: Final[tuple[Route, ...]] = (*LIFE, *CALLS, *AGENTS, *GUIDANCE, *INSIGHTS, *SYSTEM)
