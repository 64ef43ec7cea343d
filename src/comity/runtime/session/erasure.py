"""Erases a session or a person for good, even while calls run in it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import msgspec

from comity.core.journal.records import Document
from comity.core.session.session import is_first
from comity.errors import UnavailableError
from comity.ports import Journal
from comity.runtime.call.call import Call
from comity.runtime.call.tasks import aside

if TYPE_CHECKING:
    from comity.runtime.call.path import CallPath


class _Owned(msgspec.Struct, frozen=True):
    """The owner fields in the head of a stored session."""

    id: str
    tenant_id: str
    user_id: str


_decode = msgspec.json.Decoder(_Owned).decode


async def erase_session(path: CallPath, journal: Journal, tenant_id: str, session_id: str) -> int:
    """Erase the content of a session; return the number of records.

    Calls of the session are cancelled first; their records are erased too, and they write nothing afterwards. Only the call
    that asks for the erasure continues: it can add nothing to the session, and its own end is recorded as usual.
    """
    gone = 0
    while True:
        running = _running(path, tenant_id, session_id)
        for call in running:
            path.settlement.cancel(call, "its session was erased")
        for call in running:
            await path.reply_of(call)
        user_id = ""
        with contextlib.suppress(UnavailableError):  # the owner cannot be read; erase it anyway
            user_id = path.sessions.owner_of(tenant_id, session_id)
        if user_id:
            path.memories.forget_session(tenant_id, user_id, session_id)
        await path.durable()
        await path.recorder.drained()
        if _running(path, tenant_id, session_id):  # a call arrived meanwhile
            continue
        path.sessions.drop(tenant_id, session_id)
        # In a large store this takes seconds. Calls that arrive in the session meanwhile are erased in a further round.
        gone += (
            await aside(journal.erase, tenant_id, session_id) if journal.prunes_aside else journal.erase(tenant_id, session_id)
        )
        if not path.sessions.is_live(tenant_id, session_id):
            break
    return gone + path.recorder.spans.erase(session_id, tenant_id=tenant_id)


async def erase_person(path: CallPath, journal: Journal, tenant_id: str, user_id: str) -> int:
    """Erase all sessions of a person and the memory of them; return the number of records."""
    await path.durable()
    sessions = journal.sessions_of(tenant_id, user_id)
    for _, raw in journal.list_documents(Document.SESSION):
        with contextlib.suppress(msgspec.MsgspecError):  # a session that cannot be decoded names no user
            found = _decode(raw)
            if (found.tenant_id, found.user_id) == (tenant_id, user_id):
                sessions.add(found.id)
    gone = 0
    for session_id in sorted(sessions):
        gone += await erase_session(path, journal, tenant_id, session_id)
    await path.durable()
    return gone + path.memories.erase(tenant_id, user_id)


def _running(path: CallPath, tenant_id: str, session_id: str) -> list[Call]:
    """Return the topmost calls of each tree in a session, except the call that asks for the erasure."""
    task = asyncio.current_task()
    asking = next((call.top for call in path.calls.values() if call.task is task), None)
    return [
        call
        for call in path.calls.values()
        if is_first(call.request)
        and call is not asking
        and (call.request.tenant_id, call.request.session_id) == (tenant_id, session_id)
    ]
