"""XspensesAI's delegation protocol: an employee asks another, with constraints and handoff data.

`current_depth` is the depth of the employee asked, 0 for one a user asks, and `max_depth` the first depth that is refused: the
canonical `depth_max` is one less. A request names its origin only, so the employees above it are known by number: they stand
in the chain as `?`. Structured inputs travel as `intermediate_results.inputs`, reply data as the first artifact, labelled
`data`; what is missing from a partial result stands in `error`, one thing a line.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, UnsetType

from comity.core.call.limits import CHAIN_MAX, REPLY_BYTES_MAX, Limits
from comity.core.document.payload import Problem
from comity.core.envelope import confidence, envelope
from comity.core.envelope.envelope import Background, Error, Reference, Reply, Request
from comity.core.envelope.usage import Usage
from comity.dialects.delegation_artifacts import ArtifactForm, read_artifacts, write_artifacts
from comity.dialects.delegation_artifacts import ArtifactType as ArtifactType  # noqa: PLC0414  a word of this dialect
from comity.dialects.delegation_errors import read_sentence, sentence_of
from comity.dialects.reading.document import (
    EXACT_MAX,
    MESSAGE_CAPABILITY,
    UNSTATED_CONFIDENCE,
    Milliseconds,
    left_ms,
    load,
    malformed,
    sealed_inputs,
    sound_reply,
    sound_request,
)
from comity.dialects.reading.fault import NEEDS_INPUT, Fault, lines_of, read_fault, text_of
from comity.dialects.reading.form import Form, kept, marks_of, read, with_marks, write
from comity.dialects.reading.timestamp import read_time, write_time
from comity.errors import CallerError

NAME: Final = "delegation"
VERSION: Final = "1.0"
USER: Final = "user"
UNKNOWN_ANCESTOR: Final = "?"
PARTIAL_WARNING: Final = "The employee did not say what is missing."
LIMITS: Final = Limits(depth_max=1, fan_out_max=3, timeout_ms=15_000, tokens_max=1200)

CLAIMED_ORIGIN: Final = "delegation.origin_employee"  # of a request at depth 0, which has no source
_CREATED_AT: Final = "delegation.created_at"
_TOTAL: Final = "delegation.token_usage.total"
_PREFIX: Final = "delegation.error_prefix"
_FAILED: Final = "TARGET_FAILED"
# Marks beyond those of a form: what a document left to its reader.
_OBJECTIVE_EMPTY: Final = "objective:empty"
_DEPTH_OMITTED: Final = "current_depth:omitted"
_CONFIDENCE_OMITTED: Final = "confidence:omitted"
_ERROR_OMITTED: Final = "error:omitted"


class Status(StrEnum):
    """How a delegation ended."""

    SUCCESS = "success"
    PARTIAL = "partial"
    FAILED = "failed"


STATUS_READ: Final = {
    Status.SUCCESS: envelope.Status.SUCCESS,
    Status.PARTIAL: envelope.Status.PARTIAL,
    Status.FAILED: envelope.Status.ERROR,
}
# Whatever is neither done nor partly done has failed; the code in `error` tells how.
STATUS_WRITTEN: Final = {
    status: next((theirs for theirs, ours in STATUS_READ.items() if ours is status), Status.FAILED)
    for status in envelope.Status
}

_Count = Annotated[int, Meta(ge=0)]
_Word = Annotated[str, Meta(min_length=1)]


class ConstraintsForm(Form, frozen=True):
    """What a delegation may use."""

    written = frozenset({"max_tokens", "max_depth", "deadline_ms"})

    max_tokens: _Count = 1200
    max_depth: Annotated[int, Meta(ge=1, le=CHAIN_MAX + 1)] = 2
    deadline_ms: Milliseconds = 15_000


class ReferenceForm(Form, frozen=True):
    """A link to a document or data item."""

    owner_scope: str
    source_id: str


class HandoffDataForm(Form, frozen=True):
    """What the target should know."""

    facts: tuple[str, ...] = ()
    references: tuple[ReferenceForm, ...] = ()
    intermediate_results: Any = None


class RequestForm(Form, frozen=True):
    """A DelegationRequest. Version 1.0 does not say its version, later ones must."""

    request_id: str
    origin_employee: str
    target_employee: str
    user_id: str
    parent_session_id: str
    objective: str
    input: str
    constraints: ConstraintsForm
    context_hints: tuple[str, ...]
    handoff_data: HandoffDataForm
    child_session_id: _Word | None = None
    current_depth: Annotated[int, Meta(ge=0, le=CHAIN_MAX)] | UnsetType = UNSET
    created_at: str | UnsetType = UNSET
    version: str = VERSION


class SourceForm(Form, frozen=True):
    """A source that was consulted."""

    owner_scope: str
    source_id: str
    relevance: float | UnsetType = UNSET


class TokenUsageForm(Form, frozen=True):
    """Tokens spent."""

    prompt: _Count
    completion: _Count
    total: _Count


class ResponseForm(Form, frozen=True):
    """A DelegationResponse."""

    request_id: str
    target_employee: str
    summary: str
    result: str
    token_usage: TokenUsageForm
    status: Status
    artifacts: tuple[ArtifactForm, ...] = ()
    new_facts: tuple[str, ...] = ()
    used_sources: tuple[SourceForm, ...] = ()
    duration_ms: Annotated[float, Meta(ge=0, lt=EXACT_MAX)] = 0.0
    child_session_id: str = ""
    confidence: Annotated[float, Meta(ge=0, le=100)] | UnsetType = UNSET
    requires_followup: bool = False
    error: str = ""


REQUEST_NAMES: Final = {
    "request_id": "request_id",
    "source": "origin_employee",
    "target": "target_employee",
    "user_id": "user_id",
    "parent_session_id": "parent_session_id",
    "session_id": "child_session_id",
    "objective": "objective",
    "message": "input",
    "inputs": "handoff_data.intermediate_results.inputs",
    "limits.tokens_max": "constraints.max_tokens",
    "limits.depth_max": "constraints.max_depth",
    "deadline_at": "constraints.deadline_ms",
    "chain": "current_depth",
    "created_at": "created_at",
    "context.hints": "context_hints",
    "context": "handoff_data",
}
REPLY_NAMES: Final = {
    "request_id": "request_id",
    "source": "target_employee",
    "summary": "summary",
    "message": "result",
    "data": "artifacts[0].value",
    "artifacts": "artifacts",
    "new_facts": "new_facts",
    "sources": "used_sources",
    "usage": "token_usage",
    "duration_ms": "duration_ms",
    "session_id": "child_session_id",
    "confidence": "confidence",
    "requires_followup": "requires_followup",
    "status": "status",
    "error": "error",
    "warnings": "error",
}


# --- requests -----------------------------------------------------------------------------------------------------------


def decode_request(raw: Any, *, now_ms: int, capability: str = MESSAGE_CAPABILITY, limits: Limits = LIMITS) -> Request:
    """Return the request in a document. The document sets depth and tokens; the rest of `limits` is the caller's."""
    plain = load(raw)
    _check_version(plain)
    form = read(plain, RequestForm)
    marks = marks_of(plain, form)
    metadata: dict[str, Any] = {}
    if form.current_depth is UNSET:
        # The delegating caller is an employee that the user or another employee asked, unless it is the user.
        depth = 0 if form.origin_employee == USER else 1
        marks.append(_DEPTH_OMITTED)
    else:
        depth = form.current_depth
    if not form.objective and capability != MESSAGE_CAPABILITY:
        marks.append(_OBJECTIVE_EMPTY)
    if depth == 0 and form.origin_employee != USER:
        metadata[CLAIMED_ORIGIN] = form.origin_employee
    created_at = 0
    if form.created_at is not UNSET:
        created_at = read_time(form.created_at, metadata, key=_CREATED_AT)
    inputs, results = _read_results(form.handoff_data.intermediate_results)
    background = Background(
        hints=form.context_hints,
        facts=form.handoff_data.facts,
        references=tuple(
            Reference(source_id=ref.source_id, owner_scope=ref.owner_scope) for ref in form.handoff_data.references
        ),
        intermediate_results=results,
    )
    request = Request(
        request_id=form.request_id,
        target=form.target_employee,
        capability=capability,
        user_id=form.user_id,
        limits=_read_limits(form.constraints, limits),
        deadline_at=now_ms + form.constraints.deadline_ms,
        created_at=created_at,
        source=form.origin_employee if depth else None,
        chain=(UNKNOWN_ANCESTOR,) * (depth - 1) + (form.origin_employee,) if depth else (),
        body=sealed_inputs(inputs, path=REQUEST_NAMES["inputs"]),
        objective=form.objective,
        message=form.input,
        session_id=form.child_session_id or "",
        parent_session_id=form.parent_session_id or None,
        context=None if background == Background() else background,
        metadata=with_marks(metadata, NAME, marks),
    )
    return sound_request(request, REQUEST_NAMES)


