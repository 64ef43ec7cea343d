"""ContextCore's handoff protocol: a work item that lies in a queue until an agent accepts and ends it.

The message is the request. Its life-cycle state, and the trace that holds its result, are no part of a canonical request and
are kept in the metadata. The deadline counts from `created_at`, since a handoff may lie a while before anyone reads it. The
reply is the update that ends a handoff: its id and last state, with what `complete` and `fail` are given.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, UnsetType, field

from comity.core.call.limits import REPLY_BYTES_MAX, Limits
from comity.core.document.payload import Problem
from comity.core.envelope import envelope
from comity.core.envelope.envelope import Error, ExpectedOutput, Reply, Request
from comity.dialects.reading.document import (
    UNSTATED_CONFIDENCE,
    Milliseconds,
    left_ms,
    load,
    malformed,
    sealed_inputs,
    sound_reply,
    sound_request,
)
from comity.dialects.reading.fault import Fault, lines_of, read_fault, text_of
from comity.dialects.reading.form import Form, kept, marks_of, plain_of, read, with_marks, write
from comity.dialects.reading.timestamp import read_time, write_time

NAME: Final = "contextcore"
USER: Final = "user"
LIMITS: Final = Limits(timeout_ms=300_000)

_STATUS: Final = "contextcore.status"
_PRIORITY: Final = "contextcore.priority"
_CREATED_AT: Final = "contextcore.created_at"
_TRACE: Final = "contextcore.result_trace_id"
_PREFIX: Final = "contextcore.reason_prefix"
# A mark beyond those of a form: what a document left to its reader.
_REASON_OMITTED: Final = "reason:omitted"


class Priority(StrEnum):
    """How urgent a handoff is; the origin's storage says medium for normal."""

    CRITICAL = "critical"
    HIGH = "high"
    NORMAL = "normal"
    MEDIUM = "medium"
    LOW = "low"


class State(StrEnum):
    """Where a handoff stands: its six states and the three that its later revisions added."""

    PENDING = "pending"
    ACCEPTED = "accepted"
    IN_PROGRESS = "in_progress"
    INPUT_REQUIRED = "input_required"
    COMPLETED = "completed"
    FAILED = "failed"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    REJECTED = "rejected"


PRIORITY_READ: Final = {
    Priority.CRITICAL: envelope.Priority.CRITICAL,
    Priority.HIGH: envelope.Priority.HIGH,
    Priority.NORMAL: envelope.Priority.NORMAL,
    Priority.MEDIUM: envelope.Priority.NORMAL,
    Priority.LOW: envelope.Priority.LOW,
}
PRIORITY_WRITTEN: Final = {ours: Priority(ours) for ours in envelope.Priority}

# None: the handoff has not ended, so that there is no reply yet. A completed one with a reason is partial.
STATUS_READ: Final = {
    State.PENDING: None,
    State.ACCEPTED: None,
    State.IN_PROGRESS: None,
    State.INPUT_REQUIRED: envelope.Status.NEEDS_INPUT,
    State.COMPLETED: envelope.Status.SUCCESS,
    State.FAILED: envelope.Status.ERROR,
    State.TIMEOUT: envelope.Status.TIMEOUT,
    State.CANCELLED: envelope.Status.CANCELLED,
    State.REJECTED: envelope.Status.REFUSED,
}
STATUS_WRITTEN: Final = {ours: state for state, ours in STATUS_READ.items() if ours} | {
    envelope.Status.PARTIAL: State.COMPLETED
}
_ENDS: Final = frozenset({State.COMPLETED, State.FAILED, State.TIMEOUT, State.CANCELLED, State.REJECTED})
# The code that each way to fail has when its reason names no other.
_USUAL: Final = {
    envelope.Status.ERROR: Error.of("TARGET_FAILED", "the agent failed without saying why"),
    envelope.Status.TIMEOUT: Error.of("CALL_TIMEOUT", "the handoff was not completed in time"),
    envelope.Status.CANCELLED: Error.of("CALL_CANCELLED", "the handoff was cancelled"),
    envelope.Status.REFUSED: Error.of("ROUTING_NOT_PERMITTED", "the handoff was rejected"),
}

