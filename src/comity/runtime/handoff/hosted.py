"""Handoffs to the agents of a running node: the node takes them and runs them through the call path.

A handoff waits in the lane of its agent or capability. The node subscribes to the lanes of its agents and serves a lane with
work by a receiver of its own, under the same leases and retries as any receiver. A program's own receiver on this node takes
precedence. Each attempt is a call of the handoff's user whose id is derived from the handoff's id and fencing token, so an
attempt that was resumed after a restart is awaited and not made twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from comity.core.agent.agent import Agent, Status
from comity.core.call.limits import ID_CHARS_MAX
from comity.core.envelope.envelope import Reply
from comity.core.envelope.envelope import Status as Outcome
from comity.core.handoff.machine import Complete, Handoff
from comity.core.handoff.trace import place_of
from comity.core.tracing.trace_context import TraceContext
from comity.core.units import MS_PER_S, NS_PER_MS
from comity.errors import ComityError
from comity.runtime.call.call import Call
from comity.runtime.call.draft import Arrival, Draft, Identity
from comity.runtime.call.resume import take_over
from comity.runtime.handoff.desk import Handoffs, lane_of
from comity.runtime.handoff.receiver import CAPABILITIES_MAX, Receiver, by

if TYPE_CHECKING:
    from comity.runtime.call.path import CallPath
    from comity.runtime.handoff.listening import Ear

log = logging.getLogger("comity")

AT_ONCE_MAX: Final = 64  # handoffs of one agent
_RETRY_S: Final = 1.0  # pause after a temporary refusal


class HostedAgents:
    """Receives handoffs for the agents of one node, for some tenants."""

    def __init__(self, path: CallPath, desk: Handoffs, tenants: Collection[str]) -> None:
        self._path = path
        self._desk = desk
        self._tenants = tuple(tenants)
        self._lanes: dict[str, tuple[Agent, str]] = {}  # lane to agent and tenant
        self._serving: dict[tuple[str, str], tuple[HostedReceiver, asyncio.Task[None]]] = {}
        self._ears: dict[Ear, None] = {}
        self._loop = asyncio.get_running_loop()
        self._watching: asyncio.Task[None] | None = None
        self.add(path.registry)

    def add(self, agents: Iterable[Agent]) -> None:
        """Receive handoffs for further agents."""
        found = {
            lane_of(tenant_id, name): (agent, tenant_id)
            for agent in agents
            if agent.takes_handoffs and agent.status is Status.ACTIVE
            for tenant_id in self._tenants
            for name in (*agent.capabilities, *agent.aliases, agent.id)
        }
        new = found.keys() - self._lanes.keys()
        self._lanes |= found
        self._desk.hosted |= new
        if self._watching is not None:
            self._watching.cancel()
        self._watching = self._loop.create_task(self._watch(sorted(new)), name="comity-handoffs")

    async def close(self) -> None:
        """Release the handoffs in progress, and take no more."""
        tasks = [task for _, task in self._serving.values()]
        if self._watching is not None:
            tasks.append(self._watching)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for receiver, _ in self._serving.values():
            await receiver.close()
        self._serving.clear()

    async def _watch(self, new: Collection[str]) -> None:
        """Start the receiver of an agent once its lane has work; from then on that receiver subscribes itself."""
        try:
            await self._desk.listen(new)
            while idle := [lane for lane, whose in self._lanes.items() if _key(whose) not in self._serving]:
                with self._desk.ear(self._ears, *(f"+{lane}" for lane in idle)) as ear:
                    while not (busy := [lane for lane in idle if self._has_work(lane)]):
                        await ear.wait(None)
                for lane in busy:
                    self._serve(*self._lanes[lane])
        except ComityError as error:  # the node closes, or its store has failed
            log.info("handoffs are no longer taken for the agents of this node: %s", error)

    def _has_work(self, lane: str) -> bool:
        return self._desk.is_coming(lane) or self._desk.queue.count_free(lane) > 0

    def _serve(self, agent: Agent, tenant_id: str) -> None:
        if (agent.id, tenant_id) not in self._serving:
            receiver = HostedReceiver(self._path, self._desk, agent, tenant_id)
            task = self._loop.create_task(receiver.serve_agent(), name=f"comity-handoffs {agent.id}")
            self._serving[agent.id, tenant_id] = (receiver, task)


def _key(whose: tuple[Agent, str]) -> tuple[str, str]:
    return whose[0].id, whose[1]


class HostedReceiver(Receiver):
    """The receiver of one agent of a node; it does the work by calling the agent."""

    def __init__(self, path: CallPath, desk: Handoffs, agent: Agent, tenant_id: str) -> None:
        codes = [code for code, capability in agent.capabilities.items() if capability.active][:CAPABILITIES_MAX]
        super().__init__(agent.id, codes, tenant_id=tenant_id)
        self._path = path
        self._hosted_at = desk
        self._agent = agent
        aliases = tuple(lane_of(tenant_id, alias) for alias in agent.aliases)
        self._want = replace(self._want, lanes=(*self._want.lanes, *aliases))

    async def _find_desk(self) -> Handoffs:
        return self._hosted_at

    async def serve_agent(self) -> None:
        """Take handoffs and do them until cancelled, or until the node closes."""
        with contextlib.suppress(ComityError):
            await self.serve(self._do_for_agent, concurrency=min(self._agent.concurrency, AT_ONCE_MAX))

    async def _listen(self, desk: Handoffs, step: int) -> None:
        """Do nothing: the node has subscribed to these lanes already."""

    def _may_take(self, desk: Handoffs) -> bool:
        return super()._may_take(desk) and not any(desk.is_received(lane) for lane in (self._want.own_lane, *self._want.lanes))

    async def _do_for_agent(self, handoff: Handoff) -> Reply:
        """Return the agent's reply; pass a `needs_input` question on, and call the agent again with the answer."""
        reply = await self._earlier(handoff) or await self._ask(handoff, _attempt(handoff), handoff.task)
        asked = 0
        while reply.status is Outcome.NEEDS_INPUT:
            answer = await self.request_input(handoff.id, reply.message or "What should be done?")
            if isinstance(reply.data, dict) and "approval_id" in reply.data:  # an approval: the call resumes by itself
                reply = await self._ask(handoff, reply.request_id, handoff.task)
                continue
            asked += 1
            told = answer if isinstance(answer, str) else str(answer)
            reply = await self._ask(handoff, f"{_attempt(handoff)}~{asked}", told)
        return reply

    async def _earlier(self, handoff: Handoff) -> Reply | None:
        """Return the reply of an earlier attempt that succeeded, or wait for one that is paused or still in progress."""
        path, journal = self._path, self._hosted_at.journal
        for fence in range(handoff.fence - 1, 0, -1):
            earlier = _attempt(handoff, fence)
            stored = None if earlier in path.calls else journal.call(earlier)
            if stored is not None and stored.settled_at is None and path.placement.takes_over:
                take_over(path, journal)  # resume calls of a dead node
            elif stored is not None and stored.settled_at is None:
                return await self._ask(handoff, earlier, handoff.task)  # resume it on the node that holds its agent
            if (running := path.calls.get(earlier)) is not None:
                return await path.reply_of(running)
            if stored is None or stored.reply is None:
                continue
            if stored.settled_at is None:
                return await self._ask(handoff, earlier, handoff.task)
            if stored.reply.ok:
                return path.settlement.shown(stored.reply, stored)
        return None

    async def _ask(self, handoff: Handoff, request_id: str, message: str) -> Reply:
        """Call the agent; retry while the refusal is temporary."""
        path = self._path
        while True:
            arrival, place, now_ns = self._arrival(handoff, request_id, message)
            elsewhere = path.placement.call_for(arrival, place)
            if elsewhere is not None:  # another node may hold the agent, and then runs the call
                reply = await elsewhere
            else:
                opened = path.seen(arrival.request) or path.enter(arrival, None, now_ns, None, remote=place)
                reply = await path.reply_of(opened) if isinstance(opened, Call) else await path.told(opened)
            error = reply.error
            if reply.status is not Outcome.REFUSED or error is None or not error.retryable or path.is_closed:
                return reply
            await asyncio.sleep(max(_RETRY_S, (error.retry_after_ms or 0) / MS_PER_S))

    def _arrival(self, handoff: Handoff, request_id: str, message: str) -> tuple[Arrival, TraceContext | None, int]:
        """Return the arrival of the call that does a handoff, its trace context, and the time."""
        path, asked, now_ns = self._path, handoff.request, self._path.clock.now_ns()
        known = path.registry.resolve(asked.target)
        target = asked.target if known is not None and known.agent is self._agent else self._agent.id
        draft = Draft(
            target, asked.capability, asked.inputs, asked.objective, message, None, asked.priority, asked.context, None, "none",
            correlation_id=asked.correlation_id,
        )  # fmt: skip
        place = place_of(asked)
        identity = Identity(asked.user_id, asked.tenant_id, asked.session_id)
        arrival = self._narrowed(path.arrive(draft, identity, request_id, now_ns // NS_PER_MS, place), handoff)
        return arrival, place, now_ns

    def _narrowed(self, arrival: Arrival, handoff: Handoff) -> Arrival:
        """Return the arrival with the handoff's limits, deadline and call chain."""
        asked, request = handoff.request, arrival.request
        own_ms = arrival.capability.timeout_ms if arrival.capability is not None else None
        deadline_at = asked.deadline_at if own_ms is None else min(asked.deadline_at, request.created_at + own_ms)
        brought = {"source": asked.source, "chain": asked.chain, "expected_output": asked.expected_output}
        limits = request.limits.narrow(asked.limits)
        return replace(arrival, request=replace(request, limits=limits, deadline_at=deadline_at, **brought))

    async def _deliver(self, handoff_id: str, result: Any) -> None:
        reply: Reply = result
        if reply.status is Outcome.CANCELLED and self._path.is_closed:
            return  # `stop` releases the handoff
        if not reply.ok:
            error = reply.error
            code, reason = ("TARGET_FAILED", reply.message) if error is None else (error.code, error.message)
            await self._fail(handoff_id, reason, code)
            return
        desk, mine = self._hosted_at, self._mine(handoff_id)
        confidence = 1.0 if reply.confidence is None else reply.confidence
        answer, saved = desk.content.answer(mine.request, reply.data, message=reply.message, confidence=confidence)
        told = {"status": reply.status, "warnings": reply.warnings, "degraded": reply.degraded, "usage": reply.usage}
        await self._end(desk, handoff_id, Complete(by(mine), replace(answer, **told), "", saved))


def _attempt(handoff: Handoff, fence: int | None = None) -> str:
    """Return the request id of an attempt at a handoff."""
    number = handoff.fence if fence is None else fence
    # Dots and hashes mark ids of child calls and steps, which an attempt is not.
    plain = handoff.id.replace(".", "-").replace("#", "-")
    return f"{plain[: ID_CHARS_MAX - 24]}~{number}"
