"""The arithmetic of a business case: what cash flows are worth, and how sure that is."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from comity.errors import TargetError

# Trials of a simulation between two chances for other work to run: about a millisecond.
TRIALS_PER_BATCH: Final = 250
_HALVINGS: Final = 200
_DOUBLINGS_MAX: Final = 1_000


def npv(cash_flows: Sequence[float], discount_rate: float) -> float:
    """Return the net present value; the first cash flow is today's, the others come a period apart."""
    return _worth(cash_flows, 1 / (1 + discount_rate))


def irr(cash_flows: Sequence[float]) -> float:
    """Return the rate at which the cash flows are worth nothing.

    Cash flows that change their sign exactly once have exactly one such rate above -100 %. Others have none, or possibly
    several of which none is *the* answer; that is an error, not a number.
    """
    signs = [flow > 0 for flow in cash_flows if flow]
    changes = sum(one != other for one, other in pairwise(signs))
    if changes != 1:
        reason = "never change their sign" if changes == 0 else f"change their sign {changes} times"
        raise TargetError(f"the cash flows {reason}, so there is no single internal rate of return", code="IRR_NOT_DEFINED")
    # In the discount factor v = 1 / (1 + rate) the value is a polynomial: no pole to step over.
    first = next(flow for flow in cash_flows if flow)
    low = high = 1.0
    for _ in range(_DOUBLINGS_MAX):
        if (_worth(cash_flows, low) > 0) == (first > 0) and (_worth(cash_flows, high) > 0) != (first > 0):
            break
        low, high = low / 2, high * 2
    else:
        raise TargetError("the internal rate of return is out of all bounds", code="IRR_NOT_DEFINED")
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if (_worth(cash_flows, middle) > 0) == (first > 0):
            low = middle
        else:
            high = middle
    return 1 / ((low + high) / 2) - 1


def payback(cash_flows: Sequence[float]) -> float | None:
    """Return after how many periods the money is back, taking each period's cash flow as even; None if it never is."""
    total = cash_flows[0]
    if total >= 0:
        return 0.0
    for period, flow in enumerate(cash_flows[1:]):
        if total + flow >= 0:
            return period - total / flow
        total += flow
    return None


def discounted(cash_flows: Sequence[float], discount_rate: float) -> list[float]:
    """Return each cash flow as of today."""
    return [flow / (1 + discount_rate) ** period for period, flow in enumerate(cash_flows)]


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a simulation found: the net present value at five, fifty and ninety-five percent, and how often it is a loss."""

    trials: int
    seed: int
    mean: float
    low: float
    median: float
    high: float
    loss_probability: float


def simulate(
    cash_flows: Sequence[float], discount_rate: float, *, spread: float, trials: int, seed: int
) -> Iterator[list[float]]:
    """Yield batches of net present values drawn at random; the same seed gives the same values.

    The market moves every later cash flow alike, chance moves each of them by half as much, and the investment may run over.
    """
    draw = random.Random(seed)  # noqa: S311  a simulation, no secret
    present = discounted(cash_flows, discount_rate)
    investment, returns = present[0], present[1:]
    for begin in range(0, trials, TRIALS_PER_BATCH):
        batch = []
        for _ in range(min(TRIALS_PER_BATCH, trials - begin)):
            market = 1 + draw.gauss(0, spread)
            later = sum(value * (market + draw.gauss(0, spread / 2)) for value in returns)
            batch.append(investment * draw.triangular(0.95, 1.2, 1.0) + later)
        yield batch


def outlook(values: list[float], *, seed: int) -> Outlook:
    """Sum up the values of a simulation."""
    ordered = sorted(values)
    count = len(ordered)

    def quantile(share: float) -> float:
        return ordered[min(int(share * count), count - 1)]

    return Outlook(
        trials=count,
        seed=seed,
        mean=round(sum(ordered) / count, 2),
        low=round(quantile(0.05), 2),
        median=round(quantile(0.5), 2),
        high=round(quantile(0.95), 2),
        loss_probability=round(sum(value < 0 for value in ordered) / count, 4),
    )


def _worth(cash_flows: Sequence[float], factor: float) -> float:
    value = 0.0
    for flow in reversed(cash_flows):
        value = value * factor + flow
    return value