_Word = Annotated[str, Meta(min_length=1)]


class ExpectedOutputForm(Form, frozen=True):
    """What should come back."""

    type: str = ""
    fields: tuple[str, ...] = ()


class RequestForm(Form, frozen=True):
    """A handoff message."""

    written = frozenset({"inputs", "priority", "timeout_ms", "status"})

    id: _Word
    from_agent: _Word
    to_agent: _Word
    capability_id: _Word
    task: str
    inputs: dict[str, Any] = field(default_factory=dict)
    expected_output: ExpectedOutputForm | UnsetType = UNSET
    priority: Priority = Priority.NORMAL
    timeout_ms: Milliseconds = 300_000
    status: State = State.PENDING
    created_at: str | UnsetType = UNSET
    result_trace_id: _Word | UnsetType = UNSET


class ReplyForm(Form, frozen=True):
    """The update that ends a handoff."""

    id: str
    status: State
    result: Any = None
    result_trace_id: _Word | UnsetType = UNSET
    reason: str = ""


REQUEST_NAMES: Final = {
    "request_id": "id",
    "source": "from_agent",
    "target": "to_agent",
    "capability": "capability_id",
    "message": "task",
    "inputs": "inputs",
    "expected_output": "expected_output",
    "priority": "priority",
    "deadline_at": "timeout_ms",
    "created_at": "created_at",
    "metadata.contextcore.status": "status",
    "metadata.contextcore.result_trace_id": "result_trace_id",
}
REPLY_NAMES: Final = {
    "request_id": "id",
    "status": "status",
    "data": "result",
    "message": "reason",
    "error": "reason",
    "warnings": "reason",
    "metadata.contextcore.result_trace_id": "result_trace_id",
}


def decode_request(raw: Any, *, now_ms: int, user_id: str, limits: Limits = LIMITS) -> Request:
    """Return the request in a handoff message, which names no user."""
    plain = load(raw)
    form = read(plain, RequestForm)
    metadata: dict[str, Any] = {}
    created_at = 0
    if form.created_at is not UNSET:
        created_at = read_time(form.created_at, metadata, key=_CREATED_AT)
    if form.status is not State.PENDING:
        metadata[_STATUS] = str(form.status)
    if form.priority is Priority.MEDIUM:
        metadata[_PRIORITY] = str(form.priority)
    if form.result_trace_id is not UNSET:
        metadata[_TRACE] = form.result_trace_id
    expected = form.expected_output
    source = None if form.from_agent == USER else form.from_agent
    request = Request(
        request_id=form.id,
        target=form.to_agent,
        capability=form.capability_id,
        user_id=user_id,
        limits=limits,
        deadline_at=(created_at or now_ms) + form.timeout_ms,
        created_at=created_at,
        source=source,
        chain=() if source is None else (source,),
        body=sealed_inputs(form.inputs, path="inputs"),
        message=form.task,
        priority=PRIORITY_READ[form.priority],
        expected_output=None if expected is UNSET else ExpectedOutput(type=expected.type, fields=expected.fields),
        metadata=with_marks(metadata, NAME, marks_of(plain, form)),
    )
    return sound_request(request, REQUEST_NAMES)


def end_of(request: Request) -> str:
    """Return the state in which a handoff message says that its work has ended; empty where it is still to be done."""
    state = str(request.metadata.get(_STATUS, ""))
    return state if state in _ENDS else ""


