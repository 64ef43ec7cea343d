"""The life of one handoff: work that lies in a queue until an agent takes it, wherever that agent runs.

This file owns the state machine and every rule about who may change it. An engine reads the stored handoff, calls `apply`, and
writes the result in the same transaction; so of two receivers one wins, and a receiver that lost its lease changes nothing. A
lease has a fencing token, which grows each time a receiver gets the handoff. The deadline is that of the call; the first
process that notices that it has passed records it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from comity.core.call.limits import HANDOFF_HISTORY_MAX
from comity.core.call.refusal import Refused
from comity.core.envelope.envelope import ExpectedOutput, Priority, Reply, Request, Status
from comity.core.handoff import trace as handoff_trace
from comity.core.handoff.ends import ended, failure, late, lost, timeout
from comity.core.handoff.holder import Holder
from comity.core.journal.records import HANDED_AT, Accepted, Record, Saved, Settled, is_same

ATTEMPTS_MAX: Final = 5
LEASE_MS: Final = 15_000


class State(StrEnum):
    """The state of a handoff."""

    PENDING = "pending"
    ACCEPTED = "accepted"
    IN_PROGRESS = "in_progress"
    INPUT_REQUIRED = "input_required"
    COMPLETED = "completed"
    FAILED = "failed"
    REJECTED = "rejected"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"

    __hash__ = str.__hash__  # that of an enum is written in Python, and each look into a table asks for it


class Event(StrEnum):
    """What can happen to it."""

    ACCEPT = "accept"
    START = "start"
    ASK = "ask"
    ANSWER = "answer"
    COMPLETE = "complete"
    FAIL = "fail"
    REJECT = "reject"
    RELEASE = "release"  # its receiver died, stopped renewing its lease or released it: the next may take it
    CANCEL = "cancel"
    EXPIRE = "expire"

    __hash__ = str.__hash__


TRANSITIONS: dict[State, dict[Event, State]] = {
    State.PENDING: {
        Event.ACCEPT: State.ACCEPTED,
        Event.REJECT: State.REJECTED,
        Event.CANCEL: State.CANCELLED,
        Event.EXPIRE: State.TIMEOUT,
    },
    State.ACCEPTED: {
        Event.START: State.IN_PROGRESS,
        Event.RELEASE: State.PENDING,
        Event.CANCEL: State.CANCELLED,
        Event.EXPIRE: State.TIMEOUT,
    },
    State.IN_PROGRESS: {
        Event.ASK: State.INPUT_REQUIRED,
        Event.COMPLETE: State.COMPLETED,
        Event.FAIL: State.FAILED,
        Event.RELEASE: State.PENDING,
        Event.CANCEL: State.CANCELLED,
        Event.EXPIRE: State.TIMEOUT,
    },
    State.INPUT_REQUIRED: {
        Event.ANSWER: State.IN_PROGRESS,
        Event.COMPLETE: State.COMPLETED,
        Event.FAIL: State.FAILED,
        Event.RELEASE: State.PENDING,
        Event.CANCEL: State.CANCELLED,
        Event.EXPIRE: State.TIMEOUT,
    },
    State.COMPLETED: {},
    State.FAILED: {},
    State.REJECTED: {},
    State.CANCELLED: {},
    State.TIMEOUT: {},
}
_PENDING, _ACCEPTED, _COMPLETED = State.PENDING, (Event.ACCEPT,), (Event.START, Event.COMPLETE)
_WORDS: Final = {state: state.value for state in State}
ENDED: Final = frozenset(state for state, events in TRANSITIONS.items() if not events)
# Dead letters: ended without a result, and no caller withdrew them.
DEAD: Final = frozenset({State.FAILED, State.REJECTED, State.TIMEOUT})


def advance(state: State, event: Event) -> State | None:
    """Return the next state, or None if the event is invalid."""
    return TRANSITIONS[state].get(event)


class Entry(Struct, frozen=True, array_like=True, gc=False):
    """An entry of a handoff's history; `n` counts from 1, so a watcher can continue after the last it saw."""

    n: int
    at_ms: int
    kind: str  # created, a state, progress, redelivered
    data: Any = None


