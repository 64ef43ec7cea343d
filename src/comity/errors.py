"""Every error code, on one screen, and the exception tree that carries them.

Errors are grouped by who must act. A refusal or failure between agents travels as a value (`Reply.error`); the exception
classes exist for code that calls `Reply.unwrap()` or raises from inside a capability. Match on codes, never on message
text: codes are stable, messages are not.

    ComityError
      CallerError        change the request
      RefusedError       policy said no; asking the same again will not help
      TargetError        the other agent answered badly
      UnavailableError   try later
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar, NamedTuple


class Breaker(StrEnum):
    """What one outcome means to the circuit breaker of the capability that produced it."""

    IGNORES = "ignores"
    COUNTS = "counts"
    TRIPS = "trips"


class ComityError(Exception):
    """Base of all errors of this library; `code` is stable, `facts` explain it to a program."""

    default_code: ClassVar[str] = "TARGET_FAILED"

    def __init__(
        self,
        message: str = "",
        *,
        code: str | None = None,
        retryable: bool | None = None,
        retry_after_ms: int | None = None,
        **facts: Any,
    ) -> None:
        self.code = code or self.default_code
        meaning = CODES.get(self.code)
        self.message = str(message or (meaning.advice if meaning else self.code))
        self.retryable = retryable if retryable is not None else bool(meaning and meaning.retryable)
        self.retry_after_ms = retry_after_ms
        self.facts = facts
        super().__init__(self.message)  # what unpickling passes again, when the error comes from a process

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class CallerError(ComityError):
    """The request is wrong; change it."""

    default_code = "INPUT_VALIDATION_FAILED"


class RefusedError(ComityError):
    """A rule refused the call before it did anything."""

    default_code = "ROUTING_NOT_PERMITTED"


class TargetError(ComityError):
    """The called agent failed or answered with something unusable."""

    default_code = "TARGET_FAILED"


class UnavailableError(ComityError):
    """Nothing is wrong with the request; the other side cannot serve it now."""

    default_code = "TARGET_TEMPORARY_FAILURE"


class StaleLeaseError(UnavailableError):
    """The store refused what was written for an agent that another node has taken over."""

    default_code = "LEASE_STALE"


class CallChangedError(UnavailableError):
    """The store refused what was written about a call that another node has opened or ended meanwhile."""

    default_code = "CALL_CHANGED"


class DocumentChangedError(UnavailableError):
    """The store refused a document that was made from a version which another node has replaced meanwhile."""

    default_code = "DOCUMENT_CHANGED"


class Meaning(NamedTuple):
    """One row of the code table."""

    family: type[ComityError]
    retryable: bool
    breaker: Breaker
    advice: str


_IGNORES, _COUNTS, _TRIPS = Breaker.IGNORES, Breaker.COUNTS, Breaker.TRIPS

CODES: dict[str, Meaning] = {
    # the envelope and what it carries
    "ENVELOPE_MALFORMED": Meaning(CallerError, False, _IGNORES, "Send one JSON object with the fields of the envelope."),
    "ENVELOPE_VERSION_UNSUPPORTED": Meaning(CallerError, False, _IGNORES, "Send an envelope version this node accepts."),
    "ENVELOPE_TOO_LARGE": Meaning(CallerError, False, _IGNORES, "Send less, or pass a reference instead of the content."),
    "INPUT_VALIDATION_FAILED": Meaning(CallerError, False, _IGNORES, "Correct the inputs named in the problems."),
    # given by agents only, as KDAP asks
    "DATA_MISSING_REQUIRED_INPUT": Meaning(CallerError, False, _IGNORES, "Provide the data the capability needs."),
    # who is asking
    "IDENTITY_INVALID": Meaning(CallerError, False, _IGNORES, "Name the user, tenant, session and request with valid ids."),
    "IDENTITY_MISMATCH": Meaning(RefusedError, False, _IGNORES, "A call stays with the user and session of its root."),
    "SESSION_EXPIRED": Meaning(CallerError, False, _IGNORES, "Resume the session, or begin a new one."),
    "SESSION_ERASED": Meaning(CallerError, False, _IGNORES, "Begin a new session; nothing can be added to this one."),
    "SESSION_CONFLICT": Meaning(CallerError, True, _IGNORES, "Look at the session again and decide anew."),
    "SESSION_FULL": Meaning(CallerError, False, _IGNORES, "Keep less in the session, or begin a new one."),
    "IDENTITY_FORGED": Meaning(RefusedError, False, _IGNORES, "Use the token the node gave you, unchanged."),
    "IDENTITY_EXPIRED": Meaning(RefusedError, False, _IGNORES, "Ask for a new token within a call that is under way."),
    "IDENTITY_REQUIRED": Meaning(RefusedError, False, _IGNORES, "Send a token in the Authorization header, as Bearer TOKEN."),
    "IDENTITY_NOT_YET_VALID": Meaning(RefusedError, True, _IGNORES, "Use the token once its time has come; check the clocks."),
    "IDENTITY_WRONG_AUDIENCE": Meaning(RefusedError, False, _IGNORES, "Ask for a token that is made for this node."),
    "IDENTITY_WRONG_KIND": Meaning(RefusedError, False, _IGNORES, "Users show a user's token, agents an agent's token."),
    "IDENTITY_REVOKED": Meaning(RefusedError, False, _IGNORES, "Ask for a new token; this one was withdrawn."),
    "IDENTITY_TOKEN_REUSED": Meaning(RefusedError, False, _IGNORES, "Get a token of its own for each request."),
    "RIGHTS_MISSING": Meaning(RefusedError, False, _IGNORES, "Ask an administrator of the tenant for a role that allows it."),
    "RIGHTS_SCOPE_EXCEEDED": Meaning(RefusedError, False, _IGNORES, "Ask for a token whose scope allows it."),
    "IDENTITY_REQUEST_ID_REUSED": Meaning(CallerError, False, _IGNORES, "Use a new request_id for a new request."),
    # where it goes
    "ROUTING_UNKNOWN_AGENT": Meaning(CallerError, False, _IGNORES, "Call one of the registered agents."),
    "ROUTING_UNKNOWN_CAPABILITY": Meaning(CallerError, False, _IGNORES, "Call a capability the agent has."),
    "ROUTING_AGENT_IN_MAINTENANCE": Meaning(UnavailableError, True, _IGNORES, "Try later, or call another agent."),
    "ROUTING_AGENT_RETIRED": Meaning(CallerError, False, _IGNORES, "Call another agent; this one is gone for good."),
    "ROUTING_CAPABILITY_INACTIVE": Meaning(UnavailableError, False, _IGNORES, "Call another capability."),
    "ROUTING_NOT_PERMITTED": Meaning(RefusedError, False, _IGNORES, "Call an agent that can_call allows."),
    "ROUTING_CYCLE_DETECTED": Meaning(
        RefusedError, False, _IGNORES, "Answer with what you have; the agent you asked is waiting for you."
    ),
    "ROUTING_OBJECTIVE_IN_PROGRESS": Meaning(
        RefusedError, False, _IGNORES, "Wait for the call already under way, or ask for something else."
    ),
    "ROUTING_DEADLOCK_PREVENTED": Meaning(
        RefusedError, True, _IGNORES, "Finish without this call; retry once the other work has ended."
    ),
    # workflows
    "ROUTING_INTENT_UNKNOWN": Meaning(CallerError, False, _IGNORES, "Ask for something that one of the agents can do."),
    "ROUTING_NO_EDGE": Meaning(CallerError, False, _IGNORES, "Give the node an edge with `else: true`."),
    "WORKFLOW_INVALID": Meaning(
        CallerError, False, _IGNORES, "Correct the mistakes it lists; `comity workflow check` shows them."
    ),
    "WORKFLOW_UNKNOWN": Meaning(CallerError, False, _IGNORES, "Name a workflow or a run that the node knows."),
    "WORKFLOW_MAPPING_FAILED": Meaning(CallerError, False, _IGNORES, "Correct the path, or give it a value after `??`."),
    "WORKFLOW_CONDITION_FAILED": Meaning(CallerError, False, _IGNORES, "Correct the condition; it met values of other types."),
    "WORKFLOW_LOOP_EXHAUSTED": Meaning(CallerError, False, _IGNORES, "Raise `max` of the edge, or add an edge for this case."),
    "WORKFLOW_JOIN_UNREACHABLE": Meaning(TargetError, False, _IGNORES, "Too many branches failed; see why each did."),
    "WORKFLOW_WAIT_TIMEOUT": Meaning(UnavailableError, False, _IGNORES, "Allow more time, or give a default."),
    "WORKFLOW_LIMIT_REACHED": Meaning(RefusedError, False, _IGNORES, "Raise the limit of the workflow, or ask for less."),
    "WORKFLOW_ENDED": Meaning(TargetError, False, _IGNORES, "The workflow ended itself; its message says why."),
    "WORKFLOW_STATE_CONFLICT": Meaning(CallerError, False, _IGNORES, "Look at the run; this cannot happen from there."),
    "WORKFLOW_MIGRATION_REFUSED": Meaning(
        CallerError, False, _IGNORES, "Let the run end under its own version, or change the new one where they differ."
    ),
    # what an agent may do and see
    "TOOL_UNKNOWN": Meaning(CallerError, False, _IGNORES, "Use a tool the node has."),
    "TOOL_NOT_PERMITTED": Meaning(
        RefusedError, False, _IGNORES, "Do without; only the people who set up the agents can allow it."
    ),
    "TOOL_OUTCOME_UNKNOWN": Meaning(
        RefusedError, False, _IGNORES, "Find out whether it happened; it will not be tried a second time."
    ),
    "APPROVAL_ANSWERED": Meaning(
        RefusedError, False, _IGNORES, "The first answer stands; the same answer again shows what came of it."
    ),
    "APPROVAL_DENIED": Meaning(RefusedError, False, _IGNORES, "Do without; a person said no."),
    "PRIVACY_BLOCKED": Meaning(CallerError, False, _IGNORES, "Leave out the personal data that policy blocks."),
    "GUARDRAIL_STOPPED": Meaning(RefusedError, False, _IGNORES, "Say it in a way the guardrail allows."),
    "GUIDANCE_BLOCKED": Meaning(
        RefusedError, False, _IGNORES, "Do it without touching that, or ask the people who set the constraint to lift it."
    ),
    # what it may cost
    "LIMIT_DEPTH_EXCEEDED": Meaning(RefusedError, False, _IGNORES, "Do the work yourself and return to your caller."),
    "LIMIT_FAN_OUT_EXCEEDED": Meaning(RefusedError, True, _IGNORES, "Wait for a parallel call to end, then ask again."),
    "LIMIT_DEADLINE_PASSED": Meaning(RefusedError, False, _IGNORES, "Return what you have; no time is left."),
    "BUDGET_CALLS_EXHAUSTED": Meaning(RefusedError, False, _IGNORES, "Return what you have; no calls are left."),
    "BUDGET_TOKENS_EXHAUSTED": Meaning(RefusedError, False, _IGNORES, "Return what you have; no tokens are left."),
    # whether it can be served
    "AGENT_BUSY": Meaning(UnavailableError, True, _IGNORES, "Try later; the agent's queue is full."),
    "CAPABILITY_UNAVAILABLE": Meaning(UnavailableError, True, _IGNORES, "Try after retry_after_ms, or use another way."),
    "NODE_CLOSED": Meaning(UnavailableError, True, _IGNORES, "Send the call to a running node."),
    "NODE_UNREACHABLE": Meaning(UnavailableError, True, _IGNORES, "Try later; the node that holds the agent does not answer."),
    "LEASE_STALE": Meaning(UnavailableError, True, _IGNORES, "Ask again; another node has taken the agent over."),
    "CALL_CHANGED": Meaning(UnavailableError, True, _IGNORES, "Ask again; another node has opened or ended the call."),
    "DOCUMENT_CHANGED": Meaning(UnavailableError, True, _IGNORES, "Read it again; another node has written a newer version."),
    "STORE_UNAVAILABLE": Meaning(
        UnavailableError,
        True,
        _IGNORES,
        "See to the store; a node that could not write to it accepts nothing until it is restarted.",
    ),
    # work handed off to a receiver
    "HANDOFF_UNKNOWN": Meaning(CallerError, False, _IGNORES, "Name a handoff of yours that exists."),
    "HANDOFF_TAKEN": Meaning(RefusedError, False, _IGNORES, "Leave it; another receiver has it."),
    "HANDOFF_LEASE_LOST": Meaning(RefusedError, False, _IGNORES, "Stop working on it; another receiver may have it."),
    "HANDOFF_STATE_CONFLICT": Meaning(CallerError, False, _IGNORES, "Look at its state; this cannot happen from there."),
    "HANDOFF_ENDED": Meaning(CallerError, False, _IGNORES, "Stop working on it; it has ended."),
    "HANDOFF_REJECTED": Meaning(RefusedError, False, _IGNORES, "Hand it to another receiver, or ask for something else."),
    "HANDOFF_UNDELIVERABLE": Meaning(
        UnavailableError, False, _IGNORES, "Every receiver crashed on this handoff; check the receivers' logs."
    ),
    # what an HTTP request lacks, before any call exists
    "HTTP_HOST_UNKNOWN": Meaning(CallerError, False, _IGNORES, "Use a host name the server answers to; see --public-host."),
    "HTTP_ORIGIN_REFUSED": Meaning(RefusedError, False, _IGNORES, "Use the server's own pages, or allow the origin."),
    "HTTP_PATH_UNKNOWN": Meaning(CallerError, False, _IGNORES, "Use a path of the API description."),
    "HTTP_METHOD_UNKNOWN": Meaning(CallerError, False, _IGNORES, "Use a method that the Allow header lists."),
    "HTTP_MEDIA_TYPE": Meaning(CallerError, False, _IGNORES, "Send `Content-Type: application/json`."),
    "HTTP_QUERY_INVALID": Meaning(CallerError, False, _IGNORES, "Use the query parameters of the API description."),
    "HTTP_RATE_LIMITED": Meaning(UnavailableError, True, _IGNORES, "Wait for the seconds that Retry-After names."),
    "HTTP_RESOURCE_UNKNOWN": Meaning(CallerError, False, _IGNORES, "Name a resource that exists and that the token may see."),
    "HTTP_EVENTS_GONE": Meaning(CallerError, False, _IGNORES, "Read the state anew, then follow without a last event id."),
    "HTTP_SERVER_FAILED": Meaning(UnavailableError, True, _IGNORES, "See the server's log under the request id."),
    # how it ended
    "CALL_TIMEOUT": Meaning(UnavailableError, True, _COUNTS, "Allow more time, or ask for less."),
    "CALL_NEEDS_INPUT": Meaning(CallerError, False, _IGNORES, "Ask the user the question, then call again with the answer."),
    "CALL_CANCELLED": Meaning(RefusedError, False, _IGNORES, "The caller withdrew the call."),
    "CALL_INTERRUPTED": Meaning(UnavailableError, True, _IGNORES, "The node stopped under the call; send it again."),
    "TARGET_CRASHED": Meaning(TargetError, False, _COUNTS, "The agent's code raised; its log has the traceback."),
    "TARGET_FAILED": Meaning(TargetError, False, _IGNORES, "The agent could not do it; its message says why."),
    "TARGET_TEMPORARY_FAILURE": Meaning(UnavailableError, True, _COUNTS, "Try again shortly."),
    "TARGET_SENT_BACK": Meaning(CallerError, False, _IGNORES, "Do what the message asks, then call again, once."),
    "TARGET_MISCONFIGURED": Meaning(TargetError, False, _TRIPS, "Fix the agent's configuration."),
    "OUTPUT_VALIDATION_FAILED": Meaning(TargetError, False, _COUNTS, "The agent's answer does not fit its own schema."),
    "OUTPUT_RESERVED": Meaning(
        TargetError, False, _IGNORES, "The agent must use words and codes of its own; these are the platform's."
    ),
    "OUTPUT_TOO_LARGE": Meaning(TargetError, False, _COUNTS, "The agent must answer with less, or with a reference."),
    # what can happen between an agent and its model
    "MODEL_RATE_LIMITED": Meaning(UnavailableError, True, _COUNTS, "Try after retry_after_ms; the provider limits how often."),
    "MODEL_OVERLOADED": Meaning(UnavailableError, True, _COUNTS, "Try again shortly; the provider has too much to do."),
    "MODEL_TIMEOUT": Meaning(UnavailableError, True, _COUNTS, "Try again; the provider did not answer in time."),
    "MODEL_UNREACHABLE": Meaning(UnavailableError, True, _COUNTS, "Try again; the connection to the provider failed."),
    "MODEL_FAILED": Meaning(TargetError, False, _COUNTS, "The provider failed; its message says why."),
    "MODEL_REFUSED": Meaning(TargetError, False, _IGNORES, "Ask in another way; the model or its provider declined."),
    "MODEL_CONTEXT_TOO_LONG": Meaning(CallerError, False, _IGNORES, "Send less; the model cannot read so much at once."),
    "MODEL_MISCONFIGURED": Meaning(TargetError, False, _TRIPS, "Fix the model's name, key or address."),
}


# What agents may say themselves, beside codes of their own. All others are the platform's: see `core.envelope.reserved`.
AGENT_CODES = frozenset({
    "INPUT_VALIDATION_FAILED", "DATA_MISSING_REQUIRED_INPUT", "CALL_NEEDS_INPUT", "TARGET_FAILED", "TARGET_TEMPORARY_FAILURE",
    "ROUTING_INTENT_UNKNOWN", "TARGET_SENT_BACK", "TARGET_MISCONFIGURED", "OUTPUT_VALIDATION_FAILED", "OUTPUT_TOO_LARGE",
    *(code for code in CODES if code.startswith("MODEL_")),
})  # fmt: skip


def breaker_effect(code: str, *, retryable: bool = False) -> Breaker:
    """Return what an error means to the breaker.

    A code that an agent made up, or a plain TARGET_FAILED, is its answer and not its failure, unless it says that a retry can
    help.
    """
    meaning = CODES.get(code)
    if meaning is not None and code != "TARGET_FAILED":
        return meaning.breaker
    return Breaker.COUNTS if retryable else Breaker.IGNORES


def family(code: str) -> type[ComityError]:
    """Return the exception class for `code`; an agent's own codes are the target's answer."""
    meaning = CODES.get(code)
    return meaning.family if meaning else TargetError
