"""A question of this node that is answered here or elsewhere."""

from __future__ import annotations

import asyncio

from comity.core.envelope.envelope import Reply
from comity.core.tracing.trace_context import TraceContext
from comity.runtime.call.call import Call
from comity.runtime.call.draft import Arrival
from comity.runtime.call.events import EventLog


class Errand:
    """A question of this node that is answered here or elsewhere, and may have to be asked more than once."""

    __slots__ = ("arrival", "call", "is_fresh", "is_repeated", "is_withdrawn", "log", "parent", "remote", "task", "without")

    def __init__(
        self,
        arrival: Arrival,
        parent: Call | None,
        remote: TraceContext | None = None,
        log: EventLog | None = None,
        *,
        is_repeated: bool = False,
        is_fresh: bool = False,
    ) -> None:
        self.is_fresh = is_fresh  # its id was made a moment ago: no node can know it
        self.is_repeated = is_repeated  # its caller asked for it before, so that it is known, and was charged
        self.arrival = arrival
        self.parent = parent
        self.remote = remote
        self.log = log
        self.call: Call | None = None
        self.task: asyncio.Task[Reply] | None = None
        self.is_withdrawn = False
        self.without: list[str] = []  # nodes that have no such agent
