"""`call_agent` of ADR-028: a model names an agent, a message and perhaps a timeout, and gets text or an error back.

What the model may say is the tool input. Who calls, and on whose behalf, travels beside it in the call context, which no model
can write: `call_chain` lists the callers, root first, and `call_depth` counts them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from comity.core.call.limits import CHAIN_MAX, REPLY_BYTES_MAX, Limits
from comity.core.document.payload import Problem
from comity.core.envelope import envelope
from comity.core.envelope.envelope import Error, Reply, Request
from comity.dialects.reading.document import (
    MESSAGE_CAPABILITY,
    left_ms,
    load,
    malformed,
    sealed_inputs,
    sound_reply,
    sound_request,
)
from comity.dialects.reading.fault import NEEDS_INPUT, read_fault, text_of
from comity.dialects.reading.form import Form, kept, marks_of, plain_of, read, with_marks, write

NAME: Final = "call_agent"
TIMEOUT_MS_DEFAULT: Final = 30_000
TIMEOUT_MS_MAX: Final = 300_000
LIMITS: Final = Limits(depth_max=5, timeout_ms=TIMEOUT_MS_DEFAULT, timeout_ms_max=TIMEOUT_MS_MAX)

_TIMEOUT: Final = "call_agent.timeout_ms"
_PREFIX: Final = "call_agent.error_prefix"
_FAILED: Final = "TARGET_FAILED"
_TOO_DEEP: Final = "LIMIT_DEPTH_EXCEEDED"
_CYCLE: Final = "ROUTING_CYCLE_DETECTED"
_CYCLE_FIELDS: Final = frozenset({"caller", "target", "chain"})

TOOL: Final = {
    "name": "call_agent",
    "description": "Ask another agent and wait until it answers.",
    "parameters": {
        "agent_id": {"type": "string", "description": "Which agent to ask, by its id."},
        "message": {"type": "string", "description": "What to tell the agent."},
        "timeout_ms": {
            "type": "integer",
            "description": f"How many milliseconds to wait: {TIMEOUT_MS_DEFAULT} if left out, {TIMEOUT_MS_MAX} at most.",
        },
    },
}
"""The tool with ADR-028's name and parameters, described in words of our own."""

INPUT_SCHEMA: Final = {
    "type": "object",
    "properties": TOOL["parameters"],
    "required": ["agent_id", "message"],
    "additionalProperties": False,
}
"""The JSON Schema of the tool input, as models are given it."""

# ADR-028's names of what can go wrong with a call.
ERROR_WORDS: Final = {
    "CycleDetected": "ROUTING_CYCLE_DETECTED",
    "CallDepthExceeded": "LIMIT_DEPTH_EXCEEDED",
    "AgentCallTimeout": "CALL_TIMEOUT",
    "AgentCallRejected": "ROUTING_NOT_PERMITTED",
    "AgentNotFound": "ROUTING_UNKNOWN_AGENT",
    "AgentBusy": "AGENT_BUSY",
}

STATUS_READ: Final = {"text": envelope.Status.SUCCESS, "error": envelope.Status.ERROR}
# A partial answer is text that ends with its warnings; whatever is no answer is an error.
STATUS_WRITTEN: Final = dict.fromkeys(envelope.Status, "error") | {
    envelope.Status.SUCCESS: "text",
    envelope.Status.PARTIAL: "text",
}

_Word = Annotated[str, Meta(min_length=1)]


class RequestForm(Form, frozen=True):
    """The tool input."""

    written = frozenset({"timeout_ms"})

    agent_id: _Word
    message: _Word
    timeout_ms: Annotated[int, Meta(ge=0)] = TIMEOUT_MS_DEFAULT


class CallContextForm(Form, frozen=True):
    """What travels beside the tool input."""

    call_depth: Annotated[int, Meta(ge=0, le=CHAIN_MAX)]
    call_chain: tuple[_Word, ...]


class ReplyForm(Form, frozen=True):
    """What the tool gives back: a text or an error; the details of an error are the fields that ADR-028 gives it."""

    text: str | UnsetType = UNSET
    error: str | UnsetType = UNSET
    details: dict[str, Any] | UnsetType = UNSET


REQUEST_NAMES: Final = {"target": "agent_id", "message": "message", "deadline_at": "timeout_ms", "chain": "call_chain"}
REPLY_NAMES: Final = {"message": "text", "error": "error", "status": "error"}


def decode_request(
    raw: Any,
    *,
    now_ms: int,
    request_id: str,
    user_id: str,
    call_context: Any = None,
    capability: str = MESSAGE_CAPABILITY,
    limits: Limits = LIMITS,
) -> Request:
    """Return the request of a tool call. Without a call context it is a user's."""
    plain = load(raw)
    form = read(plain, RequestForm)
    chain = () if call_context is None else decode_call_context(call_context)
    timeout_ms = min(form.timeout_ms, TIMEOUT_MS_MAX)
    metadata = {} if timeout_ms == form.timeout_ms else {_TIMEOUT: form.timeout_ms}
    request = Request(
        request_id=request_id,
        target=form.agent_id,
        capability=capability,
        user_id=user_id,
        limits=limits,
        deadline_at=now_ms + timeout_ms,
        source=chain[-1] if chain else None,
        chain=chain,
        body=sealed_inputs({}, path="message"),
        message=form.message,
        metadata=with_marks(metadata, NAME, marks_of(plain, form)),
    )
    return sound_request(request, REQUEST_NAMES)


