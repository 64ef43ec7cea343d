"""Which HTTP status an error code or a reply has: the one table of it."""

from __future__ import annotations

from typing import Final

from comity.core.envelope.envelope import Reply, Status
from comity.errors import CallerError, RefusedError, TargetError, UnavailableError, family

# What each family is answered with, unless its code says otherwise below.
_FAMILIES: Final = {CallerError: 422, RefusedError: 403, TargetError: 502, UnavailableError: 503}
_CODES: Final = {
    "ENVELOPE_MALFORMED": 400,
    "ENVELOPE_VERSION_UNSUPPORTED": 400,
    "ENVELOPE_TOO_LARGE": 413,
    "IDENTITY_INVALID": 422,
    "IDENTITY_FORGED": 401,
    "IDENTITY_EXPIRED": 401,
    "IDENTITY_REQUIRED": 401,
    "IDENTITY_NOT_YET_VALID": 401,
    "IDENTITY_WRONG_AUDIENCE": 401,
    "IDENTITY_REVOKED": 401,
    "IDENTITY_TOKEN_REUSED": 401,
    "IDENTITY_REQUEST_ID_REUSED": 422,
    "SESSION_EXPIRED": 409,
    "SESSION_ERASED": 410,
    "SESSION_CONFLICT": 409,
    "SESSION_FULL": 409,
    "ROUTING_UNKNOWN_AGENT": 404,
    "ROUTING_UNKNOWN_CAPABILITY": 404,
    "ROUTING_AGENT_RETIRED": 410,
    "ROUTING_CYCLE_DETECTED": 409,
    "ROUTING_OBJECTIVE_IN_PROGRESS": 409,
    "ROUTING_DEADLOCK_PREVENTED": 409,
    "TOOL_OUTCOME_UNKNOWN": 409,
    "APPROVAL_ANSWERED": 409,
    "LIMIT_DEPTH_EXCEEDED": 409,
    "LIMIT_FAN_OUT_EXCEEDED": 409,
    "LIMIT_DEADLINE_PASSED": 409,
    "BUDGET_CALLS_EXHAUSTED": 429,
    "BUDGET_TOKENS_EXHAUSTED": 429,
    "HANDOFF_UNKNOWN": 404,
    "WORKFLOW_UNKNOWN": 404,
    "WORKFLOW_STATE_CONFLICT": 409,
    "HANDOFF_TAKEN": 409,
    "HANDOFF_LEASE_LOST": 409,
    "HANDOFF_STATE_CONFLICT": 409,
    "HANDOFF_ENDED": 409,
    "HANDOFF_REJECTED": 409,
    "CALL_TIMEOUT": 504,
    "CALL_NEEDS_INPUT": 202,
    "CALL_CANCELLED": 409,
    "MODEL_RATE_LIMITED": 503,
    "HTTP_HOST_UNKNOWN": 421,
    "HTTP_ORIGIN_REFUSED": 403,
    "HTTP_PATH_UNKNOWN": 404,
    "HTTP_METHOD_UNKNOWN": 405,
    "HTTP_MEDIA_TYPE": 415,
    "HTTP_QUERY_INVALID": 400,
    "HTTP_RATE_LIMITED": 429,
    "HTTP_RESOURCE_UNKNOWN": 404,
    "HTTP_EVENTS_GONE": 410,
    "HTTP_SERVER_FAILED": 500,
}
_REPLIES: Final = {
    Status.SUCCESS: 200,
    Status.PARTIAL: 200,
    Status.NEEDS_INPUT: 202,
    Status.TIMEOUT: 504,
    Status.CANCELLED: 409,
}


def status_of(code: str) -> int:
    """Return the HTTP status of an error code; a code that an agent made up is the agent's answer."""
    found = _CODES.get(code)
    return found if found is not None else _FAMILIES[family(code)]


def status_of_reply(reply: Reply) -> int:
    """Return the HTTP status of a reply: 200 for a result, 202 for a question, otherwise by its error's code."""
    known = _REPLIES.get(reply.status)
    if known is not None or reply.error is None:
        return known or 502
    return 502 if reply.status is Status.ERROR else status_of(reply.error.code)


def statuses() -> list[int]:
    """Return every HTTP status that a call may be answered with."""
    return sorted({*_REPLIES.values(), *_CODES.values(), *_FAMILIES.values()} - {401, 405, 421})
