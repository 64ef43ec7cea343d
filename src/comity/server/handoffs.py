"""Handoffs as people look at them and act on them: a list by state, one with its history, an answer, a cancel."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from comity.contextcore.handoffs.manager import AsyncHandoffManager
from comity.core.envelope.envelope import Error
from comity.core.handoff.machine import ENDED, Entry, Handoff, Question, State
from comity.core.reading.page import ROWS_DEFAULT, Limit
from comity.errors import CallerError
from comity.server.auth import seen_tenant
from comity.server.problem import unknown
from comity.server.routes import Ask
from comity.server.sight import handoff_for


class HandoffsQuery(Struct, frozen=True):
    """Which handoffs are wanted; several states are separated by commas, `open` stands for all that have not ended."""

    state: str | None = None
    target: str | None = None
    limit: Limit = ROWS_DEFAULT
    cursor: str | None = None


class HandoffView(Struct, frozen=True, kw_only=True):
    """A handoff. Inputs, result and history are there where one is shown."""

    id: str
    state: State
    task: str
    capability: str
    from_agent: str | None
    to_agent: str
    receiver: str
    priority: str
    user_id: str
    tenant_id: str
    session_id: str
    created_at: int
    changed_at: int
    deadline_at: int
    attempts: int
    attempts_max: int
    question: Question | None = None
    error: Error | None = None
    inputs: Any = None
    result: Any = None
    history: tuple[Entry, ...] = ()


class Handoffs(Struct, frozen=True):
    """Handoffs, newest first."""

    items: list[HandoffView]
    next: str | None


class AnswerBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the receiver asked for."""

    answer: Any


class CancelBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Why it is cancelled."""

    reason: str = ""


async def find(ask: Ask) -> Handoffs:
    """Return a page of handoffs."""
    query: HandoffsQuery = ask.query
    states, tenant_id = _states(query.state), seen_tenant(ask.principal)
    page = await ask.state.reading.ask(
        lambda reader: reader.handoffs_page(
            states=states, target=query.target, tenant_id=tenant_id, cursor=query.cursor, limit=query.limit
        )
    )
    return Handoffs([view(one) for one in page.items], page.next)


async def show(ask: Ask) -> HandoffView:
    """Return one handoff with its history."""
    return view(handoff_of(ask), is_whole=True)


async def answer(ask: Ask) -> HandoffView:
    """Answer what the receiver asked; it goes on."""
    handoff = handoff_of(ask)
    await manager_of(ask, handoff).provide_input(handoff.id, ask.body.answer)
    return view(handoff_for(ask.state, ask.principal, handoff_of(ask)), is_whole=True)


async def cancel(ask: Ask) -> HandoffView:
    """Cancel a handoff; a receiver that has begun gets a cancel message."""
    handoff = handoff_of(ask)
    reason = ask.body.reason if ask.body is not None else ""
    await manager_of(ask, handoff).cancel(handoff.id, reason)
    return view(handoff_for(ask.state, ask.principal, handoff_of(ask)), is_whole=True)


def _states(named: str | None) -> tuple[State, ...]:
    if named is None:
        return tuple(State)
    if named == "open":
        return tuple(one for one in State if one not in ENDED)
    try:
        return tuple(State(one) for one in named.split(","))
    except ValueError:
        message = f"state must be open or some of {', '.join(State)}"
        raise CallerError(message, code="HTTP_QUERY_INVALID") from None


def handoff_of(ask: Ask) -> Handoff:
    """Return the handoff that a path names, if the sender may see it."""
    return found(ask, ask.params["handoff_id"])


def found(ask: Ask, handoff_id: str) -> Handoff:
    """Return the handoff of an id, if the sender may see it: as the store holds it."""
    handoff, tenant_id = ask.state.node.handoffs.get(handoff_id), seen_tenant(ask.principal)
    if handoff is None or tenant_id not in {None, handoff.request.tenant_id}:
        raise unknown("handoff", handoff_id)
    return handoff


def manager_of(ask: Ask, handoff: Handoff) -> AsyncHandoffManager:
    """Return what acts for the user who handed something off; what its methods return is for that user alone."""
    return AsyncHandoffManager(user_id=handoff.request.user_id, tenant_id=handoff.request.tenant_id, node=ask.state.node)


def view(one: Handoff, *, is_whole: bool = False) -> HandoffView:
    """Return a handoff as it is shown; `is_whole` with its inputs, result and history."""
    request, reply = one.request, one.reply
    return HandoffView(
        id=one.id,
        state=one.state,
        task=one.task or request.objective,
        capability=request.capability,
        from_agent=one.from_agent,
        to_agent=one.to_agent,
        receiver=one.receiver,
        priority=str(one.priority),
        user_id=request.user_id,
        tenant_id=request.tenant_id,
        session_id=request.session_id,
        created_at=one.created_at,
        changed_at=one.changed_at,
        deadline_at=request.deadline_at,
        attempts=one.attempts,
        attempts_max=one.attempts_max,
        question=one.question,
        error=None if reply is None else reply.error,
        inputs=one.inputs if is_whole else None,
        result=None if reply is None or not is_whole else reply.data,
        history=one.history if is_whole else (),
    )
