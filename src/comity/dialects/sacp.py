"""SACP's replies: thought, status, data and message in one JSON object. It has no requests.

This reads documents that are what they should be. What a model wrote is read by `comity.core.model.reply`, which mends what it
can and falls back to the object that `fallback` makes.
"""

from __future__ import annotations

from typing import Any, Final

from comity.core.call.limits import REPLY_BYTES_MAX
from comity.core.envelope import envelope
from comity.core.envelope.envelope import Reply
from comity.core.model.reply import FALLBACK_MESSAGE, FALLBACK_THOUGHT, SENT_BACK, Status
from comity.core.model.reply.canonical import EXTRA, STATUS, error_of, metadata_of
from comity.core.model.reply.canonical import MEANING as STATUS_READ
from comity.core.model.reply.fields import FIELDS
from comity.dialects.reading.document import UNSTATED_CONFIDENCE, as_object, load, sound_reply
from comity.dialects.reading.form import Form, kept, marks_of, plain_of, read, with_marks, write

NAME: Final = "sacp"

# The seed allows `success` only where the task is truly done, so that a partial result is a failure that has data.
STATUS_WRITTEN: Final = dict.fromkeys(envelope.Status, Status.FAILURE) | {
    envelope.Status.SUCCESS: Status.SUCCESS,
    envelope.Status.NEEDS_INPUT: Status.CLARIFICATION_NEEDED,
}


class ReplyForm(Form, frozen=True):
    """A reply."""

    thought: str
    status: Status
    data: dict[str, Any]
    message: str
    next_step_hint: str = ""


REPLY_NAMES: Final = {
    "thought": "thought",
    "status": "status",
    "data": "data",
    "message": "message",
    "error.message": "message",
    "next_step_hint": "next_step_hint",
    "metadata.sacp.status": "status",
}


def decode_reply(raw: Any) -> Reply:
    """Return the reply in a document; `completed` is kept in the metadata as `sacp.status`."""
    plain = load(raw, bytes_max=2 * REPLY_BYTES_MAX)
    form = read({name: plain[name] for name in FIELDS if name in plain} if isinstance(plain, dict) else plain, ReplyForm)
    extra = {name: value for name, value in plain.items() if name not in FIELDS}  # the schema of the seed allows more
    status = STATUS_READ[form.status]
    is_fallback = form.status is Status.FAILURE and form.thought == FALLBACK_THOUGHT and "raw_output" in form.data
    reply = Reply(
        status=status,
        thought=form.thought,
        data=form.data,
        message=form.message,
        confidence=UNSTATED_CONFIDENCE.get(status),
        error=error_of(form.status, form.message, is_fallback=is_fallback),
        next_step_hint=form.next_step_hint,
        degraded=is_fallback,
        metadata=with_marks(metadata_of(form.status, extra), NAME, marks_of(plain, form)),
    )
    return sound_reply(reply, REPLY_NAMES)


def encode_reply(reply: Reply) -> dict[str, Any]:
    """Return the reply as a document."""
    status = STATUS_WRITTEN[reply.status]
    if status is Status.SUCCESS and reply.metadata.get(STATUS) == Status.COMPLETED:
        status = Status.COMPLETED
    elif reply.error is not None and reply.error.code == SENT_BACK:
        status = Status.RETRY_WITH_INSTRUCTION
    is_fallback = reply.degraded and reply.error is not None and reply.error.code == "OUTPUT_VALIDATION_FAILED"
    form = ReplyForm(
        thought=reply.thought or (FALLBACK_THOUGHT if is_fallback and _has_raw_output(reply.data) else ""),
        status=status,
        data=as_object(plain_of(reply.data)),
        message=reply.message or ("\n".join(reply.warnings) if reply.error is None else reply.error.message),
        next_step_hint=reply.next_step_hint,
    )
    extra = reply.metadata.get(EXTRA)
    document = write(form, kept(reply.metadata, NAME))
    return {**plain_of(extra), **document} if isinstance(extra, dict) else document


def _has_raw_output(data: Any) -> bool:
    return isinstance(data, dict) and "raw_output" in data


def fallback(raw_output: str) -> dict[str, Any]:
    """Return the document that stands for a reply that the reader could not parse."""
    return write(
        ReplyForm(thought=FALLBACK_THOUGHT, status=Status.FAILURE, data={"raw_output": raw_output}, message=FALLBACK_MESSAGE)
    )
