"""ContextCore's calls over HTTP, in its own fields: handing work off and hearing of its end, emitting and asking for insights.

Receivers take and end handoffs at `/v1/handoffs`; what is handed off here is what they find there.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct
from starlette.routing import BaseRoute, Route

from comity.contextcore.handoffs.manager import AsyncHandoffManager
from comity.contextcore.insights import InsightEmitter, InsightQuerier
from comity.core.access import Principal, Right
from comity.core.handoff.machine import Handoff
from comity.core.insight.insight import Insight
from comity.core.units import MS_PER_S
from comity.errors import CallerError, UnavailableError
from comity.server.agent_calls import trace_of
from comity.server.auth import session_of, tenant_of, user_of
from comity.server.sight import handoff_for
from comity.server.starting import checked_start
from comity.server.state import State
from comity.server.web import JSON_TYPE, Reader, Receive, Scope, Send, check_json_type, encode, read_body, respond

HANDOFFS: Final = "/v1/contextcore/handoffs"
INSIGHTS: Final = "/v1/contextcore/insights"
WAIT_MS_MAX: Final = 60_000


class NewHandoff(Struct, frozen=True, forbid_unknown_fields=True):
    """A handoff as ContextCore's `create_handoff` takes it."""

    capability_id: str
    task: str = ""
    to_agent: str | None = None
    inputs: dict[str, Any] = {}
    expected_output: dict[str, Any] | None = None
    priority: str = "normal"
    timeout_ms: int = 300_000
    id: str | None = None
    project_id: str = ""


class NewInsight(Struct, frozen=True, forbid_unknown_fields=True):
    """An insight as ContextCore's emitter takes it."""

    type: str
    summary: str
    confidence: float
    project_id: str
    audience: str = "both"
    rationale: str = ""
    evidence: list[dict[str, str]] = []
    supersedes: str = ""
    expires_at: str | int | None = None
    session_id: str = ""


class InsightQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """What `InsightQuerier.query` may be asked."""

    project_id: str | None = None
    insight_type: str | None = None
    agent_id: str | None = None
    audience: str | None = None
    min_confidence: float | None = None
    time_range: str | None = "24h"
    limit: int = 10


def routes(state: State) -> list[BaseRoute]:
    """Return the routes, for `Door`."""
    return [
        Route(HANDOFFS, endpoint=_Handoffs(state), methods=None),
        Route(f"{HANDOFFS}/{{handoff_id}}", endpoint=_Handoff(state), methods=None),
        Route(INSIGHTS, endpoint=_Insights(state), methods=None),
    ]


class _Handoffs:
    """Hands work off."""

    def __init__(self, state: State) -> None:
        self._state, self._reader = state, Reader(NewHandoff)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand work off and answer with its id once it is durable."""
        scope["comity.route"] = HANDOFFS
        _check_method(scope, "POST")
        principal = _checked(scope, Right.HANDOFFS_WRITE)
        asked: NewHandoff = await _body(self._state, scope, receive, self._reader)
        start = checked_start(self._state, principal, asked.to_agent or "*", asked.capability_id, asked.id)
        manager = _manager(self._state, principal, asked.project_id)
        handoff_id = await manager.create_handoff(
            asked.to_agent, asked.capability_id, asked.task, asked.inputs, asked.expected_output, asked.priority,
            asked.timeout_ms, handoff_id=start.request_id, outside=start.outside, **trace_of(scope["comity.heads"]),
        )  # fmt: skip
        handoff = await manager.get_handoff_status(handoff_id)
        await respond(send, 201, encode(_shown(self._state, principal, handoff)), JSON_TYPE)


class _Handoff:
    """Tells how a handoff stands."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  ASGI
        """Answer with a handoff; with `wait_ms`, once it has ended or that time has passed."""
        scope["comity.route"] = f"{HANDOFFS}/{{handoff_id}}"
        _check_method(scope, "GET")
        principal = _checked(scope, Right.READ)
        manager, handoff_id = _manager(self._state, principal, ""), scope["path_params"]["handoff_id"]
        wait = _given(scope).get("wait_ms", "0")
        if not wait.isdigit() or int(wait) > WAIT_MS_MAX:
            raise CallerError(f"wait_ms must be a number from 0 to {WAIT_MS_MAX}", code="HTTP_QUERY_INVALID")
        handoff = await manager.get_handoff_status(handoff_id)
        if int(wait) and not handoff.has_ended:
            try:
                async with asyncio.timeout(int(wait) / MS_PER_S):
                    handoff = await manager.await_result(handoff_id)
            except (TimeoutError, UnavailableError):
                handoff = await manager.get_handoff_status(handoff_id)
        await respond(send, 200, encode(_shown(self._state, principal, handoff)), JSON_TYPE)


