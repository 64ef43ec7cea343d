"""Sessions over HTTP: the conversation, what is known, and what a person may ask for: an export, a value in clear, erasure."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, to_builtins

from comity.core.access import Right
from comity.core.reading.page import ROWS_DEFAULT, Limit
from comity.core.redaction.vault import TOKEN
from comity.core.session.conversation import Turn
from comity.core.session.session import Session
from comity.errors import CallerError
from comity.server.auth import seen_tenant, tenant_of
from comity.server.problem import unknown
from comity.server.routes import Ask


class SessionsQuery(Struct, frozen=True):
    """Whose sessions are wanted; of the operator's own choice, of which tenant."""

    user: str | None = None
    limit: Limit = ROWS_DEFAULT
    cursor: str | None = None


class TenantQuery(Struct, frozen=True):
    """The tenant of the session, where the sender sees several."""

    tenant: str | None = None


class SessionRow(Struct, frozen=True):
    """A session as it is listed."""

    id: str
    tenant_id: str
    user_id: str
    title: str
    turns: int
    created_at: int
    used_at: int


class SessionRows(Struct, frozen=True):
    """Sessions, the latest used first."""

    items: list[SessionRow]
    next: str | None


class SessionView(Struct, frozen=True, kw_only=True):
    """A session. Personal data stands as tokens; `hidden` counts them by kind, `memory` is for those who may see it."""

    id: str
    tenant_id: str
    user_id: str
    created_at: int
    used_at: int
    summary: str
    turns: tuple[Turn, ...]
    turns_dropped: int
    facts: list[str]
    decisions: tuple[str, ...]
    assumptions: tuple[str, ...]
    memory: list[str]
    agents: tuple[str, ...]
    hidden: dict[str, int]


class RevealBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The token of a hidden value, as a session shows it."""

    token: str


class Revealed(Struct, frozen=True):
    """What a token stands for."""

    token: str
    value: str


class Erased(Struct, frozen=True):
    """How many records were removed."""

    id: str
    records: int


async def find(ask: Ask) -> SessionRows:
    """Return a page of sessions."""
    query, tenant_id = ask.query, seen_tenant(ask.principal)
    page = await ask.state.reading.ask(
        lambda reader: reader.sessions_page(tenant_id=tenant_id, user_id=query.user, cursor=query.cursor, limit=query.limit)
    )
    return SessionRows([_row(one) for one in page.items], page.next)


async def show(ask: Ask) -> SessionView:
    """Return one session."""
    node, session = ask.state.node, _session(ask)
    sees_memory = Right.DATA_REVEAL in ask.principal.rights
    memory = node.memory(session.user_id, tenant_id=session.tenant_id).facts if sees_memory else ()
    return SessionView(
        id=session.id,
        tenant_id=session.tenant_id,
        user_id=session.user_id,
        created_at=session.created_at,
        used_at=session.used_at,
        summary=session.summary,
        turns=session.turns,
        turns_dropped=session.turns_dropped,
        facts=[f"{key}: {fact.value}" for key, fact in session.facts.items()],
        decisions=session.decisions,
        assumptions=session.assumptions,
        memory=[one.text for one in memory],
        agents=session.prior_agents,
        hidden=node.hidden_in(session.id, tenant_id=session.tenant_id),
    )


async def export(ask: Ask) -> dict[str, Any]:
    """Return what a session knows, with personal data in clear."""
    session = _session(ask)
    found = ask.state.node.export_session(session.id, tenant_id=session.tenant_id)
    return to_builtins(session) if found is None else found


async def reveal(ask: Ask) -> Revealed:
    """Return what a token stands for. That it was looked at, and by whom, is a row of the audit first."""
    session, token = _session(ask), ask.body.token
    if TOKEN.fullmatch(token) is None:
        raise CallerError("token does not stand for a hidden value", code="INPUT_VALIDATION_FAILED")
    by = ask.principal.user_id
    value = await ask.state.node.reveal(session.id, token, by=by, tenant_id=session.tenant_id)
    if value is None:
        raise unknown("hidden value", token)
    return Revealed(token, str(value))


async def erase(ask: Ask) -> Erased:
    """Remove everything that was said in a session; the audit stays whole."""
    session = _session(ask)
    records = await ask.state.node.erase_session(session.id, tenant_id=session.tenant_id)
    ask.state.forget(session.tenant_id, session.id)
    return Erased(session.id, records)


def _session(ask: Ask) -> Session:
    session_id = ask.params["session_id"]
    tenant_id = tenant_of(ask.principal, None if ask.query is None else getattr(ask.query, "tenant", None))
    found = ask.state.node.session(session_id, tenant_id=tenant_id)
    if found is None:
        raise unknown("session", session_id)
    return found


def _row(session: Session) -> SessionRow:
    first = next((turn.text for turn in session.turns if turn.role == "user" and turn.text), session.original_request)
    title = " ".join(first.split())[:120]
    return SessionRow(
        session.id, session.tenant_id, session.user_id, title, len(session.turns), session.created_at, session.used_at
    )
