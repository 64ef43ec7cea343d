"""A session: its user, and what is known about the user's work.

Tenant, user and id never change. Everything else changes by `apply`: each change names the version that it is based on, and a
change that would overwrite another writer's newer value is a conflict, not a silent loss.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import islice, takewhile
from typing import Annotated, Any, Final, TypeVar, cast

from msgspec import Meta, Struct, json
from msgspec.structs import replace

from comity.core.document.checks import take
from comity.core.envelope.envelope import SUCCESS, Background, Reply, Request
from comity.core.envelope.reserved import TRANSFER_FROM
from comity.core.session.conversation import (
    SUMMARY_CHARS_MAX,
    UNANSWERED,
    USER,
    HistoryReference,
    Turn,
    answer_text,
    bounded,
    clip,
    plain_text,
    select,
    size_of,
    task_text,
    writer_of,
)

IDLE_MS: Final = 20 * 60 * 1000
PAUSED_MS: Final = 30 * 60 * 1000
EXPIRED_MS: Final = 24 * 60 * 60 * 1000
USE_NOTED_MS: Final = 60 * 1000  # minimum interval between two stored times of use
FACTS_MAX: Final = 1_000
PRIVATE: Final = "comity."  # before the name of an agent that is a part of a node; it is no colleague of other agents
MAPS: Final = ("facts", "constraints", "prior_outputs", "private")  # fields of a session with a value for each key
TRIMMED: Final = ("facts", "prior_outputs")  # those of which the oldest go
OUTPUTS_MAX: Final = 1_000  # that agents noted
RESULTS_MAX: Final = 100  # outputs, once an answer is noted among them by itself: the newest of each capability
RESULT_CHARS_MAX: Final = 4_000  # of each

_LABELS: Final = {
    "facts": "fact ",
    "constraints": "constraint ",
    "prior_outputs": "output ",
    "private": "private part of ",
    "workflow": "workflow position",
    "summary": "summary",
}
Entry = tuple[str, str]  # a field of a session and a key in it, empty where the field is one value


def is_first(request: Request) -> bool:
    """Return whether a request is the first of its tree in its session: a user's, or one delegated to a session of its own.

    What an agent handed off begins a tree too, and is no word of the user's.
    """
    return (request.parent_id is None and request.source is None) or request.parent_session_id is not None


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
    # Only a caller that asks to resume it brings an expired session back.
    Status.EXPIRED: {Event.RESUME: Status.ACTIVE},
}


class Fact(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A fact: its value, the agent that noted it, confidence, time, and the source that the agent claimed."""

    value: Any
    source: str
    confidence: float
    at_ms: int
    claimed_source: str = ""


