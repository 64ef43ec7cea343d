"""KDAP's contract: requests and responses in upper-case words, confidence in bands, loose text blocks.

A document is a JSON object or one of its text blocks; both are written as JSON. The `context` of a request is an open
object: `session_id` and `user_id` go to the envelope, the words of a `Background` to its fields, and any other word to
`Background.extra` as `kdap.<word>`. Agent codes are whatever is registered; `USER` stands for a request by a user. The handoff
context and the intent classification are in `kdap_routing`.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import FieldInfo

from comity.core.call.limits import ERROR_CHARS_MAX, NAME_CHARS_MAX, REPLY_BYTES_MAX, REQUEST_BYTES_MAX, Limits
from comity.core.document.payload import Problem
from comity.core.envelope import confidence, envelope
from comity.core.envelope.confidence import Band
from comity.core.envelope.envelope import Background, Error, Reply, Request, is_code
from comity.dialects import kdap_block as block
from comity.dialects.reading import document
from comity.dialects.reading.document import (
    EXACT_MAX,
    Milliseconds,
    as_object,
    left_ms,
    malformed,
    sealed_inputs,
    short_number,
    sound_reply,
    sound_request,
)
from comity.dialects.reading.fault import NEEDS_INPUT
from comity.dialects.reading.form import Form, fields_of, is_default, kept, marks_of, plain_of, read, with_marks, write

NAME: Final = "kdap"
USER: Final = "USER"
LIMITS: Final = Limits(timeout_ms=30_000)

_CONTEXT: Final = "kdap."
_METADATA: Final = "kdap.metadata"
# Of a reply's metadata: what an agent or its node knows of how an answer was made, under the same names here and there.
KNOWN_METADATA: Final = ("capability_version", "source_version", "cache_status")
_FAILED: Final = "TARGET_FAILED"
_EXPIRED: Final = "CALL_TIMEOUT"
_EXPIRED_MESSAGE: Final = "the request exceeded its time limit"
# Marks beyond those of a form: what a document left to its reader.
_USER_OMITTED: Final = "context.user_id:omitted"
_CONTEXT_OMITTED: Final = "context:omitted"
_CODE_OMITTED: Final = "error_code:omitted"
_MESSAGE_OMITTED: Final = "error_message:omitted"


class Priority(StrEnum):
    """How urgent a request is."""

    HIGH = "HIGH"
    NORMAL = "NORMAL"
    LOW = "LOW"


class Status(StrEnum):
    """How a request ended."""

    SUCCESS = "SUCCESS"
    PARTIAL = "PARTIAL"
    ERROR = "ERROR"
    TIMEOUT = "TIMEOUT"


class Heading(StrEnum):
    """What stands above a text block."""

    REQUEST = "REQUEST"
    RESPONSE = "RESPONSE"
    HANDOFF_CONTEXT = "HANDOFF CONTEXT"
    INTENT_CLASSIFICATION = "INTENT CLASSIFICATION"


PRIORITY_READ: Final = {
    Priority.HIGH: envelope.Priority.HIGH,
    Priority.NORMAL: envelope.Priority.NORMAL,
    Priority.LOW: envelope.Priority.LOW,
}
# KDAP knows nothing above HIGH.
PRIORITY_WRITTEN: Final = {ours: theirs for theirs, ours in PRIORITY_READ.items()} | {envelope.Priority.CRITICAL: Priority.HIGH}

STATUS_READ: Final = {
    Status.SUCCESS: envelope.Status.SUCCESS,
    Status.PARTIAL: envelope.Status.PARTIAL,
    Status.ERROR: envelope.Status.ERROR,
    Status.TIMEOUT: envelope.Status.TIMEOUT,
}
# A refusal or a cancelled call is an ERROR whose code tells. A question is one whose code is CALL_NEEDS_INPUT.
STATUS_WRITTEN: Final = {ours: theirs for theirs, ours in STATUS_READ.items()} | {
    envelope.Status.NEEDS_INPUT: Status.ERROR,
    envelope.Status.REFUSED: Status.ERROR,
    envelope.Status.CANCELLED: Status.ERROR,
}

_Word = Annotated[str, Meta(min_length=1)]


class RequestForm(Form, frozen=True):
    """A REQUEST."""

    written = frozenset({"priority", "timeout_ms"})

    source_agent: _Word
    target_agent: _Word
    capability_code: _Word
    request_id: _Word
    inputs_json: dict[str, Any]
    priority: Priority = Priority.NORMAL
    timeout_ms: Milliseconds = 30_000
    context: dict[str, Any] | UnsetType = UNSET
    correlation_id: str = ""


class ResponseForm(Form, frozen=True):
    """A RESPONSE."""

    request_id: str
    status: Status
    result_json: dict[str, Any] | None
    confidence_level: Band | UnsetType = UNSET
    error_code: _Word | UnsetType = UNSET
    error_message: _Word | UnsetType = UNSET
    warnings: tuple[str, ...] = ()
    metadata: dict[str, Any] | UnsetType = UNSET


REQUEST_NAMES: Final = {
    "source": "source_agent",
    "target": "target_agent",
    "capability": "capability_code",
    "request_id": "request_id",
    "inputs": "inputs_json",
    "priority": "priority",
    "deadline_at": "timeout_ms",
    "correlation_id": "correlation_id",
    "user_id": "context.user_id",
    "session_id": "context.session_id",
    "context": "context",
    "context.extra.kdap": "context",
}
REPLY_NAMES: Final = {
    "request_id": "request_id",
    "status": "status",
    "data": "result_json",
    "confidence": "confidence_level",
    "error.code": "error_code",
    "error.message": "error_message",
    "warnings": "warnings",
    "duration_ms": "metadata.processing_time_ms",
    "metadata.kdap.metadata": "metadata",
}

_BACKGROUND: Final = {field.name: field for field in fields_of(Background) if field.name != "extra"}
_HEADINGS: Final[dict[str, block.Texts]] = {
    Heading.REQUEST: block.Texts(
        lines=frozenset({"source_agent", "target_agent", "capability_code", "request_id", "priority", "correlation_id"}),
        lists=frozenset(),
    ),
    Heading.RESPONSE: block.Texts(
        lines=frozenset({"request_id", "status", "confidence_level", "error_code", "error_message"}),
        lists=frozenset(),
        sentences=frozenset({"warnings"}),
    ),
    Heading.HANDOFF_CONTEXT: block.Texts(
        lines=frozenset({"session_id", "original_request", "workflow_position"}), lists=frozenset({"prior_agents"})
    ),
    Heading.INTENT_CLASSIFICATION: block.Texts(
        lines=frozenset({"primary_intent", "target_agent", "target_capability"}), lists=frozenset({"secondary_intents"})
    ),
}


def load(raw: Any, *headings: Heading) -> dict[str, Any]:
    """Return the fields of a JSON object or of a text block under one of `headings`, as plain data."""
    bytes_max = 2 * REPLY_BYTES_MAX if Heading.RESPONSE in headings else REQUEST_BYTES_MAX
    if isinstance(raw, (bytes, bytearray, memoryview)):
        try:
            raw = bytes(raw).decode()
        except UnicodeDecodeError:
            raise malformed([Problem("$", "is not valid UTF-8")]) from None
    if isinstance(raw, str) and not raw.lstrip().startswith("{"):
        heading, raw = block.parse(raw, _HEADINGS)
        if heading not in headings:
            raise malformed([Problem("$", f"is a block headed {heading}, not {' or '.join(headings)}")])
    return document.load(raw, bytes_max=bytes_max)


# --- requests -----------------------------------------------------------------------------------------------------------


def decode_request(raw: Any, *, now_ms: int, user_id: str | None = None, limits: Limits = LIMITS) -> Request:
    """Return the request in a document. `user_id` is used where the context names no user; `limits` are the caller's."""
    plain = load(raw, Heading.REQUEST)
    form = read(plain, RequestForm)
    context = {} if form.context is UNSET else form.context
    ids = {"session_id": "", "user_id": user_id or ""} | context
    problems = [
        Problem(f"context.{name}", "must be text that is not empty")
        for name in ("session_id", "user_id")
        if name in context and not (isinstance(ids[name], str) and ids[name])
    ]
    if not ids["user_id"] and not problems:
        problems.append(Problem("context.user_id", "is required where nothing else tells who the user is"))
    if problems:
        raise malformed(problems)
    marks = marks_of(plain, form)
    if "user_id" not in context:
        marks.append(_USER_OMITTED)
    if form.context is UNSET:
        marks.append(_CONTEXT_OMITTED)
    source = None if form.source_agent == USER else form.source_agent
    request = Request(
        request_id=form.request_id,
        target=form.target_agent,
        capability=form.capability_code,
        user_id=ids["user_id"],
        limits=limits,
        deadline_at=now_ms + form.timeout_ms,
        source=source,
        chain=() if source is None else (source,),
        body=sealed_inputs(form.inputs_json, path="inputs_json"),
        priority=PRIORITY_READ[form.priority],
        correlation_id=form.correlation_id,
        session_id=ids["session_id"],
        context=_read_context(context),
        metadata=with_marks({}, NAME, marks),
    )
    return sound_request(request, REQUEST_NAMES)


