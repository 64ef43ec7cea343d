"""Workflows over HTTP: definitions as graphs, and runs: started, looked at event by event, answered, cancelled, forked."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType

from comity.core.reading.page import ROWS_DEFAULT, Limit
from comity.core.workflow.check import check_text
from comity.core.workflow.model import Definition, Kind
from comity.runtime.workflow.handle import RunHandle
from comity.runtime.workflow.store import RunRecord
from comity.runtime.workflow.watching import RunEvent
from comity.runtime.workflow.workflows import unknown_run
from comity.server.agent_calls import trace_of
from comity.server.auth import seen_tenant, session_of, tenant_of, user_of
from comity.server.problem import unknown
from comity.server.routes import Ask
from comity.server.sources import check_source
from comity.server.starting import check_run

EVENTS_MAX: Final = 20_000


class NodeView(Struct, frozen=True):
    """One node of a graph; `label` says what it does."""

    id: str
    kind: str
    label: str


class EdgeView(Struct, frozen=True):
    """One edge; `label` is its condition."""

    id: str
    source: str
    target: str
    label: str


class DefinitionView(Struct, frozen=True, kw_only=True):
    """A workflow as a graph, and its document."""

    name: str
    version: str
    description: str
    nodes: list[NodeView]
    edges: list[EdgeView]
    input_schema: dict[str, Any] | None
    document: dict[str, Any]


class Definitions(Struct, frozen=True):
    """The workflows that the node knows."""

    items: list[DefinitionView]
    next: str | None = None


class CheckBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A definition as YAML or JSON."""

    source: str


class Flaw(Struct, frozen=True):
    """A mistake, and where it stands."""

    line: int
    column: int
    path: str
    message: str


class CheckedDefinition(Struct, frozen=True):
    """Every mistake of a definition."""

    mistakes: list[Flaw]


class RunsQuery(Struct, frozen=True):
    """Which runs are wanted."""

    status: str | None = None
    workflow: str | None = None
    limit: Limit = ROWS_DEFAULT


class Runs(Struct, frozen=True):
    """Runs, newest first."""

    items: list[RunRecord]
    next: str | None = None


class RunView(Struct, frozen=True):
    """A run: how it stands, its graph, and everything that happened in order."""

    run: RunRecord
    definition: DefinitionView
    history: list[RunEvent]


class StartBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A run to be started."""

    input: Any = None
    user_id: str | None = None
    session_id: str | None = None
    run_id: str | None = None


class AnswerBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An answer to an open question of a run."""

    question_id: str
    answer: Any


class CancelBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Why a run is cancelled."""

    reason: str = ""


class ForkBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """From which event a new run goes on, and what is different in it: another input, other replies by activation."""

    at: int | None = None
    input: Any | UnsetType = UNSET
    replies: dict[str, dict[str, Any]] = {}


async def definitions(ask: Ask) -> Definitions:
    """Return the workflows that the node knows."""
    known = ask.state.node.workflows.definitions
    return Definitions([_definition(known[name]) for name in sorted(known)])


async def check(ask: Ask) -> CheckedDefinition:
    """Return every mistake of a definition, judged against the agents of the node; nothing is kept."""
    source, workflows = ask.body.source, ask.state.node.workflows
    check_source(source)
    catalog, known = workflows.catalog(), dict(workflows.definitions)
    found = await ask.state.aside.run(lambda: check_text(source, catalog, known))
    return CheckedDefinition([Flaw(one.line, one.column, one.path, one.message) for one in found])


async def start(ask: Ask) -> RunRecord:
    """Start a run."""
    handle = await started(ask, ask.body or StartBody())
    return handle.record


async def started(ask: Ask, body: StartBody) -> RunHandle:
    """Start a run of the workflow that a path names, for the sender."""
    name, workflows = ask.params["name"], ask.state.node.workflows
    if name not in workflows.definitions:
        raise unknown("workflow", name)
    check_run(ask.principal, workflows.definitions[name], workflows.definitions)
    session_id = session_of(ask.principal, body.session_id)
    options = {"session_id": session_id} if session_id else {}
    return await workflows.start(
        name,
        body.input,
        user_id=user_of(ask.principal, body.user_id),
        tenant_id=tenant_of(ask.principal, None),
        run_id=body.run_id,
        **trace_of(ask.heads),
        **options,
    )


async def find(ask: Ask) -> Runs:
    """Return runs of the sender's tenant."""
    query: RunsQuery = ask.query
    found = ask.state.node.workflows.list(
        status=query.status, workflow=query.workflow, tenant_id=seen_tenant(ask.principal), limit=query.limit
    )
    return Runs(found)


async def show(ask: Ask) -> RunView:
    """Return a run with its graph and its history."""
    record, workflows = run_of(ask), ask.state.node.workflows
    history: list[RunEvent] = []
    async with aclosing(workflows.past(record.run_id)) as past:
        async for one in past:
            history.append(one)
            if len(history) == EVENTS_MAX:
                break
    definition = workflows.store.program(record.definition).graph.definition
    return RunView(record, _definition(definition), history)


async def answer(ask: Ask) -> RunRecord:
    """Answer an open question of a run."""
    record, workflows = run_of(ask), ask.state.node.workflows
    by = ask.principal.user_id
    await workflows.answer(record.run_id, ask.body.question_id, ask.body.answer, by=by)
    return workflows.get(record.run_id)


async def cancel(ask: Ask) -> RunRecord:
    """Cancel a run: what runs is stopped, what was done is taken back."""
    record, workflows = run_of(ask), ask.state.node.workflows
    reason = ask.body.reason if ask.body is not None else ""
    await workflows.cancel(record.run_id, reason=reason, by=ask.principal.user_id)
    return workflows.get(record.run_id)


async def fork(ask: Ask) -> RunRecord:
    """Start a run of the sender that did the same as another of theirs until an event, and goes on from there."""
    record, body, workflows = run_of(ask), ask.body, ask.state.node.workflows
    check_run(ask.principal, workflows.store.program(record.definition).graph.definition, workflows.definitions)
    changed = {} if body.input is UNSET else {"input": body.input}
    user_id, by = user_of(ask.principal, record.user_id), ask.principal.user_id
    handle = await workflows.fork(record.run_id, at=body.at, replies=body.replies, user_id=user_id, by=by, **changed)
    return workflows.get(handle.run_id)


def run_of(ask: Ask) -> RunRecord:
    """Return the run that a path names, if it is of the sender's tenant."""
    run_id, tenant_id = ask.params["run_id"], seen_tenant(ask.principal)
    record = ask.state.node.workflows.get(run_id)
    if tenant_id not in {None, record.tenant_id}:
        raise unknown_run(run_id)
    return record


def _definition(one: Definition) -> DefinitionView:
    return DefinitionView(
        name=one.name,
        version=one.version,
        description=one.description,
        nodes=[NodeView(node.name, str(node.kind), _label(node)) for node in one.nodes.values()],
        edges=[EdgeView(edge.id, edge.source, edge.target, _condition(edge)) for edge in one.edges],
        input_schema=one.input_schema,
        document=one.document,
    )


def _label(node: Any) -> str:
    match node.kind:
        case Kind.CALL:
            return f"{node.call.agent} {node.call.capability}".strip()
        case Kind.RUN:
            return str(node.workflow)
        case Kind.ASK:
            return str(node.ask.text)[:80]
        case Kind.AGGREGATE:
            return str(node.aggregate.strategy)
    return str(node.kind)


def _condition(edge: Any) -> str:
    if edge.when:
        return str(edge.when)
    if edge.is_else:
        return "else"
    return "" if str(edge.on) == "success" else f"on {edge.on}"