def encode_request(request: Request, *, now_ms: int) -> dict[str, Any]:
    """Return the request as a handoff message."""
    metadata, expected = request.metadata, request.expected_output
    priority = PRIORITY_WRITTEN[request.priority]
    if priority is Priority.NORMAL and metadata.get(_PRIORITY) == Priority.MEDIUM:
        priority = Priority.MEDIUM
    status, trace_id = metadata.get(_STATUS), metadata.get(_TRACE)
    form = RequestForm(
        id=request.request_id,
        from_agent=request.source or USER,
        to_agent=request.target,
        capability_id=request.capability,
        task=request.message or request.objective,
        inputs=request.inputs,
        expected_output=UNSET if expected is None else ExpectedOutputForm(type=expected.type, fields=expected.fields),
        priority=priority,
        timeout_ms=left_ms(request.deadline_at, since_ms=request.created_at or now_ms),
        status=State(status) if status in set(State) else State.PENDING,
        created_at=write_time(request.created_at, metadata, key=_CREATED_AT) or UNSET,
        result_trace_id=trace_id if isinstance(trace_id, str) and trace_id else UNSET,
    )
    return write(form, kept(metadata, NAME))


def decode_reply(raw: Any) -> Reply:
    """Return the reply in the update that ends a handoff, or asks for input."""
    plain = load(raw, bytes_max=2 * REPLY_BYTES_MAX)
    form = read(plain, ReplyForm)
    status = STATUS_READ[form.status]
    if status is None:
        raise malformed([Problem("status", f"is {form.status}: the handoff has not ended, so there is no reply")])
    if form.status in {State.FAILED, State.INPUT_REQUIRED} and not form.reason:
        raise malformed([Problem("reason", f"is required when status is {form.status}")])
    marks = marks_of(plain, form)
    metadata: dict[str, Any] = {} if form.result_trace_id is UNSET else {_TRACE: form.result_trace_id}
    error, message, warnings = None, "", tuple[str, ...]()
    if usual := _USUAL.get(status):
        error, prefix = _read_reason(form.reason, usual, marks)
        message = error.message
        if prefix is not None:
            metadata[_PREFIX] = prefix
    elif status is envelope.Status.NEEDS_INPUT:
        message = form.reason
    elif form.reason:
        status, warnings = envelope.Status.PARTIAL, lines_of(form.reason)
    reply = Reply(
        status=status,
        request_id=form.id,
        data=form.result,
        message=message,
        confidence=UNSTATED_CONFIDENCE.get(status),
        warnings=warnings,
        error=error,
        metadata=with_marks(metadata, NAME, marks),
    )
    return sound_reply(reply, REPLY_NAMES)


def encode_reply(reply: Reply) -> dict[str, Any]:
    """Return the reply as the update that ends the handoff."""
    marks = kept(reply.metadata, NAME)
    trace_id = reply.metadata.get(_TRACE)
    form = ReplyForm(
        id=reply.request_id,
        status=STATUS_WRITTEN[reply.status],
        # The answer of an agent that only speaks would be lost otherwise.
        result=(reply.message or None) if reply.data is None and reply.ok else plain_of(reply.data),
        result_trace_id=trace_id if isinstance(trace_id, str) and trace_id else UNSET,
        reason=_write_reason(reply, marks),
    )
    return write(form, marks)


def _read_reason(reason: str, usual: Error, marks: list[str]) -> Fault:
    if reason:
        return read_fault(reason, usual=usual.code)
    marks.append(_REASON_OMITTED)
    return Fault(usual, None)


def _write_reason(reply: Reply, marks: frozenset[str]) -> str:
    if reply.ok:
        return "\n".join(reply.warnings) if reply.status is envelope.Status.PARTIAL else ""
    if reply.status is envelope.Status.NEEDS_INPUT or reply.error is None:
        return reply.message or "the agent needs input"
    usual = _USUAL[reply.status]
    if reply.error == usual and _REASON_OMITTED in marks:
        return ""
    prefix = reply.metadata.get(_PREFIX)
    text = text_of(reply.error, usual=usual.code, prefix=prefix if isinstance(prefix, str) else None)
    return text or reply.error.code
