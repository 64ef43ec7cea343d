"""The callee's side of calls that come from other nodes: through the one call path, once for each request id."""

from __future__ import annotations

import asyncio
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
from comity.runtime.call.call import Call, Errand, Way
from comity.runtime.call.draft import Arrival
from comity.runtime.call.events import EventLog, Kind, Step
from comity.runtime.call.tasks import all_ended

if TYPE_CHECKING:
    from comity.runtime.cluster.cluster import Cluster


TAKEN_S: Final = 0.05  # a call that is answered within this time is not acknowledged before
RECENT_MAX: Final = 10_000


class Served:
    """A call another node waits for."""

    __slots__ = ("askers", "call", "caller", "task")

    def __init__(self) -> None:
        self.askers: dict[str, int] = {}  # with the token under which each holds the caller; 0 for a user's call
        self.caller: Fence | None = None  # the newest under which the call was asked for
        self.call: Call | None = None
        self.task: asyncio.Task[None] | None = None

    def note(self, asker: str, caller: Fence | None) -> None:
        """Note who asks and under which token; the last one is who is most likely to wait."""
        self.askers.pop(asker, None)
        self.askers[asker] = _token(caller)
        if _token(caller) > _token(self.caller):
            self.caller = caller
            if self.call is not None and self.call.way is not None:
                self.call.way.caller = caller

    def note_inquiry(self, asker: str) -> None:
        """Note a node that asks what became of a call that it asked for before, perhaps before this node restarted."""
        known = self.askers.pop(asker, None)
        self.askers[asker] = known if known is not None else 0 if self.caller is None else -1

    def may_cancel(self, asker: str) -> bool:
        """Return whether a node asked for the call, and is not a former holder of its caller."""
        return self.askers.get(asker, -1) >= _token(self.caller)


class _Told(EventLog):
    """The steps of a call that another node watches, told as they come; what the caller's node notes itself is left out."""

    __slots__ = ("_cluster", "_number", "_request_id", "_served")

    def __init__(self, cluster: Cluster, served: Served, request_id: str) -> None:
        super().__init__()
        self._cluster = cluster
        self._served = served
        self._request_id = request_id
        self._number = 0

    def add_step(self, kind: Kind, at_ms: int, of: Step, data: Any = None, text: str = "") -> None:
        """Tell every node that waits for the call."""
        if of[0] == self._request_id and kind in _OF_CALLER:
            return
        self._number += 1
        happened = Happened(self._request_id, self._number, kind, at_ms, of, data, text)
        for asker in self._served.askers:
            self._cluster.send(asker, happened)


_OF_CALLER: Final = frozenset({Kind.QUEUED, Kind.REFUSED, Kind.SETTLED})


def _token(fence: Fence | None) -> int:
    return 0 if fence is None else fence.token


