"""`Errand`: a call that this node makes wherever the agent is."""

from __future__ import annotations

import asyncio

from comity.core.envelope.envelope import Reply
from comity.core.tracing.trace_context import TraceContext
from comity.runtime.call.call import Call
from comity.runtime.call.draft import Arrival
from comity.runtime.call.events import EventLog


class Errand:
    """A call that this node makes, here or on the node that holds the agent; it is sent again if the agent moves."""

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
        self.is_fresh = is_fresh  # its id is newly generated, so no node can know it
        self.is_repeated = is_repeated  # its caller used this id before, so the call is known and charged
        self.arrival = arrival
        self.parent = parent
        self.remote = remote
        self.log = log
        self.call: Call | None = None
        self.task: asyncio.Task[Reply] | None = None
        self.is_withdrawn = False
        self.without: list[str] = []  # nodes that answered that they have no such agent