def encode_request(request: Request, *, now_ms: int) -> dict[str, Any]:
    """Return the request as a document; its deadline is the time that is left."""
    marks = kept(request.metadata, NAME)
    background = request.context or Background()
    depth, origin = request.depth, request.source
    if depth == 0 or origin is None:
        depth, origin = 0, _text(request.metadata.get(CLAIMED_ORIGIN), USER)
    usual_depth = 0 if origin == USER else 1
    limits = request.limits
    form = RequestForm(
        request_id=request.request_id,
        origin_employee=origin,
        target_employee=request.target,
        user_id=request.user_id,
        parent_session_id=request.parent_session_id or "",
        child_session_id=request.session_id or None,
        objective=request.objective or _stand_in(request, marks),
        input=request.message,
        constraints=ConstraintsForm(
            max_tokens=1200 if limits.tokens_max is None else limits.tokens_max,
            max_depth=limits.depth_max + 1,
            deadline_ms=left_ms(request.deadline_at, since_ms=now_ms),
        ),
        context_hints=background.hints,
        handoff_data=HandoffDataForm(
            facts=background.facts,
            references=tuple(ReferenceForm(owner_scope=r.owner_scope, source_id=r.source_id) for r in background.references),
            intermediate_results=_write_results(request.inputs, background.intermediate_results),
        ),
        current_depth=UNSET if _DEPTH_OMITTED in marks and depth == usual_depth else depth,
        created_at=write_time(request.created_at, request.metadata, key=_CREATED_AT) or UNSET,
    )
    return write(form, marks)


