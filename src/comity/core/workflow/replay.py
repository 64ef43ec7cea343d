"""Time travel: a history folded into a planner, stepped through, moved to another version, or forked from any step.

All of it is the planner over recorded events; nothing is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from comity.core.document.slices import Sliced
from comity.core.workflow import history
from comity.core.workflow.graph import Program
from comity.core.workflow.history import Command, Event
from comity.core.workflow.planner import Planner
from comity.errors import CallerError

Programs = Callable[[str], Program]  # from a content hash
SLICE_EVENTS: Final = 64  # replayed between two pauses, in a millisecond or so


class Moment(Struct, frozen=True):
    """One event of a run, and the commands that followed from it."""

    number: int
    event: Event
    commands: tuple[Command, ...]


def fold(program: Program, events: Iterable[Event], programs: Programs | None = None) -> tuple[Planner, list[Command]]:
    """Return the planner after a history, and the commands whose outcome the history does not have."""
    planner = Planner(program)
    seen: list[Event] = []
    open_: dict[int, Command] = {}
    keeps = programs is not None
    for event in events:
        if isinstance(event, history.Migrated) and programs is not None:
            planner, rest = fold(programs(event.definition), seen)  # whole: it was proved to agree with all that was before
            open_ = {number_of(one): one for one in rest}
        if keeps:
            seen.append(event)
        _track(open_, event, planner.apply(event))
    return planner, list(open_.values())


def _track(open_: dict[int, Command], event: Event, commands: Sequence[Command]) -> None:
    """Note which commands are still to be done after an event."""
    match event:
        case history.Settled():
            open_.pop(event.step, None)
            open_.pop(-event.step, None)
        case history.Fired():
            open_.pop(event.timer, None)
        case history.Answered():
            open_.pop(event.question, None)
    for command in commands:
        if isinstance(command, history.Drop):
            open_.pop(command.number, None)
        else:
            open_[number_of(command)] = command


def number_of(command: Command) -> int:
    """Return the number a command is known by; a cancel is that of its step, negative."""
    match command:
        case history.Call() | history.Aggregate():
            return command.step
        case history.Ask():
            return command.question
        case history.Timer():
            return command.timer
        case history.Listen():
            return command.wait
        case history.Cancel():
            return -command.step
        case history.Drop():
            return command.number
        case history.Finish():
            return 0


def moments(program: Program, events: Iterable[Event], programs: Programs | None = None) -> Iterator[Moment]:
    """Yield every event of a run with the commands that followed, to be stepped through."""
    planner = Planner(program)
    seen: list[Event] = []
    for number, event in enumerate(events):
        if isinstance(event, history.Migrated) and programs is not None:
            planner, _ = fold(programs(event.definition), seen)
        seen.append(event)
        yield Moment(number, event, tuple(planner.apply(event)))


class Difference(Struct, frozen=True):
    """Where two versions of a definition part over one history."""

    number: int  # of the event
    event: Event
    before: tuple[str, ...]  # commands of the one version, in words
    after: tuple[str, ...]

    def __str__(self) -> str:
        """Return a sentence that says at which step the versions differ."""
        was, now = ", ".join(self.before) or "nothing", ", ".join(self.after) or "nothing"
        return f"after event {self.number} ({in_words(self.event)}) the run's version does {was}, the new one {now}"


def difference(
    old: Program, new: Program, events: Iterable[Event], programs: Programs | None = None
) -> Sliced[Difference | None]:
    """Return where a new version would have done something else over this history; None proves that the run may move to it."""
    ahead = Planner(new)
    for moment in moments(old, events, programs):
        if moment.number % SLICE_EVENTS == 0:
            yield
        before = [_comparable(one) for one in moment.commands]
        after = [_comparable(one) for one in ahead.apply(moment.event)]
        if before != after:
            was, now = tuple(map(told, moment.commands)), tuple(map(told, ahead.commands))
            return Difference(moment.number, moment.event, was, now)
    return None


def _comparable(command: Command) -> bytes:
    """Return a command as bytes; when the run's time is up may differ between versions."""
    if isinstance(command, history.Timer) and not command.place:
        command = replace(command, due_at=0)
    return type(command).__name__.encode() + msgspec.json.encode(command)


def told(command: Command) -> str:
    """Return a command in words."""
    match command:
        case history.Call():
            about = "undo " if command.is_undo else ""
            return f"{about}{command.place} = {command.agent}/{command.capability}"
        case history.Aggregate():
            return f"aggregate {command.place} by {command.strategy}"
        case history.Ask():
            return f"ask at {command.place}"
        case history.Timer():
            return f"timer of {command.place or 'the run'}"
        case history.Listen():
            return f"wait for {command.event} at {command.place}"
        case history.Cancel():
            return f"cancel step {command.step}"
        case history.Drop():
            return f"drop {command.number}"
        case history.Finish():
            return f"end {command.status}"


