"""The caller's side of a call that runs on another node: sent until taken, inquired about until answered, withdrawn at its end.

On this node it is a call like any other, with a deadline, a place among its caller's children and a share of its budget. It has
no record of its own here: the node that runs it writes those.
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
SILENCE_S: Final = 0.1  # after which a call that was not answered is asked about
# How often a store that could not be read is asked what became of a call, and how long after each time.
READS_MAX: Final = 10
READ_PAUSE_S: Final = 0.05


class Sent:
    """A call on its way, or taken by the other node."""

    __slots__ = ("call", "heard", "is_lost", "is_old", "is_sent", "is_taken", "steps", "way")

    def __init__(self, call: Call, way: Way) -> None:
        self.call = call
        self.way = way
        self.heard: asyncio.Event | None = None  # of the task that watches it
        self.is_taken = False
        self.is_lost = False  # the node it was sent to seems to be gone
        self.is_old = self.is_sent = False
        self.steps = 0  # the number of the last step that the other node reported of it

    def note(self) -> None:
        """Let the task that watches it go on: something was heard of it."""
        if self.heard is not None:
            self.heard.set()


class Carrier:
    """Calls of this node that run elsewhere."""

    def __init__(self, path: CallPath, peers: Peers, holds: Holds, errands: Errands) -> None:
        self._path = path
        self._peers = peers
        self._holds = holds
        self._errands = errands
        self._sent: dict[str, Sent] = {}
        self._timer: asyncio.TimerHandle | None = None

    def close(self) -> None:
        """Ask for nothing again."""
        if self._timer is not None:
            self._timer.cancel()

    def carry(self, call: Call, way: Way) -> None:
        """Set aside what the call may spend there, and send it."""
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
        """Send a call for the first time. What this node could not write others must not go on with; its deadline ends it."""
        call, way = sent.call, sent.way
        if error is None and call.state is State.SENT:
            ask = Ask(call.request, way.caller, way.loan, way.bounds, way.is_fresh, call.log is not None)
            self._peers.send(way.node_id, ask)
            sent.is_sent = True

    def _look(self) -> None:
        """Ask again for what was not answered for a while; most calls are answered before, and need no task."""
        for sent in [one for one in self._sent.values() if one.call.state is not State.SENT]:
            self._drop(sent.call)  # it was put aside with its tree
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
                    await asyncio.sleep(pause_ms / 1000)
                continue
            silences += 1
            if (silences > 1 or sent.is_lost) and await self._has_moved(sent):
                self._move(sent)
                return
            sent.is_lost = False

    def gone(self, node_id: str) -> None:
        """Look for the agents of calls that are with a node which seems to have left or died."""
        for sent in list(self._sent.values()):
            if sent.way.node_id == node_id:
                sent.is_lost = True
                sent.note()
                if sent.is_sent and sent.heard is None:
                    self._watch(sent)

    def _drop(self, call: Call) -> None:
        """Forget a call that has been answered, or is sent anew."""
        sent = self._sent.get(call.request.request_id)
        if sent is not None and sent.call is call:
            del self._sent[call.request.request_id]

    def _forget(self, sent: Sent, _: asyncio.Task[None]) -> None:
        # Not at the end of the task itself: a task cancelled before it began has none. A cancelled task remembers where it
        # stood, and so the call; the collector does not look at calls.
        sent.call.task = None
        if self._sent.get(sent.call.request.request_id) is sent:
            del self._sent[sent.call.request.request_id]

    async def _has_moved(self, sent: Sent) -> bool:
        """Ask whether another node has the agent now, or no node, which makes this one take it."""
        address, node_id = sent.call.request.target, sent.way.node_id
        self._holds.doubt(address, node_id)
        try:
            place = await self._holds.locate(address, is_hosted=self._path.registry.resolve(address) is not None)
        except UnavailableError:
            return False
        return place != node_id

    def _move(self, sent: Sent) -> None:
        """Let the waiters for the call look for its agent anew."""
        call = sent.call
        self._drop(call)
        _give_back(call, sent.way, spent=None)
        self._path.settlement.move(call)

    def received(self, sender: str, message: Message) -> None:
        """Take what another node says about a call that was sent there."""
        match message:
            case Taken(request_id=request_id, is_root=True) if not self._errands.is_wanted(request_id):
                # Of a call between agents this would be a guess: its caller may have moved, and will ask again from there.
                self._peers.send(sender, Cancel(request_id, "its user has gone on"))
            case Taken() | Answer() | Paused() | Happened() | Unknown() | Moved() | Unhosted():
                if (sent := self.sent(message.request_id, sender)) is not None:  # else it has ended, or is with another node
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
                sent.steps = number  # a step that was overtaken is dropped: steps stand in their order
                with contextlib.suppress(ValueError):  # a kind that only a later version knows
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
        """Put the part of a tree aside that is here: a call below it waits for a person on another node."""
        if call.parent is not None and self.pause_above(call.parent, approval_id):
            self._drop(call)

    def pause_above(self, parent: Call, approval_id: str) -> bool:
        """Put the part of a tree aside in which a call was made that waits for a person; return False if that has answered."""
        path = self._path
        approval = path.toolbox.approval(approval_id)
        if approval is None or approval.granted is not None:  # the message is late, and the tree goes on by now
            return False
        path.settlement.pause(parent.top, approval, partial(go_on, path, self._peers.journal, approval_id))
        return True

    def answer(self, sent: Sent, reply: Reply) -> None:
        """End the call with what the other node has recorded as its end."""
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
        """End a call whose time is up with the end that the store has of it: it came before, only the message did not."""
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
        """Do what is left when a call that was sent has ended on this side."""
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
        """End a call from this side, if it was accepted and has not ended; its waiters get what the store says."""
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
            if stored is None:  # never accepted; should it arrive there still, it must find that it has ended
                then = partial(self._never_begun, call, way, end, records)
                callers = () if end.request.parent_id is None else (end.request.parent_id,)
                journal.append(_unbegun(end, journal.node_id), then, Terms(unknown=request_id, open=callers))
                return
            if stored.settled_at is None or stored.reply is None:  # it was accepted in between
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
            if is_known:  # it was accepted in between
                self._give_up(call, way, end, records)
                return
            error = None  # its caller has ended, and no caller asks for it any more
        self._path.settlement.deliver(call, error)

    def _look_again(self, call: Call, unreadable: Exception, look: Callable[[int], None], reads: int) -> None:
        """See a little later what the store says of a call: it could be written, so it can be read again."""
        if reads > 1 and self._peers.journal.failure is None:
            self._peers.loop.call_later(READ_PAUSE_S, look, reads - 1)
        else:
            self._path.settlement.deliver(call, unreadable)

    def withdraw(self, request_id: str) -> bool:
        """Tell the other node that no caller waits for a call any more; return whether it was sent at all."""
        sent = self._sent.pop(request_id, None)
        if sent is None:
            return False
        self._peers.send(sent.way.node_id, Cancel(request_id, "its caller has ended"))
        return True

    def sent(self, request_id: str, node_id: str) -> Sent | None:
        """Return a call that is with another node, and has not ended here."""
        sent = self._sent.get(request_id)
        is_there = sent is not None and sent.call.state is State.SENT and sent.way.node_id == node_id
        return sent if is_there else None


def disown(path: CallPath, call: Call) -> None:
    """Forget the session that a call began here: another user named it first, on another node."""
    request = call.request
    if call.live is not None and call.live.session.user_id == request.user_id:
        path.sessions.drop(request.tenant_id, request.session_id)


def _learn(call: Call, way: Way, reply: Reply) -> None:
    """Take the end that the store has of a call which was given up here, and count what it used."""
    call.reply = reply
    _give_back(call, way, spent=reply)
    if call.parent is not None:
        call.parent.calls_below += reply.usage.calls
        call.parent.use_tokens(reply.usage)


def _give_back(call: Call, way: Way, spent: Reply | None) -> None:
    """Return what was set aside and not spent: all of it for a call that moves, which is counted anew where it goes.

    What a call that ends unanswered has spent is unknown, so nothing comes back.
    """
    if way.loan is None:
        return
    loan, way.loan = way.loan, None
    calls, tokens = (0, 0) if spent is None else (spent.usage.calls, spent.usage.total_tokens)
    never_ran = spent is None or spent.status is Status.REFUSED
    call.account.give_back(loan.calls - calls + never_ran, (loan.tokens or 0) - tokens)


def _unbegun(end: Settled, node_id: str) -> tuple[Record, ...]:
    """Return what is recorded of a call that ended on its way: it was taken from its caller, and ended."""
    return (Accepted(end.request, min(end.at_ms, end.request.deadline_at - 1), node_id), end)


async def _heard(event: asyncio.Event, pause_ms: float) -> bool:
    """Return whether something was heard before the pause was over."""
    try:
        async with asyncio.timeout(pause_ms / 1000):
            await event.wait()
    except TimeoutError:
        return False
    event.clear()
    return True
