"""Every route of the API, in one table: what is served and what OpenAPI says are both made from it."""

from __future__ import annotations

from typing import Final

from comity import Reply
from comity.core.access import Right
from comity.core.reading import CallRow, Page
from comity.runtime.workflow.store import RunRecord
from comity.server import (
    agents,
    approvals,
    audit,
    breakers,
    calls,
    guidance,
    handoffs,
    insights,
    keys,
    life,
    live,
    records,
    sacp,
    sessions,
    system,
    workflows,
)
from comity.server.calls import AfterQuery, CallBody, CallQuery, Cancelled, Started
from comity.server.receiver_routes import MEMORY, RECEIVERS
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
        method="POST", path="/v1/calls/rehearsal", name="rehearse_call", right=Right.CALLS_CREATE, handler=calls.rehearse,
        tag="calls", summary="Ask the admission rules about a call without making it", body=CallBody, answer=calls.DryRun,
        codes=("INPUT_VALIDATION_FAILED", "IDENTITY_MISMATCH"),
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

RECORDS: Final = (
    Route(
        method="GET", path="/v1/calls", name="list_calls", right=Right.READ, handler=records.find, tag="calls",
        summary="List calls, newest first", query=records.CallsQuery, answer=Page[CallRow],
    ),
    Route(
        method="GET", path="/v1/calls/histogram", name="count_calls", right=Right.READ, handler=records.times, tag="calls",
        summary="Count calls by status over time", query=records.TimesQuery, answer=records.Times,
    ),
    Route(
        method="GET", path="/v1/calls/{request_id}", name="show_call", right=Right.READ, handler=records.show, tag="calls",
        summary="Show a call, with what was asked while it is open and its reply once it has ended",
        answer=records.CallView, codes=("HTTP_RESOURCE_UNKNOWN",),
    ),
    Route(
        method="GET", path="/v1/calls/{request_id}/tree", name="show_tree", right=Right.READ, handler=records.tree, tag="calls",
        summary="Show the whole tree that a call belongs to", answer=records.TreeView, codes=("HTTP_RESOURCE_UNKNOWN",),
    ),
    Route(
        method="GET", path="/v1/map", name="show_map", right=Right.READ, handler=records.show_map, tag="calls",
        summary="Show which agent calls which, and how each agent stands", query=records.MapQuery, answer=records.Map,
    ),
    Route(
        method="GET", path="/v1/events", name="follow_node", right=Right.READ, handler=live.follow, tag="calls",
        summary="Follow calls as they begin and end, and what waits for a person (server-sent events)",
        query=live.EventsQuery, answer=str, media_type=EVENTS, codes=("HTTP_EVENTS_GONE",),
    ),
    Route(
        method="GET", path="/v1/breakers", name="list_breakers", right=Right.READ, handler=breakers.find, tag="agents",
        summary="List the breakers of capabilities that ever failed", answer=breakers.Breakers,
    ),
    Route(
        method="POST", path="/v1/breakers/reset", name="reset_breaker", right=Right.BREAKERS_RESET, handler=breakers.reset,
        tag="agents", summary="Close a breaker at once", body=breakers.ResetBody, answer=breakers.BreakerView,
        codes=("HTTP_RESOURCE_UNKNOWN",),
    ),
)  # fmt: skip

AUDIT: Final = (
    Route(
        method="GET", path="/v1/audit", name="list_audit", right=Right.AUDIT_READ, handler=audit.find, tag="audit",
        summary="List rows of the audit, newest first", query=audit.AuditQuery, answer=audit.AuditRows,
    ),
    Route(
        method="GET", path="/v1/audit/verify", name="verify_audit", right=Right.AUDIT_READ, handler=audit.verify, tag="audit",
        summary="Walk the hash chain, and name the first row that does not fit", answer=audit.Checked,
    ),
    Route(
        method="GET", path="/v1/audit/verify/events", name="follow_verification", right=Right.AUDIT_READ, handler=audit.follow,
        tag="audit", summary="Walk the hash chain, saying how far the walk is (server-sent events)", answer=str,
        media_type=EVENTS,
    ),
    Route(
        method="GET", path="/v1/audit/export", name="export_audit", right=Right.AUDIT_READ, handler=audit.export, tag="audit",
        summary="Export rows of the audit, one JSON object a line", query=audit.AuditQuery, answer=str,
        media_type="application/x-ndjson",
    ),
)  # fmt: skip