def encode_request(request: Request, *, now_ms: int) -> dict[str, Any]:
    """Return the tool input; raise `CallerError` if there is nothing to say. Inputs become text at the end of the message."""
    message = "\n\n".join([*filter(None, [request.message or request.objective]), *_texts_of(request.inputs or None)])
    if not message:
        raise malformed([Problem("message", "is required, and the request has neither message, objective nor inputs")])
    timeout_ms = min(left_ms(request.deadline_at, since_ms=now_ms), TIMEOUT_MS_MAX)
    asked = request.metadata.get(_TIMEOUT)
    if timeout_ms == TIMEOUT_MS_MAX and type(asked) is int and asked > TIMEOUT_MS_MAX:
        timeout_ms = asked
    form = RequestForm(agent_id=request.target, message=message, timeout_ms=timeout_ms)
    return write(form, kept(request.metadata, NAME))


def decode_call_context(raw: Any) -> tuple[str, ...]:
    """Return the chain of callers, root first."""
    form = read(load(raw), CallContextForm)
    if form.call_depth != len(form.call_chain):
        what = f"is {form.call_depth}, and call_chain has {len(form.call_chain)} callers"
        raise malformed([Problem("call_depth", what)])
    return form.call_chain


def encode_call_context(request: Request) -> dict[str, Any]:
    """Return what travels beside the tool input."""
    return write(CallContextForm(call_depth=request.depth, call_chain=request.chain))


def decode_reply(raw: Any) -> Reply:
    """Return the reply of the tool."""
    form = read(load(raw, bytes_max=2 * REPLY_BYTES_MAX), ReplyForm)
    if form.text is not UNSET and form.error is UNSET and form.details is UNSET:
        return sound_reply(Reply.success(message=form.text), REPLY_NAMES)
    if form.error is UNSET or form.text is not UNSET:
        raise malformed([Problem("$", "must have either text or error")])
    error, prefix = read_fault(form.error, usual=_FAILED, words=ERROR_WORDS)
    if form.details is not UNSET:
        error = msgspec.structs.replace(error, facts=_read_details(error.code, form.details))
    metadata = {} if prefix is None else {_PREFIX: prefix}
    if error.code == NEEDS_INPUT:
        reply = Reply.needs_input(error.message, metadata=metadata)
    else:
        reply = Reply(status=STATUS_READ["error"], error=error, message=error.message, metadata=metadata)
    return sound_reply(reply, REPLY_NAMES)


def encode_reply(reply: Reply) -> dict[str, Any]:
    """Return what the tool gives to the model; data and warnings become text at the end of the message."""
    said = text_of_reply(reply)
    if STATUS_WRITTEN[reply.status] == "text":
        return write(ReplyForm(text=said))
    return write(ReplyForm(error=said, details=UNSET if reply.error is None else _write_details(reply.error)))


def _write_details(error: Error) -> dict[str, Any] | UnsetType:
    """Return the fields of an error by their names in ADR-028, which counts the depth of the caller."""
    facts = error.facts
    if error.code == _TOO_DEEP and type(facts.get("depth")) is int and type(facts.get("depth_max")) is int:
        return {"depth": facts["depth"] - 1, "max_depth": facts["depth_max"]}
    if error.code == _CYCLE and facts.keys() >= _CYCLE_FIELDS:
        return {name: plain_of(facts[name]) for name in sorted(_CYCLE_FIELDS)}
    return UNSET


def _read_details(code: str, details: dict[str, Any]) -> dict[str, Any]:
    try:
        if code == _TOO_DEEP and details.keys() == {"depth", "max_depth"}:
            return {"depth": _whole(details["depth"]) + 1, "depth_max": _whole(details["max_depth"])}
        if code == _CYCLE and details.keys() == _CYCLE_FIELDS:
            return details
    except ValueError:
        pass
    raise malformed([Problem("details", "are not those of the error")])


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError
    return value


def text_of_reply(reply: Reply) -> str:
    """Return what the tool says, be it the answer or the error."""
    if STATUS_WRITTEN[reply.status] == "text":
        return "\n\n".join([*filter(None, [reply.message]), *_texts_of(reply.data, reply.warnings)])
    error = reply.error
    if error is None or reply.status is envelope.Status.NEEDS_INPUT:
        error = Error(code=NEEDS_INPUT, message=reply.message)
    prefix = reply.metadata.get(_PREFIX)
    said = text_of(error, usual=_FAILED, words=ERROR_WORDS, prefix=prefix if isinstance(prefix, str) else None)
    # What there is when time runs out may be enough for the model that asked.
    so_far = _texts_of(reply.data) if reply.status is envelope.Status.TIMEOUT else ()
    return "\n\n".join([said, *(f"So far: {one}" for one in so_far)])


def _texts_of(data: Any, warnings: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield what is no message in a form that a model can read."""
    if data is not None:
        yield data if isinstance(data, str) else msgspec.json.encode(plain_of(data)).decode()
    for warning in warnings:
        yield f"Warning: {warning}"
