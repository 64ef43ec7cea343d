"""What an agent finds out during a call: written as an insight under the call's span, personal data hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from comity.core.given import take, take_text
from comity.core.insight import Insight
from comity.core.payload import unpack
from comity.core.telemetry import Settings, belonging
from comity.engines.insights import InsightEmitter, evidence_of, listed
from comity.runtime.standing import parent_span

_RECORDED: Final = Settings()  # the recorder exports; the emitter must not do it again

if TYPE_CHECKING:
    from comity.runtime.call import Call
    from comity.runtime.path import CallPath


def emit(path: CallPath, call: Call, insight_type: str, project_id: str, provider: str, fields: dict[str, Any]) -> Insight:
    """Record an insight of the agent that serves a call."""
    call.check_running()
    request, recorder = call.request, path.recorder
    belongs = belonging(request)
    fields["evidence"] = [msgspec.to_builtins(one) for one in evidence_of(fields["evidence"])]
    words = {name: fields[name] for name in ("summary", "rationale", "category", "evidence")}
    words |= {"applies_to": listed(fields["applies_to"], "applies_to")}
    fields |= _hidden(path, call, take(words, "insight", bytes))
    emitter = InsightEmitter(
        recorder,
        project_id=project_id or recorder.settings.project_id or request.tenant_id,
        agent_id=request.target,
        session_id=belongs.pop("gen_ai.conversation.id") or "",
        provider=take_text(provider, "provider") or (call.agent.about.provider if call.agent.about else ""),
        mode=recorder.settings.origin.mode,
        clock=path.clock,
        ids=path.ids,
        resource=recorder.settings.origin.resource,
        more={name: value for name, value in belongs.items() if value is not None},
        telemetry=_RECORDED,
    )
    return emitter.emit(insight_type, trace_id=request.trace_id, parent_id=parent_span(request), **fields)


def _hidden(path: CallPath, call: Call, raw: bytes) -> dict[str, Any]:
    """Return the texts as others may read them: an insight outlives the session in which it was found."""
    hidden: dict[str, Any] = unpack(raw if path.answers is None else path.answers.data(call, raw))
    return hidden
