"""What conditions and mappings see of a reply: a plain object with the words that routing uses."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct, UnsetType, to_builtins

from comity.errors import CODES, CallerError

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


class GivenError(Struct, frozen=True, forbid_unknown_fields=True):
    """The error of a response that a person gives."""

    code: Annotated[str, Meta(min_length=1)] = "TARGET_FAILED"
    message: str = ""
    retryable: bool = False
    facts: dict[str, Any] | UnsetType = msgspec.UNSET
    node: str | UnsetType = msgspec.UNSET


class GivenResponse(Struct, frozen=True, forbid_unknown_fields=True):
    """A response as a person gives it, who may leave out all but the data."""

    status: Literal[
        "success", "partial", "failure", "clarification_needed", "completed", "retry_with_instruction", "cancelled"
    ] = "success"
    outcome: str | UnsetType = msgspec.UNSET
    data: Any = None
    message: str | UnsetType = msgspec.UNSET
    confidence: Annotated[float, Meta(ge=0, le=1)] | UnsetType = msgspec.UNSET
    warnings: list[str] | UnsetType = msgspec.UNSET
    next_step_hint: str | UnsetType = msgspec.UNSET
    degraded: bool | UnsetType = msgspec.UNSET
    error: GivenError | UnsetType = msgspec.UNSET


_OUTCOMES: Final = {
    "success": "success", "completed": "success", "partial": "partial", "clarification_needed": "needs_input",
    "cancelled": "cancelled",
}  # fmt: skip


def given_response(value: Any, path: str) -> dict[str, Any]:
    """Return the response of a node that a person gives. Raises `CallerError` for anything else at `path`."""
    try:
        given = msgspec.convert(value, GivenResponse)
    except msgspec.ValidationError as error:
        raise CallerError(f"{path} is no reply of a node: {error}") from None
    outcome = _OUTCOMES.get(given.status, "error")
    if outcome in {"error", "cancelled"} and given.error is msgspec.UNSET:
        given = msgspec.structs.replace(given, error=GivenError(message=given.message or "the step failed"))
    found: dict[str, Any] = to_builtins(given)
    return {**found, "outcome": found.get("outcome", outcome)}


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
