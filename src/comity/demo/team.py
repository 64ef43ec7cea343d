"""Four agents who build a business case together: an orchestrator, a strategist, an analyst and a writer.

Nothing here needs a model or a network. Besides the case itself, three capabilities exist to show what the layer does when
agents ask each other in circles or something they depend on is down.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from annotated_types import Ge, Gt, Le, MaxLen, MinLen

from comity import Agent, Background, Context, Reply
from comity.agents.orchestrator import Orchestrator
from comity.demo import finance, market
from comity.demo.document import Assessed, recommend, render, write
from comity.demo.market import Framed, Plan

REQUEST: Final = "Help me build a business case for market entry"
DOCUMENT: Final = "business-case.md"
DISCOUNT_RATE: Final = 0.12
SEED: Final = 2025
TRIALS: Final = 20_000
# How far a year's result may lie from its plan, as a standard deviation.
SPREAD: Final = 0.2
NO_SECOND_OPINION: Final = "There is no second opinion in this."

Rate = Annotated[float, Gt(-1), Le(10)]
Flows = Annotated[list[float], MinLen(2), MaxLen(600)]
Trials = Annotated[int, Ge(1), Le(100_000)]
FIGURES: Final = ("npv", "irr", "payback")
_FLOWS: Final = {"cash_flows": [-100_000, 25_000, 35_000, 45_000, 55_000]}

orchestrator = Orchestrator(
    "ORC", description="Takes a request and leads it to a result", aliases=("orchestrator",), can_call=("CST", "ANL", "DOC")
)
strategist = Agent("CST", description="Strategy: frames a question as scenarios", can_call=("ANL",))
analyst = Agent("ANL", description="Financial analysis", aliases=("analyst",), can_call=("CST",))
writer = Agent("DOC", description="Writes documents", can_call=())

agents: Final = [orchestrator, strategist, analyst, writer]


# --- the case -----------------------------------------------------------------------------------------------------------


@orchestrator.capability("ORC_BUSINESS_CASE", timeout_ms=60_000)
async def business_case(
    ctx: Context,
    request: str = REQUEST,
    plan: Plan = Plan(),  # noqa: B008  frozen
    discount_rate: Rate = DISCOUNT_RATE,
    seed: int = SEED,
    trials: Trials = TRIALS,
    out: str = DOCUMENT,
) -> Reply:
    """Build a business case for a market entry and write it to a file."""
    ctx.progress("Let me frame how this market entry could go.")
    background = Background(original_request=request, workflow_position="Step 1 of 3 (Framing)", prior_agents=("ORC",))
    framed = await ctx.call("CST", "CST_SCENARIOS", {"plan": asdict(plan)}, objective="frame scenarios", context=background)
    scenarios = [Framed(**one) for one in framed.unwrap()["scenarios"]]

    ctx.progress("Now the financial side of each of them.")
    assessed, simulated = await _assess(ctx, scenarios, request, discount_rate, seed, trials)
    outlook = finance.Outlook(**simulated.data) if simulated.ok else None
    notes = [f"{name} of the {one.name} scenario is not available." for one in assessed for name in one.missing]
    if outlook is None:
        notes.append("The simulation is not available.")

    ctx.progress("Putting it all on paper.")
    written = await ctx.call(
        "DOC",
        "DOC_BUSINESS_CASE",
        {
            "request": request,
            "discount_rate": discount_rate,
            "scenarios": [asdict(one) for one in assessed],
            "outlook": None if outlook is None else asdict(outlook),
            "notes": notes,
            "path": out,
        },
        objective="write the business case",
        context=_background(request, "Step 3 of 3 (Document)", scenarios, ("ORC", "CST", "ANL")),
    )
    data = {
        "document": written.unwrap()["path"],
        "recommendation": recommend(assessed, outlook),
        "scenarios": [asdict(one) for one in assessed],
        "outlook": None if outlook is None else asdict(outlook),
    }
    if notes:
        return Reply.partial(data, warnings=notes, message=data["recommendation"])
    return Reply.success(data, message=data["recommendation"], confidence=0.9)


async def _assess(
    ctx: Context, scenarios: Sequence[Framed], request: str, discount_rate: float, seed: int, trials: int
) -> tuple[list[Assessed], Reply]:
    """Have every figure of every scenario worked out at the same time."""
    background = _background(request, "Step 2 of 3 (Financial analysis)", scenarios, ("ORC", "CST"))
    rates = {"npv": {"discount_rate": discount_rate}, "irr": {}, "payback": {"discount_rate": discount_rate}}
    wanted = [(one, figure) for one in scenarios for figure in FIGURES]
    base = next((one for one in scenarios if one.name == "base"), scenarios[0])
    simulation = {"cash_flows": base.cash_flows, "discount_rate": discount_rate, "seed": seed, "trials": trials}
    *figures, simulated = await ctx.gather(
        *(
            ctx.call(
                "ANL",
                f"ANL_{figure.upper()}",
                {"cash_flows": one.cash_flows} | rates[figure],
                objective=f"{figure} of the {one.name} scenario",
                context=background,
            )
            for one, figure in wanted
        ),
        ctx.call("ANL", "ANL_MONTE_CARLO", simulation, objective="simulate the base scenario", context=background),
    )
    replies = dict(zip([(one.name, figure) for one, figure in wanted], figures, strict=True))
    return [_assessed(one, {figure: replies[one.name, figure] for figure in FIGURES}) for one in scenarios], simulated


def _assessed(scenario: Framed, replies: dict[str, Reply]) -> Assessed:
    def figure(name: str, field: str) -> float | None:
        reply = replies[name]
        return reply.data[field] if reply.ok else None

    return Assessed(
        scenario.name,
        scenario.story,
        scenario.cash_flows,
        npv=figure("npv", "npv"),
        irr=figure("irr", "irr"),
        payback_years=figure("payback", "years"),
        missing=[name for name, reply in replies.items() if not reply.ok],
    )


def _background(request: str, position: str, scenarios: Sequence[Framed], prior: tuple[str, ...]) -> Background:
    return Background(
        original_request=request,
        workflow_position=position,
        prior_agents=prior,
        prior_outputs={"scenarios": [one.name for one in scenarios]},
    )


@strategist.capability("CST_SCENARIOS")
async def scenarios_of(plan: Plan = Plan()) -> dict[str, Any]:  # noqa: B008  frozen
    """Frame a plan as a conservative, a base and an aggressive scenario with their cash flows."""
    return {"framework": "market_entry_assessment", "scenarios": [asdict(one) for one in market.frame(plan)]}


@dataclass(frozen=True, slots=True)
class Npv:
    """A net present value."""

    npv: float
    discount_rate: float
    periods: int


@dataclass(frozen=True, slots=True)
class Irr:
    """An internal rate of return."""

    irr: float


@dataclass(frozen=True, slots=True)
class Payback:
    """When the money is back, plain and discounted; None if never."""

    years: float | None
    discounted_years: float | None


@analyst.capability("ANL_NPV", timeout_ms=15_000, examples=({**_FLOWS, "discount_rate": DISCOUNT_RATE},))
async def npv(cash_flows: Flows, discount_rate: Rate) -> Npv:
    """Net present value of yearly cash flows, the first of them today."""
    return Npv(round(finance.npv(cash_flows, discount_rate), 2), discount_rate, len(cash_flows))


@analyst.capability("ANL_IRR", timeout_ms=15_000, examples=(_FLOWS,))
async def irr(cash_flows: Flows) -> Irr:
    """Internal rate of return of yearly cash flows."""
    return Irr(round(finance.irr(cash_flows), 10))


@analyst.capability("ANL_PAYBACK", timeout_ms=15_000, examples=(_FLOWS,))
async def payback(cash_flows: Flows, discount_rate: Rate = DISCOUNT_RATE) -> Payback:
    """Years until the investment is back, without and with discounting."""
    return Payback(finance.payback(cash_flows), finance.payback(finance.discounted(cash_flows, discount_rate)))


@analyst.capability("ANL_MONTE_CARLO", timeout_ms=30_000, examples=(_FLOWS,))
async def monte_carlo(
    ctx: Context,
    cash_flows: Flows,
    discount_rate: Rate = DISCOUNT_RATE,
    seed: int = SEED,
    trials: Trials = TRIALS,
    spread: Annotated[float, Ge(0), Le(2)] = SPREAD,
) -> finance.Outlook:
    """Simulate the net present value; the same seed gives the same outlook."""
    values: list[float] = []
    for batch in finance.simulate(cash_flows, discount_rate, spread=spread, trials=trials, seed=seed):
        values += batch
        if len(values) * 10 // trials > (len(values) - len(batch)) * 10 // trials:
            ctx.progress({"trials_done": len(values), "trials": trials})
        await asyncio.sleep(0)  # other agents get their turn between batches
    return finance.outlook(values, seed=seed)


@writer.capability("DOC_BUSINESS_CASE")
def write_case(
    request: str,
    discount_rate: float,
    scenarios: Annotated[list[Assessed], MinLen(1), MaxLen(20)],
    path: str = DOCUMENT,
    title: str = "Business case: market entry",
    outlook: finance.Outlook | None = None,
    notes: list[str] | None = None,
) -> dict[str, Any]:
    """Write a business case as Markdown to a file."""
    target = Path(path).expanduser().resolve()
    text = render(title, request, discount_rate, scenarios, outlook, notes or ())
    write(text, target)
    return {"path": str(target), "bytes": len(text.encode())}


# --- to see the layer at work -------------------------------------------------------------------------------------------


@strategist.capability("CST_OPINION")
async def strategic_opinion(ctx: Context, question: str) -> Reply:
    """Give an opinion, after asking the analyst for one."""
    asked = await ctx.call("ANL", "ANL_OPINION", {"question": question}, objective="a second opinion")
    return asked if asked.ok else Reply.partial({"opinion": "None without the figures."}, warnings=[NO_SECOND_OPINION])


@analyst.capability("ANL_OPINION")
async def financial_opinion(ctx: Context, question: str) -> Reply:
    """Give an opinion, after asking the strategist for one."""
    asked = await ctx.call("CST", "CST_OPINION", {"question": question}, objective="a second opinion")
    if asked.ok:
        return asked
    return Reply.partial({"opinion": "The figures alone say: enter in steps."}, warnings=[NO_SECOND_OPINION])


@analyst.capability("ANL_MARKET_PRICE")
async def market_price() -> dict[str, Any]:
    """Price of the product on the market, from a feed that is switched off in this demo."""
    return _market_feed("price")


@analyst.capability("ANL_MARKET_SIZE")
async def market_size() -> dict[str, Any]:
    """Units the market takes in a year, from the same feed, or from the plan while the feed is down."""
    return _market_feed("units")


@analyst.fallback("ANL_MARKET_SIZE", warning="The market feed is down; this is the plan's own figure.")
async def planned_market_size() -> dict[str, Any]:
    """The plan's own figure."""
    return {"units": Plan().market_units, "source": "plan"}


def _market_feed(figure: str) -> dict[str, Any]:
    raise ConnectionError(f"the market feed does not answer for {figure}: it is switched off in this demo")
