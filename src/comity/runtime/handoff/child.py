"""A handoff made by a running agent: a child call of its tree, whose work a receiver outside this process does.

The call is admitted, runs and settles here. Its code is a task that puts the work into the queue and waits, so the limits, the
deadline and the end of the tree apply. A replayed tree finds its handoff under the same id.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from comity.core.agent.agent import Capability, Implementation
from comity.core.agent.retry import Retry
from comity.core.agent.running import LOOP
from comity.core.call.machine import PAUSED
from comity.core.document.expected_output import read_expected
from comity.core.envelope.envelope import Error, ExpectedOutput, Reply, Request, Status
from comity.core.handoff.holder import result_session
from comity.core.handoff.machine import Cancel, Handoff, Offer
from comity.core.handoff.trace import metadata_of
from comity.core.tracing.telemetry import Handed
from comity.core.units import NS_PER_MS
from comity.runtime.agent.activations import Lane
from comity.runtime.call.call import Call
from comity.runtime.call.draft import Draft, Identity
from comity.runtime.call.tasks import after_a_turn
from comity.runtime.handoff.desk import Handoffs, checked, lane_of
from comity.runtime.handoff.directory import ANYBODY
from comity.runtime.handoff.spans import handed_of
from comity.runtime.session.privacy import reveal
from comity.runtime.tracing.standing import hung

_UNDER_WAY: Final = Handed("", "", 0, "")  # placeholder: a handoff whose tree ends early ends as its call does

if TYPE_CHECKING:
    from comity.runtime.call.context import Context
    from comity.runtime.call.path import CallPath


def hand_off(
    path: CallPath, desks: Callable[[], Handoffs], parent: Call, draft: Draft, expected: ExpectedOutput | None
) -> Coroutine[Any, Any, Reply]:
    """Return a coroutine that hands work off as a child call of `parent` and returns the reply."""
    parent.calls_made += 1  # before it runs, so parallel calls keep their ids on replay
    return _hand_off(path, desks, parent, draft, expected, parent.calls_made)


async def _hand_off(
    path: CallPath, desks: Callable[[], Handoffs], parent: Call, draft: Draft, given: ExpectedOutput | None, number: int
) -> Reply:
    # An agent that retries after each refusal must not block the event loop, or its own deadline.
    await parent.wait_in_line(parent.request.limits.pause_ms(number))
    desk, above = desks(), parent.request
    now_ms = desk.now_ms
    identity = Identity(above.user_id, above.tenant_id, above.session_id)
    arrival = hung(desk.reader.read(draft, identity, above, f"{above.request_id}.{number}", now_ms), above)
    expected, problems = read_expected(given)
    if problems:
        arrival = replace(arrival, problems=(*arrival.problems, *problems), code=arrival.code or "INPUT_VALIDATION_FAILED")
    request = replace(arrival.request, expected_output=expected, metadata=metadata_of(parent.remote))
    capability = None if arrival.capability is None else _awaited(arrival.capability, desk, path)
    opened = path.seen(request) if parent.is_again else None
    if opened is None:
        agent = arrival.agent or ANYBODY
        lane_name = lane_of(request.tenant_id, request.target)
        waiting = desk.count_waiting(lane_name, agent.pending_max, desk.now_ms)
        lane: Lane[Call] = Lane(agent, request.target, desk.journal, waiting, takes=False)
        arrival = replace(arrival, request=request, capability=capability)
        opened = path.enter(arrival, parent, now_ms * NS_PER_MS, None, lane=lane, way=parent.way.below(parent.request))
        if isinstance(opened, Call):
            opened.has_answer = partial(desk.has_answer, request.request_id)
            opened.handed = _UNDER_WAY
    if isinstance(opened, Reply):
        reply = await after_a_turn(opened)
    else:
        reply = await path.reply_of(opened)
    return parent.given(reply)


def _awaited(declared: Capability, desk: Handoffs, path: CallPath) -> Capability:
    """Return a capability with the declared inputs whose code queues the work and waits for the receiver's result."""
    declared.prepare()

    async def wait(ctx: Context, **inputs: Any) -> Reply:  # noqa: ARG001  they are in the request
        request, call = ctx.request, path.calls[ctx.request.request_id]
        handoff = await done_elsewhere(desk, request, lambda: call.state is PAUSED)
        reply = handoff.reply or Reply.failure("the handoff ended without a reply", code="TARGET_FAILED")
        call.handed, used = handed_of(handoff), reply.usage
        if used.total_tokens:  # reported by an agent of another node; other receivers report none
            path.charge(call, used)
        return _as_answer(desk, request, reply)

    elsewhere = copy.copy(declared)
    way = Implementation(function=wait, is_async=True, priority=1, name="handoff", retry=Retry(), run_in=LOOP)
    elsewhere.implementations, elsewhere.wants_context = (way,), {wait: True}
    return elsewhere


async def done_elsewhere(desk: Handoffs, request: Request, goes_on: Callable[[], bool] = lambda: False) -> Handoff:
    """Put a handoff into the queue, or find it there; wait for its end and return it.

    Cancelling this withdraws the handoff, unless `goes_on` returns True: the tree resumes later or on another node.
    """
    handoff = Handoff(
        request=request,
        lane=lane_of(request.tenant_id, request.target),
        made_by=desk.node_id,
        settles=False,
        result_trace_id=request.trace_id,
    )
    with desk.ear(None, f"!{request.request_id}") as ear:
        try:
            handoff = checked((await desk.perform(desk.step(Offer(handoff), request.request_id))).outcome)
            while not handoff.has_ended:
                await ear.wait(handoff.request.deadline_at)  # on replay, the deadline of the first run
                handoff = desk.queue.get(request.request_id) or handoff
        except asyncio.CancelledError:
            if goes_on():
                raise
            desk.post(desk.step(Cancel("the call it was made for has ended"), request.request_id))
            raise
    return handoff


def _as_answer(desk: Handoffs, request: Request, reply: Reply) -> Reply:
    """Return the receiver's reply in clear; `read_result` hides it again in the vault of the tree's own session."""
    live = desk.sessions.find(request.tenant_id, result_session(request.request_id))
    if live is not None and live.vault is not None:
        reply = reveal(reply, live.vault)
    if reply.status is Status.REFUSED:  # by its receiver; the node admitted this call
        return replace(reply, status=Status.ERROR)
    if reply.status is Status.CANCELLED:  # another caller withdrew the handoff; this call was not withdrawn
        error = Error.of("TARGET_FAILED", f"the handoff was withdrawn: {reply.message}")
        return Reply(status=Status.ERROR, error=error, message=error.message)
    return reply
