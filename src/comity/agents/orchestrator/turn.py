"""One request to an orchestrator: classified, asked about or declined, or handed on to be done part by part."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from comity.agents.orchestrator import parts, phrases
from comity.agents.orchestrator.inputs import Filled, unknown
from comity.agents.orchestrator.templates import triggered, without_negated
from comity.agents.orchestrator.work import Work, as_own
from comity.core.envelope.envelope import Background, Reply, Status
from comity.core.orchestration import monitor
from comity.core.orchestration.intent import Classification, Lesson, Ranking, Route, Verdict, close, judge
from comity.core.orchestration.intent.stems import stems
from comity.core.orchestration.monitor import Outcome
from comity.core.orchestration.split import Part, Plan, split, things
from comity.runtime.call.insider import Insider

NO_INTENT: Final = "ROUTING_INTENT_UNKNOWN"
_CORRECTION: Final = re.compile(
    r"^\s*(?:no|nope|wrong|not that|that's (?:wrong|not it))\b[,.!;:\s]*"
    r"(?:i\s+(?:meant|mean|want(?:ed)?|asked\s+for)|rather|instead|please)?\s*(?P<rest>.*)$",
    re.IGNORECASE | re.DOTALL,
)
LOCAL_CONFIDENCE_MIN: Final = 0.85  # HIGH; what an orchestrator answers itself is never worth a question
LONG_CHARS: Final = 500  # of a text that is not split at once: a character takes up to 20 µs
LABEL_NEAR: Final = 2  # capabilities that a refusal names


class Turn(Work):
    """A request while it is being served."""

    # --- lessons ---

    @property
    def lessons(self) -> tuple[Lesson, ...]:
        """The corrections and confirmed choices that were learnt from this user."""
        return tuple(
            Lesson(id=one.id, text=one.text, intent=one.labels["intent"], was=one.labels.get("was", ""), at=one.at_ms)
            for one in self._ctx.memory.notes
        )

    def learn(self, text: str, key: str, was: str = "") -> Lesson:
        """Learn which intent a text of this user has; `was` is the intent that was chosen wrongly."""
        made = self._ctx.memory.note(text, intent=key, **({"was": was} if was else {}))
        if was:
            monitor.count(self._counts, was, Outcome.MISROUTED)
        return Lesson(id=made.id, text=text, intent=key, was=was, at=made.at_ms)

    @property
    def last(self) -> dict[str, Any]:
        """The last request of the session that was routed: its text and the key of its intent."""
        found: dict[str, Any] = self._private.get("last", {})
        return found

    # --- classification ---

    async def rank(self, text: str) -> Ranking:
        """Return the ranking of a text by the orchestrator's ranker."""
        found = await self._settings.ranker.rank(self._ctx, text, self._intents, self.lessons)
        if found.best and found.best[0] in phrases.LOCAL_NAMES and found.confidence < LOCAL_CONFIDENCE_MIN:
            return dataclasses.replace(found, is_in_scope=False)  # a few common words make no greeting of a question
        return found

    async def _ranked(self, texts: Iterable[str]) -> list[Ranking]:
        """Return the rankings of several texts; others have their turn after each."""
        found: list[Ranking] = []
        for text in texts:
            if found:
                await self._insider.pause()
            found.append(await self.rank(text))
        return found

    async def _split(self, *asked: Any) -> Plan:
        """Return what `split` returns. A long text is split in a thread: others have their turn meanwhile."""
        work = partial(split, *asked)
        return work() if len(asked[0]) < LONG_CHARS else await self._insider.aside(work)

    @property
    def _insider(self) -> Insider:
        return Insider.of(self._ctx)

    async def plan(self, text: str) -> tuple[Plan, list[Ranking]]:
        """Return the parts of a request with the ranking of each."""
        whole = await self._split(text)
        known = await self._ranked(part.text for part in whole.parts)
        if len(whole.parts) > 1:
            sure = {
                part.text: (one.best[0] if one.best else "", one.confidence)
                for part, one in zip(whole.parts, known, strict=True)
            }
            joined = await self._split(text, lambda said: sure.get(said, ("", 0.0)))
            if len(joined.parts) != len(whole.parts):
                whole, known = joined, await self._ranked(part.text for part in joined.parts)
        return await self._apart(whole, known)

    async def _apart(self, plan: Plan, known: list[Ranking]) -> tuple[Plan, list[Ranking]]:
        """Part the things that one verb asks for where each is served by a capability of its own: "the NPV and the IRR".

        One of them may be unclear if it is not about what the others ask for: its question is asked beside their results.
        """
        texts: list[list[str]] = []
        rankings: list[Ranking] = []
        for part, ranking in zip(plan.parts, known, strict=True):
            said = [] if self._is_example(part.text) else things(part.text)
            found = await self._ranked(said)
            is_apart = len(said) > 1 and self._are_apart(found)
            texts.append(said if is_apart else [part.text])
            rankings += found if is_apart else [ranking]
        return plan.expanded(texts), rankings

    def _are_apart(self, found: list[Ranking]) -> bool:
        """Return whether things are served by different capabilities, one of them clearly and each by some."""
        verdicts = [judge(one, self._settings.threshold) for one in found]
        if Verdict.ROUTE not in verdicts or Verdict.DECLINE in verdicts:
            return False
        meant = [one.best[:1] if verdict is Verdict.ROUTE else close(one) for one, verdict in zip(found, verdicts, strict=True)]
        return len({key for keys in meant for key in keys}) == sum(map(len, meant))

    def _is_example(self, text: str) -> bool:
        """Return whether a text is an example of one intent, word for word, or was learnt as such: "profit and loss"."""
        known = (*(one for intent in self._intents for one in intent.examples), *(lesson.text for lesson in self.lessons))
        return stems(text) in map(stems, known)

    # --- a request ---

    async def serve(self, text: str) -> Reply[Any]:
        """Return the reply to a request, with a warning that names the given inputs which no capability or workflow takes."""
        takes = [offer.inputs.get("properties", {}) for offer in self.offers.values()]
        takes += [(one.input_schema or {}).get("properties", {}) for one in self._workflows().definitions.values()]
        codes = (offer.route.capability for offer in self.offers.values())
        strange = unknown(self._given, (*(name for names in takes for name in names), *codes))
        reply = await self._served(text)
        if not strange:
            return reply
        warning = phrases.unused(strange)
        asked = f"{reply.message}\n{warning}." if reply.status is Status.NEEDS_INPUT else reply.message
        return replace(reply, message=asked, warnings=(*reply.warnings, warning))

    async def _served(self, text: str) -> Reply[Any]:
        """Return the reply to a request: an answer to a question that is open, a correction, or a request of its own."""
        self._state({name: value for name, value in self._given.items() if not isinstance(value, dict)})
        pending = self._private.pop("pending", None)
        if pending is not None:
            if reply := await self._answered(text, pending):
                return reply
            self._keep()
        if (found := _CORRECTION.match(text)) and self.last and found["rest"].strip():
            ranking = await self.rank(found["rest"])
            if ranking.best and ranking.best[0] in self.offers and ranking.best[0] != self.last["key"]:
                self.learn(self.last["text"], ranking.best[0], was=self.last["key"])
                return await self._run(Plan((Part(self.last["text"]),)), [ranking.best[0]], [ranking], self.last["text"])
        return await self._asked(text)

    async def _asked(self, text: str) -> Reply[Any]:
        """Return the reply to a request: a workflow serves a part with its trigger phrase, a capability any other part."""
        known = self._workflows().definitions
        text = without_negated(text, known)
        found = (await self._split(text)).parts
        if len(found) <= 1 and (name := triggered(text, known)) is not None:
            return await self._triggered(name, text)
        plan, rankings = await self.plan(text)
        if not plan.parts:
            return Reply.needs_input("What can I do for you?")
        flows = {at: name for at, part in enumerate(plan.parts) if (name := triggered(part.text, known)) is not None}
        if flows and len(plan.parts) == 1:
            return await self._triggered(flows[0], text)
        self._flows = flows
        return await self._decided(text, plan, rankings)

    async def dispatch(self, found: Classification, text: str) -> Reply[Any]:
        """Return the reply to a request that was classified elsewhere: its primary intent first, then the others in order."""
        keys = [self._key_of(route) for route in (found.route, *found.secondary_routes)]
        if missing := [key for key in keys if key not in self.offers]:
            monitor.count(self._counts, monitor.NONE, Outcome.DECLINED)
            return Reply.failure(f"there is no capability {missing[0]} to route to", code=NO_INTENT)
        rankings = [Ranking((key,), found.confidence, is_in_scope=True, scores=(found.confidence,)) for key in keys]
        verdict = judge(rankings[0], self._settings.threshold)
        if verdict is not Verdict.ROUTE:
            question = self._unclear(text, rankings[0], verdict, is_first=True)
            self._keep()
            return question
        parts = tuple(Part(text, (at - 1,) if at else ()) for at in range(len(keys)))
        return await self._run(Plan(parts), keys, rankings, text)

    def _key_of(self, route: Route) -> str:
        known = self._ctx._path.registry.resolve(route.target)  # noqa: SLF001  as models see their colleagues
        return f"{route.target if known is None else known.agent.id}/{route.capability}"

    def take(self, given: Background) -> None:
        """Note in the session what a handoff context says; what users and agents said themselves stays theirs."""
        session = self._ctx.session
        for key, value in given.constraints.items():
            session.constrain(key, value)
        for key, value in given.prior_outputs.items():
            session.produce(key, value)
        if given.workflow_position:
            session.place(given.workflow_position)
        self._private["taken"] = {"original_request": given.original_request, "prior_agents": list(given.prior_agents)}
        self._keep()

    async def _triggered(self, name: str, text: str) -> Reply[Any]:
        """Run the workflow of the node whose trigger phrase a request is."""
        reply = await self._run_of(name, text)
        if not reply.ok:
            return as_own(reply)
        run_id = parts.run_id_of(self._ctx.request.request_id)
        return replace(reply, data={"result": reply.data, "workflow": name, "run_id": run_id}, request_id="", source="")

    async def _answered(self, text: str, pending: dict[str, Any]) -> Reply[Any] | None:
        """Return the reply to a request that waited for an answer, if this is the answer."""
        if pending["kind"] == "inputs":
            return await self._completed(text, pending)
        if pending["kind"] == "run":
            return await self._resumed(text, pending)
        keys = [key for key in pending["keys"] if key in self.offers]
        at = phrases.choice(text, [self.offers[key].label for key in keys])
        if at is None:
            return None
        self.learn(pending["text"], keys[at])
        ranking = Ranking((keys[at],), 1.0, is_in_scope=True, scores=(1.0,))
        return await self._run(Plan((Part(pending["text"]),)), [keys[at]], [ranking], pending["text"])

    async def _completed(self, text: str, pending: dict[str, Any]) -> Reply[Any] | None:
        offer = self.offers.get(pending["key"])
        if offer is None:
            return None
        offered = {name: (value, "") for name, value in pending.get("offered", {}).items()}
        asked = Filled({}, pending["missing"], offered)
        if offered and phrases.is_no(text):
            self._private["pending"] = {name: value for name, value in pending.items() if name != "offered"}
            self._keep()
            return parts.question(offer, dataclasses.replace(asked, doubted={}))
        if not set(asked.lacking) & set(self._given):
            told = parts.answered(offer, asked, text)
            self._given = {**self._given, **told}
            self._state(told)
        if not set(asked.lacking) & set(self._given):
            return None
        ranking = Ranking((offer.key,), 1.0, is_in_scope=True, scores=(1.0,))
        return await self._run(Plan((Part(pending["text"]),)), [offer.key], [ranking], pending["text"])

    async def _decided(self, text: str, plan: Plan, rankings: list[Ranking]) -> Reply[Any]:
        """Route what is clear; ask one question about the first part that is not; say what nothing serves."""
        keys: list[str] = []
        questions: dict[int, Reply[Any]] = {}
        for at, (part, ranking) in enumerate(zip(plan.parts, rankings, strict=True)):
            verdict = judge(ranking, self._settings.threshold)
            first = ranking.best[0] if ranking.best else ""
            if verdict is Verdict.ROUTE and at not in self._flows:
                keys.append(first)
                continue
            keys.append("")
            if at in self._flows:
                continue
            questions[at] = self._unclear(part.text, ranking, verdict, is_first=not questions)
        if len(plan.parts) == 1 and questions:
            self._keep()
            return questions[0]
        return await self._run(plan, keys, rankings, text, questions)

    def _unclear(self, text: str, ranking: Ranking, verdict: Verdict, *, is_first: bool) -> Reply[Any]:
        named = [key for key in (ranking.best if verdict is not Verdict.OFFER else close(ranking)) if key in self.offers]
        found = [self.offers[key] for key in named]
        if verdict is Verdict.DECLINE or not found:
            monitor.count(self._counts, monitor.NONE, Outcome.DECLINED)
            message = phrases.declined(text, found[:LABEL_NEAR])
            return Reply.failure(message, code=NO_INTENT)
        monitor.count(self._counts, named[0], Outcome.CLARIFIED)
        is_offer = verdict is Verdict.OFFER
        question = phrases.options(text, found) if is_offer else phrases.clarifying(text, found)
        if is_first:  # one question at a time; the answer to it is remembered for this text
            self._private["pending"] = {"kind": "choice", "text": text, "keys": named}
        offered = [{"label": offer.label, "agent": offer.route.target, "capability": offer.route.capability} for offer in found]
        return Reply.needs_input(question, data={"options": offered, "confidence": round(ranking.confidence, 4)})
