"""What conditions and mappings see of a reply: a plain object with the words that routing uses."""

from __future__ import annotations

from typing import Any, Final

from comity.errors import CODES

OK: Final = frozenset({"success", "partial", "completed"})
SENT_BACK: Final = "TARGET_SENT_BACK"
SKIPPED: Final[dict[str, Any]] = {"status": "skipped"}


def success(data: Any, **more: Any) -> dict[str, Any]:
    """Return the response of a node that is done."""
    return {"status": "success", "outcome": "success", "data": data, **more}


def failure(code: str, message: str, **facts: Any) -> dict[str, Any]:
    """Return the response of a node that failed."""
    meaning = CODES.get(code)
    error: dict[str, Any] = {"code": code, "message": message, "retryable": bool(meaning and meaning.retryable)}
    if facts:
        error["facts"] = facts
    return {"status": "failure", "outcome": "error", "error": error, "message": message}


def is_failure(response: dict[str, Any]) -> bool:
    """Return whether a node did not do its work."""
    return response["status"] not in OK


def response_of(reply: Any) -> dict[str, Any]:
    """Return a `Reply` as conditions see it.

    `status` is the word of the structured reply (success, partial, failure, clarification_needed, completed,
    retry_with_instruction), `outcome` the canonical one. A degraded reply is never a success. Thoughts are not shown.
    """
    outcome = reply.status._value_  # `value` is looked up in Python, at the cost of all the rest
    error = reply.error
    if outcome == "success":
        status = "completed" if reply.metadata and reply.metadata.get("sacp.status") == "completed" else "success"
        if reply.degraded:
            status = "partial"
    elif outcome == "partial":
        status = "partial"
    elif outcome == "needs_input":
        status = "clarification_needed"
    else:
        status = "retry_with_instruction" if error is not None and error.code == SENT_BACK else "failure"
    shown: dict[str, Any] = {"status": status, "outcome": outcome, "data": reply.data}
    if reply.message:
        shown["message"] = reply.message
    if reply.confidence is not None:
        shown["confidence"] = reply.confidence
    if reply.warnings:
        shown["warnings"] = list(reply.warnings)
    if reply.next_step_hint:
        shown["next_step_hint"] = reply.next_step_hint
    if reply.degraded:
        shown["degraded"] = True
    if error is not None:
        shown["error"] = {"code": error.code, "message": error.message, "retryable": error.retryable}
    return shown
