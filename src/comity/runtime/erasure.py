"""Erasing a session for good, whatever runs in it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from comity.core.session import is_first
from comity.ports import Journal
from comity.runtime.call import Call

if TYPE_CHECKING:
    from comity.runtime.path import CallPath


async def erase_session(path: CallPath, journal: Journal, tenant_id: str, session_id: str) -> int:
    """Remove everything that was said in a session; return how many records that were.

    What runs in it is cancelled first: its end, and all it wrote before, is erased with the rest, and it writes nothing after.
    Only the call that asks for the erasure goes on. It can add nothing to the session, and its own end is written as usual.
    """
    while True:
        running = _running(path, tenant_id, session_id)
        for call in running:
            path.settlement.cancel(call, "its session was erased")
        for call in running:
            await path.reply_of(call)
        await path.durable()
        await path.recorder.drained()
        if not _running(path, tenant_id, session_id):  # nothing came meanwhile, and from here on nothing can
            break
    path.sessions.drop(tenant_id, session_id)
    return journal.erase(tenant_id, session_id) + path.recorder.spans.erase(session_id, tenant_id=tenant_id)


def _running(path: CallPath, tenant_id: str, session_id: str) -> list[Call]:
    """Return the trees and parts of trees in a session, but for the one whose code asks."""
    task = asyncio.current_task()
    asking = next((call.top for call in path.calls.values() if call.task is task), None)
    return [
        call
        for call in path.calls.values()
        if is_first(call.request)
        and call is not asking
        and (call.request.tenant_id, call.request.session_id) == (tenant_id, session_id)
    ]
