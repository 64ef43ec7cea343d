"""What people want of agents, over HTTP: read, tried out, put in force, and its questions answered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final

import yaml
from msgspec import Meta, Struct

from comity.core.agent import effects
from comity.core.guidance import guidance as rules
from comity.core.guidance.guidance import Answer, Guidance, Severity
from comity.errors import CallerError
from comity.runtime.guidance.guidance import LiveGuidance
from comity.server.problem import unknown
from comity.server.routes import Ask
from comity.server.sources import check_source

CONCERNS_MAX: Final = 5_000
_SEVERITIES: Final = [one.value for one in Severity]


class GuidanceView(Struct, frozen=True):
    """Guidance in force. `source` is the same as YAML; `failure` says why a newer document has not taken force."""

    document: dict[str, Any]
    source: str
    writable: bool
    failure: str


class GuidanceBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Guidance as YAML or JSON: a ProjectContext, or its `agentGuidance` alone."""

    source: str


class Concerned(Struct, frozen=True):
    """A capability or tool that a constraint concerns; `always`, or only where its inputs touch the scope."""

    agent: str
    capability: str
    constraint: str
    severity: str
    scope: str
    always: bool


class Preview(Struct, frozen=True):
    """What a constraint of the tried guidance would concern, blocking ones first; `more` counts those that are left out."""

    document: dict[str, Any]
    concerns: list[Concerned]
    more: int = 0


class AnswerBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An answer to a question."""

    answer: str
    confidence: Annotated[float, Meta(ge=0, le=1)] = 1.0


async def show(ask: Ask) -> GuidanceView:
    """Return the guidance in force; an empty one where the node has none."""
    live = ask.state.node.guidance
    if live is None:
        return GuidanceView({}, "", writable=False, failure="")
    return await ask.state.aside.run(lambda: _view(live))


async def preview(ask: Ask) -> Preview:
    """Return which capabilities and tools the constraints of a document would concern; nothing changes."""
    source, node = ask.body.source, ask.state.node
    check_source(source)
    actions = [(agent.id, one.code, one.touching) for agent in node.registry for one in agent.capabilities.values()]
    actions += [("(tool)", tool.name, effects.declare(tool.touches, tool.function)) for tool in node.tools]

    def judge() -> Preview:
        given = read(source)
        concerns = sorted(_concerned(actions, given), key=lambda one: (_SEVERITIES.index(one.severity), one.agent))
        return Preview(_document(given), concerns[:CONCERNS_MAX], max(0, len(concerns) - CONCERNS_MAX))

    return await ask.state.aside.run(judge)


async def put(ask: Ask) -> GuidanceView:
    """Put a document in force, in place of the one before."""
    live = ask.state.node.guidance
    if live is None or not live.is_writable:
        raise CallerError(
            "this node's guidance cannot be written here: serve it with a guidance file", code="HTTP_RESOURCE_UNKNOWN"
        )
    source = ask.body.source
    check_source(source)

    def write() -> GuidanceView:
        live.replace(read(source))
        return _view(live)

    return await ask.state.aside.run(write)


async def answer(ask: Ask) -> GuidanceView:
    """Add a person's answer to a question."""
    live, question_id = ask.state.node.guidance, ask.params["question_id"]
    if live is None or not any(one.id == question_id for one in live.current.questions):
        raise unknown("question", question_id)
    told = Answer(
        agent_id=ask.principal.user_id, answer=ask.body.answer, confidence=ask.body.confidence, answered_at=ask.state.now_ms()
    )

    def write() -> GuidanceView:
        live.answer(question_id, told)
        live.refresh()
        return _view(live)

    return await ask.state.aside.run(write)


def read(source: str) -> Guidance:
    """Return the guidance of a text. Raises `CallerError` with the place of everything that is wrong with it."""
    try:
        document = yaml.safe_load(source)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise CallerError(f"source is not YAML: {error}") from None
    if document is None:
        document = {}
    if isinstance(document, dict) and "spec" not in document:
        document = {"spec": {"agentGuidance": document}}
    found, problems = rules.parse(document)
    if problems:
        what = "; ".join(f"{one.path} {one.message}" for one in problems[:5])
        raise CallerError(f"the guidance has problems: {what}", problems=problems)
    return found


def _view(live: LiveGuidance) -> GuidanceView:
    document = _document(live.current)
    source = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100) if document else ""
    return GuidanceView(document, source, live.is_writable, live.failure)


def _document(current: Guidance) -> dict[str, Any]:
    return dict(rules.to_document(current)["spec"]["agentGuidance"])


def _concerned(actions: Iterable[tuple[str, str, effects.Touching | None]], given: Guidance) -> Iterator[Concerned]:
    for agent, code, touching in actions:
        if touching is None:
            continue
        certain = {found.constraint.id for found in rules.findings(given, touching.fixed)}
        depends = bool(touching.fields or touching.function)
        for one in given.constraints:
            if one.id in certain or depends:
                yield Concerned(agent, code, one.id, one.severity.value, one.scope or "**", one.id in certain)
