"""Handoffs for receivers in any language: create, watch, take, accept, heartbeat, progress, complete, fail."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from comity.contextcore.handoffs.manager import AsyncHandoffManager
from comity.contextcore.handoffs.receiver import AsyncHandoffReceiver
from comity.core.access import Principal
from comity.core.call.limits import TIMEOUT_MS_CEILING
from comity.core.envelope.envelope import ExpectedOutput, Priority
from comity.core.handoff.machine import ENDED, Handoff, State
from comity.core.units import MS_PER_S
from comity.errors import ComityError, RefusedError
from comity.server.agent_calls import trace_of
from comity.server.auth import seen_tenant, session_of, tenant_of, user_of
from comity.server.calls import after_of
from comity.server.handoffs import HandoffView, found, handoff_of, manager_of, view
from comity.server.leases import LEASE_MS, Held, lease_lost
from comity.server.routes import Ask
from comity.server.sight import handoff_for, sees_clear
from comity.server.starting import checked_start
from comity.server.stream import frame

Milliseconds = Annotated[int, Meta(ge=1_000, le=600_000)]
Name = Annotated[str, Meta(min_length=1, max_length=256)]
_KEPT_MAX: Final = 10_000


class CreateBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Work to be handed off: to `to_agent`, or to any agent that has the capability."""

    capability: Name
    to_agent: Name | None = None
    task: str = ""
    inputs: dict[str, Any] = {}
    expected_output: ExpectedOutput | None = None
    priority: Priority = Priority.NORMAL
    timeout_ms: Annotated[int, Meta(ge=1, le=TIMEOUT_MS_CEILING)] = 300_000
    handoff_id: Name | None = None
    objective: str = ""
    user_id: str | None = None
    tenant_id: str | None = None
    session_id: str | None = None


class AcceptBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Who takes it. Without a heartbeat within `lease_ms` it is given to the next receiver."""

    agent_id: Name
    capabilities: Annotated[list[Name], Meta(max_length=100)] = []
    lease_ms: Milliseconds = LEASE_MS


class TakeBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a receiver takes, and how long it waits for work."""

    capabilities: Annotated[list[Name], Meta(max_length=100)] = []
    lease_ms: Milliseconds = LEASE_MS
    wait_ms: Annotated[int, Meta(ge=0, le=60_000)] = 20_000


class LeaseBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The lease under which a receiver has it."""

    lease: Name


class ProgressBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How far the work is."""

    lease: Name
    data: Any


class CompleteBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The result."""

    lease: Name
    result: Any = None
    message: str = ""
    confidence: Annotated[float, Meta(ge=0, le=1)] = 1.0
    result_trace_id: Name | None = None


class FailBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Why there is no result."""

    lease: Name
    reason: Name
    code: Name = "TARGET_FAILED"


class QuestionBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the receiver needs to know, and how long it waits for the answer."""

    lease: Name
    question: Name
    input_type: Name = "text"
    options: Annotated[list[Name], Meta(max_length=100)] = []
    default: Any = None
    wait_ms: Annotated[int, Meta(ge=0, le=60_000)] = 20_000


class Answered(Struct, frozen=True):
    """The answer to a question; while `is_answered` is false none has come, and the same question can be asked again."""

    is_answered: bool
    answer: Any
    lease_until: int


class RejectBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Who rejects it, and why."""

    agent_id: Name
    reason: Name
    capabilities: Annotated[list[Name], Meta(max_length=100)] = []


class Leased(Struct, frozen=True):
    """A handoff that a receiver has, the lease to end it with, and until when it lasts without a heartbeat."""

    handoff: HandoffView
    lease: str
    lease_until: int


class Taken(Struct, frozen=True):
    """What was taken; nothing if no work came in time."""

    items: list[Leased]


class Beat(Struct, frozen=True):
    """Until when a lease lasts, and where its handoff stands."""

    lease_until: int
    state: State


class WatchQuery(Struct, frozen=True):
    """Capabilities, separated by commas, whose work is for this receiver whichever agent it was handed to."""

    capabilities: str = ""


