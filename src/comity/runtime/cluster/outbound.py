"""The calling side of a call on another node: sent until acknowledged, polled until answered, cancelled with its caller.

On this node it is a call like any other, with a deadline, a parent and a share of the budget. The node that runs it writes its
records.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Final

from comity.core.agent.retry import Retry
from comity.core.call.machine import Event, State
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
from comity.core.envelope.envelope import Reply, Status
from comity.core.journal.records import Accepted, Record, Settled
from comity.core.journal.terms import Terms
from comity.core.units import MS_PER_S
from comity.errors import CallChangedError, UnavailableError
from comity.runtime.call.call import Call
from comity.runtime.call.events import Kind
from comity.runtime.call.resume import go_on
from comity.runtime.call.way import Way
from comity.runtime.cluster.errands import Errands
from comity.runtime.cluster.leases import Holds
from comity.runtime.cluster.peers import Peers

if TYPE_CHECKING:
    from comity.runtime.call.path import CallPath

# When an unanswered message is repeated; the deadline of the call ends it.
REPEAT: Final = Retry(attempts=100, delay_ms=100, multiplier=2.0, delay_ms_max=2_000, jitter=0.5)
ROUNDS_MAX: Final = 10  # after this many rounds the pause does not grow any more
SILENCE_S: Final = 0.1  # an unanswered call is asked about after this time
# How often the outcome of a call is read from a store that fails, and the pause between two reads.
READS_MAX: Final = 10
READ_PAUSE_S: Final = 0.05


class Sent:
    """A call that was sent to another node."""

    __slots__ = ("call", "heard", "is_lost", "is_old", "is_sent", "is_taken", "steps", "way")

    def __init__(self, call: Call, way: Way) -> None:
        self.call = call
        self.way = way
        self.heard: asyncio.Event | None = None  # set by `note`; None without a watching task
        self.is_taken = False
        self.is_lost = False  # the node it was sent to seems to be gone
        self.is_old = self.is_sent = False
        self.steps = 0  # the number of the last step that the other node reported of it

    def note(self) -> None:
        """Wake the watching task: the other node sent something."""
        if self.heard is not None:
            self.heard.set()


class Carrier:
    """Calls of this node that run on other nodes."""

    def __init__(self, path: CallPath, peers: Peers, holds: Holds, errands: Errands) -> None:
        self._path = path
        self._peers = peers
        self._holds = holds
        self._errands = errands
        self._sent: dict[str, Sent] = {}
        self._timer: asyncio.TimerHandle | None = None

    def close(self) -> None:
        """Stop repeating messages."""
        if self._timer is not None:
            self._timer.cancel()

    def carry(self, call: Call, way: Way) -> None:
        """Lend the call a part of the budget, and send it."""
        request = call.request
        if call.parent is not None:
            way.loan = call.account.lend()
        if self._path.observer is not None:
            self._path.observer.moved("call", call.state, Event.SEND)
        call.move(Event.SEND)
        sent = self._sent[request.request_id] = Sent(call, way)
        journal = self._peers.journal
        is_known = call.parent is None and (call.live is None or call.live.standing.is_settled)
        if journal.failure is None and (is_known or journal.is_idle):
            self._send(sent, None)
        else:  # the other node finds its caller and its session in the store
            journal.append((), partial(self._send, sent))
        if self._timer is None:
            self._timer = self._peers.loop.call_later(SILENCE_S, self._look)

    def _send(self, sent: Sent, error: Exception | None) -> None:
        """Send a call for the first time. With an `error` of the journal do not send it: its deadline ends it."""
        call, way = sent.call, sent.way
        if error is None and call.state is State.SENT:
            ask = Ask(call.request, way.caller, way.loan, way.bounds, way.is_fresh, call.log is not None)
            self._peers.send(way.node_id, ask)
            sent.is_sent = True

    def _look(self) -> None:
        """Start a watching task for each call that is still unanswered; most are answered before."""
        for sent in [one for one in self._sent.values() if one.call.state is not State.SENT]:
            self._drop(sent.call)  # it was paused with its tree
        silent = [one for one in self._sent.values() if one.heard is None]
        for sent in silent:
            if sent.is_old and sent.is_sent:
                self._watch(sent)
            sent.is_old = True
        self._timer = self._peers.loop.call_later(SILENCE_S, self._look) if silent else None

    def _watch(self, sent: Sent) -> None:
        call, sent.heard = sent.call, asyncio.Event()
        if sent.is_lost:
            sent.note()
        call.task = self._peers.loop.create_task(self._carry(sent, sent.heard), name=call.request.request_id)
        call.task.add_done_callback(partial(self._forget, sent))

    async def _carry(self, sent: Sent, heard: asyncio.Event) -> None:
        call, way, peers = sent.call, sent.way, self._peers
        request = call.request
        silences = 0
        for round_ in count(1):  # until it is answered, or its deadline ends it
            ask = Ask(request, way.caller, way.loan, way.bounds, is_watched=call.log is not None)
            peers.send(way.node_id, Inquire(request.request_id) if sent.is_taken else ask)
            pause_ms = REPEAT.wait_ms(min(round_, ROUNDS_MAX), chance=peers.ids.chance())
            if await _heard(heard, pause_ms) and not sent.is_lost:
                silences = 0
                if sent.is_taken:
                    await asyncio.sleep(pause_ms / MS_PER_S)
                continue
            silences += 1
            if (silences > 1 or sent.is_lost) and await self._has_moved(sent):
                self._move(sent)
                return
            sent.is_lost = False

    def gone(self, node_id: str) -> None:
        """Look for the agents of calls that were sent to a node which seems to have left or died."""
        for sent in list(self._sent.values()):
            if sent.way.node_id == node_id:
                sent.is_lost = True
                sent.note()
                if sent.is_sent and sent.heard is None:
                    self._watch(sent)

    def _drop(self, call: Call) -> None:
        """Forget a call that has been answered or will be sent again."""
        sent = self._sent.get(call.request.request_id)
        if sent is not None and sent.call is call:
            del self._sent[call.request.request_id]

    def _forget(self, sent: Sent, _: asyncio.Task[None]) -> None:
        # A callback, not a `finally`: a task cancelled before it began runs no code. A cancelled task keeps its frame and with
        # it the call, a cycle that the garbage collector does not see (`gc=False`).
        sent.call.task = None
        if self._sent.get(sent.call.request.request_id) is sent:
            del self._sent[sent.call.request.request_id]

    async def _has_moved(self, sent: Sent) -> bool:
        """Return whether the agent has moved: another node holds it, or no node, and then this node takes it."""
        address, node_id = sent.call.request.target, sent.way.node_id
        self._holds.doubt(address, node_id)
        try:
            place = await self._holds.locate(address, is_hosted=self._path.registry.resolve(address) is not None)
        except UnavailableError:
            return False
        return place != node_id

    def _move(self, sent: Sent) -> None:
        """Let the waiters of the call look for its agent again."""
        call = sent.call
        self._drop(call)
        _give_back(call, sent.way, spent=None)
        self._path.settlement.move(call)

    def received(self, sender: str, message: Message) -> None:
        """Handle a message of the node that a call was sent to."""
        match message:
            case Taken(request_id=request_id, is_root=True) if not self._errands.is_wanted(request_id):
                # Only for users' calls: the caller of a child call may have moved, and asks again from its new node.
                self._peers.send(sender, Cancel(request_id, "its user has gone on"))
            case Taken() | Answer() | Paused() | Happened() | Unknown() | Moved() | Unhosted():
                if (sent := self.sent(message.request_id, sender)) is not None:  # else it has ended, or is on another node
                    self._hear(sent, message)
            case _:
                pass

    def _hear(self, sent: Sent, message: Taken | Answer | Paused | Happened | Unknown | Moved | Unhosted) -> None:
        call = sent.call
        match message:
            case Answer(reply=reply):
                self.answer(sent, reply)
            case Paused(approval_id=approval_id):
                self._pause(call, approval_id)
            case Happened(number=number) if call.log is not None and number > sent.steps:
                sent.steps = number  # events out of order are dropped
                with contextlib.suppress(ValueError):  # a kind of event that a newer version sends
                    call.log.add_step(Kind(message.kind), message.at_ms, message.of, message.data, message.text)
            case Happened():
                pass
            case Taken():
                sent.is_taken = True
                sent.note()
            case Unknown():
                sent.is_taken = False
                sent.note()
            case Moved() | Unhosted():
                if isinstance(message, Unhosted):
                    self._errands.without(call.request, sent.way.node_id)
                self._holds.doubt(call.request.target, sent.way.node_id)
                if call.task is not None:
                    call.task.cancel()
                self._move(sent)

    def _pause(self, call: Call, approval_id: str) -> None:
        """Pause this node's part of a tree: a call below it waits for an approval on another node."""
        if call.parent is not None and self.pause_above(call.parent, approval_id):
            self._drop(call)

    def pause_above(self, parent: Call, approval_id: str) -> bool:
        """Pause this node's part of the tree above a paused call; return False if the approval is already answered."""
        path = self._path
        approval = path.toolbox.approval(approval_id)
        if approval is None or approval.granted is not None:  # the message is late: the tree has resumed
            return False
        path.settlement.pause(parent.top, approval, partial(go_on, path, self._peers.journal, approval_id))
        return True

    def answer(self, sent: Sent, reply: Reply) -> None:
        """Settle the call with the reply that the other node has recorded."""
        call = sent.call
        self._drop(call)
        if call.task is not None:
            call.task.cancel()
        _give_back(call, sent.way, spent=reply)
        if reply.error is not None and reply.error.code == "IDENTITY_MISMATCH":
            disown(self._path, call)
        usage = reply.usage
        call.calls_below = usage.calls
        call.use_tokens(usage)
        self._path.sessions.refresh(call.request.tenant_id, call.request.session_id)
        self._path.settlement.settle(call, Event.FINISH, reply)

    def answered_in_store(self, call: Call) -> bool:
        """Settle a call past its deadline with its stored reply, if there is one: only the message was late."""
        sent = self._sent.get(call.request.request_id)
        if sent is None:
            return False
        with contextlib.suppress(UnavailableError):
            stored = self._peers.journal.call(call.request.request_id)
            if stored is not None and stored.settled_at is not None and stored.reply is not None:
                self.answer(sent, stored.reply)
                return True
        return False

    def ended(self, call: Call, way: Way, event: Event, records: list[Record]) -> None:
        """Clean up after a sent call has ended on this node."""
        request_id = call.request.request_id
        end = next(one for one in records if type(one) is Settled and one.request.request_id == request_id)
        if event is Event.FINISH:  # recorded by the node that ran it
            if len(records) > 1:
                self._path.sessions.append([one for one in records if one is not end])
        else:
            self.withdraw(request_id)
            self._give_up(call, way, end, records)
            return
        self._path.settlement.deliver(call, None)

    def _give_up(self, call: Call, way: Way, end: Settled, records: list[Record]) -> None:
        """Record the end of a sent call if it was accepted and is open; its waiters get the stored outcome."""
        fences = () if way.caller is None else (way.caller,)
        terms = Terms(fences=fences, open=(end.request.request_id,), ends=end.request.request_id)
        self._path.sessions.append(records, partial(self._given_up, call, way, end, records), terms)

    def _given_up(
        self, call: Call, way: Way, end: Settled, records: list[Record], error: Exception | None, reads: int = READS_MAX
    ) -> None:
        journal, request_id = self._peers.journal, end.request.request_id
        if isinstance(error, CallChangedError):
            try:
                stored = journal.call(request_id)
            except UnavailableError as unreadable:
                self._look_again(call, unreadable, partial(self._given_up, call, way, end, records, error), reads)
                return
            if stored is None:  # never accepted: record its end, in case it still arrives
                then = partial(self._never_begun, call, way, end, records)
                callers = () if end.request.parent_id is None else (end.request.parent_id,)
                journal.append(_unbegun(end, journal.node_id), then, Terms(unknown=request_id, open=callers))
                return
            if stored.settled_at is None or stored.reply is None:  # accepted meanwhile
                self._give_up(call, way, end, records)
                return
            _learn(call, way, stored.reply)
            error = None
        self._path.settlement.deliver(call, error)

    def _never_begun(
        self, call: Call, way: Way, end: Settled, records: list[Record], error: Exception | None, reads: int = READS_MAX
    ) -> None:
        if isinstance(error, CallChangedError):
            try:
                is_known = self._peers.journal.call(end.request.request_id) is not None
            except UnavailableError as unreadable:
                self._look_again(call, unreadable, partial(self._never_begun, call, way, end, records, error), reads)
                return
            if is_known:  # accepted meanwhile
                self._give_up(call, way, end, records)
                return
            error = None  # its caller has ended, and no retry can follow
        self._path.settlement.deliver(call, error)

    def _look_again(self, call: Call, unreadable: Exception, look: Callable[[int], None], reads: int) -> None:
        """Read the outcome of a call again after a pause."""
        if reads > 1 and self._peers.journal.failure is None:
            self._peers.loop.call_later(READ_PAUSE_S, look, reads - 1)
        else:
            self._path.settlement.deliver(call, unreadable)

    def withdraw(self, request_id: str) -> bool:
        """Cancel a call on the other node; return whether it was sent at all."""
        sent = self._sent.pop(request_id, None)
        if sent is None:
            return False
        self._peers.send(sent.way.node_id, Cancel(request_id, "its caller has ended"))
        return True

    def sent(self, request_id: str, node_id: str) -> Sent | None:
        """Return a call that was sent to this node id and has not ended."""
        sent = self._sent.get(request_id)
        is_there = sent is not None and sent.call.state is State.SENT and sent.way.node_id == node_id
        return sent if is_there else None


