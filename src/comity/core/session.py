"""A session: whose work this is, and what is already known about it. The orchestrating node holds the one true copy.

Tenant, user and id are bound when the session is made and never change. Everything else changes by `apply`: each change names
the version it was based on, and one that would overwrite what somebody else wrote since is a conflict, not a silent loss.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final, TypeVar, cast

from msgspec import Meta, Struct, json
from msgspec.structs import replace

from comity.core.envelope import Background, Request
from comity.core.given import take

IDLE_MS: Final = 20 * 60 * 1000
PAUSED_MS: Final = 30 * 60 * 1000
EXPIRED_MS: Final = 24 * 60 * 60 * 1000
USE_NOTED_MS: Final = 60 * 1000  # a use is noted in the store unless the last one noted is younger than this
TURNS_MAX: Final = 1_000
FACTS_MAX: Final = 1_000
SUMMARY_CHARS_MAX: Final = 2_000


def is_first(request: Request) -> bool:
    """Return whether a request is the first of its tree in its session: a user's, or one delegated to a session of its own."""
    return request.parent_id is None or request.parent_session_id is not None


class Status(StrEnum):
    """How awake a session is."""

    ACTIVE = "active"
    IDLE = "idle"
    PAUSED = "paused"
    EXPIRED = "expired"


class Event(StrEnum):
    """What can happen to a session."""

    USE = "use"
    REST = "rest"
    PAUSE = "pause"
    EXPIRE = "expire"
    RESUME = "resume"


TRANSITIONS: dict[Status, dict[Event, Status]] = {
    Status.ACTIVE: {
        Event.USE: Status.ACTIVE,
        Event.REST: Status.IDLE,
        Event.PAUSE: Status.PAUSED,
        Event.EXPIRE: Status.EXPIRED,
    },
    Status.IDLE: {Event.USE: Status.ACTIVE, Event.PAUSE: Status.PAUSED, Event.EXPIRE: Status.EXPIRED},
    Status.PAUSED: {Event.USE: Status.ACTIVE, Event.RESUME: Status.ACTIVE, Event.EXPIRE: Status.EXPIRED},
    # Only somebody who asks for it brings an expired session back.
    Status.EXPIRED: {Event.RESUME: Status.ACTIVE},
}


