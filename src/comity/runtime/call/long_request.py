"""A long request between its admission and its acceptance: it is looked through for personal data in slices.

Meanwhile it counts as every call does (against the budget, the fan-out and the queue of its agent), has its deadline, can be
cancelled and joined by its id. Nothing of it is recorded and nothing runs; what is known of it is a request without words. If
it ends before all of it was looked through, its acceptance and its end are one record.
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
from comity.errors import UnavailableError

if TYPE_CHECKING:
    from comity.runtime.call.call import Call
    from comity.runtime.call.path import CallPath


def look_through(path: CallPath, call: Call, work: Sliced[str | Refused], accept: Callable[[str], None]) -> None:
    """Run the work in slices, then `accept` the call with the note it returns, or deliver its refusal."""
    request = call.request
    # Calls in progress are told apart by their objectives, which are short enough to be looked through at once.
    objective = request.objective if path.answers is None else path.answers.text(call, request.objective)
    call.request = replace(unsaid(request), objective=objective)
    path.reserve(call)
    path.settlement.deadlines.add(call)
    call.seat.coming += 1
    loop = asyncio.get_running_loop()
    call.arriving = loop.create_task(_look(path, call, work, accept), name=f"{request.request_id} arrives")


async def _look(path: CallPath, call: Call, work: Sliced[str | Refused], accept: Callable[[str], None]) -> None:
    try:
        outcome = await path.slices.run(work)
        outcome = path.settlement.stopped() or outcome
    except UnavailableError as error:
        outcome = path.settlement.unavailable(error)
    assert call.state is ADMITTED, "a call that has ended is not looked through any more"
    call.arriving = None
    call.seat.coming -= 1
    if isinstance(outcome, str):
        accept(outcome)
        return
    reply = path.refuse(call.request, outcome, call.log)
    call.account.give_back(1, 0)  # what was refused costs nothing
    path.settlement.take_back(call, reply)