def encode_headers(request: Request) -> dict[str, str]:
    """Return the HTTP headers that go with a delegation, for logs and proxies; no reader may trust them."""
    return {
        "X-Agent-Request-ID": request.request_id,
        "X-Agent-Origin": request.source or USER,
        "X-Agent-Depth": str(request.depth),
        "X-Agent-Parent-Session": request.parent_session_id or (request.session_id if request.depth else ""),
    }


def _stand_in(request: Request, marks: frozenset[str]) -> str:
    """Return the capability for a request that has no objective, since a delegation cannot name it elsewhere."""
    return "" if request.capability == MESSAGE_CAPABILITY or _OBJECTIVE_EMPTY in marks else request.capability


def _check_version(plain: dict[str, Any]) -> None:
    version = plain.get("version", VERSION)
    if version != VERSION and isinstance(version, str):
        raise CallerError(f"delegation version {version!r:.40} is not {VERSION}", code="ENVELOPE_VERSION_UNSUPPORTED")


def _read_limits(constraints: ConstraintsForm, limits: Limits) -> Limits:
    return Limits(
        depth_max=constraints.max_depth - 1,
        fan_out_max=limits.fan_out_max,
        timeout_ms=limits.timeout_ms,
        timeout_ms_max=limits.timeout_ms_max,
        calls_max=limits.calls_max,
        tokens_max=constraints.max_tokens,
    )


def _read_results(results: Any) -> tuple[dict[str, Any], Any]:
    """Return the inputs and the results that `_write_results` put together, if it did."""
    if isinstance(results, dict) and isinstance(inputs := results.get("inputs"), dict) and inputs:
        rest = {key: value for key, value in results.items() if key != "inputs"}
        if not rest:
            return inputs, None
        if rest.keys() == {"intermediate_results"} and rest["intermediate_results"] is not None:
            return inputs, rest["intermediate_results"]
    return {}, results


def _write_results(inputs: dict[str, Any], results: Any) -> Any:
    if not inputs:
        return results
    return {"inputs": inputs} if results is None else {"inputs": inputs, "intermediate_results": results}


# --- replies ------------------------------------------------------------------------------------------------------------


