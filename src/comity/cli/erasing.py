"""Erasing for good from a store that no node of this process has open: no key is needed for it."""

from __future__ import annotations

import contextlib
from pathlib import Path

from comity.cli.reader import Store
from comity.core.journal.audit import Verdict
from comity.core.journal.records import Document, Saved
from comity.engines.clock import SystemIds
from comity.engines.sqlite.engine import visiting
from comity.engines.sqlite.spans.path import spans_path
from comity.engines.sqlite.spans.store import SpanStore
from comity.ports import Journal
from comity.runtime.session.live import key_of
from comity.runtime.session.remembered import without_session


async def erase(
    store: str, tenant_id: str, *, user_id: str, session_id: str = "", has_sessions: bool = False
) -> tuple[int, Verdict]:
    """Erase a session of a user, or a user's memory, with all their sessions if asked; return how many records went.

    With a session goes what was last reported in it about its user.
    """
    sessions = {session_id} if session_id else set()
    with contextlib.ExitStack() as opened:
        if has_sessions:
            reader = opened.enter_context(Store(Path(store)))
            sessions = {one.id for one in reader.sessions() if (one.tenant_id, one.user_id) == (tenant_id, user_id)}
        path = spans_path(store)
        spans = opened.enter_context(SpanStore(path)) if path.is_file() else None
        async with visiting(store, SystemIds().span_id()) as journal:
            if has_sessions:
                sessions |= journal.sessions_of(tenant_id, user_id)
            gone = sum(journal.erase(tenant_id, one) for one in sorted(sessions))
            if not session_id:
                gone += journal.remove(Document.MEMORY, key_of(tenant_id, user_id))
            elif user_id:
                _forget(journal, key_of(tenant_id, user_id), session_id)
            verdict = journal.verify()
        gone += 0 if spans is None else sum(spans.erase(one, tenant_id=tenant_id) for one in sorted(sessions))
    return gone, verdict


def _forget(journal: Journal, key: str, session_id: str) -> None:
    found = journal.load(Document.MEMORY, key)
    if found is not None and (kept := without_session(found[1], session_id)) is not None:
        journal.append((Saved(Document.MEMORY, key, found[0] + 1, kept),))