class _Insights:
    """Takes insights and finds them."""

    def __init__(self, state: State) -> None:
        self._state, self._reader = state, Reader(NewInsight)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Emit an insight (`POST`), or answer with those that a query finds (`GET`)."""
        scope["comity.route"] = INSIGHTS
        _check_method(scope, "GET", "POST")
        if scope["method"] == "POST":
            principal = _checked(scope, Right.INSIGHTS_WRITE)
            asked: NewInsight = await _body(self._state, scope, receive, self._reader)
            insight = await asyncio.to_thread(self._emit, principal, asked)
            await respond(send, 201, encode(_insight(insight)), JSON_TYPE)
            return
        principal = _checked(scope, Right.READ)
        try:
            query = msgspec.convert(_given(scope), InsightQuery, strict=False)
        except msgspec.ValidationError as error:
            raise CallerError(str(error), code="HTTP_QUERY_INVALID") from None
        await self._state.node.flush_spans()
        querier = InsightQuerier(self._state.node.spans.of_tenant(principal.tenant_id))
        asked_for = msgspec.to_builtins(query)
        if query.insight_type is not None:
            asked_for["insight_type"] = query.insight_type.split("|")
        found = await asyncio.to_thread(lambda: querier.query(**asked_for))
        await respond(send, 200, encode([_insight(one) for one in found]), JSON_TYPE)

    def _emit(self, principal: Principal, asked: NewInsight) -> Insight:
        emitter = InsightEmitter(
            self._state.node.spans,
            project_id=asked.project_id,
            agent_id=principal.name,
            session_id=session_of(principal, asked.session_id or None) or "",
            tenant_id=principal.tenant_id,
        )
        words = {"summary": asked.summary, "rationale": asked.rationale, "evidence": asked.evidence}
        return emitter.emit(
            asked.type, **self._state.node.masked(words), confidence=asked.confidence, audience=asked.audience,
            supersedes=asked.supersedes, expires_at=asked.expires_at,
        )  # fmt: skip


def _check_method(scope: Scope, *allowed: str) -> None:
    if scope["method"] not in allowed:
        raise CallerError(f"{scope['method']} is not allowed here", code="HTTP_METHOD_UNKNOWN", allow=", ".join(allowed))


def _checked(scope: Scope, right: Right) -> Principal:
    principal: Principal = scope["comity.principal"]
    principal.check(right)
    return principal


async def _body(state: State, scope: Scope, receive: Receive, reader: Reader) -> Any:
    heads = scope["comity.heads"]
    raw = await read_body(receive, heads, state.settings.body_bytes_max)
    check_json_type(heads)
    return await reader.read_long(raw)


def _given(scope: Scope) -> dict[str, str]:
    return dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))


def _manager(state: State, principal: Principal, project_id: str) -> AsyncHandoffManager:
    """Return the caller's side of handoffs for whom a token names: an agent hands off in its own name, a user in theirs."""
    return AsyncHandoffManager(
        project_id,
        principal.name if principal.is_agent else None,
        node=state.node,
        user_id=user_of(principal, None),
        tenant_id=tenant_of(principal, None),
        session_id=principal.session_id or None,
    )


def _shown(state: State, principal: Principal, handoff: Handoff) -> dict[str, Any]:
    """Return a handoff in ContextCore's fields, as a sender sees it."""
    handoff = handoff_for(state, principal, state.node.handoffs.get(handoff.id) or handoff)
    request = handoff.request
    expected = request.expected_output
    told = {
        "id": handoff.id,
        "from_agent": request.source or request.user_id,
        "to_agent": request.target,
        "capability_id": request.capability,
        "task": request.message,
        "inputs": request.inputs,
        "expected_output": None if expected is None else {"type": expected.type, "fields": list(expected.fields)},
        "priority": str(request.priority),
        "timeout_ms": request.deadline_at - request.created_at,
        "status": str(handoff.state),
        "created_at": _time(request.created_at),
        "result_trace_id": handoff.result_trace_id,
        "reason": "" if handoff.reply is None or handoff.reply.error is None else handoff.reply.error.message,
    }
    told = {name: value for name, value in told.items() if value not in (None, "")}
    if handoff.reply is not None and handoff.reply.ok:
        told["result"] = handoff.reply.data
    return told


def _insight(insight: Insight) -> dict[str, Any]:
    """Return an insight with the names of its span's attributes after `insight.`, and what links it."""
    told = {
        "id": insight.id, "type": str(insight.type), "summary": insight.summary, "confidence": insight.confidence,
        "audience": str(insight.audience), "project_id": insight.project_id, "agent_id": insight.agent_id,
        "session_id": insight.session_id, "rationale": insight.rationale, "supersedes": insight.supersedes,
        "evidence": [msgspec.to_builtins(one) for one in insight.evidence], "created_at": _time(insight.created_at),
        "trace_id": insight.trace_id,
    }  # fmt: skip
    return {name: value for name, value in told.items() if value not in (None, "", [])}


def _time(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / MS_PER_S, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
