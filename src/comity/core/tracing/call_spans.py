"""How an ended call, tool use, request to a model or handoff becomes a span.

The tokens that a model counted stand on the span of the request to it, and nowhere else under the conventions' names: a sum
over spans is what was used (ADR 40).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from comity.core.envelope.envelope import Priority, Status
from comity.core.envelope.usage import Cost
from comity.core.tracing.gen_ai import chat_content, chat_of, facts_of_name, message
from comity.core.tracing.naming import Mode
from comity.core.tracing.span import Kind, Link, Span
from comity.core.tracing.span import Status as SpanStatus
from comity.core.tracing.telemetry import (
    MODEL_PREFIX,
    PROVIDER,
    TOOL_PREFIX,
    CallEnd,
    Ended,
    Handed,
    Origin,
    Recorded,
    Settings,
    named,
)

# The names of seed 003 for what OpenTelemetry says of tools; those of real tools have no older ones.
HANDOFF_LEGACY: Final = {
    "gen_ai.tool.call.id": "handoff.id",
    "gen_ai.tool.name": "handoff.capability_id",
    "gen_ai.tool.call.arguments": "handoff.inputs",
    "gen_ai.tool.call.result": "handoff.result",
}
_RESULT: Final = {"link.relationship": "result"}
# How a handoff within a tree of calls stands, which ends as its call does.
_STATES: Final[Mapping[str, str]] = {
    Status.SUCCESS: "completed",
    Status.PARTIAL: "completed",
    Status.ERROR: "failed",
    Status.REFUSED: "rejected",
    Status.TIMEOUT: "timeout",
    Status.CANCELLED: "cancelled",
}
_encode = msgspec.json.Encoder().encode


def summarize(end: CallEnd, captures_content: bool = False) -> Ended:
    """Return what goes into the span of an ended call."""
    request, reply, remote = end.request, end.reply, end.remote
    usage, error = reply.usage, reply.error
    return Ended(
        request.trace_id,
        request.span_id,
        request.parent_span_id,
        request.target,
        request.capability,
        request.source,
        request.request_id,
        request.root_id,
        request.session_id,
        request.tenant_id,
        len(request.chain),
        request.priority,
        reply.status,
        "" if error is None else error.code,
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.calls,
        reply.confidence,
        reply.degraded,
        end.start_ns,
        end.end_ns,
        remote is not None and not remote.is_local and request.parent_id is None,
        "" if remote is None else remote.state,
        _content(end) if captures_content else (),
        end.handed,
        end.agent,
        end.reported,
        None if end.asked is None else chat_of(end.asked, reply.data),
        end.call_id,
        request.correlation_id if request.correlation_id != request.root_id else "",
        usage.cost,
    )


def _content(end: CallEnd) -> tuple[str, ...]:
    request, reply = end.request, end.reply
    if reply.status is Status.REFUSED:
        return ()  # personal data is hidden once a call is admitted: what was refused may still hold some
    error = "" if reply.error is None else reply.error.message
    if end.asked is not None:
        return (*chat_content(end.asked, reply.data), error)
    data = "" if reply.data is None else _encode(reply.data).decode()
    return (request.objective, request.message, bytes(request.body).decode(), reply.message, data, error)


def span_of(one: Recorded, settings: Settings) -> Span:
    """Return the span of what was recorded, however far it was worked out."""
    if isinstance(one, CallEnd):
        one = summarize(one, captures_content=settings.captures_content)
    return one if isinstance(one, Span) else call_span(one, settings.origin)


def call_span(ended: Ended, origin: Origin) -> Span:
    """Return the span of a call, a tool use, a request to a model or a handoff that has ended."""
    kind, links = Kind.SERVER if ended.is_remote else Kind.INTERNAL, tuple[Link, ...]()
    if ended.handed is not None:
        name, kind, handed = f"handoff {ended.capability}", Kind.INTERNAL, ended.handed
        attributes = handoff_named(_handoff_attributes(ended, handed), origin.mode)
        if handed.result_span_id:
            links = (Link(trace_id=ended.trace_id, span_id=handed.result_span_id, attributes=_RESULT),)
    elif ended.target.startswith(TOOL_PREFIX):
        name, attributes = f"execute_tool {ended.capability}", _tool_attributes(ended)
    elif ended.target.startswith(MODEL_PREFIX):
        attributes = _model_attributes(ended)
        name, kind = f"chat {attributes['gen_ai.request.model']}", Kind.CLIENT
    else:
        name, attributes = f"invoke_agent {ended.target.partition('/')[0]}", _call_attributes(ended)
    return Span(
        trace_id=ended.trace_id,
        span_id=ended.span_id,
        parent_id=ended.parent_span_id or None,
        name=name,
        kind=kind,
        start_ns=ended.start_ns,
        end_ns=ended.end_ns,
        status=SpanStatus.ERROR if ended.code else SpanStatus.UNSET,
        status_message=ended.content[-1] if ended.content else "",
        attributes=named(attributes, origin.mode),
        resource=origin.resource,
        scope_name=PROVIDER,
        scope_version=origin.version,
        links=links,
        trace_state=ended.trace_state,
    )


def result_span(end: CallEnd, settings: Settings, links: tuple[Link, ...] = ()) -> Span:
    """Return the span of the result of a handoff, below the handoff's: from when its receiver took it."""
    ended = summarize(end, captures_content=settings.captures_content)
    assert ended.handed is not None
    made = call_span(ended, settings.origin)
    receiver = named({"gen_ai.agent.id": ended.handed.receiver or ended.target}, settings.origin.mode)
    return replace(
        made,
        span_id=ended.handed.result_span_id,
        parent_id=ended.span_id,
        name=f"handoff.result {ended.capability}",
        kind=Kind.CONSUMER,
        attributes={**made.attributes, **receiver},
        links=links,
    )


