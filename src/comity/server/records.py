"""Calls as people look at them: lists, one call with its reply, a whole tree, counts over time, and who calls whom."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import Meta, Struct
from msgspec.structs import asdict

from comity.core.call.limits import Limits
from comity.core.envelope.envelope import Reply
from comity.core.journal.audit import Row
from comity.core.journal.records import StoredCall
from comity.core.reading import AuditFilter, Bucket, CallFilter, CallRow, Edge, Page
from comity.core.reading.page import ROWS_DEFAULT, Limit
from comity.errors import CODES
from comity.ports.reader import Reader
from comity.server.auth import seen_tenant
from comity.server.problem import unknown
from comity.server.routes import Ask

TREE_MAX: Final = 20_000
PAUSES_MAX: Final = 500


NAMES: Final = {
    "user_id": "user",
    "session_id": "session",
    "duration_ms_min": "min_ms",
    "tokens_min": "min_tokens",
    "cost_min": "min_cost",
}


class CallsQuery(Struct, frozen=True, rename=NAMES):
    """Which calls are wanted; several statuses are separated by commas, a code may end in `*`, times are epoch ms."""

    status: str | None = None
    agent: str | None = None
    capability: str | None = None
    user_id: str | None = None
    session_id: str | None = None
    code: str | None = None
    since: int | None = None
    until: int | None = None
    duration_ms_min: float | None = None
    tokens_min: int | None = None
    cost_min: float | None = None
    q: str | None = None
    roots: bool = False
    limit: Limit = ROWS_DEFAULT
    cursor: str | None = None


class TimesQuery(CallsQuery, frozen=True):
    """The same calls, counted in as many spans of equal length."""

    buckets: Annotated[int, Meta(ge=1, le=500)] = 80


class Times(Struct, frozen=True):
    """Counts by status over time; of the newest calls alone while `is_whole` is false, since an index is being made."""

    since: int
    until: int
    buckets: list[Bucket]
    is_whole: bool = True


class CallView(Struct, frozen=True, kw_only=True):
    """One call: its row, what was asked while it is open, its reply once it has ended, and its chain as the audit has it.

    `notes` say what was hidden from the callee, what guardrails did and which constraints warned, in the order of the audit.
    """

    row: CallRow
    reply: Reply | None
    request: dict[str, Any] | None
    deadline_at: int | None
    chain: list[str]
    advice: str
    notes: list[str]


class Wait(Struct, frozen=True):
    """A time during which a call waited for a person."""

    request_id: str
    since: int
    until: int | None


class TreeView(Struct, frozen=True):
    """A call and everything below it. `limits` are the root's own while it is open, else those of the node."""

    items: list[CallRow]
    limits: Limits
    limits_of: str
    deadline_at: int | None
    waits: list[Wait]
    next: str | None = None


class MapQuery(Struct, frozen=True):
    """Since when calls are counted, in epoch milliseconds."""

    since: int = 0


class MapAgent(Struct, frozen=True, kw_only=True):
    """An agent on the map."""

    id: str
    description: str
    running: int
    queued: int
    concurrency: int
    pending_max: int
    status: str
    breakers: dict[str, str]
    calls: int
    failed: int
    refused: int


class Map(Struct, frozen=True):
    """Who calls whom, and how each agent stands; `refusals` counts codes among the newest refused calls.

    Counts are of fewer calls while `is_whole` is false, since an index is being made.
    """

    agents: list[MapAgent]
    edges: list[Edge]
    refusals: dict[str, int]
    is_whole: bool = True


def filter_of(ask: Ask, query: CallsQuery) -> CallFilter:
    """Return what a query asks for, within the tenant of the sender."""
    return CallFilter(
        status=query.status,
        agent=query.agent,
        capability=query.capability,
        user_id=query.user_id,
        tenant_id=seen_tenant(ask.principal),
        session_id=query.session_id,
        code=query.code,
        since=query.since,
        until=query.until,
        duration_ms_min=query.duration_ms_min,
        tokens_min=query.tokens_min,
        cost_min=query.cost_min,
        text=query.q,
        roots_only=query.roots,
    )


async def find(ask: Ask) -> Page[CallRow]:
    """Return a page of calls, newest first."""
    query: CallsQuery = ask.query
    wanted = filter_of(ask, query)
    return await ask.state.reading.ask(lambda reader: reader.calls_page(wanted, query.cursor, query.limit))


