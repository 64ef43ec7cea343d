"""A store that cannot be read on behalf of a call: its caller gets an answer, and what was begun of it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comity.core.call.machine import CANCEL
from comity.core.envelope.envelope import Reply, Request, Status

if TYPE_CHECKING:
    from comity.errors import UnavailableError
    from comity.runtime.call.call import Call
    from comity.runtime.call.path import CallPath


def unread(path: CallPath, request: Request, error: UnavailableError, *, is_again: bool = False) -> Call | Reply:
    """Answer a call that could not be opened: with a refusal, or with its end if it was accepted already.

    Where an earlier run may have made it, its caller must not go on as if it had been refused: the error is raised there.
    """
    call = path.calls.get(request.request_id)
    if call is None and is_again:
        raise error
    if call is None:
        return path.refuse(request, path.settlement.unavailable(error))
    failed = path.settlement.unrecorded(error)
    path.settlement.settle(call, CANCEL, Reply(status=Status.ERROR, error=failed, message=failed.message))
    return call
