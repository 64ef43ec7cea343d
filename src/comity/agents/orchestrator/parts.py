"""Requests of several parts as a run of a workflow: one node for each part, which waits for the parts whose results it needs.

A node calls `ORC_PART`, which the run binds to the capability that serves the part: its inputs depend on what the parts before
it gave. So each step is a call of the specialist itself, below the run.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import re
from collections.abc import Iterable
from contextlib import aclosing
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from msgspec import convert, json, to_builtins
from msgspec.structs import replace

from comity.agents.orchestrator import phrases
from comity.agents.orchestrator.catalogue import MESSAGE, Offer, offers
from comity.agents.orchestrator.inputs import Filled, Gave, Sources, fill, value_of
from comity.agents.orchestrator.settings import Settings
from comity.core.agent.registry import Registry
from comity.core.call.limits import OBJECTIVE_CHARS_MAX
from comity.core.call.machine import SETTLED
from comity.core.envelope.envelope import Background, Error, Reply, Status
from comity.core.envelope.request_id import OWN
from comity.core.orchestration.split import Plan
from comity.core.workflow.model import Definition
from comity.core.workflow.read import definition_of
from comity.runtime.call.context import Context
from comity.runtime.call.draft import Draft

if TYPE_CHECKING:
    from comity.runtime.workflow.handle import RunHandle
    from comity.runtime.workflow.store import Question, RunRecord
    from comity.runtime.workflow.watching import RunEvent

PART: Final = "ORC_PART"
TOLD: Final = "comity.told"  # beside an answer: the inputs that earlier answers to questions about the same part gave
REFUSED: Final = "comity.refused"  # beside an answer: whether the user has refused the values that agents gave for this part
DONE: Final = "all_parts"  # the node that waits for every part, however each ended
LOOK_S: Final = 0.05  # how often the store is read for a run that another process holds
WAITS_FOR: Final = "What it builds on is not there."
_Nodes = tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]  # name, parts it waits for, parts whose results it may use


def run_id_of(request_id: str) -> str:
    """Return the id of the run that serves a request, the same one when the request is served again after a crash."""
    plain = re.sub(r"[.#]", "-", request_id)  # which number what is below a call, and so may be in no id that is chosen
    name = f"{OWN}run-{plain}"
    return name if plain == request_id else f"{name}-{hashlib.sha256(request_id.encode()).hexdigest()[:12]}"


def ancestors(plan: Plan, at: int) -> list[int]:
    """Return the parts that a part builds on, directly or through other parts, in order."""
    found: set[int] = set()
    open_parts = list(plan.parts[at].after)
    while open_parts:
        one = open_parts.pop()
        if one not in found:
            found.add(one)
            open_parts += plan.parts[one].after
    return sorted(found)


@lru_cache(maxsize=256)
def definition(orchestrator: str, nodes: _Nodes, calls_max: int, tokens_max: int | None) -> Definition:
    """Return the workflow of a plan. It has no word of the user's: they are the input of its runs."""
    made: dict[str, Any] = {}
    for name, after, before in nodes:
        given = {
            "part": f"{{{{input.parts.{name}}}}}",
            "known": "{{input.known}}",
            "earlier": {one: f"{{{{{one}.data}}}}" for one in before},
        }
        made[name] = {"call": f"{orchestrator}/{PART}", "input": given, **({"after": list(after)} if after else {})}
    limits = {"calls_max": max(calls_max, 1), **({} if tokens_max is None else {"tokens_max": max(tokens_max, 1)})}
    edges = [{"from": name, "to": DONE, "on": "always"} for name, _, _ in nodes]
    document = {
        "workflow": f"{orchestrator}-request",
        "limits": limits,
        "nodes": {**made, DONE: {"join": "all"}},
        "edges": edges,
    }
    return definition_of(document)


