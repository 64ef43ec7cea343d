"""The parts of a request that are clear: their inputs, their calls or the run that does them, and the one reply."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from functools import partial, reduce
from itertools import islice
from operator import or_
from typing import Any, Final

from msgspec import to_builtins
from msgspec.structs import replace

from comity.agents.orchestrator import parts, phrases, presented
from comity.agents.orchestrator.catalogue import MESSAGE, Offer, intents, offers
from comity.agents.orchestrator.inputs import Filled, fill
from comity.agents.orchestrator.parts import PartsRun
from comity.agents.orchestrator.settings import Settings
from comity.agents.orchestrator.templates import may_act
from comity.core.agent.disclosure import spoken_of_part
from comity.core.call.limits import OBJECTIVE_CHARS_MAX
from comity.core.envelope.envelope import Background, Error, Reply, Status
from comity.core.envelope.reserved import VERDICTS
from comity.core.orchestration import monitor
from comity.core.orchestration.aggregate import SYNTHESISE, facts, synthesis_request
from comity.core.orchestration.intent import Classification, Ranking
from comity.core.orchestration.monitor import Outcome
from comity.core.orchestration.split import Part, Plan
from comity.core.session.session import is_first
from comity.core.units import NS_PER_MS
from comity.core.workflow.response import response_of
from comity.dialects.kdap_routing import TAKE_CONTEXT
from comity.errors import CallerError
from comity.runtime.call.context import Context
from comity.runtime.workflow.aggregation import aggregated
from comity.runtime.workflow.watching import RunEvent

NODE: Final = "part_"  # before the number of a part: the name of its node
STATED_MAX: Final = 200  # values that the user gave by name in one session; the oldest go


class Work:
    """The parts of one request to an orchestrator while they are done."""

    def __init__(self, settings: Settings, ctx: Context, given: dict[str, Any], *, is_again: bool) -> None:
        self._settings = settings
        self._ctx = ctx
        self._given = given
        self._is_again = is_again
        self.offers: dict[str, Offer] = offers(ctx._path.registry, settings.id, settings.can_call)  # noqa: SLF001  as models see their colleagues
        self._intents = [*intents(self.offers), *phrases.LOCAL]
        self._private: dict[str, Any] = ctx.session.private
        self._counts: monitor.Counts = ctx.state.setdefault("monitor", {})
        ctx.state.pop("lessons", None)  # earlier versions kept those of all users of a tenant here, out of reach of erasure
        self._flows: dict[int, str] = {}  # by part: the workflow whose trigger phrase it is
        self._run_id = ""  # of the run that does the parts of the request, if it has several

    def background(self) -> Background:
        """Return the context of the session, with what a handoff context brought into it."""
        base, taken = self._ctx.session.background(), self._private.get("taken", {})
        agents = dict.fromkeys([*taken.get("prior_agents", ()), *base.prior_agents])
        asked = taken.get("original_request") or base.original_request
        own = f"{self._settings.id}.{TAKE_CONTEXT}"  # the answer to a context is this context
        outputs = {name: value for name, value in base.prior_outputs.items() if name != own}
        return replace(base, original_request=asked, prior_agents=tuple(agents), prior_outputs=outputs)

    def classification(self, keys: list[str], rankings: list[Ranking]) -> Classification | None:
        """Return the classification of a request whose parts have these intents."""
        chosen = [(self.offers[key], one) for key, one in zip(keys, rankings, strict=True) if key in self.offers]
        if not chosen:
            return None
        first, rest = chosen[0], chosen[1:]
        return Classification(
            primary=first[0].intent,
            confidence=round(first[1].confidence, 4),
            route=first[0].route,
            secondary=tuple(offer.intent for offer, _ in rest),
            secondary_routes=tuple(offer.route for offer, _ in rest),
        )

    # --- doing the parts ---

    async def _run(
        self, plan: Plan, keys: list[str], rankings: list[Ranking], text: str, questions: dict[int, Reply[Any]] | None = None
    ) -> Reply[Any]:
        """Do every part that is clear and return one reply. Several parts that need specialists are a run of a workflow."""
        done: dict[int, Reply[Any]] = dict(questions or {})
        if len(plan.parts) > 1:
            self._ctx.progress({"plan": phrases.planned(plan)})
        work: list[int] = []
        later: list[int] = []  # workflows that wait for a part, and what waits for them
        for at, part in enumerate(plan.parts):  # each stands behind those it waits for
            if at in done:
                continue
            if at in self._flows and not part.after:
                done[at] = await self._run_of(self._flows[at], part.text, f"-{at + 1}")
                continue
            if at in self._flows or not set(parts.ancestors(plan, at)).isdisjoint(later):
                later.append(at)
                continue
            if any(one in done and not done[one].ok for one in part.after):
                done[at] = Reply.failure(parts.WAITS_FOR, code="DATA_MISSING_REQUIRED_INPUT")
            elif keys[at] not in self.offers:
                done[at] = self._locally(keys[at])
            elif set(parts.ancestors(plan, at)) <= done.keys() and (known := self._known(plan, at, keys[at], text, done)):
                done[at] = known
            else:
                work.append(at)
        for part, key, ranking in zip(plan.parts, keys, rankings, strict=True):
            if key in self.offers:
                self._private["last"] = {"text": part.text, "key": key, "confidence": round(ranking.confidence, 4)}
                break
        if len(work) == 1:
            done[work[0]] = await self._part(plan, work[0], keys[work[0]], text, done)
        elif work:
            await self._run_parts(plan, work, keys, rankings, text, done)
        for at in later:
            done[at] = await self._after(plan, at, keys[at], text, done)
        self._keep()
        return await self._combined(plan, keys, rankings, done)

    async def _after(self, plan: Plan, at: int, key: str, text: str, done: dict[int, Reply[Any]]) -> Reply[Any]:
        """Do a part behind those that it waits for: a workflow, or what waits for a workflow."""
        if not all(done[one].ok for one in plan.parts[at].after):
            return Reply.failure(parts.WAITS_FOR, code="DATA_MISSING_REQUIRED_INPUT")
        if at in self._flows:
            gave = [done[one].data for one in parts.ancestors(plan, at) if one in done]
            return await self._run_of(self._flows[at], plan.parts[at].text, f"-{at + 1}", gave)
        if key not in self.offers:
            return self._locally(key)
        return self._known(plan, at, key, text, done) or await self._part(plan, at, key, text, done)

    def _workflows(self) -> Any:
        made: Any = self._ctx._path.workflows  # noqa: SLF001  a run is started where the node starts runs
        return made()

    async def _run_of(self, name: str, text: str, suffix: str = "", gave: Sequence[Any] = ()) -> Reply[Any]:
        """Return the reply of a run of a workflow for a request or a part of it, or the first question that the run asks.

        The run's id follows from the request's, so that a request which is served again after a crash finds its run. A workflow
        that may act takes no value from agents: neither facts of the session, nor what the parts before it gave.
        """
        flows, request = self._workflows(), self._ctx.request
        takes = (flows.definitions[name].input_schema or {}).get("properties", {})
        noted: dict[str, Any] = {}
        if not may_act(flows.definitions[name], self.offers):
            noted = reduce(or_, (one for one in gave if isinstance(one, dict)), dict(self._ctx.session.facts))
        known = {**noted, **self._stated, "request": text, **self._given}
        given = {key: value for key, value in known.items() if key in takes}
        handle = await flows.start_below(request, name, given, parts.run_id_of(request.request_id) + suffix)
        async with aclosing(handle.events()) as events:
            async for event in events:
                self._ctx.progress({"workflow": name, "event": event.kind, "step": event.node})
                if event.kind == "asked":
                    asked = event.data
                    data = {"run_id": handle.run_id, "question_id": asked["question_id"], "options": asked["options"]}
                    return Reply.needs_input(str(asked["text"]), data=data)
        reply: Reply[Any] = self._ctx._call.given(await handle.result())  # noqa: SLF001  as of a call below this one
        return reply

    async def _run_parts(
        self, plan: Plan, work: list[int], keys: list[str], rankings: list[Ranking], text: str, done: dict[int, Reply[Any]]
    ) -> None:
        """Run parts as a workflow. Each gets what those before it gave, in this run or already."""
        nodes = []
        given: dict[str, Any] = {}
        for at in work:
            before = parts.ancestors(plan, at)
            running = [one for one in before if one in work]
            waits = tuple(_node(one) for one in plan.parts[at].after if one in work)
            nodes.append((_node(at), waits, tuple(map(_node, running))))
            number = _stage(plan, at)
            agents = [self.offers[keys[one]].route.target for one in before if keys[one] in self.offers]
            given[_node(at)] = {
                "key": keys[at],
                "text": plan.parts[at].text,
                "position": f"Step {number} of {len(plan.stages)} ({plan.parts[at].text[:80]})",
                "agents": agents,
                "asked": {_node(one): plan.parts[one].text for one in before},
                "results": {_node(one): done[one].data for one in before if one in done and done[one].ok},
            }
        session, base = self._ctx.session, self.background()
        context = replace(
            base, original_request=text, prior_agents=tuple(dict.fromkeys([self._settings.id, *base.prior_agents]))
        )
        self._keep()
        run = PartsRun(self._settings, self._ctx)
        known = parts.known_of(self._given, self._stated, session.facts, session.constraints, context)
        await run.start(tuple(nodes), given, known, partial(self._heard, plan, keys))
        self._take_in(run, plan, work, keys, rankings, text, done, {})

    def _heard(self, plan: Plan, keys: list[str], event: RunEvent) -> None:
        """Show where the work is when a part begins."""
        if event.kind != "scheduled" or not event.node.startswith(NODE):
            return
        at, steps = int(event.node.removeprefix(NODE)) - 1, len(plan.stages)
        number, offer = _stage(plan, at), self.offers[keys[at]]
        self._ctx.session.place(f"Step {number} of {steps}", step=number, steps=steps)
        self._ctx.progress({"step": number, "of": steps, "doing": offer.doing or f"Now: {offer.label}"})

    def _take_in(
        self,
        run: PartsRun,
        plan: Plan,
        work: list[int],
        keys: list[str],
        rankings: list[Ranking],
        text: str,
        done: dict[int, Reply[Any]],
        told: dict[str, Any],
    ) -> None:
        """Note what the parts of a run gave, and the question that it waits for. `told` are inputs that answers gave so far."""
        self._run_id = run.run_id
        asked = {one.node: one for one in run.questions}
        for at in work:
            key, view = keys[at], run.views.get(_node(at))
            question = asked.get(_node(at))
            if question is not None:
                done[at] = Reply.needs_input(question.text, data=(view or {}).get("data"))
            elif view is None:
                done[at] = Reply.failure(parts.WAITS_FOR, code="DATA_MISSING_REQUIRED_INPUT")
            else:
                done[at] = parts.view_reply(view, self.offers[key].route.target)
                self._count(key, done[at])
                inputs = self._inputs(plan, at, key, done).inputs
                shown = self._private.setdefault("presented", {})
                presented.note(
                    shown,
                    presented.key_of(self.offers[key], inputs, plan.parts[at].text),
                    self.offers[key],
                    done[at],
                    self._now_ms(),
                )
        if run.questions:
            at = int(run.questions[0].node.removeprefix(NODE)) - 1
            self._private["pending"] = {
                "kind": "run",
                "run_id": run.run_id,
                "question_id": run.questions[0].question_id,
                "node": run.questions[0].node,
                # Without missing inputs the question is the specialist's own.
                "asked": self._inputs(plan, at, keys[at], done).asked_for,
                "told": told,
                "text": text,
                "parts": [[part.text, list(part.after)] for part in plan.parts],
                "keys": keys,
                "confidences": [one.confidence for one in rankings],
                "done": {str(at): response_of(reply) for at, reply in done.items() if at not in work},
            }

    async def _resumed(self, text: str, pending: dict[str, Any]) -> Reply[Any] | None:
        """Return the reply to a request whose run waited for an answer, if this is the answer."""
        keys: list[str] = pending["keys"]
        plan = Plan(tuple(Part(said, tuple(after)) for said, after in pending["parts"]))
        if any(key and key not in self.offers and key not in phrases.LOCAL_NAMES for key in keys):
            return None
        at = int(pending["node"].removeprefix(NODE)) - 1
        done = {int(one): parts.view_reply(view, "") for one, view in pending["done"].items()}
        rankings = [
            Ranking((key,), sure, is_in_scope=True, scores=(sure,))
            for key, sure in zip(keys, pending["confidences"], strict=True)
        ]
        asked, before = pending.get("asked", {}), pending.get("told", {})
        was_refused = bool(pending.get("is_refused"))
        offered = {} if was_refused else {name: (value, "") for name, value in asked.get("offered", {}).items()}
        is_refused = was_refused or (bool(offered) and phrases.is_no(text))
        filled = Filled({}, asked.get("missing", []), offered)
        given = {name: value for name, value in self._given.items() if name in filled.lacking}
        told = given or parts.answered(self.offers[keys[at]], filled, text)
        if filled.lacking and not told and (was_refused or not is_refused):
            return None  # no value for what is missing: a request of its own
        answer: Any = given or text
        if before or was_refused:
            answer = {parts.TOLD: before, parts.REFUSED: was_refused, "answer": answer}
        run = PartsRun(self._settings, self._ctx)
        try:
            await run.answer(pending["run_id"], pending["question_id"], answer, partial(self._heard, plan, keys))
        except CallerError:
            return None  # it was answered elsewhere, or cancelled
        told = before | told
        self._given = told | self._given
        work = [one for one in range(len(plan.parts)) if one not in done]
        is_same_part = any(one.node == pending["node"] for one in run.questions[:1])
        self._take_in(run, plan, work, keys, rankings, pending["text"], done, told if is_same_part else {})
        if is_refused and is_same_part:
            self._private["pending"]["is_refused"] = True
        self._keep()
        return await self._combined(plan, keys, rankings, done)

    @property
    def _stated(self) -> dict[str, Any]:
        """What the user said by name in this session; kept where no other agent can write."""
        found: dict[str, Any] = self._private.get("stated", {})
        return found

    def _state(self, told: dict[str, Any]) -> None:
        """Note values in the session, of many the last; as the user's own only if this request is the user's and no agent's."""
        told = dict(islice(told.items(), max(len(told) - STATED_MAX, 0), None))
        if not told:
            return
        for name, value in told.items():
            self._ctx.session.learn(name, value)
        if is_first(self._ctx.request):
            kept = {name: value for name, value in self._stated.items() if name not in told} | told
            self._private["stated"] = dict(islice(kept.items(), max(len(kept) - STATED_MAX, 0), None))
            self._keep()

    def _inputs(self, plan: Plan, at: int, key: str, done: dict[int, Reply[Any]]) -> Filled:
        """Return the inputs of a part, and the required ones that are not known."""
        session = self._ctx.session
        before = [one for one in parts.ancestors(plan, at) if one in done]
        gave = [(plan.parts[one].text, done[one].data) for one in reversed(before)]
        sources = parts.sources_of(self._given, self._stated, session.constraints, gave, session.facts)
        return fill(self.offers[key], plan.parts[at].text, sources)

    def _known(self, plan: Plan, at: int, key: str, text: str, done: dict[int, Reply[Any]]) -> Reply[Any] | None:
        """Return the answer to a part that needs no call: the question for what is missing, or what was presented before."""
        offer, part = self.offers[key], plan.parts[at]
        filled = self._inputs(plan, at, key, done)
        if filled.lacking:
            pending = {"kind": "inputs", "key": key, "text": part.text, **filled.asked_for}
            self._private.setdefault("pending", pending)
            return parts.question(offer, filled)
        shown: dict[str, Any] = self._private.setdefault("presented", {})
        now_ms = self._now_ms()
        entry = presented.remembered(shown, presented.key_of(offer, filled.inputs, part.text), now_ms, self._settings.fresh_ms)
        if entry is None or self._is_again or phrases.wants_again(text):
            return None
        monitor.count(self._counts, key, Outcome.REPEATED)
        minutes = (now_ms - int(entry["at"])) // 60_000
        reply = presented.reply_of(entry, phrases.referred(offer, minutes))
        return reply if len(plan.parts) == 1 else replace(reply, message=phrases.recalled(facts(reply.data), minutes))

    async def _part(self, plan: Plan, at: int, key: str, text: str, done: dict[int, Reply[Any]]) -> Reply[Any]:
        """Call the specialist of the only part that needs one."""
        offer, part = self.offers[key], plan.parts[at]
        number, steps = _stage(plan, at), len(plan.stages)
        self._ctx.session.place(f"Step {number} of {steps}", step=number, steps=steps)
        self._ctx.progress({"step": number, "of": steps, "doing": offer.doing or f"Now: {offer.label}"})
        inputs = self._inputs(plan, at, key, done).inputs
        now_ms = self._now_ms()
        reply = await self._ctx.call(
            offer.route.target,
            offer.route.capability,
            inputs,
            message=part.text if offer.route.capability == MESSAGE else "",
            objective=part.text[:OBJECTIVE_CHARS_MAX],
            context=self._context(plan, at, number, text, done, parts.ancestors(plan, at)),
            history="full",
        )
        self._count(key, reply)
        presented.note(
            self._private.setdefault("presented", {}), presented.key_of(offer, inputs, part.text), offer, reply, now_ms
        )
        return reply

    def _count(self, key: str, reply: Reply[Any]) -> None:
        monitor.count(self._counts, key, Outcome.ROUTED)
        if reply.status is Status.REFUSED:
            monitor.count(self._counts, key, Outcome.REFUSED)
        elif not reply.ok and reply.status is not Status.NEEDS_INPUT:
            monitor.count(self._counts, key, Outcome.FAILED)

    def _now_ms(self) -> int:
        return self._ctx.clock.now_ns() // NS_PER_MS

    def _context(
        self, plan: Plan, at: int, number: int, text: str, done: dict[int, Reply[Any]], before: list[int]
    ) -> Background:
        """Return what the next agent must know: the user's own words, what was done, by which agents, and where the work is."""
        base = self.background()
        position = f"Step {number} of {len(plan.stages)} ({plan.parts[at].text[:80]})"
        outputs = {f"part_{one + 1}": done[one].data for one in before if done[one].ok}
        called = (done[one].source for one in before if done[one].source)
        agents = dict.fromkeys([self._settings.id, *base.prior_agents, *called])
        return replace(
            base,
            original_request=text,
            workflow_position=position,
            prior_agents=tuple(agents),
            prior_outputs={**base.prior_outputs, **outputs},
        )

    def _locally(self, key: str) -> Reply[Any]:
        """Answer what needs no specialist."""
        if key == phrases.HELP.name:
            return Reply.success(
                {"abilities": [one.label for one in self.offers.values()]},
                message=phrases.abilities(list(self.offers.values())),
            )
        if key == phrases.STATUS.name:
            position = self._ctx.session.background().workflow_position
            return Reply.success(
                {"position": position}, message=f"We are at: {position}." if position else "Nothing is under way."
            )
        return Reply.success({}, message="You are welcome. What can I do for you?")

    # --- the reply ---

    async def _combined(self, plan: Plan, keys: list[str], rankings: list[Ranking], done: dict[int, Reply[Any]]) -> Reply[Any]:
        names = _names([self.offers[key].intent if key in self.offers else "answer" for key in keys])
        asked = [phrases.quoted(part.text) for part in plan.parts]
        labels = [self.offers[key].label if key in self.offers else asked[at] for at, key in enumerate(keys)]
        titles = dict(zip(names, labels, strict=True))
        if len(plan.parts) == 1 and not done[0].ok:
            return as_own(done[0])
        views = [(name, response_of(done[at])) for at, name in enumerate(names)]
        options = {"titles": titles, **self._settings.options}
        strategy = "first" if len(plan.parts) == 1 else self._settings.strategy
        reply = await aggregated(strategy, views, options, self._settings.custom)
        if reply.ok and strategy == SYNTHESISE and self._settings.synthesiser:
            written = await self._ctx.call(self._settings.synthesiser, MESSAGE, message=synthesis_request(reply))
            reply = replace(reply, message=written.message) if written.ok and written.message else reply
        if len(plan.parts) == 1:
            reply = replace(reply, message=done[0].message or reply.message, metadata=done[0].metadata)
        return self._with_classification(reply, plan, keys, rankings)

    def _with_classification(self, reply: Reply[Any], plan: Plan, keys: list[str], rankings: list[Ranking]) -> Reply[Any]:
        found = self.classification(keys, rankings)
        if not isinstance(reply.data, dict) or found is None:
            return reply
        extra: dict[str, Any] = {"classification": shown(found)}
        if len(plan.parts) > 1:
            extra["plan"] = [{"text": part.text, "after": list(part.after)} for part in plan.parts]
        if self._run_id:
            extra["run_id"] = self._run_id
        return replace(reply, data={**reply.data, **extra})

    def _keep(self) -> None:
        self._ctx.session.keep(self._private)


def shown(found: Classification) -> dict[str, Any]:
    """Return a classification as data."""
    return {name: value for name, value in to_builtins(found).items() if name != "marks"}


def _node(at: int) -> str:
    return f"{NODE}{at + 1}"


def _stage(plan: Plan, at: int) -> int:
    """Return the number of the stage that a part belongs to, from 1."""
    return next(number for number, stage in enumerate(plan.stages, 1) if at in stage)


def _names(wanted: list[str]) -> list[str]:
    """Return names that differ from each other."""
    found: list[str] = []
    for name in wanted:
        count = sum(one == name or one.startswith(f"{name}_") for one in found)
        found.append(f"{name}_{count + 1}" if name in found else name)
    return found


def as_own(reply: Reply[Any]) -> Reply[Any]:
    """Return the reply of the only part as this agent's own; a user reads no exception in it, and no name of an agent."""
    if reply.status is Status.NEEDS_INPUT:
        return Reply.needs_input(reply.message, data=reply.data)
    error = reply.error or Error.of("TARGET_FAILED", reply.message)
    told = spoken_of_part(error, reply.message, is_verdict=reply.status in VERDICTS)
    return replace(Reply.failure(error.message, code=error.code, retryable=error.retryable), message=told)
