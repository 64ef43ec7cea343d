"""What an agent finds out during a call: written as an insight under the call's span, personal data hidden."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from comity.core.document.checks import take, take_share, take_text
from comity.core.document.payload import unpack_long
from comity.core.guidance.guidance import Answer
from comity.core.insight.given import Search, composed, evidence_of, listed
from comity.core.insight.insight import Insight, to_span
from comity.core.tracing.telemetry import belonging, tenant_of
from comity.errors import CallerError
from comity.ports.ambient import parent_span

if TYPE_CHECKING:
    from comity.core.tracing.query import Query
    from comity.core.tracing.span import Span
    from comity.runtime.call.call import Call
    from comity.runtime.call.path import CallPath


def emit(path: CallPath, call: Call, insight_type: str, project_id: str, provider: str, fields: dict[str, Any]) -> Insight:
    """Record an insight of the agent that serves a call."""
    call.check_running()
    request, recorder = call.request, path.recorder
    belongs = belonging(request)
    fields["evidence"] = [msgspec.to_builtins(one) for one in evidence_of(fields["evidence"])]
    words = {name: fields[name] for name in ("summary", "rationale", "category", "evidence")}
    words |= {"applies_to": listed(fields["applies_to"], "applies_to")}
    fields |= _hidden(path, call, take(words, "insight", bytes))
    session_id, about = belongs.pop("gen_ai.conversation.id") or "", call.agent.about
    insight = composed(
        insight_type,
        ids={"id": f"insight-{path.ids.span_id()[:12]}", "trace_id": request.trace_id, "span_id": path.ids.span_id()},
        created_at=path.now_ms(),
        project_id=project_of(path, call, project_id),
        agent_id=request.target,
        session_id=session_id,
        provider=take_text(provider, "provider") or (about.provider if about else ""),
        **fields,
    )
    origin, more = recorder.settings.origin, {name: value for name, value in belongs.items() if value is not None}
    recorder.keep(to_span(insight, mode=origin.mode, parent_id=parent_span(request), resource=origin.resource, more=more))
    return insight


async def find(path: CallPath, call: Call, project_id: str, asked: dict[str, Any]) -> list[Insight]:
    """Return the insights of a project that agents of the call's tenant emitted."""
    call.check_running()
    await path.recorder.drained()  # also those that were emitted just now
    spans, tenant_id = path.recorder.spans, call.request.tenant_id

    def of_tenant(query: Query, start_ns: int | None, limit: int) -> list[Span]:
        """Return what a query finds: agents see nothing of what others' found out, though a node may host both."""
        found = spans.find(query, start_ns=start_ns, limit=limit)
        return [one for one in found if tenant_of(one.attributes) == tenant_id]

    return Search(of_tenant, path.now_ms()).run(project_id=project_of(path, call, project_id), **asked)


async def answer_question(
    path: CallPath, call: Call, question_id: str, answer: str, confidence: float, evidence: Iterable[Any]
) -> Insight:
    """Answer a question of the guidance in force, and tell the answer as an insight."""
    call.check_running()
    if path.guidance is None:
        raise CallerError("this node has no guidance, and so no questions")
    hidden = _hidden(path, call, take({"answer": take_text(answer, "answer")}, "answer", bytes))["answer"]
    given = Answer(
        agent_id=call.request.target,
        answer=hidden,
        confidence=take_share(confidence, "confidence"),
        answered_at=path.now_ms(),
        evidence=evidence_of(evidence),
    )
    question = await asyncio.to_thread(path.guidance.answer, question_id, given)
    fields = {
        "summary": f"Answer to: {question.question} {hidden}", "confidence": given.confidence, "audience": "both",
        "rationale": "", "evidence": given.evidence, "links": (), "supersedes": "", "expires_at": None,
        "applies_to": (question_id,), "category": "answer",
    }  # fmt: skip
    return emit(path, call, "analysis", "", "", fields)


def project_of(path: CallPath, call: Call, project_id: str) -> str:
    """Return the project that a call's insights belong to."""
    return project_id or path.recorder.settings.project_id or call.request.tenant_id


def _hidden(path: CallPath, call: Call, raw: bytes) -> dict[str, Any]:
    """Return the texts as others may read them: an insight outlives the session in which it was found."""
    hidden: dict[str, Any] = unpack_long(raw if path.answers is None else path.answers.data(call, raw))
    return hidden