async def times(ask: Ask) -> Times:
    """Return how many calls of each status began when; without a range, over the time of the newest calls."""
    query: TimesQuery = ask.query
    wanted, now_ms = filter_of(ask, query), ask.state.now_ms()

    def count(reader: Reader) -> Times:
        until = query.until or now_ms
        buckets = reader.histogram(wanted, query.since, until, query.buckets)
        return Times(buckets[0].start, max(until, buckets[0].start + 1), buckets, reader.is_whole)

    return await ask.state.reading.ask(count)


async def show(ask: Ask) -> CallView:
    """Return one call."""
    request_id, tenant_id = ask.params["request_id"], seen_tenant(ask.principal)

    def read(reader: Reader) -> CallView | None:
        row = reader.call_row(request_id)
        if row is None or tenant_id not in {None, row.tenant_id}:
            return None
        stored = reader.call(request_id)
        rows = reader.audit_page(AuditFilter(root_id=row.root_id, request_id=request_id), None, 10).items
        return _view(row, stored, rows)

    found = await ask.state.reading.ask(read)
    if found is None:
        raise unknown("call", request_id)
    return found


def _view(row: CallRow, stored: StoredCall | None, rows: list[Row]) -> CallView:
    request = None
    if stored is not None and stored.request is not None:
        asked = stored.request
        request = {
            "inputs": asked.inputs,
            "objective": asked.objective,
            "message": asked.message,
            "limits": asdict(asked.limits),
            "priority": str(asked.priority),
            "trace_id": asked.trace_id,
        }
    chain = rows[-1].chain.split() if rows else []
    meaning = CODES.get(row.error_code or "")
    return CallView(
        row=row,
        reply=None if stored is None else stored.reply,
        request=request,
        deadline_at=None if stored is None else stored.deadline_at,
        chain=chain,
        advice="" if meaning is None else meaning.advice,
        notes=[part for one in reversed(rows) if one.kind != "refused" for part in (one.note or "").split("; ") if part],
    )


async def tree(ask: Ask) -> TreeView:
    """Return the whole tree that a call belongs to."""
    request_id, tenant_id, node = ask.params["request_id"], seen_tenant(ask.principal), ask.state.node

    def read(reader: Reader) -> TreeView | None:
        row = reader.call_row(request_id)
        if row is None or tenant_id not in {None, row.tenant_id}:
            return None
        # A caller of another tenant that names this id is refused under it.
        items = [one for one in reader.tree(row.root_id, TREE_MAX) if one.tenant_id == row.tenant_id]
        stored = reader.call(row.root_id)
        paused = reader.audit_page(AuditFilter(root_id=row.root_id, kind="paused"), None, PAUSES_MAX).items
        own = None if stored is None or stored.request is None else stored.request.limits
        deadline_at = None if stored is None else stored.deadline_at
        return TreeView(items, own or node.limits, "call" if own else "node", deadline_at, _waits(items, paused))

    found = await ask.state.reading.ask(read)
    if found is None:
        raise unknown("call", request_id)
    return found


def _waits(items: list[CallRow], paused: list[Row]) -> list[Wait]:
    """Return when calls waited for a person: from each pause until the call was run again, as its last run tells."""
    ends = {one.request_id: one for one in items}
    found = []
    for row in paused:
        end = ends.get(row.request_id)
        until = None
        if end is not None and end.settled_at is not None:
            until = max(row.created_at, int(end.settled_at - (end.duration_ms or 0)))
        found.append(Wait(row.request_id, row.created_at, until))
    return found


async def show_map(ask: Ask) -> Map:
    """Return the agents and the calls between them."""
    node, tenant_id, since = ask.state.node, seen_tenant(ask.principal), ask.query.since
    traffic, is_whole = await ask.state.reading.ask(lambda reader: (reader.traffic(since, tenant_id), reader.is_whole))
    running, queued, breakers = node.running(), node.queued(), node.breakers()
    agents = []
    for agent in sorted(node.registry, key=lambda one: one.id):
        inbound = [one for one in traffic.edges if one.target.partition("/")[0] == agent.id]
        agents.append(
            MapAgent(
                id=agent.id,
                description=agent.description,
                running=running.get(agent.id, 0) - queued.get(agent.id, 0),
                queued=queued.get(agent.id, 0),
                concurrency=agent.concurrency,
                pending_max=agent.pending_max,
                status=str(agent.status),
                breakers={code: state for (owner, code), state in breakers.items() if owner == agent.id},
                calls=sum(one.calls for one in inbound),
                failed=sum(one.failed for one in inbound),
                refused=sum(one.refused for one in inbound),
            )
        )
    return Map(agents, traffic.edges, traffic.refusals, is_whole)
