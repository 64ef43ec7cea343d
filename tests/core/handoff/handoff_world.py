"""Handoffs for tests: a request, and a handoff in any state."""

from __future__ import annotations

from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from comity.core.call.limits import Limits
from comity.core.envelope.envelope import Priority, Reply, Request
from comity.core.handoff.holder import Holder
from comity.core.handoff.machine import (
    Accept,
    Answer,
    Ask,
    Cancel,
    Change,
    Complete,
    Expire,
    Fail,
    Handoff,
    Offer,
    Outcome,
    Progress,
    Question,
    Reject,
    Release,
    State,
    apply,
)

NOW = 1_000_000
DEADLINE = NOW + 60_000
ME, OTHER = "node-a#1", "node-b#1"
MINE = Holder(ME, 1)
RESULT = Reply.success({"npv": 1})
FAILURE = Reply.failure("the data is gone")


def request(request_id: str = "h-1", **more: Any) -> Request:
    fields: dict[str, Any] = {
        "target": "o11y",
        "capability": "investigate",
        "user_id": "u-1",
        "limits": Limits(),
        "deadline_at": DEADLINE,
        "created_at": NOW,
        "body": Raw(b'{"n":1}'),
        "message": "find the cause",
        "root_id": request_id,
        "session_id": "s-1",
        "trace_id": "0" * 31 + "1",
        "priority": Priority.NORMAL,
    }
    return Request(request_id=request_id, **(fields | more))


def made(request_id: str = "h-1", lane: str = "default\x1fo11y", made_by: str = "maker", **more: Any) -> Handoff:
    asked = request(request_id, **more)
    return Handoff(request=asked, lane=lane, made_by=made_by, result_trace_id=asked.trace_id)


def offered() -> Handoff:
    return done(None, Offer(made()))


def done(handoff: Handoff | None, *changes: Change, now_ms: int = NOW + 10) -> Handoff:
    """Return the handoff after changes that all must happen."""
    for change in changes:
        outcome = tried(handoff, change, now_ms=now_ms)
        assert outcome.refusal is None, outcome.refusal
        handoff = outcome.handoff
    assert handoff is not None
    return handoff


def tried(handoff: Handoff | None, change: Change, now_ms: int = NOW + 10) -> Outcome:
    return apply(handoff, change, now_ms=now_ms)


def accept(holder: str = ME, *, reserves: bool = False, lease_until: int = NOW + 15_000) -> Accept:
    return Accept(holder, "o11y", lease_until, reserves)


def in_state(state: State) -> Handoff:
    """Return a handoff in a state, reached by changes; `MINE` holds it where anybody does."""
    pending = offered()
    accepted = done(pending, accept())
    started = done(accepted, Progress(MINE, "begun"))
    match state:
        case State.PENDING:
            return pending
        case State.ACCEPTED:
            return accepted
        case State.IN_PROGRESS:
            return started
        case State.INPUT_REQUIRED:
            return done(started, Ask(MINE, Question(text="which year?")))
        case State.COMPLETED:
            return done(started, Complete(MINE, RESULT))
        case State.FAILED:
            return done(started, Fail(MINE, FAILURE))
        case State.REJECTED:
            return done(pending, accept(reserves=True), Reject(MINE, "not mine"))
        case State.CANCELLED:
            return done(pending, Cancel("no longer needed"))
        case State.TIMEOUT:
            return done(pending, Expire(), now_ms=DEADLINE)


def held(handoff: Handoff) -> Handoff:
    """Return it with `MINE` as its holder, so that a change is refused for its state and not for its holder."""
    return handoff if handoff.holder or handoff.has_ended else replace(handoff, holder=ME, fence=1)


CHANGES: dict[str, Change] = {
    "accept": accept(),
    "ask": Ask(MINE, Question(text="which?")),
    "answer": Answer("2026"),
    "complete": Complete(MINE, RESULT),
    "fail": Fail(MINE, FAILURE),
    "reject": Reject(MINE, "not mine"),
    "release": Release(MINE, "going away"),
    "cancel": Cancel("no longer needed"),
    "expire": Expire(),
    "start": Progress(MINE, "begun"),
}