def _common(ended: Ended) -> dict[str, Any]:
    return {
        "gen_ai.conversation.id": ended.session_id if ended.session_id != ended.root_id else None,
        "error.type": ended.code or None,
        "comity.status": str(ended.status),  # plain text: a query compares no members of an enumeration
        "comity.request.id": ended.request_id,
        "comity.root.id": ended.root_id if ended.root_id != ended.request_id else None,
        "comity.tenant.id": ended.tenant_id if ended.tenant_id != "default" else None,
        "comity.correlation.id": ended.correlation_id or None,
    }


def _cost_attributes(cost: Cost) -> dict[str, Any]:
    return {
        "comity.usage.cost": cost.amount,
        "comity.usage.currency": cost.currency,
        "comity.usage.unpriced_tokens": cost.unpriced_tokens or None,
    }


def _handoff_attributes(ended: Ended, handed: Handed) -> dict[str, Any]:
    """Under OpenTelemetry's names where it has some; those of seed 003 come with the emission mode."""
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.call.id": ended.request_id,
        "gen_ai.tool.name": ended.capability,
        "gen_ai.tool.type": "agent_handoff",
        "gen_ai.agent.id": ended.target,
        "handoff.from_agent": ended.source or None,
        "handoff.to_agent": ended.target,
        "handoff.receiver": handed.receiver or None,
        "handoff.priority": str(ended.priority),
        "handoff.status": handed.state or _STATES.get(ended.status, ended.status),
        "handoff.attempts": handed.attempts,
        "handoff.result_trace_id": handed.result_trace_id or None,
    } | _common(ended)
    if ended.content:
        attributes["handoff.task"] = ended.content[1] or None
        attributes["gen_ai.tool.call.arguments"] = ended.content[2]
        attributes["gen_ai.tool.call.result"] = ended.content[4] or None
    return attributes


