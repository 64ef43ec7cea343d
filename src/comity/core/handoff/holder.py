"""Who holds a handoff, and the names by which holders and what belongs to them are found."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

_DESK: Final = "@"


class Holder(Struct, frozen=True, gc=False):
    """Who has a handoff, and by which lease."""

    name: str
    fence: int


def holder_name(node_id: str, number: int) -> str:
    """Return the name of one of a node's receivers."""
    return f"{node_id}#{number}"


def desk_name(agent_id: str) -> str:
    """Return the name of a holder that is no process: it accepts now and ends later, and only its lease says it is gone."""
    return f"{_DESK}{agent_id}#1"


def is_process(node_id: str) -> bool:
    """Return whether what `node_of` gave can be looked for."""
    return not node_id.startswith(_DESK)


def result_session(handoff_id: str) -> str:
    """Return the session whose vault hides what a receiver says. Its own: that of the caller is in use where it was called.

    No user can name it: what is not printable is no id.
    """
    return f"{handoff_id}\x1fresult"


def node_of(holder: str) -> str:
    """Return the node a receiver belongs to."""
    return holder.partition("#")[0]