def disown(path: CallPath, call: Call) -> None:
    """Forget the session that a call created here: another user created it first, on another node."""
    request = call.request
    if call.live is not None and call.live.session.user_id == request.user_id:
        path.sessions.drop(request.tenant_id, request.session_id)


def _learn(call: Call, way: Way, reply: Reply) -> None:
    """Take over the stored reply of a call that was given up here, and charge its usage."""
    call.reply = reply
    _give_back(call, way, spent=reply)
    if call.parent is not None:
        call.parent.calls_below += reply.usage.calls
        call.parent.use_tokens(reply.usage)


def _give_back(call: Call, way: Way, spent: Reply | None) -> None:
    """Return the unspent part of a loan to the account; all of it for a call that moves, which will get a new loan.

    Return nothing if a call ended unanswered, since its usage is unknown.
    """
    if way.loan is None:
        return
    loan, way.loan = way.loan, None
    calls, tokens = (0, 0) if spent is None else (spent.usage.calls, spent.usage.total_tokens)
    never_ran = spent is None or spent.status is Status.REFUSED
    call.account.give_back(loan.calls - calls + never_ran, (loan.tokens or 0) - tokens)


def _unbegun(end: Settled, node_id: str) -> tuple[Record, ...]:
    """Return the records of a call that ended before it was accepted: acceptance and end."""
    return (Accepted(end.request, min(end.at_ms, end.request.deadline_at - 1), node_id), end)


async def _heard(event: asyncio.Event, pause_ms: float) -> bool:
    """Return whether the event was set within `pause_ms`."""
    try:
        async with asyncio.timeout(pause_ms / MS_PER_S):
            await event.wait()
    except TimeoutError:
        return False
    event.clear()
    return True
