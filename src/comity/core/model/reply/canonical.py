"""The last rung: what a structured reply means as a canonical `Reply`, for models and for the SACP dialect alike.

`completed` is a success that ends a workflow. `retry_with_instruction` gives the work back to the caller: an error that says
what to change, since a result there is not. A degraded reading never becomes a success: it is partial, and says why.
"""

from __future__ import annotations

from typing import Any, Final

from comity.core.call.limits import MESSAGE_BYTES_MAX
from comity.core.document.payload import PayloadError, pack
from comity.core.envelope import envelope
from comity.core.envelope.envelope import Error, Reply
from comity.core.model.reply.fields import Status
from comity.core.model.reply.ladder import Reading, Rung
from comity.core.model.reply.places import without_controls

EXTRA: Final = "sacp.extra"  # where a reply's metadata keeps the fields that the protocol does not know
EXTRA_BYTES_MAX: Final = 64 * 1024
STATUS: Final = "sacp.status"  # where a reply's metadata keeps the word that the canonical status cannot say
SENT_BACK: Final = "TARGET_SENT_BACK"

MEANING: Final = {
    Status.SUCCESS: envelope.Status.SUCCESS,
    Status.FAILURE: envelope.Status.ERROR,
    Status.CLARIFICATION_NEEDED: envelope.Status.NEEDS_INPUT,
    Status.COMPLETED: envelope.Status.SUCCESS,
    Status.RETRY_WITH_INSTRUCTION: envelope.Status.ERROR,
}


def error_of(status: Status, message: str, *, is_fallback: bool) -> Error | None:
    """Return the error that a status carries, if it does."""
    if status is Status.RETRY_WITH_INSTRUCTION:
        return Error.of(SENT_BACK, message)
    if status is Status.FAILURE:
        return Error.of("OUTPUT_VALIDATION_FAILED" if is_fallback else "TARGET_FAILED", message)
    return None


def metadata_of(status: Status, extra: dict[str, Any]) -> dict[str, Any]:
    """Return what a reply keeps of its status word, and of the fields that the protocol does not know."""
    word = {STATUS: str(status)} if status is Status.COMPLETED else {}
    return {**word, EXTRA: extra} if extra else word


def canonical(reading: Reading) -> Reply:
    """Return the reply that a reading is."""
    meaning = MEANING[reading.status]
    message, is_cut = _bounded(reading.message)
    thought, is_thought_cut = _bounded(reading.thought)
    degraded = reading.degraded or is_cut
    warnings = [f"the reply was mended: {', '.join(reading.repairs)}"] if degraded and reading.repairs else []
    if is_cut or is_thought_cut:
        warnings.append("a text of the reply was too long and is cut")
    extra = reading.extra
    try:
        pack(extra, path="extra", bytes_max=EXTRA_BYTES_MAX)
    except PayloadError as error:
        warnings.append(f"fields beyond the protocol were dropped: {error.problems[0].message}")
        extra = {}
    confidence = None
    if meaning is envelope.Status.SUCCESS:
        confidence = 1.0
        if degraded:
            meaning, confidence = envelope.Status.PARTIAL, 0.5
    return Reply(
        status=meaning,
        thought=thought,
        data=reading.data,
        message=message,
        confidence=confidence,
        warnings=tuple(warnings),
        error=error_of(reading.status, message, is_fallback=reading.rung is Rung.FALLBACK),
        next_step_hint=_bounded(reading.next_step_hint)[0],
        degraded=degraded,
        metadata=metadata_of(reading.status, extra),
    )


def bounded(text: str) -> str:
    """Return as much of a text as an envelope can carry."""
    return _bounded(text)[0]


def _bounded(text: str) -> tuple[str, bool]:
    """Return a text as an envelope can carry it, and whether its end is missing."""
    if text.isascii() and text.isprintable() and len(text) <= MESSAGE_BYTES_MAX:
        return text, False
    raw = without_controls(text).encode()
    if len(raw) <= MESSAGE_BYTES_MAX:
        return raw.decode(), False
    return raw[:MESSAGE_BYTES_MAX].decode(errors="ignore"), True
