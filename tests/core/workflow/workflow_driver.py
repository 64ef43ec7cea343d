"""A run without a node: replies come from a function, time is a number, and the order in which steps end is chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from comity.core.workflow import history
from comity.core.workflow.graph import compile_program
from comity.core.workflow.planner import Planner
from comity.core.workflow.read import load

Reply = dict[str, Any]


def ok(data: Any = None, **more: Any) -> Reply:
    return {"status": "success", "outcome": "success", "data": {} if data is None else data, **more}


def failed(code: str = "TARGET_FAILED", message: str = "no", *, retryable: bool = False) -> Reply:
    return {
        "status": "failure",
        "outcome": "error",
        "error": {"code": code, "message": message, "retryable": retryable},
        "message": message,
    }


class Run:
    """Drives a planner to its end."""

    def __init__(
        self,
        text: str,
        replies: dict[str, Any] | Callable[[history.Call], Reply] | None = None,
        *,
        input: Any = None,  # noqa: A002
        parts: tuple[str, ...] = (),
        answers: dict[str, Any] | None = None,
        choose: Callable[[int], int] | None = None,
    ) -> None:
        library = {one.name: one for one in map(load, parts)}
        self.program = compile_program(load(text), library)
        self.planner = Planner(self.program)
        self.replies = replies
        self.answers = answers or {}
        self.choose = choose or (lambda _: 0)
        self.now_ms = 1_000
        self.history: list[history.Event] = []
        self.commands: list[history.Command] = []
        self.pending: list[history.Event] = []
        self.called: list[str] = []
        self.calls: dict[str, history.Call] = {}
        self.finish: history.Finish | None = None
        self.waits: set[int] = set()  # timers and questions that are open
        self.apply(history.Started(self.now_ms, "run", {} if input is None else input))

    def apply(self, event: history.Event) -> list[history.Command]:
        self.now_ms = max(self.now_ms, event.at_ms)
        self.history.append(event)
        self.waits -= {getattr(event, "timer", 0), getattr(event, "question", 0)}
        made = self.planner.apply(event)
        self.commands += made
        for command in made:
            self._do(command)
        return made

    def go(self) -> Run:
        """Let everything that is under way end."""
        while self.pending:
            self.apply(self.pending.pop(self.choose(len(self.pending))))
        return self

    def _reply(self, call: history.Call) -> Reply:
        if callable(self.replies):
            return self.replies(call)
        found = (self.replies or {}).get(f"undo {call.node}" if call.is_undo else call.node, ok())
        if isinstance(found, list):
            found = found.pop(0) if len(found) > 1 else found[0]
        return found

    def _do(self, command: history.Command) -> None:
        self.now_ms += 1
        match command:
            case history.Call():
                place = f"undo {command.place}" if command.is_undo else command.place
                self.called.append(place)
                self.calls[place] = command
                reply = self._reply(command)
                if reply is not None:
                    self.pending.append(history.Settled(self.now_ms, command.step, reply))
            case history.Aggregate():
                data = [reply.get("data") for _, reply in command.parts]
                self.pending.append(history.Settled(self.now_ms, command.step, ok(data)))
            case history.Cancel():
                self.pending = [one for one in self.pending if getattr(one, "step", None) != command.step]
                self.pending.append(history.Settled(self.now_ms, command.step, failed("CALL_CANCELLED", "stopped")))
            case history.Timer():
                self.waits.add(command.timer)
                if command.timer != self.planner.deadline:
                    self.pending.append(history.Fired(command.due_at, command.timer))
            case history.Ask():
                self.waits.add(command.question)
                if command.node in self.answers:
                    self.pending.append(history.Answered(self.now_ms, command.question, self.answers[command.node]))
            case history.Drop():
                gone = command.number
                self.waits.discard(gone)
                self.pending = [
                    one for one in self.pending if gone not in {getattr(one, "timer", None), getattr(one, "question", None)}
                ]
            case history.Finish():
                assert self.finish is None, "a run ends once"
                assert not self.waits, "a run that ends waits for nothing"
                self.finish = command

    @property
    def data(self) -> Any:
        assert self.finish is not None, f"waits for {self.planner.waits}"
        return self.finish.reply.get("data")

    @property
    def error(self) -> Any:
        assert self.finish is not None
        return self.finish.reply["error"]