def decode_reply(raw: Any) -> Reply:
    """Return the reply in a document."""
    plain = load(raw, bytes_max=2 * REPLY_BYTES_MAX)
    form = read(plain, ResponseForm)
    if form.status is Status.SUCCESS and form.error:
        raise malformed([Problem("error", "has no place when status is success")])
    marks = marks_of(plain, form)
    metadata: dict[str, Any] = {}
    status, error = STATUS_READ[form.status], None
    if form.status is Status.FAILED:
        fault = _read_error(form, marks)
        error = fault.error
        if fault.prefix is not None:
            metadata[_PREFIX] = fault.prefix
        if error.code == NEEDS_INPUT:
            status = envelope.Status.NEEDS_INPUT
            error = None if error.message == form.result else error
    usage = form.token_usage
    if usage.total != usage.prompt + usage.completion:
        metadata[_TOTAL] = usage.total
    data, artifacts = read_artifacts(form.artifacts)
    reply = Reply(
        status=status,
        request_id=form.request_id,
        source=form.target_employee,
        summary=form.summary,
        message=form.result,
        data=data,
        artifacts=artifacts,
        new_facts=form.new_facts,
        sources=tuple(_read_source(source) for source in form.used_sources),
        usage=Usage(prompt_tokens=usage.prompt, completion_tokens=usage.completion),
        duration_ms=form.duration_ms,
        session_id=form.child_session_id,
        confidence=_read_confidence(form, status, marks),
        requires_followup=form.requires_followup,
        warnings=() if status is not envelope.Status.PARTIAL else lines_of(form.error) if form.error else (PARTIAL_WARNING,),
        error=error,
        metadata=with_marks(metadata, NAME, marks),
    )
    return sound_reply(reply, REPLY_NAMES)


def encode_reply(reply: Reply) -> dict[str, Any]:
    """Return the reply as a document."""
    marks = kept(reply.metadata, NAME)
    usage = reply.usage
    total = reply.metadata.get(_TOTAL)
    form = ResponseForm(
        request_id=reply.request_id,
        target_employee=reply.source,
        summary=reply.summary,
        result=reply.message,
        artifacts=tuple(write_artifacts(reply)),
        new_facts=reply.new_facts,
        used_sources=tuple(_write_source(source) for source in reply.sources),
        token_usage=TokenUsageForm(
            prompt=usage.prompt_tokens,
            completion=usage.completion_tokens,
            total=total if type(total) is int and total >= 0 else usage.total_tokens,
        ),
        duration_ms=reply.duration_ms,
        child_session_id=reply.session_id,
        confidence=_write_confidence(reply, marks),
        requires_followup=reply.requires_followup,
        status=STATUS_WRITTEN[reply.status],
        error=_write_error(reply, marks),
    )
    return write(form, marks)


def _read_error(form: ResponseForm, marks: list[str]) -> Fault:
    if form.error:
        error = read_sentence(form.error)
        return read_fault(form.error, usual=_FAILED) if error is None else Fault(error, None)
    marks.append(_ERROR_OMITTED)
    return Fault(Error.of(_FAILED, _failure_sentence(form.summary, form.result)), None)


def _failure_sentence(summary: str, result: str) -> str:
    """Return why an employee failed that did not say so in `error`."""
    return summary or result or "The employee failed without saying why."


def _write_error(reply: Reply, marks: frozenset[str]) -> str:
    if reply.status is envelope.Status.PARTIAL:
        return "" if reply.warnings == (PARTIAL_WARNING,) else "\n".join(reply.warnings)
    if reply.status is envelope.Status.SUCCESS:
        return ""
    error = reply.error or Error(code=NEEDS_INPUT, message=reply.message)
    if (sentence := sentence_of(error)) is not None:
        return sentence
    prefix = reply.metadata.get(_PREFIX)
    text = text_of(error, usual=_FAILED, prefix=prefix if isinstance(prefix, str) else None)
    inferred = Error.of(_FAILED, _failure_sentence(reply.summary, reply.message))
    return "" if _ERROR_OMITTED in marks and error == inferred else text or error.code


def _read_confidence(form: ResponseForm, status: envelope.Status, marks: list[str]) -> float | None:
    if form.confidence is not UNSET:
        return confidence.from_percent(form.confidence)
    if status in UNSTATED_CONFIDENCE:
        marks.append(_CONFIDENCE_OMITTED)
    return UNSTATED_CONFIDENCE.get(status)


def _write_confidence(reply: Reply, marks: frozenset[str]) -> float | UnsetType:
    if reply.confidence is None:
        return UNSET
    if _CONFIDENCE_OMITTED in marks and reply.confidence == UNSTATED_CONFIDENCE.get(reply.status):
        return UNSET
    return confidence.to_percent(reply.confidence)


def _read_source(form: SourceForm) -> Reference:
    relevance = None if form.relevance is UNSET else form.relevance
    return Reference(source_id=form.source_id, owner_scope=form.owner_scope, relevance=relevance)


def _write_source(source: Reference) -> SourceForm:
    relevance = UNSET if source.relevance is None else source.relevance
    return SourceForm(source_id=source.source_id, owner_scope=source.owner_scope, relevance=relevance)


def _text(value: Any, otherwise: str) -> str:
    return value if isinstance(value, str) and value else otherwise