class Server:
    """Calls of other nodes that run here."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._served: dict[str, Served] = {}
        self._recent: dict[str, None] = {}  # ids that were asked for, the newest
        # What was asked for in the last two stretches of `TAKEN_S`, and by whom; most is answered within that time.
        self._untold: tuple[dict[str, str], dict[str, str]] = {}, {}
        self._timer: asyncio.TimerHandle | None = None

    def received(self, sender: str, message: Message) -> None:
        """Take what another node asks."""
        match message:
            case Ask(request=request):
                served = self._served.get(request.request_id)
                if served is None:
                    served = Served()
                    self._begin(served, message)
                    self._tell_later(request.request_id, sender)
                else:
                    self._cluster.send(sender, Taken(request.request_id, request.parent_id is None))
                served.note(sender, message.caller)
            case Inquire(request_id=request_id):
                if (served := self._served.get(request_id)) is not None:
                    served.note_inquiry(sender)
                    self._cluster.send(sender, Taken(request_id))
                else:
                    reply = self._settled(request_id)
                    self._cluster.send(sender, Unknown(request_id) if reply is None else Answer(request_id, reply))
            case Cancel(request_id=request_id, why=why):
                served = self._served.get(request_id)
                if served is not None and served.may_cancel(sender):
                    self._cancel(served, why)
            case _:
                pass

    def _tell_later(self, request_id: str, sender: str) -> None:
        """Say that a call is here, unless it is answered soon: most are, and the answer says so as well."""
        self._untold[1][request_id] = sender
        if self._timer is None:
            self._timer = self._cluster.loop.call_later(TAKEN_S, self._tell)

    def _tell(self) -> None:
        before, since = self._untold
        for request_id, sender in before.items():
            if request_id in self._served:
                self._cluster.send(sender, Taken(request_id, "." not in request_id))
        self._untold = since, {}
        self._timer = self._cluster.loop.call_later(TAKEN_S, self._tell) if since else None

    def asker(self, request_id: str) -> str | None:
        """Return the node that asked for a call last."""
        served = self._served.get(request_id)
        return None if served is None else next(reversed(served.askers))

    def serves(self, request_id: str) -> bool:
        """Return whether a call of another node is here."""
        return request_id in self._served

    async def close(self) -> None:
        """Let the calls go to the nodes that take their agents next."""
        if self._timer is not None:
            self._timer.cancel()
        tasks = [one.task for one in self._served.values() if one.task is not None]
        for served in list(self._served.values()):
            if served.call is not None:
                self._cluster.let_go(served.call)
            elif served.task is not None:
                served.task.cancel()
        await all_ended({task: task.get_name() for task in tasks})
        for task in tasks:
            task.cancel()

    def _cancel(self, served: Served, why: str) -> None:
        if served.call is not None:
            self._cluster.path.settlement.cancel(served.call, why)
        elif served.task is not None:
            served.task.cancel()

    def _begin(self, served: Served, ask: Ask) -> None:
        request_id = ask.request.request_id
        self._served[request_id] = served
        served.task = self._cluster.loop.create_task(self._serve(served, ask), name=f"serve {request_id}")
        # Not at the end of the task itself: a task that is cancelled before it began has none.
        served.task.add_done_callback(lambda _: self._served.pop(request_id))

    async def _serve(self, served: Served, ask: Ask) -> None:
        try:
            answer = await self._answer(served, ask)
        except UnavailableError:
            return  # it is unknown which node holds the agent: the caller's node asks again
        for asker in served.askers:
            self._cluster.send(asker, answer)

    async def _answer(self, served: Served, ask: Ask) -> Message:
        cluster, request = self._cluster, ask.request
        is_fresh = ask.is_fresh and self._is_new(request.request_id)
        arrival = self._arrive(request)
        if arrival.agent is None:
            return Unhosted(request.request_id)
        request = arrival.request
        fence = await cluster.holds.locate(request.target, is_hosted=True)
        if not isinstance(fence, Fence):
            return Moved(request.request_id)
        cluster.path.sessions.refresh(request.tenant_id, request.session_id)
        way = Way(fence=fence, caller=served.caller, is_served=True, bounds=ask.bounds, loan=ask.loan)
        told = _Told(cluster, served, request.request_id) if ask.is_watched else None
        opened = await cluster.enter(Errand(arrival, None, log=told), arrival, way, may_be_known=not is_fresh)
        if opened is None:
            return Moved(request.request_id)
        if isinstance(opened, Reply):
            await cluster.path.recorded()  # until then the same question, asked again, joins this one and is not asked anew
            return Answer(request.request_id, opened)
        served.call = opened
        reply = await cluster.path.reply_of(opened)
        if opened.way is not None and opened.way.is_moved:
            return Moved(request.request_id)
        if opened.state is State.PAUSED and request.parent_id is not None:  # its caller waits with it
            return Paused(request.request_id, reply.data["approval_id"])
        return Answer(request.request_id, reply)

    def _is_new(self, request_id: str) -> bool:
        """Note an id and return whether it was not asked for before, as far as this node remembers."""
        if request_id in self._recent:
            return False
        self._recent[request_id] = None
        if len(self._recent) > RECENT_MAX:
            del self._recent[next(iter(self._recent))]
        return True

    def _arrive(self, request: Request) -> Arrival:
        """Return the request with what this node knows of its target; limits only shrink."""
        address = self._cluster.path.registry.resolve(request.target)
        if address is not None:
            limits = request.limits.narrow(address.agent.limits)
            capability = address.agent.capabilities.get(request.capability)
            if capability is not None:
                limits = limits.narrow(capability.limits)
            latest = self._cluster.now_ms() + limits.timeout_ms_max
            request = replace(request, target=address.text, limits=limits, deadline_at=min(request.deadline_at, latest))
        return self._cluster.arrival(request)

    def _settled(self, request_id: str) -> Reply | None:
        stored = self._cluster.journal.call(request_id)
        return None if stored is None or stored.settled_at is None else stored.reply
