"""`Errand`: a call that this node makes wherever the agent is."""

from __future__ import annotations

import asyncio
from dataclasses import KW_ONLY, dataclass, field

from comity.core.envelope.envelope import Reply
from comity.core.tracing.trace_context import TraceContext
from comity.runtime.call.call import Call
from comity.runtime.call.draft import Arrival
from comity.runtime.call.events import EventLog


@dataclass(slots=True, eq=False)
class Errand:
    """A call that this node makes, here or on the node that holds the agent; it is sent again if the agent moves."""

    arrival: Arrival
    parent: Call | None
    remote: TraceContext | None = None
    log: EventLog | None = None
    _: KW_ONLY
    is_repeated: bool = False  # its caller used this id before, so the call is known and charged
    is_fresh: bool = False  # its id is newly generated, so no node can know it
    call: Call | None = field(init=False, default=None)
    task: asyncio.Task[Reply] | None = field(init=False, default=None)
    is_withdrawn: bool = field(init=False, default=False)
    without: list[str] = field(init=False, default_factory=list)  # nodes that answered that they have no such agent
