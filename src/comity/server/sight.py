"""What a sender sees of what others said: the one rule of every route that shows content.

A call, a run and a handoff hold what their user said. That user sees it in clear, and so does a person of the same tenant with
the right `data:reveal`. Every other sender sees what the store holds: tokens in place of personal data.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from msgspec.structs import replace

from comity.core.access import Principal, Right
from comity.core.envelope.envelope import Reply, without_content
from comity.core.handoff.machine import Handoff
from comity.runtime.call.events import Event, Kind
from comity.server.auth import Operator
from comity.server.state import State

# Steps whose data are codes and counts; those of other steps are an agent's or a user's own words.
_BARE: Final = frozenset({Kind.QUEUED, Kind.STARTED, Kind.SETTLED})


class Owned(Protocol):
    """What belongs to a user of a tenant."""

    @property
    def user_id(self) -> str:
        """The user."""
        ...

    @property
    def tenant_id(self) -> str:
        """The tenant."""
        ...


def sees_clear(principal: Principal, thing: Owned) -> bool:
    """Return whether a sender sees personal data in `thing` in clear. An agent never does, whichever user it works for."""
    if type(principal) is Operator:
        return True
    if principal.is_agent or principal.tenant_id != thing.tenant_id:
        return False
    return principal.user_id == thing.user_id or Right.DATA_REVEAL in principal.rights


def handoff_for(state: State, principal: Principal, handoff: Handoff) -> Handoff:
    """Return a handoff, as the store holds it, as a sender sees it."""
    return state.node.handoffs.content.shown(handoff) if sees_clear(principal, handoff.request) else handoff


def event_without_content(event: Event) -> Event:
    """Return a step of a call for a sender who does not see content in clear: events hold no tokens, so it is left out."""
    return replace(event, data=event.data if event.kind in _BARE else None, text="")


async def reply_as_stored(state: State, request_id: str, reply: Reply[Any]) -> Reply[Any]:
    """Return the `reply` of a call that has ended as the store holds it, for a sender who does not see it in clear."""
    stored = await state.reading.ask(lambda reader: reader.call(request_id))
    if stored is None or stored.reply is None:  # it was erased meanwhile
        return without_content(reply)
    return replace(stored.reply, thought="")
