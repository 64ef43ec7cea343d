"""KDAP's two documents of the orchestrator: the context that goes with a handoff, and the classification of an intent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from msgspec import Meta, Struct, field

from comity.core.call.limits import Limits
from comity.core.document.payload import Problem
from comity.core.envelope.envelope import Background, Request, context_problems
from comity.core.orchestration.intent.classification import Classification, Route
from comity.dialects.kdap import NAME, REQUEST_NAMES, Heading, load
from comity.dialects.reading.document import malformed, sealed_inputs, sound_request
from comity.dialects.reading.form import Form, kept, marks_of, read, with_marks, write

ORCHESTRATOR: Final = "ORC"  # the agent to which the contract addresses both documents
TAKE_CONTEXT: Final = "ORC_CONTEXT"
DISPATCH: Final = "ORC_DISPATCH"
DOCUMENT: Final = "document"  # the input under which each capability takes its document
_TIME_FIELD: Final = "timeout_ms"  # neither document says it; a mark keeps the capability's own time


class HandoffForm(Form, frozen=True):
    """A HANDOFF CONTEXT."""

    session_id: Annotated[str, Meta(min_length=1)]
    original_request: str
    workflow_position: str = ""
    prior_agents: tuple[str, ...] = ()
    prior_outputs: dict[str, Any] = field(default_factory=dict)
    constraints: dict[str, Any] = field(default_factory=dict)


class TargetForm(Form, frozen=True):
    """Where a secondary intent goes."""

    agent: str
    capability: str


class IntentForm(Form, frozen=True):
    """An INTENT CLASSIFICATION."""

    primary_intent: str
    intent_confidence: Annotated[float, Meta(ge=0, le=1)]
    target_agent: str
    target_capability: str
    secondary_intents: tuple[str, ...] = ()
    secondary_targets: tuple[TargetForm, ...] = ()


class HandoffContext(Struct, frozen=True):
    """What must not be lost when work passes to another agent, and the session it belongs to."""

    session_id: str
    background: Background


# The fields that only this document has; JSON has no heading to go by.
_OWN: Final = {Heading.HANDOFF_CONTEXT: "original_request", Heading.INTENT_CLASSIFICATION: "primary_intent"}


def is_headed(raw: Any, heading: Heading) -> bool:
    """Return whether a document is of this kind: by its heading, or as an object by the field that only it has."""
    if isinstance(raw, bytes | bytearray):
        raw = bytes(raw).decode(errors="replace")
    if isinstance(raw, str):
        text = raw.lstrip(" \t\r\n-")
        return text.startswith(heading.value) or (
            text.startswith("{") and f'"{_OWN[heading]}"' in text and '"source_agent"' not in text
        )
    return isinstance(raw, Mapping) and _OWN[heading] in raw and "source_agent" not in raw


def decode_handoff_context(raw: Any) -> HandoffContext:
    """Return the handoff context in a document."""
    plain = load(raw, Heading.HANDOFF_CONTEXT)
    form = read(plain, HandoffForm)
    background = Background(
        original_request=form.original_request,
        workflow_position=form.workflow_position,
        prior_agents=form.prior_agents,
        prior_outputs=form.prior_outputs,
        constraints=form.constraints,
        extra=with_marks({}, NAME, marks_of(plain, form)),
    )
    if problems := context_problems(background):
        raise malformed(problems)
    return HandoffContext(form.session_id, background)


def encode_handoff_context(handoff: HandoffContext) -> dict[str, Any]:
    """Return the handoff context as a document; it has no words for facts, decisions and the like."""
    background = handoff.background
    form = HandoffForm(
        session_id=handoff.session_id,
        original_request=background.original_request,
        workflow_position=background.workflow_position,
        prior_agents=background.prior_agents,
        prior_outputs=background.prior_outputs,
        constraints=background.constraints,
    )
    return write(form, kept(background.extra, NAME))


def decode_intent(raw: Any) -> Classification:
    """Return the intent classification in a document."""
    plain = load(raw, Heading.INTENT_CLASSIFICATION)
    form = read(plain, IntentForm)
    named, routed = len(form.secondary_intents), len(form.secondary_targets)
    if routed not in {0, named}:
        raise malformed(
            [Problem("secondary_targets", f"must have one target for each of the {named} secondary intents, not {routed}")]
        )
    return Classification(
        primary=form.primary_intent,
        confidence=form.intent_confidence,
        route=Route(form.target_agent, form.target_capability),
        secondary=form.secondary_intents,
        secondary_routes=tuple(Route(target.agent, target.capability) for target in form.secondary_targets),
        marks=tuple(marks_of(plain, form)),
    )


def encode_intent(intent: Classification) -> dict[str, Any]:
    """Return the intent classification as a document."""
    form = IntentForm(
        primary_intent=intent.primary,
        intent_confidence=intent.confidence,
        target_agent=intent.route.target,
        target_capability=intent.route.capability,
        secondary_intents=intent.secondary,
        secondary_targets=tuple(TargetForm(agent=to.target, capability=to.capability) for to in intent.secondary_routes),
    )
    return write(form, intent.marks)


def is_routing(raw: Any) -> bool:
    """Return whether a document is one of the orchestrator's two."""
    return is_headed(raw, Heading.HANDOFF_CONTEXT) or is_headed(raw, Heading.INTENT_CLASSIFICATION)


def load_routing(raw: Any) -> dict[str, Any]:
    """Return an orchestrator's document as plain data."""
    return load(raw, Heading.HANDOFF_CONTEXT, Heading.INTENT_CLASSIFICATION)


def decode_routing(raw: Any, *, now_ms: int, request_id: str, user_id: str, limits: Limits) -> Request:
    """Return the call of the orchestrator that an orchestrator's document asks for.

    A handoff context is noted in its session, an intent classification is routed.
    """
    session_id = message = ""
    if is_headed(raw, Heading.HANDOFF_CONTEXT):
        handoff = decode_handoff_context(raw)
        session_id, message = handoff.session_id, handoff.background.original_request
        capability, document = TAKE_CONTEXT, encode_handoff_context(handoff)
    else:
        capability, document = DISPATCH, encode_intent(decode_intent(raw))
    request = Request(
        request_id=request_id,
        target=ORCHESTRATOR,
        capability=capability,
        user_id=user_id,
        session_id=session_id,
        limits=limits,
        deadline_at=now_ms + limits.timeout_ms,
        message=message,
        body=sealed_inputs({DOCUMENT: document}, path="$"),
        metadata=with_marks({}, NAME, [_TIME_FIELD]),
    )
    return sound_request(request, REQUEST_NAMES)
