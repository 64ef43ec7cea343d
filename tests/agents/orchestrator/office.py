"""A small office to orchestrate: four specialists that remember how often they worked."""

from __future__ import annotations

from typing import Any

from comity import Agent, Context, Reply
from comity.agents.orchestrator import Orchestrator
from comity.agents.orchestrator.rankers import OfflineRanker

RANKER = OfflineRanker()  # learns what the office can do once, not for every test


class Office:
    """Agents of one node, and the calls they got."""

    def __init__(self, **settings: Any) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.seen: dict[str, Any] = {}
        self.orchestrator = Orchestrator(**{"ranker": RANKER} | settings)
        self.analyst = Agent("ANL", description="Financial analysis")
        self.writer = Agent("DOC", description="Documents")
        self.audience = Agent("AUD", description="Audiences")
        self._declare()

    @property
    def agents(self) -> list[Agent]:
        return [self.orchestrator, self.analyst, self.writer, self.audience]

    def _note(self, ctx: Context, code: str, **inputs: Any) -> None:
        self.calls.append((code, inputs))
        self.seen[code] = ctx.request

    def _declare(self) -> None:
        office = self

        @self.analyst.capability(
            "ANL_NPV",
            description="Net present value of cash flows at a discount rate",
            utterances=(
                "what is the npv of these cash flows",
                "discount the returns to today",
                "calculate the net present value",
            ),
        )
        async def npv(ctx: Context, cash_flows: list[float], discount_rate: float) -> Reply[Any]:
            office._note(ctx, "ANL_NPV", cash_flows=cash_flows, discount_rate=discount_rate)
            value = sum(flow / (1 + discount_rate) ** at for at, flow in enumerate(cash_flows))
            return Reply.success({"npv": round(value, 2), "currency": "USD"}, confidence=0.9)

        @self.analyst.capability(
            "ANL_PROJECTION",
            description="Financial projection of revenue and cost over future years",
            utterances=(
                "project revenue for the next three years",
                "forecast our costs",
                "what will sales look like next year",
            ),
        )
        async def projection(ctx: Context, years: int = 3) -> Reply[Any]:
            office._note(ctx, "ANL_PROJECTION", years=years)
            return Reply.success({"revenue": [100, 120, 150], "years": years}, confidence=0.7)

        @self.writer.capability(
            "DOC_GENERATE",
            description="Write a document: business case, brief, memo or deck",
            utterances=("write a business case", "draft a memo", "turn this into a slide deck"),
        )
        async def generate(ctx: Context, topic: str) -> Reply[Any]:
            office._note(ctx, "DOC_GENERATE", topic=topic)
            return Reply.success({"document": f"On {topic}"}, message="The memo is ready", confidence=0.8)

        @self.audience.capability(
            "AUD_SEGMENT_BUILD",
            description="Build audience segments from customer data",
            utterances=("segment our customers", "create audience groups", "which customer clusters do we have"),
        )
        async def segment(ctx: Context) -> Reply[Any]:
            office._note(ctx, "AUD_SEGMENT_BUILD")
            return Reply.success({"segments": ["young", "old"]}, confidence=0.6)

    @property
    def codes(self) -> list[str]:
        return [code for code, _ in self.calls]


FLOWS = {"cash_flows": [-100000.0, 25000.0, 35000.0, 45000.0, 55000.0], "discount_rate": 0.12}
