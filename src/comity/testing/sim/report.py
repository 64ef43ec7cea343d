"""What a campaign of many seeds came to: how much was simulated, what went wrong on purpose, what was reached, what was not."""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import Any, Final

from comity.core.agent import activation, breaker
from comity.core.call import machine as call
from comity.core.handoff import machine as handoff
from comity.testing.sim.faults import Kind
from comity.testing.sim.world import Outcome

# A call is queued in the same step that admits it, so nothing can come between. See `runtime.call.path`.
UNREACHABLE: Final = frozenset({("call", "admitted", "cancel"), ("call", "admitted", "expire"), ("call", "admitted", "pause")})
MACHINES: Final = {
    "call": call.TRANSITIONS,
    "activation": activation.TRANSITIONS,
    "breaker": breaker.TRANSITIONS,
    "handoff": handoff.TRANSITIONS,
}
TRANSITIONS: Final = tuple(
    (machine, str(state), str(event))
    for machine, table in MACHINES.items()
    for state, events in table.items()  # type: ignore[attr-defined]
    for event in events
)
_COLLECT_EVERY: Final = 25


class Report:
    """Adds up outcomes. Kinds of faults that were asked for are counted also if they never struck."""

    def __init__(self, asked: Iterable[Kind] = ()) -> None:
        self._asked = tuple(asked)
        self.seeds = 0
        self.calls = 0
        self.calls_least: int | None = None  # in one seed
        self.steps = 0
        self.cpu_s = 0.0
        self.fired: Counter[Kind] = Counter()
        self.seeds_struck: Counter[Kind] = Counter()  # in how many seeds each kind struck
        self.marks: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        self.transitions: Counter[tuple[str, str, str]] = Counter()
        self.failed: list[tuple[str, Outcome]] = []  # with the name of the scenario

    def add(self, name: str, outcome: Outcome) -> None:
        """Add one run."""
        self.calls += outcome.calls
        self.steps += outcome.steps
        self.fired.update(firing.kind for firing in outcome.fired)
        self.marks.update(outcome.marks)
        self.refusals.update(outcome.refusals)
        self.transitions.update(outcome.transitions)
        if not outcome.ok:
            self.failed.append((name, outcome))

    def add_seed(self, outcomes: Iterable[tuple[str, Outcome]]) -> None:
        """Add all that one seed played, each with the name of its scenario."""
        before, struck = self.calls, set[Kind]()
        for name, outcome in outcomes:
            self.add(name, outcome)
            struck.update(firing.kind for firing in outcome.fired)
        self.seeds += 1
        self.seeds_struck.update(struck)
        calls = self.calls - before
        self.calls_least = calls if self.calls_least is None else min(self.calls_least, calls)

    def run(self, seeds: Iterable[int], play: Callable[[int], Iterable[tuple[str, Outcome]]], *, failures_max: int = 5) -> None:
        """Play seeds, each in one or more scenarios, and add them up; stop after `failures_max` failures."""
        for seed in seeds:
            begun = time.process_time()
            self.add_seed(play(seed))
            if self.seeds % _COLLECT_EVERY == 0:
                gc.collect()  # a run does not collect: when that happens must not depend on what ran before
            self.cpu_s += time.process_time() - begun
            if len(self.failed) >= failures_max:
                return

    def missing(
        self,
        *,
        faults: Iterable[Kind] = (),
        marks: Iterable[str] = (),
        refusals: Iterable[str] = (),
        machines: Collection[str] = (),
    ) -> list[str]:
        """Return what was never reached of what must be, of these machines every transition."""
        found = [f"fault {kind}" for kind in faults if not self.fired[kind]]
        found += [f"mark {mark}" for mark in marks if not self.marks[mark]]
        found += [f"refusal {code}" for code in refusals if not self.refusals[code]]
        wanted = (step for step in TRANSITIONS if step[0] in machines and step not in UNREACHABLE)
        return found + [" ".join(step) for step in wanted if not self.transitions[step]]

    def document(self) -> dict[str, Any]:
        """Return the report for programs."""
        counts = {"seeds": self.seeds, "calls": self.calls, "calls_least": self.calls_least or 0, "steps": self.steps}
        return {**counts, "cpu_s": self.cpu_s, **self._tables()}

    def summary(self) -> str:
        """Return in a line how much was simulated and how often each kind of fault struck."""
        shown = sorted({*self._asked, *self.fired}, key=list(Kind).index)
        faults = [f"{kind} {self.fired[kind]:,}× in {_seeds(self.seeds_struck[kind])}" for kind in shown]
        return f"{_seeds(self.seeds)}, {self.calls:,} calls; {', '.join(faults) or 'no faults'}"

    def _tables(self) -> dict[str, dict[str, int]]:
        return {
            "faults": {str(kind): count for kind, count in self.fired.items()},
            "marks": dict(self.marks),
            "refusals": dict(self.refusals),
            "transitions": {" ".join(step): count for step, count in self.transitions.items()},
        }

    def lines(self) -> list[str]:
        """Return the report for people."""
        rate = f"{self.calls / self.cpu_s:,.0f}" if self.cpu_s else "?"
        calls = f"{self.calls:,} calls, at least {self.calls_least or 0:,} in each"
        lines = [f"{self.seeds:,} seeds, {calls}; {self.steps:,} steps, {self.cpu_s:,.1f} s of one core: {rate} calls/s"]
        for title, found in self._tables().items():
            lines += _table(title, found)
        return lines


def _seeds(number: int) -> str:
    return f"{number:,} seed{'' if number == 1 else 's'}"


def _table(title: str, counts: dict[str, int]) -> list[str]:
    rows = [f"  {count:>9,}  {name}" for name, count in sorted(counts.items(), key=lambda one: (-one[1], one[0]))]
    return ["", f"{title} ({len(counts)})", *rows]
