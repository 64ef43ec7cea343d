"""What can be watched of runs while they go on: each event and what followed from it, in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from typing import Any, Final

from msgspec import Struct

from comity.core.workflow import history
from comity.core.workflow.history import Command, Event
from comity.core.workflow.replay import Moment

KEPT_MAX: Final = 10_000  # events that a watcher may be behind
MOMENTS_A_SLICE: Final = 64  # of a history, replayed in a millisecond or so


class RunEvent(Struct, frozen=True, omit_defaults=True):
    """One thing that happened in a run. `number` is that of the event in its history that it belongs to."""

    number: int
    at_ms: int
    kind: str
    place: str = ""
    node: str = ""
    step: int | None = None
    status: str = ""
    data: Any = None


class _Watcher:
    """A reader of one run's events."""

    __slots__ = ("is_over", "moments", "waiter")

    def __init__(self, *, is_over: bool) -> None:
        self.moments: deque[Moment] = deque(maxlen=KEPT_MAX)
        self.waiter: asyncio.Future[None] | None = None
        self.is_over = is_over

    def wake(self) -> None:
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)


class Watchers:
    """The readers of all runs of a node."""

    def __init__(self) -> None:
        self.readers: dict[str, list[_Watcher]] = {}  # by run

    def tell(self, run_id: str, number: int, event: Event, commands: Iterable[Command]) -> None:
        """Tell the readers of a run what happened and what follows."""
        readers = self.readers.get(run_id)
        if not readers:
            return
        moment = Moment(number, event, tuple(commands))
        for one in readers:
            one.moments.append(moment)
            one.is_over = one.is_over or any(isinstance(each, history.Finish) for each in moment.commands)
            one.wake()

    async def watch(
        self, run_id: str, walk: Callable[[str], Iterator[Moment]], *, has_ended: bool
    ) -> AsyncGenerator[RunEvent, None]:
        """Yield what happened to a run, then what happens, until it has ended. `walk` returns what has happened until now."""
        places: dict[int, tuple[str, str]] = {}
        watcher = _Watcher(is_over=has_ended)
        past = walk(run_id)
        if not has_ended:
            self.readers.setdefault(run_id, []).append(watcher)  # in the step in which the past was read: nothing is between
        try:
            for moment in past:
                for one in shown(moment, places):
                    yield one
                if moment.number % MOMENTS_A_SLICE == MOMENTS_A_SLICE - 1:
                    await asyncio.sleep(0)
            while True:
                while watcher.moments:
                    for one in shown(watcher.moments.popleft(), places):
                        yield one
                if watcher.is_over:
                    return
                watcher.waiter = asyncio.get_running_loop().create_future()
                await watcher.waiter
        finally:
            readers = self.readers.get(run_id, [])
            if watcher in readers:
                readers.remove(watcher)
            if not readers:
                self.readers.pop(run_id, None)

    def close(self) -> None:
        """Let every reader go."""
        for readers in self.readers.values():
            for one in readers:
                one.is_over = True
                one.wake()


def shown(moment: Moment, places: dict[int, tuple[str, str]]) -> list[RunEvent]:
    """Return an event and its commands as a reader sees them; `places` has activation and node of what is under way."""
    number, event = moment.number, moment.event
    found = [_happened(number, event, places)]
    for command in moment.commands:
        match command:
            case history.Call() | history.Aggregate():
                places[command.step] = (command.place, command.node)
                kind = "undoing" if isinstance(command, history.Call) and command.is_undo else "scheduled"
                asked = _asked(command)
                found.append(RunEvent(number, event.at_ms, kind, command.place, command.node, command.step, data=asked))
            case history.Ask():
                places[command.question] = (command.place, command.node)
                data = {"question_id": str(command.question), "text": command.text, "options": list(command.options)}
                found.append(RunEvent(number, event.at_ms, "asked", command.place, command.node, data=data))
            case history.Timer():
                places[command.timer] = (command.place, command.place.rpartition("/")[2].partition("@")[0])
                if command.place:
                    found.append(RunEvent(number, event.at_ms, "waiting", command.place, data={"due_at": command.due_at}))
            case history.Listen():
                found.append(
                    RunEvent(number, event.at_ms, "listening", command.place, command.node, data={"event": command.event})
                )
            case history.Cancel():
                place, node = places.get(command.step, ("", ""))
                found.append(RunEvent(number, event.at_ms, "stopping", place, node, command.step))
            case history.Finish():
                found.append(RunEvent(number, event.at_ms, "ended", status=command.status, data=command.reply))
    return found


def _asked(command: history.Call | history.Aggregate) -> dict[str, Any]:
    """Return what a step is given."""
    if isinstance(command, history.Aggregate):
        return {"strategy": command.strategy, "parts": [name for name, _ in command.parts]}
    said = {
        name: value
        for name in ("message", "objective", "instruction", "question", "answer")
        if (value := getattr(command, name))
    }
    again = {"attempt": command.attempt} if command.attempt > 1 else {}
    return {"agent": command.agent, "capability": command.capability, "inputs": command.inputs} | said | again


def _happened(number: int, event: Event, places: dict[int, tuple[str, str]]) -> RunEvent:
    match event:
        case history.Started():
            return RunEvent(number, event.at_ms, "started", data=event.input)
        case history.Settled():
            place, node = places.pop(event.step, ("", ""))
            return RunEvent(
                number, event.at_ms, "settled", place, node, event.step, str(event.reply.get("status")), event.reply
            )
        case history.Fired():
            place, node = places.pop(event.timer, ("", ""))
            return RunEvent(number, event.at_ms, "fired", place, node)
        case history.Answered():
            place, node = places.pop(event.question, ("", ""))
            return RunEvent(number, event.at_ms, "answered", place, node, data={"answer": event.answer, "by": event.by})
        case history.Received():
            return RunEvent(number, event.at_ms, "received", data={"event": event.event, "data": event.data})
        case history.Cancelled():
            return RunEvent(number, event.at_ms, "cancelling", data={"reason": event.reason, "by": event.by})
        case history.Migrated():
            return RunEvent(number, event.at_ms, "migrated", data={"definition": event.definition})
