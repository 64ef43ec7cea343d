"""Make a schedule of faults smaller while the run still fails in the same way: delta debugging over single firings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from comity.testing.sim.faults import Firing
from comity.testing.sim.world import Outcome

RUNS_MAX: Final = 200

Replay = Callable[[Sequence[Firing]], Outcome]


def shrink(failed: Outcome, replay: Replay) -> Outcome:
    """Return the same failure with as few firings as `RUNS_MAX` runs can find; `replay` runs the seed with a schedule."""
    best = failed
    size = len(best.fired)
    runs = 0
    while size and runs < RUNS_MAX:
        begin = 0
        while begin < len(best.fired) and runs < RUNS_MAX:
            runs += 1
            tried = replay(best.fired[:begin] + best.fired[begin + size :])
            if _is_same(tried, failed) and len(tried.fired) < len(best.fired):
                best = tried  # what stood behind the part left out has moved to `begin`
            else:
                begin += size
        size = size // 2 if size > 1 or begin == 0 else 0
    return best


def _is_same(tried: Outcome, failed: Outcome) -> bool:
    return not tried.ok and tried.invariant == failed.invariant and type(tried.error) is type(failed.error)