def encode_request(request: Request, *, now_ms: int) -> dict[str, Any]:
    """Return the request as a document; its timeout is what is left of the deadline."""
    marks = kept(request.metadata, NAME)
    context = _write_context(request, is_user_omitted=_USER_OMITTED in marks)
    form = RequestForm(
        source_agent=request.source or USER,
        target_agent=request.target,
        capability_code=request.capability,
        request_id=request.request_id,
        inputs_json=request.inputs,
        priority=PRIORITY_WRITTEN[request.priority],
        timeout_ms=left_ms(request.deadline_at, since_ms=now_ms),
        context=UNSET if not context and _CONTEXT_OMITTED in marks else context,
        correlation_id=request.correlation_id,
    )
    return write(form, marks)


def _read_context(context: dict[str, Any]) -> Background | None:
    known: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for name, value in context.items():
        if name in {"session_id", "user_id"}:
            continue
        field = _BACKGROUND.get(name)
        fitting = UNSET if field is None else _fitting(value, field)
        if fitting is UNSET:
            extra[_CONTEXT + name] = value
        else:
            known[name] = fitting
    return Background(**known, extra=extra) if known or extra else None


def _fitting(value: Any, field: FieldInfo) -> Any:
    """Return a value of the open context as our field of that name holds it, or UNSET where that would change it."""
    try:
        typed = msgspec.convert(value, field.type)
    except msgspec.ValidationError:
        return UNSET
    return UNSET if is_default(field, typed) or plain_of(typed) != value else typed