async def create(ask: Ask) -> HandoffView:
    """Hand work off."""
    body: CreateBody = ask.body
    principal: Principal = ask.principal
    start = checked_start(ask.state, principal, body.to_agent or "*", body.capability, body.handoff_id)
    manager = AsyncHandoffManager(
        agent_id=principal.name if principal.is_agent else None,
        node=ask.state.node,
        user_id=user_of(principal, body.user_id),
        tenant_id=tenant_of(principal, body.tenant_id),
        session_id=session_of(principal, body.session_id),
    )
    handoff_id = await manager.create_handoff(
        body.to_agent,
        body.capability,
        body.task,
        body.inputs,
        body.expected_output,
        body.priority,
        body.timeout_ms,
        handoff_id=start.request_id,
        objective=body.objective,
        outside=start.outside,
        **trace_of(ask.heads),
    )
    return view(handoff_for(ask.state, principal, found(ask, handoff_id)), is_whole=True)


async def take(ask: Ask) -> Taken:
    """Wait for work and accept it in the same step."""
    body: TakeBody = ask.body
    receiver = _receiver(ask, ask.params["agent_id"], body.capabilities)
    try:
        async with asyncio.timeout(body.wait_ms / MS_PER_S):
            taken = await receiver.take()
    except TimeoutError:
        return Taken([])
    return Taken([_leased(ask, one, receiver, body.lease_ms) for one in taken])


async def accept(ask: Ask) -> Leased:
    """Take a handoff; of several receivers one gets it."""
    body: AcceptBody = ask.body
    receiver = _receiver(ask, body.agent_id, body.capabilities)
    return _leased(ask, await receiver.accept(ask.params["handoff_id"]), receiver, body.lease_ms)


async def reject(ask: Ask) -> HandoffView:
    """Say that it is not for this receiver; it ends."""
    receiver = _receiver(ask, ask.body.agent_id, ask.body.capabilities)
    return view(await receiver.reject(ask.params["handoff_id"], ask.body.reason))


async def heartbeat(ask: Ask) -> Beat:
    """Say that the receiver still works on it."""
    held = _held(ask)
    handoff = handoff_of(ask)
    if handoff.state in ENDED:
        ask.state.receivers.drop(held)
        raise RefusedError(f"{handoff.id} has ended as {handoff.state}", code="HANDOFF_LEASE_LOST")
    ask.state.receivers.renew(held, ask.state.now_ms())
    return Beat(held.until, handoff.state)


async def progress(ask: Ask) -> Beat:
    """Tell how far it is; counts as a heartbeat."""
    held = _held(ask)
    await held.receiver.progress(held.handoff_id, ask.body.data)
    ask.state.receivers.renew(held, ask.state.now_ms())
    return Beat(held.until, handoff_of(ask).state)


async def question(ask: Ask) -> Answered:
    """Ask the sender of the handoff, and wait for the answer; the same question again waits on. Counts as a heartbeat."""
    body: QuestionBody = ask.body
    held = _held(ask)
    asked = held.question
    if asked is not None and asked[0] != body.question and not asked[1].done():
        raise RefusedError("another question is open; ask it again to wait for its answer", code="HANDOFF_STATE_CONFLICT")
    if asked is None or asked[0] != body.question:
        asking = held.receiver.request_input(
            held.handoff_id, body.question, input_type=body.input_type, options=body.options, default=body.default
        )
        held.question = asked = (body.question, asyncio.ensure_future(asking))
    ask.state.receivers.renew(held, ask.state.now_ms())
    waiting = asked[1]
    await asyncio.wait({waiting}, timeout=body.wait_ms / MS_PER_S)
    if not waiting.done():
        return Answered(False, None, held.until)
    if held.question is asked:
        held.question = None
    if waiting.cancelled():  # another request of this receiver has ended the handoff
        raise lease_lost(held.handoff_id)
    answer = waiting.result()
    ask.state.receivers.renew(held, ask.state.now_ms())
    return Answered(True, answer, held.until)


async def complete(ask: Ask) -> HandoffView:
    """End it with a result."""
    body: CompleteBody = ask.body
    held = _held(ask)
    ended = await held.receiver.complete(
        held.handoff_id, body.result, body.result_trace_id, message=body.message, confidence=body.confidence
    )
    ask.state.receivers.drop(held)
    return view(ended)


