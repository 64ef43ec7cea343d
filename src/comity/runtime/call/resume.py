"""Resumes call trees after a restart or an approval, under the same ids and within the same budget."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from comity.core.call.endings import interrupted
from comity.core.call.machine import PAUSED
from comity.core.envelope.envelope import Reply, Request, Status
from comity.core.journal.records import Paused, Resumed
from comity.core.units import NS_PER_MS
from comity.errors import UnavailableError
from comity.ports import Journal
from comity.runtime.call.call import Call
from comity.runtime.call.draft import Arrival
from comity.runtime.call.path import CallPath
from comity.runtime.call.replay import is_run
from comity.runtime.call.way import LOCAL, Way

if TYPE_CHECKING:
    from comity.runtime.call.tools import Approval


# How often an approval is read from a store that fails, and the pause between two reads.
_READS_MAX: Final = 10
_READ_PAUSE_S: Final = 0.05


def take_over(path: CallPath, journal: Journal) -> None:
    """Resume the calls that dead nodes left open in the store."""
    trees: dict[str, dict[str, Request]] = {}
    for call in journal.abandoned():
        if call.request is not None:
            trees.setdefault(call.root_id, {})[call.request_id] = call.request
    for root_id, requests in trees.items():
        resume(path, journal, requests.pop(root_id, None), requests)


def resume(
    path: CallPath, journal: Journal, request: Request | None, leftovers: dict[str, Request], way: Way = LOCAL
) -> Call | None:
    """Resume a root call that was accepted and not settled, or end it if it cannot resume; return the resumed call.

    Child calls that had settled are replayed from the store; `leftovers` are the child calls that were open. Leftovers that the
    root does not make again end with it. `request` is None for a root that has already ended.
    """
    if request is not None and is_run(request.target) and path.workflows is not None:
        path.workflows().adopt(request, leftovers)
        return None
    now_ns = path.clock.now_ns()
    if request is not None and request.deadline_at > now_ns // NS_PER_MS:
        address = path.registry.resolve(request.target)
        agent = address.agent if address is not None else None
        capability = agent.capabilities.get(request.capability) if agent is not None else None
        arrival = Arrival(request, bytes(request.body), agent, capability, (), "")
        begun = path.placement.begun_before(request, journal)
        opened = path.enter(arrival, None, now_ns, None, leftovers, way=way)
        if not isinstance(opened, Reply):
            opened.account.calls_used += begun
            opened.is_detached = True
            return opened
    open_ = tuple(leftovers.values()) if request is None else (request, *leftovers.values())
    terms = way.to_end(request.request_id) if way.on_terms and request is not None else None
    journal.append(interrupted(open_, now_ns // NS_PER_MS), None, terms)
    return None


async def take_up(path: CallPath, journal: Journal, approval: Approval) -> Reply | None:
    """Resume a paused tree whose approval is answered; return its reply, or None if it is gone or another node has it."""
    while (running := path.calls.get(approval.root_id)) is not None:  # it was just resumed, or is about to pause
        reply = await path.reply_of(running)
        if running.state is not PAUSED or reply.status is not Status.NEEDS_INPUT or reply.data["approval_id"] != approval.id:
            return reply
    taken = _taken_up(path, journal, approval.root_id)
    if isinstance(taken, Request):
        # The node that holds its agent finds its new deadline in the store.
        await path.durable((Resumed(taken, journal.node_id, path.now_ms()),))
        return await path.placement.go_on(taken)
    return None if taken is None else await path.reply_of(taken)


def go_on(path: CallPath, journal: Journal, approval_id: str, reads: int = _READS_MAX) -> None:
    """Resume a tree that has just paused if its approval was answered meanwhile: nothing else would resume it."""
    if path.is_closed:
        return
    try:
        approval = path.toolbox.approval(approval_id)
        if approval is not None and approval.granted is not None:
            if path.placement.resumes_here:
                _taken_up(path, journal, approval.root_id)
            else:
                path.placement.spawn(take_up(path, journal, approval))
    except UnavailableError:
        if reads > 1:
            asyncio.get_running_loop().call_later(_READ_PAUSE_S, go_on, path, journal, approval_id, reads - 1)


def _taken_up(path: CallPath, journal: Journal, root_id: str) -> Call | Request | None:
    """Claim a paused tree and resume it here; in a cluster return the root's request with its new deadline instead."""
    taken = [(call.request, call.reply) for call in journal.take_paused(root_id) if call.request is not None]
    try:
        return _resumed(path, journal, {request.request_id: request for request, _ in taken}, root_id)
    except UnavailableError:  # pause it again, so that the answer can be given once more
        now_ms = path.now_ms()
        journal.append([Paused(request, reply, now_ms) for request, reply in taken if reply is not None])
        raise


def _resumed(path: CallPath, journal: Journal, requests: dict[str, Request], root_id: str) -> Call | Request | None:
    root = requests.pop(root_id, None)
    if root is None:
        return None
    # Waiting for a person does not use up the time the work was given.
    now_ms = path.now_ms()
    if (live := path.sessions.find(root.tenant_id, root.session_id)) is not None:
        path.sessions.use(live, root, now_ms)  # an answer counts as use, so the session does not expire
    root = replace(root, deadline_at=now_ms + root.deadline_at - root.created_at, created_at=now_ms)
    return resume(path, journal, root, requests) if path.placement.resumes_here else root