SESSIONS: Final = (
    Route(
        method="GET", path="/v1/sessions", name="list_sessions", right=Right.READ, handler=sessions.find, tag="sessions",
        summary="List sessions, the latest used first", query=sessions.SessionsQuery, answer=sessions.SessionRows,
    ),
    Route(
        method="GET", path="/v1/sessions/{session_id}", name="show_session", right=Right.READ, handler=sessions.show,
        tag="sessions", summary="Show a session, with personal data as tokens", query=sessions.TenantQuery,
        answer=sessions.SessionView, codes=("HTTP_RESOURCE_UNKNOWN",),
    ),
    Route(
        method="DELETE", path="/v1/sessions/{session_id}", name="erase_session", right=Right.DATA_ERASE, handler=sessions.erase,
        tag="sessions", summary="Erase everything that was said in a session; the audit stays whole",
        query=sessions.TenantQuery, answer=sessions.Erased, codes=("HTTP_RESOURCE_UNKNOWN",),
    ),
    Route(
        method="GET", path="/v1/sessions/{session_id}/export", name="export_session", right=Right.DATA_REVEAL,
        handler=sessions.export, tag="sessions", summary="Export what a session knows, with personal data in clear",
        query=sessions.TenantQuery, answer=dict, codes=("HTTP_RESOURCE_UNKNOWN",),
    ),
    Route(
        method="POST", path="/v1/sessions/{session_id}/reveal", name="reveal_value", right=Right.DATA_REVEAL,
        handler=sessions.reveal, tag="sessions", summary="Show what a token stands for; the audit notes who looked",
        query=sessions.TenantQuery, body=sessions.RevealBody, answer=sessions.Revealed,
        codes=("HTTP_RESOURCE_UNKNOWN", "INPUT_VALIDATION_FAILED"),
    ),
)  # fmt: skip

APPROVALS: Final = (
    Route(
        method="GET", path="/v1/approvals", name="list_approvals", right=Right.READ, handler=approvals.find, tag="approvals",
        summary="List what tools ask people", query=approvals.ApprovalsQuery, answer=approvals.Approvals,
    ),
    Route(
        method="POST", path="/v1/approvals/{approval_id}/grant", name="grant_approval", right=Right.APPROVALS_DECIDE,
        handler=approvals.grant, tag="approvals", summary="Let a tool be used as asked, and go on with its call",
        body=approvals.DecideBody, is_body_optional=True,
        answer=approvals.Decided, codes=("HTTP_RESOURCE_UNKNOWN", "APPROVAL_ANSWERED"),
    ),
    Route(
        method="POST", path="/v1/approvals/{approval_id}/deny", name="deny_approval", right=Right.APPROVALS_DECIDE,
        handler=approvals.deny, tag="approvals", summary="Say no; the agent that asked goes on without",
        body=approvals.DecideBody, is_body_optional=True,
        answer=approvals.Decided, codes=("HTTP_RESOURCE_UNKNOWN", "APPROVAL_ANSWERED"),
    ),
)  # fmt: skip