def _write_context(request: Request, *, is_user_omitted: bool) -> dict[str, Any]:
    context: dict[str, Any] = {"session_id": request.session_id} if request.session_id else {}
    if not is_user_omitted:
        context["user_id"] = request.user_id
    background = request.context
    if background is not None:
        for name, field in _BACKGROUND.items():
            value = getattr(background, name)
            if not is_default(field, value):
                context[name] = plain_of(value)
        for key, value in background.extra.items():
            if key.startswith(_CONTEXT):
                context.setdefault(key.removeprefix(_CONTEXT), plain_of(value))
    return context


# --- replies ------------------------------------------------------------------------------------------------------------


def decode_reply(raw: Any) -> Reply:
    """Return the reply in a document."""
    plain = load(raw, Heading.RESPONSE)
    form = read(plain, ResponseForm)
    if problems := list(_rule_problems(form)):
        raise malformed(problems)
    marks = marks_of(plain, form)
    status = STATUS_READ[form.status]
    error = None
    if form.status in {Status.ERROR, Status.TIMEOUT}:
        error = _read_error(form, marks)
        if form.status is Status.ERROR and error.code == NEEDS_INPUT:
            status = envelope.Status.NEEDS_INPUT
    duration_ms, metadata = _read_metadata(form.metadata)
    reply = Reply(
        status=status,
        request_id=form.request_id,
        data=form.result_json,
        message="" if error is None else error.message,
        confidence=None if form.confidence_level is UNSET else confidence.representative(form.confidence_level),
        warnings=form.warnings,
        error=None if status is envelope.Status.NEEDS_INPUT else error,
        duration_ms=duration_ms,
        metadata=with_marks(metadata, NAME, marks),
    )
    return sound_reply(reply, REPLY_NAMES)


def _rule_problems(form: ResponseForm) -> Iterator[Problem]:
    """Yield what each status requires or rules out."""
    status = form.status
    if status in {Status.SUCCESS, Status.PARTIAL}:
        if form.confidence_level is UNSET:
            yield Problem("confidence_level", f"is required when status is {status}")
        for name in ("error_code", "error_message"):
            if getattr(form, name) is not UNSET:
                yield Problem(name, f"has no place when status is {status}")
    if status is Status.PARTIAL and not form.warnings:
        yield Problem("warnings", "must say what is limited when status is PARTIAL")
    if form.error_code is not UNSET and not is_code(form.error_code):
        yield Problem("error_code", f"must be of the form CATEGORY_SPECIFIC_ERROR, of at most {NAME_CHARS_MAX} characters")
    if form.error_message is not UNSET and len(form.error_message) > ERROR_CHARS_MAX:
        yield Problem("error_message", f"is longer than {ERROR_CHARS_MAX} characters")
    if status is Status.ERROR:
        if form.error_message is UNSET:
            yield Problem("error_message", "is required when status is ERROR")
        if form.result_json:
            yield Problem("result_json", "must be null or empty when status is ERROR")