def handoff_named(attributes: Mapping[str, Any], mode: Mode) -> dict[str, Any]:
    """Return the attributes of a handoff under the names of a mode, given under their current ones."""
    found = dict(attributes)
    if mode is Mode.OTEL:
        return found
    for name, old in HANDOFF_LEGACY.items():
        if name in found:
            found[old] = found.pop(name) if mode is Mode.LEGACY else found[name]
    if mode is Mode.LEGACY:
        found.pop("gen_ai.tool.type", None)
    return found


def _call_attributes(ended: Ended) -> dict[str, Any]:
    agent, (own_input, own_output) = ended.agent, ended.reported or (0, 0)
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": (agent.provider if agent is not None else "") or PROVIDER,
        "gen_ai.request.model": (agent.model or None) if agent is not None else None,
        "gen_ai.agent.id": ended.target,
        "gen_ai.agent.name": ended.target.partition("/")[0],
        "gen_ai.agent.description": (agent.description or None) if agent is not None else None,
        "gen_ai.usage.input_tokens": own_input or None,
        "gen_ai.usage.output_tokens": own_output or None,
        "comity.usage.input_tokens": ended.prompt_tokens or None,
        "comity.usage.output_tokens": ended.completion_tokens or None,
        "comity.capability": ended.capability,
        "comity.source": ended.source,
        "comity.depth": ended.depth,
        "comity.priority": ended.priority if ended.priority != Priority.NORMAL else None,
        "comity.confidence": None if ended.confidence is None else float(ended.confidence),
        "comity.calls": ended.calls or None,
        "comity.degraded": ended.degraded or None,
    } | _common(ended)
    if ended.cost is not None:
        attributes |= _cost_attributes(ended.cost)
    if ended.content:
        objective, said, inputs, answer, data, error = ended.content
        attributes["gen_ai.input.messages"] = message("user", [objective, said, inputs])
        attributes["gen_ai.output.messages"] = message("assistant", [answer, data], "error" if error else "stop")
    return attributes


def _tool_attributes(ended: Ended) -> dict[str, Any]:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.agent.id": ended.source,
        "gen_ai.tool.name": ended.capability,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": ended.call_id or ended.request_id,
    } | _common(ended)
    if ended.content:
        attributes["gen_ai.tool.call.arguments"] = ended.content[2]
        attributes["gen_ai.tool.call.result"] = ended.content[4] or None
    return attributes


def _model_attributes(ended: Ended) -> dict[str, Any]:
    chat = ended.chat
    facts = facts_of_name(ended.target.removeprefix(MODEL_PREFIX)) if chat is None else chat.facts
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": facts.provider or PROVIDER,
        "gen_ai.request.model": facts.model,
        "gen_ai.agent.id": ended.source,
        "gen_ai.usage.input_tokens": ended.prompt_tokens or None,
        "gen_ai.usage.output_tokens": ended.completion_tokens or None,
    } | _common(ended)
    if ended.cost is not None:
        attributes |= _cost_attributes(ended.cost)
    if chat is None:  # a request that nothing more is known of
        return attributes
    attributes |= {
        "server.address": facts.address or None,
        "server.port": facts.port or None,
        "http.response.status_code": chat.status_code or None if ended.code else None,
        "gen_ai.request.stream": True,
        "gen_ai.request.max_tokens": chat.max_tokens,
        "gen_ai.request.temperature": chat.temperature,
        "gen_ai.request.top_p": chat.top_p,
        "gen_ai.request.seed": chat.seed,
        "gen_ai.request.stop_sequences": chat.stop or None,
        "gen_ai.output.type": "json" if chat.wants_json else "text",
        "gen_ai.response.model": chat.response_model or None,
        "gen_ai.response.id": chat.response_id or None,
        "gen_ai.response.finish_reasons": (chat.finish,) if chat.finish else None,
        "comity.model.failed_attempts": len(chat.failures) or None,
        "comity.model.attempt_errors": chat.failures or None,
    }
    if ended.content:
        names = ("gen_ai.system_instructions", "gen_ai.input.messages", "gen_ai.output.messages")
        attributes |= {name: text or None for name, text in zip(names, ended.content, strict=False)}
    return attributes
