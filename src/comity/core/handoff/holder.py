"""The holder of a handoff, and the names of holders."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

_DESK: Final = "@"


class Holder(Struct, frozen=True, gc=False):
    """The holder of a handoff, with its lease."""

    name: str
    fence: int


def holder_name(node_id: str, number: int) -> str:
    """Return the holder name of a node's receiver."""
    return f"{node_id}#{number}"


def desk_name(agent_id: str) -> str:
    """Return the name of a holder without a process: it accepts now and ends later; only its lease shows that it is gone."""
    return f"{_DESK}{agent_id}#1"


def is_process(node_id: str) -> bool:
    """Return whether a node id (from `node_of`) belongs to a process whose death can be detected."""
    return not node_id.startswith(_DESK)


def result_session(handoff_id: str) -> str:
    """Return the id of the session whose vault hides the receiver's content; the caller's session is in use on its node.

    No user can name it, since it is not printable.
    """
    return f"{handoff_id}\x1fresult"


def node_of(holder: str) -> str:
    """Return the node a receiver belongs to."""
    return holder.partition("#")[0]