def _read_error(form: ResponseForm, marks: list[str]) -> Error:
    is_expired = form.status is Status.TIMEOUT
    code, message = form.error_code, form.error_message
    if code is UNSET:
        code = _EXPIRED if is_expired else _FAILED
        marks.append(_CODE_OMITTED)
    if message is UNSET:
        message = _EXPIRED_MESSAGE
        marks.append(_MESSAGE_OMITTED)
    return Error.of(code, message)


def _read_metadata(metadata: dict[str, Any] | UnsetType) -> tuple[float, dict[str, Any]]:
    """Return the duration and the rest; what would not come back from our fields stays in the rest."""
    if metadata is UNSET:
        return 0.0, {}
    known = {name: metadata[name] for name in KNOWN_METADATA if name in metadata}
    duration_ms = metadata.get("processing_time_ms")
    if isinstance(duration_ms, bool) or not isinstance(duration_ms, (int, float)) or not 0 < duration_ms < EXACT_MAX:
        rest = {key: value for key, value in metadata.items() if key not in known}
        return 0.0, known | ({_METADATA: rest} if rest or not known else {})
    rest = {key: value for key, value in metadata.items() if key not in known and key != "processing_time_ms"}
    return float(duration_ms), known | ({_METADATA: rest} if rest else {})


def encode_reply(reply: Reply) -> dict[str, Any]:
    """Return the reply as a document."""
    marks = kept(reply.metadata, NAME)
    status = STATUS_WRITTEN[reply.status]
    code: str | UnsetType = UNSET
    message: str | UnsetType = UNSET
    if status in {Status.ERROR, Status.TIMEOUT}:
        code, message = _write_error(reply, marks)
    form = ResponseForm(
        request_id=reply.request_id,
        status=status,
        result_json=_write_result(reply, status),
        confidence_level=UNSET if reply.confidence is None else confidence.band(reply.confidence),
        error_code=code,
        error_message=message,
        warnings=reply.warnings,
        metadata=_write_metadata(reply),
    )
    return write(form, marks)


def finished(reply: Reply, capability_version: str) -> Reply:
    """Return a node's reply with what the node knows of how it was made, where its agent does not say so itself."""
    if not capability_version or "capability_version" in reply.metadata or not reply.ok:
        return reply
    return msgspec.structs.replace(reply, metadata={**reply.metadata, "capability_version": capability_version})


def _write_error(reply: Reply, marks: frozenset[str]) -> tuple[str | UnsetType, str | UnsetType]:
    error = reply.error
    if error is None or reply.status is envelope.Status.NEEDS_INPUT:
        return NEEDS_INPUT, reply.message or "the agent needs input"
    is_expired = reply.status is envelope.Status.TIMEOUT
    message = error.message or error.advice or error.code
    is_code_usual = error.code == (_EXPIRED if is_expired else _FAILED)
    return (
        UNSET if is_code_usual and _CODE_OMITTED in marks else error.code,
        UNSET if is_expired and message == _EXPIRED_MESSAGE and _MESSAGE_OMITTED in marks else message,
    )


def _write_result(reply: Reply, status: Status) -> dict[str, Any] | None:
    data = reply.data
    if status is Status.ERROR:
        return {} if data == {} else None
    if data is None:
        # The answer of an agent that only speaks would be lost otherwise.
        return {"message": reply.message} if reply.message and status is not Status.TIMEOUT else None
    return as_object(data)


def _write_metadata(reply: Reply) -> dict[str, Any] | UnsetType:
    rest = reply.metadata.get(_METADATA)
    metadata: dict[str, Any] = {"processing_time_ms": short_number(reply.duration_ms)} if reply.duration_ms > 0 else {}
    metadata |= {name: plain_of(reply.metadata[name]) for name in KNOWN_METADATA if name in reply.metadata}
    if isinstance(rest, dict):
        return rest | metadata
    return metadata or UNSET