class Turn(Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that was said: `role` is user, or the address of the agent."""

    role: str
    text: str
    at_ms: int


class Fact(Struct, frozen=True, forbid_unknown_fields=True):
    """Something known: its value, who said so, how sure they were, and when."""

    value: Any
    source: str
    confidence: float
    at_ms: int


class Session(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One session. `version` grows by one with every accepted change."""

    id: str
    tenant_id: str
    user_id: str
    created_at: int
    used_at: int
    parent_id: str = ""
    version: int = 0
    original_request: str = ""
    turns: tuple[Turn, ...] = ()
    summary: str = ""
    facts: dict[str, Fact] = {}
    decisions: tuple[str, ...] = ()
    constraints: dict[str, Any] = {}
    assumptions: tuple[str, ...] = ()
    workflow_position: str = ""
    prior_agents: tuple[str, ...] = ()
    prior_outputs: dict[str, Any] = {}
    private: dict[str, dict[str, Any]] = {}
    written: dict[str, int] = {}  # the version at which each single value was last replaced


class Say(Struct, frozen=True, tag=True):
    """Add a turn to the conversation."""

    role: str
    text: str


class Learn(Struct, frozen=True, tag=True):
    """Note a fact."""

    key: str
    value: Any
    source: str
    confidence: Annotated[float, Meta(ge=0.0, le=1.0)] = 1.0


class Decide(Struct, frozen=True, tag=True):
    """Note a decision; one that stands already is not noted twice."""

    text: str


class Constrain(Struct, frozen=True, tag=True):
    """Set a constraint."""

    key: str
    value: Any


class Assume(Struct, frozen=True, tag=True):
    """Note an assumption in effect."""

    text: str


class Place(Struct, frozen=True, tag=True):
    """Say where in its workflow the work is."""

    position: str


class Produce(Struct, frozen=True, tag=True):
    """Note that an agent has contributed, and what."""

    agent: str
    key: str
    value: Any


class Keep(Struct, frozen=True, tag=True):
    """Replace an agent's private part."""

    agent: str
    data: dict[str, Any]


class Summarise(Struct, frozen=True, tag=True):
    """Replace the summary of the conversation."""

    text: str


Change = Say | Learn | Decide | Constrain | Assume | Place | Produce | Keep | Summarise
_C = TypeVar("_C", bound=Change)
_decode_change = json.Decoder(Change).decode


class Conflict(Struct, frozen=True):
    """A change would overwrite what was written after the version it was based on."""

    what: str
    based_on: int
    current: int


def sound(change: _C) -> _C:
    """Return a copy of a change as it will be read again, or raise `CallerError` that names what is wrong with it."""
    return cast("_C", take(change, type(change).__name__.lower(), _decode_change))


def status(session: Session, now_ms: int) -> Status:
    """Return how awake a session is by the time it was last used."""
    rested = now_ms - session.used_at
    event = (
        Event.EXPIRE
        if rested >= EXPIRED_MS
        else Event.PAUSE
        if rested >= PAUSED_MS
        else Event.REST
        if rested >= IDLE_MS
        else Event.USE
    )
    return TRANSITIONS[Status.ACTIVE][event]


def use(session: Session, now_ms: int) -> Session | None:
    """Return the session used now, or None if it has expired and somebody has to resume it first."""
    return replace(session, used_at=now_ms) if Event.USE in TRANSITIONS[status(session, now_ms)] else None


def resume(session: Session, now_ms: int) -> Session:
    """Return the session awake again, however long it rested."""
    return replace(session, used_at=now_ms, version=session.version + 1)


def apply(session: Session, change: Change, *, based_on: int, now_ms: int) -> Session | Conflict:
    """Return the session with one change, or the conflict. Additions never conflict; replacing what is newer does."""
    name = ""  # of a single value that is replaced
    match change:
        case Say(role, text):
            first = text if role == "user" and not session.original_request else session.original_request
            turns = (*session.turns, Turn(role, text, now_ms))[-TURNS_MAX:]
            made = replace(session, turns=turns, original_request=first)
        case Decide(text):
            made = replace(session, decisions=_once(session.decisions, text))
        case Assume(text):
            made = replace(session, assumptions=_once(session.assumptions, text))
        case Learn(key, value, source, confidence):
            name, old, new = f"fact {key}", session.facts.get(key), Fact(value, source, confidence, now_ms)
            if old is not None and old.value == value and old.confidence >= confidence:
                new = old  # said again by somebody less sure
            made = replace(session, facts=dict([*session.facts.items(), (key, new)][-FACTS_MAX:]))
        case Constrain(key, value):
            name, made = f"constraint {key}", replace(session, constraints={**session.constraints, key: value})
        case Place(position):
            name, made = "workflow position", replace(session, workflow_position=position)
        case Produce(agent, key, value):
            outputs = {**session.prior_outputs, key: value}
            name = f"output {key}"
            made = replace(session, prior_agents=_once(session.prior_agents, agent), prior_outputs=outputs)
        case Keep(agent, data):
            name, made = f"private part of {agent}", replace(session, private={**session.private, agent: data})
        case Summarise(text):
            name, made = "summary", replace(session, summary=text[:SUMMARY_CHARS_MAX])
    if name and session.written.get(name, -1) > based_on and _value(made, change) != _value(session, change):
        return Conflict(name, based_on, session.written[name])
    version = session.version + 1
    written = {**session.written, name: version} if name else session.written
    return replace(made, version=version, used_at=now_ms, written=written)


def _value(session: Session, change: Change) -> Any:
    """Return what stands in the place a change replaces."""
    match change:
        case Learn(key):
            return session.facts[key].value if key in session.facts else None
        case Constrain(key):
            return session.constraints.get(key)
        case Produce(_, key):
            return session.prior_outputs.get(key)
        case Keep(agent):
            return session.private.get(agent)
        case Place():
            return session.workflow_position
        case Summarise():
            return session.summary
        case _:
            return None


def background(session: Session, history: str | int) -> Background:
    """Return what a callee is told of the session: everything but the conversation, which goes by reference and policy."""
    return Background(
        original_request=session.original_request,
        workflow_position=session.workflow_position,
        prior_agents=session.prior_agents,
        prior_outputs=session.prior_outputs,
        decisions=session.decisions,
        constraints=session.constraints,
        assumptions=session.assumptions,
        facts=tuple(f"{key}: {fact.value}" for key, fact in session.facts.items()),
        history_ref=f"session:{session.id}@{session.version}?history={history}",
    )


def history(session: Session, policy: str | int) -> tuple[Turn, ...]:
    """Return as much of the conversation as a call's policy lets the callee see."""
    match policy:
        case "none":
            return ()
        case "full":
            return session.turns
        case "summary":
            text = session.summary or _digest(session.turns)
            return (Turn("summary", text, session.used_at),) if text else ()
        case int() as last if last >= 0:
            return session.turns[-last:] if last else ()
        case _:
            raise ValueError(f"history policy must be none, summary, full or a number of turns, not {policy!r}")


def missing(session: Session, keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the facts that are not known yet: only these may be asked for."""
    return tuple(key for key in keys if key not in session.facts)


def _once(items: tuple[str, ...], item: str) -> tuple[str, ...]:
    return items if item in items else (*items, item)


def _digest(turns: tuple[Turn, ...]) -> str:
    """Return the first sentence of each turn, newest kept when there is too much."""
    lines = [f"{turn.role}: {turn.text.partition('. ')[0]}" for turn in turns]
    return "\n".join(lines)[-SUMMARY_CHARS_MAX:]
