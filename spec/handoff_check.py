"""Follow what was written of handoffs through the actions of Handoff.tla, and name the first step that none of them allows.

`of_run(outcome.handed)` takes what a simulation recorded. What only a receiver's memory knows, that it crashed, fell silent or
learned, leaves no trace in the queue; that a lease has run out is taken from who releases it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

ENDS = frozenset({"completed", "failed", "rejected", "cancelled", "timeout"})
HELD = frozenset({"accepted", "input_required"})


@dataclass(frozen=True, slots=True)
class Work:
    """One entry of the queue, as the specification has it."""

    state: str = "none"
    holder: str = ""
    fence: int = 0
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """One change of the queue: what was asked for, by whom under which number, and how the work stood afterwards."""

    work: str
    change: str
    by: tuple[str, int] | None = None
    after: Work = Work()
    attempts_max: int = 5
    takes_over: bool = False  # another node runs the tree again that it is part of, and waits for it now


class Breach(NamedTuple):
    """The first step that no action allows, and the actions that could have; or what does not hold."""

    position: int
    rule: str


def of_run(handed: Iterable[tuple[str, str, Any]]) -> list[Step]:
    """Return what a simulation recorded as steps: the change, the work's id and, unless it was only acknowledged, the event."""
    steps = []
    for change, work, event in handed:
        if event is None:
            steps.append(Step(work, change))
            continue
        one, by = event.after, event.by
        state = "accepted" if one.state == "in_progress" else str(one.state)  # the specification makes no difference
        after = Work(state, one.holder, one.fence, one.attempts)
        takes_over = event.before is not None and event.before.made_by != one.made_by
        steps.append(Step(work, change, None if by is None else (by.name, by.fence), after, one.attempts_max, takes_over))
    return steps


def _is_current(before: Work, step: Step) -> bool:
    return step.by == (before.holder, before.fence)


def _is_for(before: Work, holder: str) -> bool:
    """Whether it waits in the queue, or is reserved for this receiver."""
    return before.state == "pending" and before.holder in {"", holder}


def _ends(before: Work, step: Step, state: str) -> bool:
    return before.state not in ENDS | {"none"} and step.after == replace(before, state=state, holder="")


def _puts_back(before: Work, step: Step) -> bool:
    if before.state in HELD and before.attempts >= step.attempts_max:
        return _ends(before, step, "failed")
    return bool(before.holder) and step.after == replace(before, state="pending", holder="")


def _reserves(before: Work, step: Step) -> bool:
    fence = before.fence + (not before.holder)
    return _is_for(before, step.after.holder) and step.after == Work("pending", step.after.holder, fence, before.attempts)


def _accepts(before: Work, step: Step) -> bool:
    fence = before.fence + (not before.holder)
    return _is_for(before, step.after.holder) and step.after == Work("accepted", step.after.holder, fence, before.attempts + 1)


def _asks(before: Work, step: Step) -> bool:
    return before.state == "accepted" and _is_current(before, step) and step.after == replace(before, state="input_required")


def _finishes(states: Iterable[str], end: str) -> Callable[[Work, Step], bool]:
    return lambda before, step: before.state in states and _is_current(before, step) and _ends(before, step, end)


def _is_unchanged(before: Work, step: Step) -> bool:
    is_known = before.state not in ENDS | {"none"}
    return step.after == before and is_known and (step.takes_over or (bool(before.holder) and _is_current(before, step)))


# The actions of the specification; `Stutter` is a step that changes nothing it speaks of: a lease renewed, progress told,
# another node that waits for it.
ACTIONS: dict[str, Callable[[Work, Step], bool]] = {
    "Offer": lambda before, step: before == Work() and step.after == Work("pending"),
    "Reserve": _reserves,
    "Accept": _accepts,
    "Ask": _asks,
    "Answer": lambda before, step: before.state == "input_required" and step.after == replace(before, state="accepted"),
    "Complete": _finishes(HELD, "completed"),
    "Fail": _finishes(HELD, "failed"),
    "Reject": _finishes({"pending"}, "rejected"),
    "GiveBack": lambda before, step: _is_current(before, step) and _puts_back(before, step),
    "Redeliver": _puts_back,
    "Cancel": lambda before, step: _ends(before, step, "cancelled"),
    "Expire": lambda before, step: _ends(before, step, "timeout"),
    "Stutter": _is_unchanged,
}
# Which of them may explain a change that the code makes. Whoever comes after the deadline notes that it has passed.
EXPLAINED: dict[str, tuple[str, ...]] = {
    "Offer": ("Offer", "Stutter"),
    "Take": ("Accept", "Reserve"),
    "Accept": ("Accept", "Reserve", "Expire"),
    "Renew": ("Stutter",),
    "Progress": ("Stutter", "Expire"),
    "Ask": ("Ask", "Expire"),
    "Answer": ("Answer", "Expire"),
    "Complete": ("Complete", "Expire"),
    "Fail": ("Fail", "Expire"),
    "Reject": ("Reject", "Expire"),
    "Release": ("GiveBack", "Expire"),
    "Sweep": ("Redeliver", "Expire"),
    "Cancel": ("Cancel", "Expire"),
    "Expire": ("Expire",),
}


def follow(steps: Iterable[Step], *, is_complete: bool = False) -> tuple[list[str], Breach | None]:
    """Return the action that explains each step, and the first breach; `is_complete` asks that everything has ended."""
    works: dict[str, Work] = {}
    told: dict[str, None] = {}
    taken: list[str] = []
    for position, step in enumerate(steps):
        before = works.get(step.work, Work())
        if step.change == "Acknowledge":
            if before == Work():
                return taken, Breach(position, "NoLostHandoff")
            told[step.work] = None
            taken.append("Acknowledge")
            continue
        action = next((name for name in EXPLAINED[step.change] if ACTIONS[name](before, step)), None)
        if action is None:
            return taken, Breach(position, EXPLAINED[step.change][0])
        works[step.work] = step.after
        taken.append(action)
    if is_complete and any(works[one].state not in ENDS for one in told):
        return taken, Breach(len(taken), "EveryHandoffEnds")
    return taken, None
