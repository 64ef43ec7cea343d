"""Resolves history references, only for the user who owns the session."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from comity.core.redaction import restore_text
from comity.core.session.conversation import Turn, narrower, read_reference
from comity.core.session.session import history_at
from comity.errors import RefusedError
from comity.runtime.session.live import Live
from comity.runtime.session.sessions import Sessions

if TYPE_CHECKING:
    from comity.runtime.call.call import Call
    from comity.runtime.call.path import CallPath


def resolve(
    sessions: Sessions, tenant_id: str, user_id: str, reference: str, policy: str | int = "full"
) -> tuple[Live, tuple[Turn, ...]]:
    """Return the session of a reference, and its turns as far as both the reference and the policy show them.

    Raises `RefusedError` IDENTITY_MISMATCH if this user has no such session, without saying whether another user has.
    """
    named = read_reference(reference)
    live = sessions.find(tenant_id, named.session_id)
    if live is None or live.session.user_id != user_id:
        raise RefusedError(f"{reference} names no session of this user", code="IDENTITY_MISMATCH")
    return live, history_at(sessions.noted(live), named.version, narrower(named.policy, policy))


def resolve_for(path: CallPath, call: Call, reference: str) -> tuple[Turn, ...]:
    """Resolve a reference for the agent of a call, with personal data hidden as for that agent; audit a refusal."""
    request = call.request
    try:
        live, turns = resolve(path.sessions, request.tenant_id, request.user_id, reference, request.history)
    except RefusedError:
        path.steps.note(call, "a history reference that names no session of this user was refused")
        raise
    if live.vault is None or not turns:
        return turns
    # Each session has its own placeholder tokens; this agent knows only those of its call's session.
    clear, show = partial(restore_text, vault=live.vault), path.session_of(call).show
    return tuple(
        replace(turn, **{name: show(clear(getattr(turn, name))) for name in ("role", "text", "task")}) for turn in turns
    )