def bound(settings: Settings, registry: Registry, given: dict[str, Any]) -> Draft | Reply[Any]:
    """Return the call that serves a part, or the question for an input that is not known."""
    part, known, earlier = given["part"], given["known"], {**given["part"]["results"], **(given.get("earlier") or {})}
    offer = offers(registry, settings.id, settings.can_call).get(part["key"])
    if offer is None:
        return Reply.failure(f"{part['key']} is not offered any more", code="ROUTING_UNKNOWN_CAPABILITY")
    asked = part.get("asked", {})
    gave = [(asked.get(name, ""), data) for name, data in reversed(earlier.items())]
    sources = sources_of(known["given"], known.get("stated", {}), known["constraints"], gave, known["facts"])
    answer, told, is_refused = given.get("answer"), {}, False
    if isinstance(answer, dict) and TOLD in answer:
        sources = dataclasses.replace(sources, given={**sources.given, **answer[TOLD]})
        answer, is_refused = answer["answer"], bool(answer.get(REFUSED))
    filled = fill(offer, part["text"], sources)
    filled = dataclasses.replace(filled, doubted={}) if is_refused else filled
    if filled.lacking and answer is not None:
        told = answered(offer, filled, answer)
        filled = fill(offer, part["text"], dataclasses.replace(sources, given={**sources.given, **told}))
    if filled.lacking:
        is_refused = is_refused or (isinstance(answer, str) and phrases.is_no(answer))
        return question(offer, dataclasses.replace(filled, doubted={}) if is_refused else filled)
    inputs = filled.inputs
    words = part["text"] if offer.route.capability == MESSAGE else ""
    if answer is not None and not told:  # the specialist asked
        words = answer if isinstance(answer, str) else json.encode(answer).decode()
        inputs |= {"answer": answer} if "answer" in offer.inputs.get("properties", {}) else {}
    background = convert(known["context"], Background)
    context = replace(
        background,
        workflow_position=part["position"],
        prior_agents=tuple(dict.fromkeys([*background.prior_agents, *part["agents"]])),
        prior_outputs={**background.prior_outputs, **earlier},
    )
    objective = part["text"][:OBJECTIVE_CHARS_MAX]
    return Draft(offer.route.target, offer.route.capability, inputs, objective, words, None, None, context, None, "full")


def sources_of(
    given: dict[str, Any],
    stated: dict[str, Any],
    constraints: dict[str, Any],
    gave: Iterable[tuple[str, Any]],
    facts: dict[str, Any],
) -> Sources:
    """Return the sources of a part's inputs; `gave` has the words and data of the parts before it, the last one first."""
    earlier = [Gave(asked, data) for asked, data in gave if isinstance(data, dict)]
    return Sources(given, stated, [Gave("", constraints), *earlier, Gave("", facts)])


def question(offer: Offer, filled: Filled) -> Reply[Any]:
    """Return the question for inputs that are not known, or that only an agent gave for a capability with effects."""
    text = phrases.doubted(offer, filled.doubted) if filled.doubted else phrases.missing(offer, filled.lacking, filled.unfit)
    return Reply.needs_input(text, data=filled.asked_for)


def answered(offer: Offer, filled: Filled, answer: Any) -> dict[str, Any]:
    """Return the inputs that an answer gives: those offered, if it is yes; the only missing input; or several by name."""
    lacking = filled.lacking
    if isinstance(answer, dict):
        return {name: answer[name] for name in lacking if name in answer}
    if filled.offered and (answer is True or (isinstance(answer, str) and phrases.is_yes(answer))):
        return filled.offered
    if len(lacking) != 1:
        return {}
    schema = offer.inputs.get("properties", {}).get(lacking[0], {})
    if isinstance(answer, str) and (
        phrases.begins_as_answer(answer)
        if filled.offered
        else offer.has_effects and "enum" not in schema and (phrases.is_yes(answer) or phrases.is_no(answer))
    ):
        return {}  # money goes to no account called "yes"
    value = value_of(answer, schema) if isinstance(answer, str) else answer
    return {} if value is None else {lacking[0]: value}


