"""Budgets of trees that span nodes: a call on another node gets a loan of the budget, and borrows more when it needs more.

A loan is charged to the lender's account at once, so two nodes cannot spend the same budget. The unspent part is returned with
the reply.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from comity.core.call.ledger import Loan
from comity.core.call.machine import State
from comity.core.cluster.messages import Borrow, Lend, Message
from comity.core.units import MS_PER_S
from comity.runtime.call.call import Call
from comity.runtime.call.way import Way
from comity.runtime.cluster.outbound import REPEAT, Carrier
from comity.runtime.cluster.peers import Peers
from comity.runtime.cluster.served import Served


class Loans:
    """Loans of budget to and from other nodes."""

    def __init__(self, peers: Peers, calls: Mapping[str, Call], carrier: Carrier, served: Mapping[str, Served]) -> None:
        self._peers = peers
        self._calls = calls
        self._carrier = carrier
        self._served = served
        self._tasks: dict[asyncio.Task[None], None] = {}

    async def cover(self, call: Call) -> None:
        """Borrow from the lending node until the tree has a call and a token left, or the lender has nothing more."""
        top = call.top
        while is_short(top) and top.way.loan is not None and top.state is State.RUNNING:
            before = top.way.loan
            await (top.way.borrowing or self._ask(top, top.way)).wait()
            if top.way.loan == before:
                return  # the lender has nothing left either

    def top_up(self, call: Call, *, were_there: bool) -> bool:
        """Start to borrow once half of the tokens are used; return whether the budget covers the tokens used so far."""
        top, way = call.top, call.top.way
        if way.loan is None or way.loan.tokens is None:
            return were_there
        if top.account.tokens_used * 2 > way.loan.tokens and way.borrowing is None:
            self._ask(top, way)
        return were_there or (top.account.tokens_used <= way.loan.tokens_most and call.account.is_within(top.account))

    def received(self, sender: str, message: Message) -> None:
        """Handle a request for a larger loan, or the answer to one."""
        match message:
            case Borrow(request_id=request_id, has=has) if (sent := self._carrier.sent(request_id, sender)) is not None:
                self._spawn(self._lend(sent.call, sent.way, has))
            case Lend(request_id=request_id, loan=loan, to=to) if (served := self._calls.get(request_id)) is not None:
                way, had = served.way, served.way.loan
                if way.is_served and had is not None:
                    if loan.calls >= had.calls and (loan.tokens or 0) >= (had.tokens or 0):  # else it is an old one
                        way.loan = loan
                        served.account.widen(loan.of(served.request.limits))
                    # A late or repeated answer to an earlier request does not mean that nothing is left for this one.
                    if way.borrowing is not None and (way.loan != had or to is None or to == had):
                        way.borrowing.set()
            case _:
                pass

    def _ask(self, top: Call, way: Way) -> asyncio.Event:
        """Start to borrow, and return the event of the answer."""
        way.borrowing = asked = asyncio.Event()
        self._spawn(self._borrow(top, way, asked))
        return asked

    async def _borrow(self, top: Call, way: Way, asked: asyncio.Event) -> None:
        """Ask until there is an answer, or the call has ended."""
        peers, request_id = self._peers, top.request.request_id
        try:
            for attempt in range(1, REPEAT.attempts):
                served = self._served.get(request_id)
                if served is None or way.loan is None or top.state is not State.RUNNING:
                    return
                peers.send(served.asker, Borrow(request_id, way.loan))
                left_ms = top.request.deadline_at - peers.now_ms()
                pause_ms = REPEAT.pause_ms(attempt, left_ms=left_ms, chance=peers.ids.chance())
                if pause_ms is None or await _done(asked, pause_ms):
                    return
        finally:
            way.borrowing = None
            asked.set()

    async def _lend(self, call: Call, way: Way, has: Loan) -> None:
        """Enlarge the loan of a call on another node, after borrowing in turn if needed."""
        if way.loan == has:  # else an earlier, larger loan is only sent again
            await self.cover(call)
            if way.loan == has and call.state is State.SENT:
                way.loan = call.account.lend(has)
        if way.loan is not None:
            self._peers.send(way.node_id, Lend(call.request.request_id, way.loan, has))

    def _spawn(self, work: asyncio._CoroutineLike[None]) -> None:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)


def is_short(call: Call) -> bool:
    """Return whether a call's account has no call or no token left."""
    return call.account.calls_left() < 1 or call.account.tokens_left() == 0


async def _done(asked: asyncio.Event, pause_ms: float) -> bool:
    try:
        async with asyncio.timeout(pause_ms / MS_PER_S):
            await asked.wait()
    except TimeoutError:
        return False
    return True
