"""`Orchestrator`: the built-in agent that classifies what users say, routes it, runs requests of several parts, and learns."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from msgspec import to_builtins

from comity.agents.model.agent import Agent
from comity.agents.orchestrator import parts
from comity.agents.orchestrator.rankers import OfflineRanker, Ranker
from comity.agents.orchestrator.settings import FRESH_MS, Settings
from comity.agents.orchestrator.turn import Turn
from comity.agents.orchestrator.work import shown
from comity.core.agent.agent import DeclarationError
from comity.core.call.limits import CITED_CHARS_MAX
from comity.core.envelope.envelope import Reply
from comity.core.orchestration import monitor
from comity.core.orchestration.aggregate import STRATEGIES, SYNTHESISE, Strategy
from comity.core.orchestration.intent.classification import THRESHOLD
from comity.dialects.kdap_routing import (
    DISPATCH,
    TAKE_CONTEXT,
    HandoffContext,
    decode_handoff_context,
    decode_intent,
    encode_handoff_context,
    encode_intent,
)
from comity.runtime.call.context import Context

TIMEOUT_MS: Final = 120_000
EXAMPLES: Final[dict[str, tuple[dict[str, Any], ...]]] = {
    "ORC_ROUTE": ({"text": "what can you do"},),
    "ORC_CLASSIFY": ({"text": "what can you do"},),
}
UNKNOWN_LESSON: Final = "INPUT_VALIDATION_FAILED"


class Orchestrator(Agent):
    """Routes what users say to the agents of its node.

    id: ORC, as the contract calls it. threshold: below this confidence the user is asked.
    ranker: what ranks intents; the offline classifier if it is not given.
    strategy, options, custom: how the results of several parts become one; see `comity.core.orchestration.aggregate`.
    synthesiser: an agent with a model that writes the narrative where the strategy is `synthesise`.
    fresh_ms: for how long an analysis with the same inputs is referred to instead of being run again.
    can_call, limits and the rest are as of every agent.
    """

    def __init__(
        self,
        id: str = "ORC",  # noqa: A002  the public word for it
        *,
        description: str = "Understands what users ask for and has it done",
        threshold: float = THRESHOLD,
        ranker: Ranker | None = None,
        strategy: str = "merge",
        options: Mapping[str, Any] | None = None,
        custom: Mapping[str, Strategy] | None = None,
        synthesiser: str = "",
        fresh_ms: int = FRESH_MS,
        **declared: Any,
    ) -> None:
        super().__init__(id, description=description, **declared)
        known = [*STRATEGIES, SYNTHESISE, *(custom or {})]
        if strategy not in known:
            raise DeclarationError(f"{id}: there is no strategy {strategy!r}; there are {', '.join(known)}")
        if not 0 <= threshold <= 1:
            raise DeclarationError(f"{id}: threshold must be a number from 0 to 1, not {threshold!r}")
        self.settings = Settings(
            id=id,
            can_call=self.can_call,
            threshold=threshold,
            ranker=ranker or OfflineRanker(),
            strategy=strategy,
            options=dict(options or {}),
            custom=dict(custom or {}),
            synthesiser=synthesiser,
            fresh_ms=fresh_ms,
        )
        self.binders = {parts.PART: partial(parts.bound, self.settings)}
        for code, function, doing in (
            ("ORC_ROUTE", self._route, "Working on your request"),
            ("ORC_CLASSIFY", self._classify, ""),
            (DISPATCH, self._dispatch, "Working on your request"),
            (TAKE_CONTEXT, self._take_context, ""),
            (parts.PART, self._part, ""),
            ("ORC_CORRECT", self._correct, ""),
            ("ORC_UNDO", self._undo, ""),
            ("ORC_LESSONS", self._lessons, ""),
            ("ORC_MONITOR", self._monitor, ""),
        ):
            self.capability(code, timeout_ms=TIMEOUT_MS, doing=doing, examples=EXAMPLES.get(code, ()))(function)

    async def _route(
        self, ctx: Context, text: str = "", inputs: dict[str, Any] | None = None, again: bool = False
    ) -> Reply[Any]:
        """Do what a user asks for: find out which capabilities serve it, call them, and answer as one."""
        turn = Turn(self.settings, ctx, inputs or {}, is_again=again)
        return await turn.serve(_said(ctx, text))

    async def _classify(self, ctx: Context, text: str = "") -> Reply[Any]:
        """Say which capability a text asks for, and how sure that is; nothing is called."""
        turn = Turn(self.settings, ctx, {}, is_again=False)
        plan, rankings = await turn.plan(_said(ctx, text))
        found = turn.classification([one.best[0] if one.best else "" for one in rankings], rankings)
        first = rankings[0] if rankings else None
        if found is None or first is None or not first.is_in_scope:
            return Reply.failure("Nothing here serves this request.", code="ROUTING_INTENT_UNKNOWN")
        best = [
            {"intent": turn.offers[key].intent, "score": round(score, 4)}
            for key, score in zip(first.best, first.scores, strict=True)
            if key in turn.offers
        ]
        parts = [{"text": part.text, "after": list(part.after)} for part in plan.parts]
        return Reply.success(
            {**shown(found), "best": best, "parts": parts, "document": encode_intent(found)}, confidence=found.confidence
        )

    async def _dispatch(
        self, ctx: Context, document: dict[str, Any], text: str = "", inputs: dict[str, Any] | None = None
    ) -> Reply[Any]:
        """Route what was classified elsewhere: an INTENT CLASSIFICATION, for the user's words or those of the session."""
        found = decode_intent(document)
        turn = Turn(self.settings, ctx, inputs or {}, is_again=False)
        words = text or ctx.request.message or turn.background().original_request
        return await turn.dispatch(found, words or found.primary.replace("_", " "))

    async def _part(
        self,
        ctx: Context,
        part: dict[str, Any],
        known: dict[str, Any],
        earlier: dict[str, Any] | None = None,
        answer: Any = None,
    ) -> Reply[Any]:
        """Do one part of a request; what a run of several parts calls, and binds to the specialist where it can."""
        found = parts.bound(
            self.settings,
            ctx._path.registry,  # noqa: SLF001  as models see their colleagues
            {"part": part, "known": known, "earlier": earlier or {}, "answer": answer},
        )
        if isinstance(found, Reply):
            return found
        return await ctx.call(
            found.target,
            found.capability,
            found.inputs,
            message=found.message,
            objective=found.objective,
            context=found.context,
            history="full",
        )

    async def _take_context(self, ctx: Context, document: dict[str, Any]) -> Reply[Any]:
        """Note a HANDOFF CONTEXT in its session, and answer with that of the session as it is now."""
        handoff = decode_handoff_context(document)
        if handoff.session_id != ctx.session.id:
            return Reply.failure(
                "the handoff context names another session than the call has; send it in its own session",
                code="INPUT_VALIDATION_FAILED",
            )
        turn = Turn(self.settings, ctx, {}, is_again=False)
        turn.take(handoff.background)
        noted = encode_handoff_context(HandoffContext(ctx.session.id, turn.background()))
        return Reply.success(noted, message="What was done before is noted.")

    async def _correct(self, ctx: Context, target: str, capability: str, text: str = "") -> Reply[Any]:
        """Learn that a text asks for this capability; without a text, the last request of the session. Can be undone."""
        turn = Turn(self.settings, ctx, {}, is_again=False)
        key = f"{target}/{capability}"
        if key not in turn.offers:
            return Reply.failure(f"there is no capability {key} to route to", code=UNKNOWN_LESSON)
        said = text or turn.last.get("text", "")
        if not said:
            return Reply.needs_input("Which request was routed wrongly?")
        was = turn.last.get("key", "") if turn.last.get("text") == said else ""
        lesson = turn.learn(said, key, was=was if was != key else "")
        return Reply.success({"lesson_id": lesson.id, "text": lesson.text, "intent": turn.offers[key].intent})

    async def _undo(self, ctx: Context, lesson_id: str) -> Reply[Any]:
        """Forget a lesson of this user, as if it had never been learnt."""
        if not ctx.memory.drop_note(lesson_id):
            return Reply.failure(f"there is no lesson {lesson_id[:CITED_CHARS_MAX]!r}", code=UNKNOWN_LESSON)
        return Reply.success({"lesson_id": lesson_id, "lessons": len(ctx.memory.notes)})

    async def _lessons(self, ctx: Context) -> list[dict[str, Any]]:
        """List what was learnt from this user's corrections and choices."""
        found: list[dict[str, Any]] = to_builtins(Turn(self.settings, ctx, {}, is_again=False).lessons)
        return found

    async def _monitor(self, ctx: Context) -> dict[str, Any]:
        """Report misroutes, clarifications and refusals per intent."""
        return monitor.report(ctx.state.get("monitor", {}))


def _said(ctx: Context, text: str) -> str:
    return text or ctx.request.message or ctx.request.objective
