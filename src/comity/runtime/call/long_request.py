"""Scans a long request for personal data in slices, between its admission and its acceptance.

Meanwhile the call counts as usual (against the budget, the fan-out and the queue of its agent), has its deadline, and can be
cancelled or joined by its id. Nothing of it is recorded or runs, and its request in memory is without content. If it ends
before the scan does, its acceptance and its end are recorded together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from comity.core.call.admission import Refused
from comity.core.call.guardrail import unsaid
from comity.core.call.machine import ADMITTED
from comity.core.document.slices import Sliced
from comity.core.envelope.envelope import Reply, Request
from comity.errors import UnavailableError
from comity.runtime.call.pace import user_of
from comity.runtime.call.screening import unreadable

if TYPE_CHECKING:
    from comity.runtime.call.call import Call
    from comity.runtime.call.events import EventLog
    from comity.runtime.call.settle import Settlement
    from comity.runtime.call.slices import Slices
    from comity.runtime.session.privacy import Answers


class LongRequests:
    """The long requests of a node that are being scanned."""

    def __init__(
        self,
        settlement: Settlement,
        slices: Slices,
        answers: Answers | None,
        reserve: Callable[[Call], None],
        accept: Callable[[Call, int, str], None],
        refuse: Callable[[Request, Refused, EventLog | None], Reply],
        now_ms: Callable[[], int],
    ) -> None:
        self._settlement = settlement
        self._slices = slices
        self._answers = answers
        self._reserve, self._accept, self._refuse, self._now_ms = reserve, accept, refuse, now_ms

    def look_through(self, call: Call, work: Sliced[str | Refused]) -> None:
        """Run the work in slices, then accept the call with the note it returns, or deliver its refusal."""
        request = call.request
        # Admission compares objectives of calls in progress, so the objective, which is short, is scanned at once.
        objective = request.objective
        if objective and self._answers is not None:
            objective = self._answers.text(call, objective)
        call.request = replace(unsaid(request), objective=objective)
        self._reserve(call)
        self._settlement.deadlines.add(call)
        call.seat.coming += 1
        looking = self._look(call, work)
        call.arriving = asyncio.get_running_loop().create_task(looking, name=f"{request.request_id} arrives")

    async def _look(self, call: Call, work: Sliced[str | Refused]) -> None:
        try:
            outcome = await self._slices.run(work, user_of(call.request))
            outcome = self._settlement.stopped() or outcome
        except UnavailableError as error:
            outcome = self._settlement.unavailable(error)
        except Exception as error:  # noqa: BLE001  the task boundary: the caller must not wait for the timeout
            outcome = unreadable(call, error)
        assert call.state is ADMITTED, "a call that has ended is not looked through any more"
        call.arriving = None
        call.seat.coming -= 1
        if isinstance(outcome, str):
            self._accept(call, self._now_ms(), outcome)
            return
        reply = self._refuse(call.request, outcome, call.log)
        call.account.give_back(1, 0)  # a refused call costs nothing
        self._settlement.take_back(call, reply)