class PartsRun:
    """The run of a request's parts, and what came of each by name."""

    def __init__(self, settings: Settings, ctx: Context) -> None:
        made: Any = ctx._path.workflows  # noqa: SLF001  a run is started where the node starts runs
        self._flows = made()
        self._settings = settings
        self._ctx = ctx
        self.run_id = ""
        self.views: dict[str, dict[str, Any]] = {}  # of the parts that have ended: their replies as conditions see them
        self.questions: tuple[Question, ...] = ()  # that the run waits for

    async def start(self, nodes: _Nodes, parts: dict[str, Any], known: dict[str, Any], on_event: Any) -> None:
        """Start the run, or find it again after a crash, and follow it until it has ended or waits for an answer.

        `on_event` is called with every event of the run.
        """
        request, left = self._ctx.request, self._ctx.limits
        flow = definition(self._settings.id, nodes, left.calls_max, left.tokens_max)
        run_id = run_id_of(request.request_id)
        given = {"parts": parts, "known": known}
        await self._follow(await self._flows.start_below(request, flow, given, run_id), on_event)

    async def answer(self, run_id: str, question_id: str, answer: Any, on_event: Any) -> None:
        """Answer a question that the run waits for, and follow it on. Raises `CallerError` for a question that is not open."""
        handle = self._flows.handle(run_id)
        await handle.answer(question_id, answer, by=self._ctx.request.user_id)
        while not self._flows.has(run_id) and not _is_past(handle.record, question_id):  # noqa: ASYNC110  another process holds it
            await asyncio.sleep(LOOK_S)
        await self._follow(handle, on_event)

    async def _follow(self, handle: RunHandle, on_event: Any) -> None:
        self.run_id, self.questions = handle.run_id, ()
        try:
            async with aclosing(handle.events()) as events:
                async for event in events:
                    on_event(event)
                    self._note(event)
                    record = handle.record
                    # The run may be ahead of its events: what its parts gave is known once the last event was read.
                    if record.questions and record.status == "waiting" and event.number + 1 >= record.events:
                        self.questions = record.questions
                        return
            usage = (await handle.result()).usage
        except asyncio.CancelledError:
            if self._ctx._call.state is SETTLED:  # noqa: SLF001  cancelled or out of time, not put aside
                self._flows.withdraw(handle.run_id, "the request it serves has ended")
            raise
        self._ctx._path.charge(self._ctx._call, usage)  # noqa: SLF001  the run's are the request's

    def _note(self, event: RunEvent) -> None:
        if event.kind == "settled" and isinstance(event.data, dict):
            self.views[event.node] = event.data


def _is_past(record: RunRecord, question_id: str) -> bool:
    """Return whether a run has taken the answer to a question, and has ended or waits for something else."""
    is_asked = any(one.question_id == question_id for one in record.questions)
    return record.status.has_ended or (record.status == "waiting" and not is_asked)


def view_reply(view: dict[str, Any], source: str) -> Reply[Any]:
    """Return what a part gave as a reply."""
    status, message = view["status"], str(view.get("message", ""))
    if status == "clarification_needed":
        return Reply.needs_input(message, data=view.get("data"))
    error = view.get("error")
    if error is not None or status not in {"success", "partial", "completed"}:
        error = error or {"code": "TARGET_FAILED", "message": message}
        made: Reply[Any] = Reply(
            status=Status(view.get("outcome", Status.ERROR)),
            error=Error.of(error["code"], error["message"], retryable=bool(error.get("retryable"))),
            message=message or error["message"],
            data=view.get("data"),
        )
    elif status == "partial":
        made = Reply.partial(
            view.get("data"),
            warnings=view.get("warnings") or ["a part of the result is missing"],
            confidence=view.get("confidence", 1.0),
            message=message,
        )
    else:
        made = Reply.success(view.get("data"), confidence=view.get("confidence", 1.0), message=message)
    return replace(made, source=source)


def known_of(
    given: dict[str, Any], stated: dict[str, Any], facts: Any, constraints: Any, context: Background
) -> dict[str, Any]:
    """Return what every part may draw its inputs and its context from, as the input of a run has it."""
    found: dict[str, Any] = to_builtins(
        {"given": given, "stated": stated, "facts": dict(facts), "constraints": dict(constraints), "context": context}
    )
    return found