class Workflow(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The progress of the work: step, number of steps (0 if not counted), and the orchestrator's state."""

    step: int = 0
    steps: int = 0
    state: dict[str, Any] = {}


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
    turns_dropped: int = 0  # older ones, that are no longer kept
    turns_chars: int = 0  # of those that are kept
    summary: str = ""
    facts: dict[str, Fact] = {}
    decisions: tuple[str, ...] = ()
    constraints: dict[str, Any] = {}
    assumptions: tuple[str, ...] = ()
    workflow_position: str = ""
    workflow: Workflow = Workflow()
    prior_agents: tuple[str, ...] = ()
    prior_outputs: dict[str, Any] = {}
    private: dict[str, dict[str, Any]] = {}
    written: dict[str, int] = {}  # the version at which each single value was last replaced


class Say(Struct, frozen=True, tag=True):
    """Add a turn to the conversation. The fields are those of a `Turn`."""

    role: str
    text: str
    by: str = ""
    request_id: str = ""
    status: str = ""
    task: str = ""
    at_ms: int = 0  # when it was said, if that is not now
    claimed_role: str = ""


class Answer(Struct, frozen=True, tag=True):
    """Record an agent's answer to a call of the session: the agent, the result, and the turns."""

    agent: str  # empty for an agent that did not answer
    result: str = ""  # the name its data is kept under, among the outputs of agents; none if there is none
    value: Any = None
    said: tuple[Say, ...] = ()


class Learn(Struct, frozen=True, tag=True):
    """Note a fact."""

    key: str
    value: Any
    source: str
    confidence: Annotated[float, Meta(ge=0.0, le=1.0)] = 1.0
    claimed_source: str = ""


class Decide(Struct, frozen=True, tag=True):
    """Note a decision; an equal one is not noted twice."""

    text: str


class Constrain(Struct, frozen=True, tag=True):
    """Set a constraint."""

    key: str
    value: Any


class Assume(Struct, frozen=True, tag=True):
    """Note an assumption in effect."""

    text: str


class Place(Struct, frozen=True, tag=True):
    """Set the progress of the work."""

    position: str
    step: Annotated[int, Meta(ge=0)] = 0
    steps: Annotated[int, Meta(ge=0)] = 0
    state: dict[str, Any] = {}


class Produce(Struct, frozen=True, tag=True):
    """Record an agent's output."""

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


Change = Say | Answer | Learn | Decide | Constrain | Assume | Place | Produce | Keep | Summarise
_C = TypeVar("_C", bound=Change)
_decode_change = json.Decoder(Change).decode


class Conflict(Struct, frozen=True):
    """A change would overwrite a value that was written after the version it is based on."""

    what: str
    based_on: int
    current: int


def sound(change: _C) -> _C:
    """Return a copy of a change, encoded and decoded; raise `CallerError` with its problems if it is invalid."""
    return cast("_C", take(change, type(change).__name__.lower(), _decode_change))


def status(session: Session, now_ms: int) -> Status:
    """Return the status of a session, derived from its last use."""
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
    """Return the session with its use set to now, or None if it has expired and must be resumed first."""
    return replace(session, used_at=now_ms) if Event.USE in TRANSITIONS[status(session, now_ms)] else None


def resume(session: Session, now_ms: int) -> Session:
    """Return the session as active again, even if it had expired."""
    return replace(session, used_at=now_ms, version=session.version + 1)


def apply(session: Session, change: Change, *, based_on: int, now_ms: int) -> Session | Conflict:
    """Return the changed session, or the conflict. Additions never conflict; replacing a newer value does."""
    match change:
        case Say(role, text, by):
            first = session.original_request or (text if role == USER and not by else "")
            made = _said(replace(session, original_request=first), (change,), now_ms)
        case Answer(agent, result, value, said):
            made = _said(session, said, now_ms)
            if result:
                made = replace(made, prior_outputs=_with_newest(made.prior_outputs, result, value, RESULTS_MAX))
            if agent and not agent.startswith(PRIVATE):
                made = replace(made, prior_agents=_once(made.prior_agents, agent))
        case Decide(text):
            made = replace(session, decisions=_once(session.decisions, text))
        case Assume(text):
            made = replace(session, assumptions=_once(session.assumptions, text))
        case Learn(key, value, source, confidence, claimed):
            old, new = session.facts.get(key), Fact(value, source, confidence, now_ms, claimed)
            if old is not None and old.value == value and old.confidence >= confidence:
                new = old  # the same value, reported without more confidence
            made = replace(session, facts=_with_newest(session.facts, key, new, FACTS_MAX))
        case Constrain(key, value):
            made = replace(session, constraints={**session.constraints, key: value})
        case Place(position, step, steps, state):
            made = replace(session, workflow_position=position, workflow=Workflow(step, steps, state))
        case Produce(agent, key, value):
            outputs = _with_newest(session.prior_outputs, key, value, OUTPUTS_MAX)
            made = replace(session, prior_agents=_once(session.prior_agents, agent), prior_outputs=outputs)
        case Keep(agent, data):
            made = replace(session, private={**session.private, agent: data})
        case Summarise(text):
            made = replace(session, summary=text[:SUMMARY_CHARS_MAX])
    name = replaces(change)
    if name and session.written.get(name, -1) > based_on and _value(made, change) != _value(session, change):
        return Conflict(name, based_on, session.written[name])
    version = session.version + 1
    written = {**session.written, name: version} if name else session.written
    if gone := [label(*entry) for entry in _dropped(session, made)]:
        written = {**written}
        for one in gone:
            written.pop(one, None)
    return replace(made, version=version, used_at=now_ms, written=written)


def heard(request: Request, inputs: Any, at_ms: int = 0) -> Say | None:
    """Return the turn of a user's request, or of a request delegated to its own session; None for an empty request."""
    task = task_text(request.objective, request.message, inputs)
    text = request.message or task
    more = "" if task == text and request.source is None else task  # which marks it as an agent's request
    role = request.source or USER
    by = "" if request.source is None else writer_of(role)
    return Say(role, text, by=by, request_id=request.request_id, task=more, at_ms=at_ms) if text else None


def told(request: Request, reply: Reply, at_ms: int = 0) -> Say | None:
    """Return the turn of a reply to the user; None if it has no text."""
    text = answer_text(reply)
    status = "" if reply.status is SUCCESS else str(reply.status)
    if not text:
        return None
    by = str(reply.metadata.get(TRANSFER_FROM, "")) or writer_of(request.target)
    return Say(request.target, text, by=by, request_id=request.request_id, status=status, at_ms=at_ms)


def answered(request: Request, reply: Reply, said: Iterable[Say | None] = ()) -> Answer:
    """Return the session change of a call's end: the agent, its result, and the turns."""
    agent = request.target.partition("/")[0]
    if reply.status in UNANSWERED:
        agent = ""
    is_told = request.parent_id is None and bool(reply.message)  # then it stands in the conversation
    value = reply.data if reply.data not in (None, {}, []) else "" if is_told else reply.message
    name = f"{agent}.{request.capability}" if agent and value != "" and reply.ok else ""
    if name and not isinstance(value, (bool, int, float)):
        text = value if isinstance(value, str) else json.encode(value).decode()
        value = clip(text, RESULT_CHARS_MAX) if len(text) > RESULT_CHARS_MAX else value
    return Answer(agent, name, value if name else None, tuple(one for one in said if one is not None))


def entry_of(change: Change) -> Entry | None:
    """Return field and key of the value that a change sets; None for a change that only adds to a list."""
    match change:
        case Learn(key):
            return "facts", key
        case Constrain(key):
            return "constraints", key
        case Place():
            return "workflow", ""
        case Produce(_, key):
            return "prior_outputs", key
        case Answer(_, result):
            return ("prior_outputs", result) if result else None
        case Keep(agent):
            return "private", agent
        case Summarise():
            return "summary", ""
        case _:
            return None


def label(field: str, key: str) -> str:
    """Return the name of a value in `Session.written` and in conflicts."""
    return f"{_LABELS[field]}{key}" if field in _LABELS else ""


def replaces(change: Change) -> str:
    """Return the name of the value that a change replaces; empty for a change that only adds."""
    entry = None if isinstance(change, Answer) else entry_of(change)
    return "" if entry is None else label(*entry)


def _value(session: Session, change: Change) -> Any:
    """Return the current value that a change would replace."""
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
            return session.workflow_position, session.workflow
        case Summarise():
            return session.summary
        case _:
            return None


def background(session: Session, history: str | int, above: tuple[str, ...] = ()) -> Background:
    """Return the session's background for a callee: everything but the conversation, which goes by reference and policy.

    `above` are the agents in the call chain: they have worked on it before the callee does.
    """
    return Background(
        original_request=session.original_request,
        workflow_position=session.workflow_position,
        prior_agents=tuple(dict.fromkeys((*above, *session.prior_agents))),
        prior_outputs=session.prior_outputs,
        decisions=session.decisions,
        constraints=session.constraints,
        assumptions=session.assumptions,
        facts=tuple(f"{key}: {plain_text(fact.value)} ({_origin(fact)})" for key, fact in session.facts.items()),
        history_ref=str(HistoryReference(session.id, session.version, history)),
    )


def _origin(fact: Fact) -> str:
    claim = f", which names {fact.claimed_source}" if fact.claimed_source else ""
    return f"source {fact.source}{claim}, confidence {fact.confidence:g}"


def history(session: Session, policy: str | int) -> tuple[Turn, ...]:
    """Return the turns that a call's policy lets the callee see."""
    return select(session.turns, policy, session.summary, session.used_at)


def history_at(session: Session, version: int, policy: str | int) -> tuple[Turn, ...]:
    """Return the turns at a version of the session, as far as a policy shows them."""
    turns = tuple(turn for turn in session.turns if turn.version <= version)
    return select(turns, policy, session.summary if turns == session.turns else "", session.used_at)


def missing(session: Session, keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of the keys without a fact; ask the user only for these."""
    return tuple(key for key in keys if key not in session.facts)


def _once(items: tuple[str, ...], item: str) -> tuple[str, ...]:
    return items if item in items else (*items, item)


def _dropped(before: Session, after: Session) -> Iterator[Entry]:
    """Yield the entries that were dropped for lack of room, the oldest first."""
    for field in TRIMMED:
        values, kept = getattr(before, field), getattr(after, field)
        if values is not kept:
            yield from ((field, key) for key in takewhile(lambda one, kept=kept: one not in kept, values))  # type: ignore[misc]


def _with_newest(values: dict[str, Any], key: str, value: Any, most: int) -> dict[str, Any]:
    """Return a copy of a map with one value set. Of more than `most` the oldest tenth goes: a copy of the rest costs much."""
    made = {**values, key: value}
    return made if len(made) <= most else dict(islice(made.items(), len(made) - most * 9 // 10, None))


def _said(session: Session, said: tuple[Say, ...], now_ms: int) -> Session:
    version = session.version + 1
    if not said:
        return session
    new = tuple(
        Turn(one.role, one.text, one.at_ms or now_ms, one.request_id, one.status, one.by, one.task, version, one.claimed_role)
        for one in said
    )
    every, chars = (*session.turns, *new), session.turns_chars + sum(map(size_of, new))
    turns, chars = bounded(every, chars)
    dropped = session.turns_dropped + len(every) - len(turns)
    return replace(session, turns=turns, turns_dropped=dropped, turns_chars=chars)
