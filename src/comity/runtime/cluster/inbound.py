"""The receiving side of calls from other nodes: each runs through the call path, once per request id."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from comity.core.call.machine import State
from comity.core.cluster.messages import (
    Answer,
    Ask,
    Cancel,
    Happened,
    Inquire,
    Message,
    Moved,
    Paused,
    Taken,
    Unhosted,
    Unknown,
)
from comity.core.envelope.envelope import Reply, Request
from comity.core.journal.terms import Fence
from comity.errors import UnavailableError
from comity.runtime.call.call import Call
from comity.runtime.call.draft import Arrival
from comity.runtime.call.errand import Errand
from comity.runtime.call.events import EventLog, Kind, Step
from comity.runtime.call.tasks import all_ended
from comity.runtime.call.way import Way
from comity.runtime.cluster.asking import Asking, Waits
from comity.runtime.cluster.leases import Holds
from comity.runtime.cluster.peers import Peers
from comity.runtime.cluster.served import Served

if TYPE_CHECKING:
    from comity.runtime.call.path import CallPath


TAKEN_S: Final = 0.05  # a call that is answered within this time is not acknowledged before
RECENT_MAX: Final = 10_000


class _Told(EventLog):
    """Sends the events of a call to the nodes that wait for it, except those that the caller's node adds itself."""

    __slots__ = ("_number", "_peers", "_request_id", "_served")

    def __init__(self, peers: Peers, served: Served, request_id: str) -> None:
        super().__init__()
        self._peers = peers
        self._served = served
        self._request_id = request_id
        self._number = 0

    def add_step(self, kind: Kind, at_ms: int, of: Step, data: Any = None, text: str = "") -> None:
        """Send the event to every node that waits for the call."""
        if of[0] == self._request_id and kind in _OF_CALLER:
            return
        self._number += 1
        happened = Happened(self._request_id, self._number, kind, at_ms, of, data, text)
        for asker in self._served.askers:
            self._peers.send(asker, happened)


_OF_CALLER: Final = frozenset({Kind.QUEUED, Kind.REFUSED, Kind.SETTLED})