def in_words(event: Event) -> str:
    """Return an event in words."""
    match event:
        case history.Started():
            return "the start"
        case history.Settled():
            return f"the end of step {event.step}: {event.reply.get('status')}"
        case history.Fired():
            return f"timer {event.timer}"
        case history.Answered():
            return f"the answer to question {event.question}"
        case history.Received():
            return f"the event {event.event}"
        case history.Cancelled():
            return "the cancellation"
        case history.Migrated():
            return f"the move to version {event.definition[:12]}"


def forked(
    old: Program,
    new: Program,
    events: Sequence[Event],
    *,
    at: int,
    run_id: str,
    data: Any = ...,
    replies: Mapping[str, dict[str, Any]] | None = None,
    programs: Programs | None = None,
) -> Sliced[list[Event]]:
    """Return the history of a new run that did the same as another until event `at`, which it leaves open.

    `data` is another input, `replies` are other replies by activation, `new` may be another version. Steps that come out the
    same take their recorded replies; a step that differs, and everything that only it leads to, is left for the new run.
    """
    if not 0 < at <= len(events):
        raise CallerError(
            f"the run has {len(events)} events; fork at 1 to {len(events)}, not {at}", code="WORKFLOW_STATE_CONFLICT"
        )
    memory: dict[tuple[str, int], tuple[bytes, Event]] = {}
    outside: list[Event] = []
    placed = yield from _placed(old, events[:at], programs)
    for event, command in placed:
        if command is not None:
            memory[_key(command)] = (_comparable_call(command), event)
        else:
            outside.append(event)
    started = events[0]
    assert isinstance(started, history.Started)
    begun = replace(started, run_id=run_id, input=started.input if data is ... else data)
    planner = Planner(new)
    made: list[Event] = [begun]
    waiting = list(planner.apply(begun))
    others = [event for event in outside if isinstance(event, history.Received)]
    while waiting or others:
        outcome = _recorded(waiting.pop(0), memory, replies or {}) if waiting else others.pop(0)
        if outcome is not None:
            if len(made) % SLICE_EVENTS == 0:
                yield
            made.append(outcome)
            waiting += planner.apply(outcome)
    return made


def _placed(program: Program, events: Sequence[Event], programs: Programs | None) -> Sliced[list[tuple[Event, Command | None]]]:
    """Return events with the commands they are the outcome of, None for those that came by themselves."""
    open_: dict[int, Command] = {}
    found: list[tuple[Event, Command | None]] = []
    for moment in moments(program, events, programs):
        if moment.number % SLICE_EVENTS == 0:
            yield
        event = moment.event
        number = getattr(event, "step", None) or getattr(event, "timer", None) or getattr(event, "question", None)
        found.append((event, None if number is None else open_.get(number)))
        open_ |= {number_of(one): one for one in moment.commands}
    return found


def _key(command: Command) -> tuple[str, int]:
    place = getattr(command, "place", "")
    return f"{type(command).__name__} {place}", getattr(command, "attempt", 1)


def _comparable_call(command: Command) -> bytes:
    """Return what must be the same for a recorded outcome to stand: what is asked, not under which number."""
    match command:
        case history.Call() | history.Aggregate():
            return _comparable(replace(command, step=0))
        case history.Ask():
            return _comparable(replace(command, question=0, due_at=None))
    return b""


def _recorded(
    command: Command, memory: Mapping[tuple[str, int], tuple[bytes, Event]], replies: Mapping[str, dict[str, Any]]
) -> Event | None:
    """Return the recorded outcome of a command under its new number, or None if there is none."""
    if isinstance(command, history.Cancel | history.Drop | history.Finish | history.Listen):
        return None
    asked, event = memory.get(_key(command), (b"", None))
    if event is None:
        return None
    match command, event:
        case history.Call() | history.Aggregate(), history.Settled():
            if command.place in replies:
                return replace(event, step=command.step, reply=dict(replies[command.place]), over="")
            return replace(event, step=command.step) if _comparable_call(command) == asked else None
        case history.Timer(), history.Fired():
            return replace(event, timer=command.timer) if event.at_ms >= command.due_at else None
        case history.Ask(), history.Answered():
            return replace(event, question=command.question) if _comparable_call(command) == asked else None
    return None