HANDOFFS: Final = (
    Route(
        method="GET", path="/v1/handoffs", name="list_handoffs", right=Right.READ, handler=handoffs.find, tag="handoffs",
        summary="List handoffs, newest first", query=handoffs.HandoffsQuery, answer=handoffs.Handoffs,
    ),
    Route(
        method="GET", path="/v1/handoffs/{handoff_id}", name="show_handoff", right=Right.READ, handler=handoffs.show,
        tag="handoffs", summary="Show a handoff with its history", answer=handoffs.HandoffView,
        codes=("HTTP_RESOURCE_UNKNOWN",),
    ),
    Route(
        method="POST", path="/v1/handoffs/{handoff_id}/answer", name="answer_handoff", right=Right.HANDOFFS_WRITE,
        handler=handoffs.answer, tag="handoffs", summary="Answer what the receiver asked", body=handoffs.AnswerBody,
        answer=handoffs.HandoffView, codes=("HTTP_RESOURCE_UNKNOWN", "HANDOFF_STATE_CONFLICT", "HANDOFF_ENDED"),
    ),
    Route(
        method="POST", path="/v1/handoffs/{handoff_id}/cancel", name="cancel_handoff", right=Right.HANDOFFS_WRITE,
        handler=handoffs.cancel, tag="handoffs", summary="Cancel a handoff", body=handoffs.CancelBody, is_body_optional=True,
        answer=handoffs.HandoffView, codes=("HTTP_RESOURCE_UNKNOWN", "HANDOFF_STATE_CONFLICT", "HANDOFF_ENDED"),
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

_RUN_CODES: Final = ("HTTP_RESOURCE_UNKNOWN", "WORKFLOW_UNKNOWN", "WORKFLOW_STATE_CONFLICT", "INPUT_VALIDATION_FAILED")
WORKFLOWS: Final = (
    Route(
        method="GET", path="/v1/workflows", name="list_workflows", right=Right.READ, handler=workflows.definitions,
        tag="workflows", summary="List the workflows that the node knows, as graphs", answer=workflows.Definitions,
    ),
    Route(
        method="POST", path="/v1/workflows/check", name="check_workflow", right=Right.READ, handler=workflows.check,
        tag="workflows", summary="Name every mistake of a definition; nothing is kept", body=workflows.CheckBody,
        answer=workflows.CheckedDefinition, codes=("ENVELOPE_TOO_LARGE",),
    ),
    Route(
        method="POST", path="/v1/workflows/{name}/runs", name="start_run", right=Right.WORKFLOWS_RUN, handler=workflows.start,
        tag="workflows", summary="Start a run of a workflow", body=workflows.StartBody, is_body_optional=True,
        answer=RunRecord, codes=(*_RUN_CODES, "WORKFLOW_INVALID", "IDENTITY_REQUEST_ID_REUSED"),
    ),
    Route(
        method="GET", path="/v1/runs", name="list_runs", right=Right.READ, handler=workflows.find, tag="workflows",
        summary="List runs, newest first", query=workflows.RunsQuery, answer=workflows.Runs,
    ),
    Route(
        method="GET", path="/v1/runs/{run_id}", name="show_run", right=Right.READ, handler=workflows.show, tag="workflows",
        summary="Show a run with its graph and everything that happened", answer=workflows.RunView, codes=_RUN_CODES,
    ),
    Route(
        method="POST", path="/v1/runs/{run_id}/answer", name="answer_run", right=Right.WORKFLOWS_RUN, handler=workflows.answer,
        tag="workflows", summary="Answer an open question of a run", body=workflows.AnswerBody, answer=RunRecord,
        codes=_RUN_CODES,
    ),
    Route(
        method="POST", path="/v1/runs/{run_id}/cancel", name="cancel_run", right=Right.WORKFLOWS_RUN, handler=workflows.cancel,
        tag="workflows", summary="Cancel a run", body=workflows.CancelBody, is_body_optional=True, answer=RunRecord,
        codes=_RUN_CODES,
    ),
    Route(
        method="POST", path="/v1/runs/{run_id}/fork", name="fork_run", right=Right.WORKFLOWS_RUN, handler=workflows.fork,
        tag="workflows", summary="Start a run that did the same until an event, and goes on from there",
        body=workflows.ForkBody, answer=RunRecord, codes=(*_RUN_CODES, "WORKFLOW_INVALID"),
    ),
    Route(
        method="POST", path="/v1/sacp/chains/{name}", name="run_chain", right=Right.WORKFLOWS_RUN, handler=sacp.run,
        tag="workflows", summary="Run a workflow as a chain of SACP, and wait for its reply or question", body=sacp.ChainBody,
        is_body_optional=True, answer=sacp.ChainReply,
        codes=(*_RUN_CODES, "WORKFLOW_INVALID", "CALL_TIMEOUT", "IDENTITY_REQUEST_ID_REUSED"),
    ),
    Route(
        method="POST", path="/v1/sacp/runs/{run_id}", name="answer_chain", right=Right.WORKFLOWS_RUN, handler=sacp.answer,
        tag="workflows", summary="Answer the question of a chain, or wait on for its reply", body=sacp.ChainAnswer,
        is_body_optional=True, answer=sacp.ChainReply, codes=(*_RUN_CODES, "CALL_TIMEOUT"),
    ),
)  # fmt: skip

SYSTEM: Final = (
    Route(
        method="GET", path="/v1/system", name="show_system", right=Right.READ, handler=system.show, tag="node",
        summary="Show how the node and its store stand", answer=system.System,
    ),
    Route(
        method="GET", path="/v1/keys", name="list_keys", right=Right.TOKENS_MANAGE, handler=keys.show, tag="node",
        summary="Show which keys sign and are trusted, and which tokens were revoked", answer=keys.Keys,
    ),
    Route(
        method="POST", path="/v1/tokens/revoke", name="revoke_token", right=Right.TOKENS_MANAGE, handler=keys.revoke,
        tag="node", summary="Refuse a token from now on", body=keys.RevokeBody, answer=keys.RevokedToken,
        codes=("IDENTITY_MISMATCH", "INPUT_VALIDATION_FAILED", "STORE_UNAVAILABLE"),
    ),
)  # fmt: skip

ROUTES: Final[tuple[Route, ...]] = (
    *LIFE, *CALLS, *RECORDS, *AGENTS, *AUDIT, *SESSIONS, *APPROVALS, *HANDOFFS, *RECEIVERS, *MEMORY,
    *GUIDANCE, *INSIGHTS, *WORKFLOWS, *SYSTEM,
)  # fmt: skip