class Server:
    """Calls of other nodes that run here."""

    def __init__(
        self,
        path: CallPath,
        peers: Peers,
        holds: Holds,
        asking: Asking,
        served: dict[str, Served],
        let_go: Callable[[Call], None],
    ) -> None:
        self._path = path
        self._peers = peers
        self._holds = holds
        self._asking = asking
        self._served = served  # by request id
        self._let_go = let_go
        self._recent: dict[str, None] = {}  # recent request ids, oldest first
        # Request ids with the asking node, of the last two periods of `TAKEN_S`; most are answered within that time.
        self._untold: tuple[dict[str, str], dict[str, str]] = {}, {}
        self._timer: asyncio.TimerHandle | None = None

    def received(self, sender: str, message: Message) -> None:
        """Handle a message of a calling node."""
        match message:
            case Ask(request=request):
                served = self._served.get(request.request_id)
                if served is None:
                    served = Served()
                    served.note(sender, message.caller)
                    self._begin(served, message)
                    self._tell_later(request.request_id, sender)
                else:
                    self._peers.send(sender, Taken(request.request_id, request.parent_id is None))
                    served.note(sender, message.caller)
            case Inquire(request_id=request_id):
                if (served := self._served.get(request_id)) is not None:
                    served.note_inquiry(sender)
                    self._peers.send(sender, Taken(request_id))
                else:
                    reply = self._settled(request_id)
                    self._peers.send(sender, Unknown(request_id) if reply is None else Answer(request_id, reply))
            case Cancel(request_id=request_id, why=why):
                served = self._served.get(request_id)
                if served is not None and served.may_cancel(sender):
                    self._cancel(served, why)
            case _:
                pass

    def _tell_later(self, request_id: str, sender: str) -> None:
        """Acknowledge a call after `TAKEN_S`, unless it is answered before, as most are."""
        self._untold[1][request_id] = sender
        if self._timer is None:
            self._timer = self._peers.loop.call_later(TAKEN_S, self._tell)

    def _tell(self) -> None:
        before, since = self._untold
        for request_id, sender in before.items():
            if request_id in self._served:
                self._peers.send(sender, Taken(request_id, "." not in request_id))
        self._untold = since, {}
        self._timer = self._peers.loop.call_later(TAKEN_S, self._tell) if since else None

    def serves(self, request_id: str) -> bool:
        """Return whether a call of another node runs here."""
        return request_id in self._served

    def stop_ended(self) -> None:
        """Stop calls whose trees have ended in the store: the asking node may have lost the caller."""
        for request_id, served in list(self._served.items()):
            if served.call is not None and self._settled(request_id) is not None:
                self._cancel(served, "its tree has ended")

    async def close(self) -> None:
        """Give up the calls: the next holders of their agents resume them."""
        if self._timer is not None:
            self._timer.cancel()
        tasks = {one.task: f"serve {name}" for name, one in self._served.items() if one.task is not None}
        for served in list(self._served.values()):
            if served.call is not None:
                self._let_go(served.call)
            elif served.task is not None:
                served.task.cancel()
        await all_ended(tasks)
        for task in tasks:
            task.cancel()

    def _cancel(self, served: Served, why: str) -> None:
        if served.call is not None:
            self._path.settlement.cancel(served.call, why)
        elif served.task is not None:
            served.task.cancel()

    def _begin(self, served: Served, ask: Ask) -> None:
        """Open a call, and answer when it has ended; use a task only if that needs awaiting."""
        errand = self._errand(served, ask)
        request_id = errand.arrival.request.request_id
        try:
            opened = self._open_at_once(served, ask, errand)
        except UnavailableError:
            return  # the caller's node asks again
        self._served[request_id] = served
        if isinstance(opened, Call):
            served.call, served.task = opened, self._peers.loop.create_future()
            served.task.add_done_callback(partial(self._ended, served, opened))
            self._path.wait_with(opened, served.task)
            return
        serving = self._serve(served, ask, errand, opened)
        served.task = self._peers.loop.create_task(serving, name=f"serve {request_id}")
        # A callback, not a `finally` in the task: a task that is cancelled before it began runs no code.
        served.task.add_done_callback(lambda _: self._served.pop(request_id))

    async def _serve(self, served: Served, ask: Ask, errand: Errand, opened: Reply | Waits | None) -> None:
        with contextlib.suppress(UnavailableError):  # the agent's holder is unknown: the caller's node asks again
            answering = self._answer(served, ask, errand) if opened is None else self._say(served, errand, opened)
            self._tell_askers(served, await answering)

    def _tell_askers(self, served: Served, message: Message) -> None:
        for asker in served.askers:
            self._peers.send(asker, message)

    def _ended(self, served: Served, call: Call, waiter: asyncio.Future[None]) -> None:
        """Answer for a call that has ended or has left this node."""
        del self._served[call.request.request_id]
        if waiter.cancelled():
            self._path.stop_waiting(call, waiter)
        else:
            self._tell_askers(served, _said_of(call))

    def _errand(self, served: Served, ask: Ask) -> Errand:
        arrival = self._arrive(ask.request)
        request_id = arrival.request.request_id
        told = _Told(self._peers, served, request_id) if ask.is_watched else None
        return Errand(arrival, None, log=told, is_fresh=ask.is_fresh and self._is_new(request_id))

    def _open_at_once(self, served: Served, ask: Ask, errand: Errand) -> Call | Reply | Waits | None:
        """Open a call if this node holds its agent and the agent is free; return None if other nodes must be asked first."""
        arrival = errand.arrival
        fence = None if arrival.agent is None else self._holds.fence(arrival.request.target)
        if fence is None:
            return None
        way = self._way(served, ask, errand, fence)
        is_full = self._asking.full_seat(arrival, way) is not None
        return None if is_full else self._asking.open(errand, arrival, way, may_be_known=not errand.is_fresh)

    def _way(self, served: Served, ask: Ask, errand: Errand, fence: Fence) -> Way:
        request = errand.arrival.request
        self._path.sessions.refresh(request.tenant_id, request.session_id)
        return Way(
            fence=fence, caller=served.caller, is_served=True, bounds=ask.bounds, loan=ask.loan, is_fresh=errand.is_fresh
        )

    async def _answer(self, served: Served, ask: Ask, errand: Errand) -> Message:
        """Open a call once this node holds its agent, and return the answer."""
        arrival = errand.arrival
        request = arrival.request
        if arrival.agent is None:
            return Unhosted(request.request_id)
        fence = await self._holds.locate(request.target, is_hosted=True)
        if not isinstance(fence, Fence):
            return Moved(request.request_id)
        way = self._way(served, ask, errand, fence)
        opened: Call | Reply | Waits | None
        if (full := self._asking.full_seat(arrival, way)) is None:
            opened = self._asking.open(errand, arrival, way, may_be_known=not errand.is_fresh)
        else:
            opened = await self._asking.open_full(errand, arrival, way, full, may_be_known=not errand.is_fresh)
        return Moved(request.request_id) if opened is None else await self._say(served, errand, opened)

    async def _say(self, served: Served, errand: Errand, opened: Call | Reply | Waits) -> Message:
        request_id = errand.arrival.request.request_id
        if isinstance(opened, Waits):  # a repeated request
            return Paused(request_id, opened.approval_id)
        if isinstance(opened, Reply):
            await self._path.recorded()  # until it is recorded, a repeated request joins this one
            return Answer(request_id, opened)
        served.call = opened
        await self._path.reply_of(opened)
        return _said_of(opened)

    def _is_new(self, request_id: str) -> bool:
        """Note a request id and return whether it is not among the recent ones."""
        if request_id in self._recent:
            return False
        self._recent[request_id] = None
        if len(self._recent) > RECENT_MAX:
            del self._recent[next(iter(self._recent))]
        return True

    def _arrive(self, request: Request) -> Arrival:
        """Return the request's arrival, with this node's agent and capability; limits only shrink."""
        address = self._path.registry.resolve(request.target)
        if address is None:
            return Arrival(request, bytes(request.body), None, None, (), "")
        agent, limits = address.agent, request.limits
        capability = agent.capabilities.get(request.capability)
        if agent.limits is not None:
            limits = limits.narrow(agent.limits)
        if capability is not None and capability.limits is not None:
            limits = limits.narrow(capability.limits)
        latest_at = self._peers.now_ms() + limits.timeout_ms_max
        if address.text != request.target or limits != request.limits or latest_at < request.deadline_at:
            deadline_at = min(request.deadline_at, latest_at)
            request = replace(request, target=address.text, limits=limits, deadline_at=deadline_at)
        return Arrival(request, bytes(request.body), agent, capability, (), "")

    def _settled(self, request_id: str) -> Reply | None:
        stored = self._peers.journal.call(request_id)
        return None if stored is None or stored.settled_at is None else stored.reply


def _said_of(call: Call) -> Message:
    """Return the message about a call that has ended, is paused or has left this node."""
    request, reply = call.request, call.reply
    if reply is None or call.has_moved:
        return Moved(request.request_id)
    if call.state is State.PAUSED and request.parent_id is not None:  # its caller waits with it
        return Paused(request.request_id, reply.data["approval_id"])
    return Answer(request.request_id, reply)