class Question(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """A receiver's question to the caller."""

    text: str
    input_type: str = "text"  # text, choice, multi_choice, confirmation, file
    options: tuple[str, ...] = ()
    default: Any = None
    answer: Any = None
    is_answered: bool = False


class Handoff(Struct, frozen=True, kw_only=True, gc=False):
    """One handoff: its request, state and history."""

    request: Request
    lane: str  # where it waits: tenant, and agent or capability
    made_by: str  # the node to notify of its end
    settles: bool = True  # whether its end settles its call; else the call belongs to a tree, which settles it
    attempts_max: int = ATTEMPTS_MAX
    state: State = State.PENDING
    holder: str = ""  # node and receiver that have it, or for whom it is reserved while it is pending
    receiver: str = ""  # the agent that has or had it
    fence: int = 0
    lease_until: int = 0
    attempts: int = 0
    changed_at: int = 0
    result_trace_id: str = ""
    question: Question | None = None
    reply: Reply | None = None
    history: tuple[Entry, ...] = ()

    @property
    def has_ended(self) -> bool:
        """Whether its state is final."""
        return self.state in ENDED

    @property
    def due_at(self) -> int | None:
        """Its deadline or the expiry of its lease, whichever is first; None once it has ended."""
        if self.state in ENDED:
            return None
        deadline_at, lease_until = self.request.deadline_at, self.lease_until
        return lease_until if self.holder and lease_until < deadline_at else deadline_at

    @property
    def is_free(self) -> bool:
        """Whether a receiver may take it."""
        return self.state is _PENDING and not self.holder

    # The names of ContextCore's protocol.

    @property
    def id(self) -> str:
        """Its id, which is the request's."""
        return self.request.request_id

    @property
    def status(self) -> State:
        """Its state."""
        return self.state

    @property
    def task(self) -> str:
        """What is to be done, in words."""
        return self.request.message

    @property
    def capability_id(self) -> str:
        """The capability it is for."""
        return self.request.capability

    @property
    def from_agent(self) -> str | None:
        """The agent that handed it off; None for a user."""
        return self.request.source

    @property
    def to_agent(self) -> str:
        """Its target: an agent, or a capability for any agent that has it."""
        return self.request.target

    @property
    def inputs(self) -> Any:
        """The inputs; a fresh copy."""
        return self.request.inputs

    @property
    def expected_output(self) -> ExpectedOutput | None:
        """The required form of the result, if one was given."""
        return self.request.expected_output

    @property
    def priority(self) -> Priority:
        """How urgent it is."""
        return self.request.priority

    @property
    def created_at(self) -> int:
        """When it was handed off, in milliseconds since the epoch."""
        return self.request.created_at

    @property
    def timeout_ms(self) -> int:
        """How long it was given, from when it was handed off."""
        return self.request.deadline_at - self.request.created_at

    @property
    def traceparent(self) -> str:
        """Its W3C `traceparent` header, with which a receiver continues the trace."""
        return handoff_trace.place_of(self.request).traceparent

    @property
    def tracestate(self) -> str:
        """Its W3C `tracestate` header, to be passed on unchanged."""
        return handoff_trace.place_of(self.request).state

    @property
    def result(self) -> Any:
        """The result, once it is completed."""
        return None if self.reply is None else self.reply.data

    @property
    def reason(self) -> str:
        """Why it ended without a result, or the receiver's question; empty otherwise."""
        if self.reply is not None:
            return self.reply.error.message if self.reply.error is not None else ""
        return self.question.text if self.question is not None and self.state is State.INPUT_REQUIRED else ""


# --- what can be done -----------------------------------------------------------------------------------------------------


class Offer(Struct, frozen=True, gc=False):
    """Put an admitted call into the queue."""

    handoff: Handoff
    note: str = ""  # for the audit


class Accept(Struct, frozen=True, gc=False):
    """Accept it, or with `reserves` only reserve it until the receiver decides."""

    holder: str
    receiver: str
    lease_until: int
    reserves: bool = False


class Renew(Struct, frozen=True, gc=False):
    """Renew its lease."""

    by: Holder
    lease_until: int


class Progress(Struct, frozen=True, gc=False):
    """Report progress. `saved`, here and below, are records of hidden values, written only if the change is accepted."""

    by: Holder
    data: Any
    saved: tuple[Saved, ...] = ()


class Ask(Struct, frozen=True, gc=False):
    """Ask the caller that handed it off."""

    by: Holder
    question: Question
    saved: tuple[Saved, ...] = ()


class Answer(Struct, frozen=True, gc=False):
    """Answer the question."""

    answer: Any
    saved: tuple[Saved, ...] = ()


class Complete(Struct, frozen=True, gc=False):
    """End it with a result."""

    by: Holder
    reply: Reply
    result_trace_id: str = ""
    saved: tuple[Saved, ...] = ()


class Fail(Struct, frozen=True, gc=False):
    """End it without a result."""

    by: Holder
    reply: Reply
    saved: tuple[Saved, ...] = ()


class Reject(Struct, frozen=True, gc=False):
    """Reject it before accepting it; it ends."""

    by: Holder
    reason: str


class Release(Struct, frozen=True, gc=False):
    """Return it to the queue; `by` is None if its holder died or its lease expired."""

    by: Holder | None
    reason: str


class Cancel(Struct, frozen=True, gc=False):
    """Withdraw it."""

    reason: str


class Expire(Struct, frozen=True, gc=False):
    """Note that its deadline has passed."""


Change = (
    Offer | Accept | Renew | Progress | Ask | Answer | Complete | Fail | Reject | Release | Cancel | Expire
)  # to one handoff


class Outcome(Struct, frozen=True, gc=False):
    """The result of a change: the new handoff, the refusal if nothing was changed, and the records to write with it."""

    handoff: Handoff | None
    refusal: Refused | None = None
    records: tuple[Record, ...] = ()


# --- what becomes of it ---------------------------------------------------------------------------------------------------


def apply(handoff: Handoff | None, change: Change, *, now_ms: int) -> Outcome:
    """Return the outcome of a change to a handoff. Only this function decides."""
    if type(change) is Offer:
        return _offer(handoff, change, now_ms)
    if handoff is None:
        return Outcome(None, Refused("HANDOFF_UNKNOWN", "there is no such handoff"))
    if type(change) is Renew:
        return _renew(handoff, change, now_ms)
    if handoff.state in ENDED:
        return Outcome(handoff, ended(handoff), late(handoff, getattr(change, "reply", None), now_ms))
    if handoff.request.deadline_at <= now_ms and type(change) is not Expire:
        expired = apply(handoff, Expire(), now_ms=now_ms)
        assert expired.handoff is not None
        return Outcome(
            expired.handoff, ended(expired.handoff), (*expired.records, *late(handoff, getattr(change, "reply", None), now_ms))
        )
    if type(change) is Accept:
        return _accept(handoff, change, now_ms)
    holder = getattr(change, "by", None)
    if holder is not None and _is_lost(handoff, holder):
        return Outcome(handoff, lost(handoff), late(handoff, getattr(change, "reply", None), now_ms))
    return _move_on(handoff, change, now_ms)


def _move_on(handoff: Handoff, change: Change, now_ms: int) -> Outcome:
    match change:
        case Complete(reply=reply, result_trace_id=trace_id, saved=saved):  # most are
            trace_id = trace_id or handoff.result_trace_id
            return _move(handoff, _COMPLETED, now_ms, reply=reply, saved=saved, result_trace_id=trace_id)
        case Progress(data=data, saved=saved):
            return _move(handoff, (Event.START,), now_ms, "progress", data, saved=saved, is_end=False)
        case Ask(question=question, saved=saved):
            asked = {"question": question.text, "input_type": question.input_type, "options": list(question.options)}
            return _move(handoff, (Event.START, Event.ASK), now_ms, data=asked, saved=saved, question=question)
        case Answer(answer=answer, saved=saved):
            asking = handoff.question
            answered = None if asking is None else replace(asking, answer=answer, is_answered=True)
            return _move(handoff, (Event.ANSWER,), now_ms, data={"answer": answer}, saved=saved, question=answered)
        case Fail(reply=reply, saved=saved):
            return _move(handoff, (Event.START, Event.FAIL), now_ms, reply=reply, saved=saved)
        case Reject(reason=reason):
            return _move(handoff, (Event.REJECT,), now_ms, reply=failure(Status.REFUSED, "HANDOFF_REJECTED", reason))
        case Release(reason=reason):
            return _release(handoff, reason, now_ms)
        case Cancel(reason=reason):
            return _move(handoff, (Event.CANCEL,), now_ms, reply=failure(Status.CANCELLED, "CALL_CANCELLED", reason))
        case Expire():
            return _move(handoff, (Event.EXPIRE,), now_ms, reply=timeout(handoff))
        case _:
            raise AssertionError(f"{type(change).__name__} was decided before")


def _offer(known: Handoff | None, change: Offer, now_ms: int) -> Outcome:
    handoff, request = change.handoff, change.handoff.request
    if known is not None:
        if is_same(known.request, request):
            # The node that replays the tree waits for the handoff now; its former maker is gone. A handoff outside a tree may
            # have several waiters, its maker among them.
            is_taken_over = not known.settles and known.made_by != handoff.made_by and known.state not in ENDED
            return Outcome(replace(known, made_by=handoff.made_by) if is_taken_over else known)
        return Outcome(
            None, Refused("IDENTITY_REQUEST_ID_REUSED", f"request_id {request.request_id!r} belongs to another request")
        )
    made = replace(handoff, changed_at=now_ms, history=(Entry(1, now_ms, "created"),))
    return Outcome(made, None, (Accepted(request, now_ms, HANDED_AT, change.note),) if handoff.settles else ())


def _renew(handoff: Handoff, change: Renew, now_ms: int) -> Outcome:
    """Renew the lease. This need not survive a power failure."""
    if handoff.has_ended or handoff.request.deadline_at <= now_ms:
        return Outcome(handoff, ended(handoff))
    if _is_lost(handoff, change.by):
        return Outcome(handoff, lost(handoff))
    return Outcome(replace(handoff, lease_until=change.lease_until))


def _is_lost(handoff: Handoff, by: Holder) -> bool:
    return by.fence != handoff.fence or by.name != handoff.holder


def _accept(handoff: Handoff, change: Accept, now_ms: int) -> Outcome:
    is_pending, holder = handoff.state is _PENDING, change.holder
    is_reserved_for_it = is_pending and handoff.holder == holder
    if handoff.holder and not is_reserved_for_it:
        what = f"{handoff.id} is being looked at" if is_pending else f"another receiver has {handoff.id}"
        return Outcome(handoff, Refused("HANDOFF_TAKEN", what))
    # Accepting a reserved handoff keeps its fencing token, so the handoff that the receiver has stays valid.
    fence = handoff.fence if is_reserved_for_it else handoff.fence + 1
    held = replace(handoff, holder=holder, receiver=change.receiver, fence=fence, lease_until=change.lease_until)
    if change.reserves:
        return Outcome(replace(held, changed_at=now_ms))
    return _move(held, _ACCEPTED, now_ms, data={"receiver": change.receiver}, attempts=handoff.attempts + 1)


def _release(handoff: Handoff, reason: str, now_ms: int) -> Outcome:
    if handoff.state is State.PENDING:  # it was only reserved
        return Outcome(replace(handoff, holder="", lease_until=0))
    if handoff.attempts >= handoff.attempts_max:
        what = f"given up after {handoff.attempts} receivers: {reason}"
        return _move(handoff, (Event.START, Event.FAIL), now_ms, reply=failure(Status.ERROR, "HANDOFF_UNDELIVERABLE", what))
    told = {"receiver": handoff.receiver, "reason": reason}
    return _move(handoff, (Event.RELEASE,), now_ms, "redelivered", told, holder="", lease_until=0)


def _move(
    handoff: Handoff,
    events: tuple[Event, ...],
    now_ms: int,
    kind: str = "",
    data: Any = None,
    *,
    reply: Reply | None = None,
    saved: tuple[Saved, ...] = (),
    is_end: bool = True,
    **changed: Any,
) -> Outcome:
    """Apply the events in order; the first (the start of work) is skipped where it is invalid."""
    state = handoff.state
    last = events[-1] if is_end else None
    for event in events:
        following = TRANSITIONS[state].get(event)
        if following is None and event is last:
            return Outcome(handoff, Refused("HANDOFF_STATE_CONFLICT", f"{handoff.id} is {state}; it cannot {event}"))
        state = following or state
    if last is None and state not in {State.IN_PROGRESS, State.INPUT_REQUIRED}:
        return Outcome(handoff, Refused("HANDOFF_STATE_CONFLICT", f"{handoff.id} is {state}; no receiver works on it"))
    if reply is not None:
        request = handoff.request
        reply = replace(
            reply,
            request_id=request.request_id,
            source=request.target,
            session_id=request.session_id,
            duration_ms=float(now_ms - request.created_at),
        )
        data = {"reason": reply.error.message, "code": reply.error.code} if reply.error is not None else None
    history = handoff.history
    number = history[-1].n + 1 if history else 1
    if len(history) >= HANDOFF_HISTORY_MAX:
        history = history[-(HANDOFF_HISTORY_MAX - 1) :]
    history = (*history, Entry(number, now_ms, kind or _WORDS[state], data))
    if state in ENDED:
        changed["holder"] = ""
    moved = replace(handoff, state=state, changed_at=now_ms, history=history, reply=reply, **changed)
    if reply is None or not handoff.settles:
        return Outcome(moved, None, saved)
    return Outcome(moved, None, (*saved, Settled(handoff.request, reply, now_ms, HANDED_AT)))
