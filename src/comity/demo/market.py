"""How a market entry earns its money, and three ways it could go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from annotated_types import Ge, Gt, Le, MaxLen, MinLen

Amount = Annotated[float, Ge(0), Le(1e12)]
Share = Annotated[float, Gt(0), Le(1)]


@dataclass(frozen=True, slots=True)
class Plan:
    """The drivers of the case. The defaults give the cash flows -100,000, 25,000, 35,000, 45,000 and 55,000."""

    investment: Amount = 100_000
    market_units: Amount = 20_000
    shares: Annotated[tuple[Share, ...], MinLen(1), MaxLen(50)] = (0.05, 0.06, 0.07, 0.08)
    price: Amount = 125
    unit_cost: Amount = 75
    fixed_cost: Amount = 25_000


@dataclass(frozen=True, slots=True)
class Scenario:
    """One way it could go: the plan's drivers, each times a factor."""

    name: str
    story: str
    volume: float = 1.0
    fixed_cost: float = 1.0
    investment: float = 1.0


@dataclass(frozen=True, slots=True)
class Framed:
    """A scenario with the cash flows it leads to."""

    name: str
    story: str
    cash_flows: list[float]


SCENARIOS: Final = (
    Scenario("conservative", "a fifth fewer units sold, entry five percent dearer", volume=0.8, investment=1.05),
    Scenario("base", "the plan as it stands"),
    Scenario(
        "aggressive",
        "a quarter more units sold, for a fifth more investment and a tenth more fixed cost",
        volume=1.25,
        fixed_cost=1.1,
        investment=1.2,
    ),
)


def cash_flows(plan: Plan, scenario: Scenario) -> list[float]:
    """Return the investment and then, for each year, units sold times contribution, less fixed cost."""
    contribution = plan.price - plan.unit_cost
    fixed = plan.fixed_cost * scenario.fixed_cost
    years = [plan.market_units * share * scenario.volume * contribution - fixed for share in plan.shares]
    return [round(-plan.investment * scenario.investment, 2), *(round(year, 2) for year in years)]


def frame(plan: Plan) -> list[Framed]:
    """Return the scenarios of a plan, worst first."""
    return [Framed(one.name, one.story, cash_flows(plan, one)) for one in SCENARIOS]
