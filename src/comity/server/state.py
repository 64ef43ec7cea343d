"""What every door of a server shares: the node, the settings, who may ask, and what is counted."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Any, Final

from comity import CallHandle, Node
from comity.server.auth import Gate
from comity.server.leases import Receivers
from comity.server.live import LiveFeed
from comity.server.metrics import CallCounts, Metrics
from comity.server.reading import Reading
from comity.server.refusals import Refusals
from comity.server.settings import Settings
from comity.server.stream import Streams

# Calls that were left to run, so that their events can be read after their end.
HANDLES_KEPT_MAX: Final = 1_000


class State:
    """The server of one node."""

    def __init__(self, node: Node, settings: Settings, auth: Gate) -> None:
        self.node = node
        self.settings = settings
        self.auth = auth
        self.metrics = Metrics()
        self.calls = CallCounts(node.registry.names)
        self.streams = Streams(settings.heartbeat_s)
        self.reading = Reading(node)
        self.live = LiveFeed(self.reading)
        self.handles: OrderedDict[str, CallHandle[Any]] = OrderedDict()
        self.refusals = Refusals(node)
        self.receivers = Receivers(node)
        self.started_at = self.now_ms()
        self.is_draining = False
        self.description = b""  # of the API, as JSON

    def keep(self, handle: CallHandle[Any]) -> None:
        """Keep the handle of a call that was left to run; the oldest goes where there are too many."""
        self.handles[handle.request_id] = handle
        while len(self.handles) > HANDLES_KEPT_MAX:
            self.handles.popitem(last=False)

    def drain(self) -> None:
        """Take no further calls and end every stream."""
        self.is_draining = True
        self.live.close()
        self.receivers.close()
        self.streams.drain()

    @staticmethod
    def now_ms() -> int:
        """Return the time by which tokens and codes end."""
        return time.time_ns() // 1_000_000