async def fail(ask: Ask) -> HandoffView:
    """End it without a result."""
    held = _held(ask)
    ended = await held.receiver.fail(held.handoff_id, ask.body.reason, code=ask.body.code)
    ask.state.receivers.drop(held)
    return view(ended)


async def release(ask: Ask) -> HandoffView:
    """Give it back; the next receiver may have it."""
    held = _held(ask)
    await held.receiver.release(held.handoff_id)
    ask.state.receivers.drop(held)
    return view(handoff_of(ask))


# --- streams ---


class Event(Struct, frozen=True):
    """One numbered event of a stream."""

    seq: int
    name: str
    data: Any


class Following:
    """An iterator as a source of a stream: read by a task, kept up to a bound."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._waiters: list[asyncio.Future[None]] = []
        self.is_closed = False

    def since(self, after: int) -> list[Event]:
        """Return the events after a number."""
        return [event for event in self._events if event.seq > after]

    def notify(self, waiter: asyncio.Future[None]) -> None:
        """Resolve `waiter` with the next event, or at the end."""
        self._waiters.append(waiter)

    async def read(self, items: AsyncIterator[Any], event_of: Callable[[int, Any], Event]) -> None:
        """Take in what an iterator yields until it ends or fails."""
        try:
            async for item in items:
                last = self._events[-1].seq if self._events else 0
                self._events.append(event_of(last + 1, item))
                del self._events[:-_KEPT_MAX]
                self._wake()
        except ComityError:  # the node closes, or the handoff was erased: the stream ends
            pass
        finally:
            self.is_closed = True
            self._wake()

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


async def _stream(ask: Ask, items: AsyncIterator[Any], event_of: Callable[[int, Any], Event], after: int) -> None:
    source = Following()
    task = asyncio.create_task(source.read(items, event_of))
    try:
        await ask.state.streams.serve(ask.scope, ask.send, source, after, lambda one: frame(one.name, one.data, one.seq))
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def watch(ask: Ask) -> None:
    """Stream the handoffs that wait for a receiver, each once, as they come; none is kept from others."""
    names = tuple(one for one in ask.query.capabilities.split(",") if one)
    receiver = _receiver(ask, ask.params["agent_id"], names)
    await _stream(ask, receiver.peek_handoffs(), lambda seq, one: Event(seq, "handoff", view(one, is_whole=True)), 0)


async def follow(ask: Ask) -> None:
    """Stream what happens to a handoff until it has ended."""
    handoff, after = handoff_of(ask), after_of(ask)
    entries = manager_of(ask, handoff).events(handoff.id, in_clear=sees_clear(ask.principal, handoff.request))
    await _stream(ask, entries, lambda _, one: Event(one.n, one.kind, {"at_ms": one.at_ms, "data": one.data}), after)


# --- inside ---


def _receiver(ask: Ask, agent_id: str, capabilities: list[str] | tuple[str, ...]) -> AsyncHandoffReceiver:
    principal = ask.principal
    if principal.is_agent and principal.name != agent_id:
        raise RefusedError(
            f"the token is {principal.name}'s, and the request is for another receiver", code="IDENTITY_MISMATCH"
        )
    return ask.state.receivers.receiver(tenant_of(principal, None), agent_id, tuple(capabilities))


def _held(ask: Ask) -> Held:
    """Return what the lease of a request holds. A lease is good in the tenant, and for the agent, that it was given to."""
    principal, handoff_id = ask.principal, ask.params["handoff_id"]
    held = ask.state.receivers.held(handoff_id, ask.body.lease)
    is_theirs = seen_tenant(principal) in {None, held.receiver.tenant_id}
    if not is_theirs or (principal.is_agent and principal.name != held.receiver.agent_id):
        raise lease_lost(handoff_id)
    return held


def _leased(ask: Ask, handoff: Handoff, receiver: AsyncHandoffReceiver, lease_ms: int) -> Leased:
    held = ask.state.receivers.hold(handoff, receiver, lease_ms, ask.state.now_ms())
    return Leased(view(handoff, is_whole=True), held.id, held.until)
