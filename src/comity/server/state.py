"""What every door of a server shares: the node, the settings, who may ask, and what is counted."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Any, Final

from comity import CallHandle, Node
from comity.core.units import NS_PER_MS
from comity.server.auth import Gate
from comity.server.leases import Receivers
from comity.server.live import LiveFeed
from comity.server.metrics import CallCounts, Metrics
from comity.server.reading import Reading
from comity.server.refusals import Refusals
from comity.server.settings import Settings
from comity.server.sources import Aside
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
        self.aside = Aside()
        self.started_at = self.now_ms()
        self.is_draining = False
        self.description = b""  # of the API, as JSON

    def keep(self, handle: CallHandle[Any]) -> None:
        """Keep the handle of a call that was left to run; the oldest goes where there are too many."""
        if handle.asked is None:  # it had ended before: the store has its reply
            return
        self.handles[handle.request_id] = handle
        while len(self.handles) > HANDLES_KEPT_MAX:
            self.handles.popitem(last=False)

    def kept(self, found: CallHandle[Any]) -> CallHandle[Any]:
        """Return the kept handle of the call that `found` stands for, which has its events, else `found`.

        After an erasure another user may have made another call under the same id: its handle is not the kept one.
        """
        handle = self.handles.get(found.request_id)
        if handle is None or _identity(handle) != _identity(found):
            self.handles.pop(found.request_id, None)
            return found
        return handle

    def forget(self, tenant_id: str, session_id: str) -> None:
        """Drop the handles of the calls of a session that was erased."""
        for request_id, handle in list(self.handles.items()):
            if handle.asked is None or (handle.asked.tenant_id, handle.asked.session_id) == (tenant_id, session_id):
                del self.handles[request_id]

    def drain(self) -> None:
        """Take no further calls and end every stream."""
        self.is_draining = True
        self.live.close()
        self.receivers.close()
        self.streams.drain()

    @staticmethod
    def now_ms() -> int:
        """Return the time by which tokens and codes end."""
        return time.time_ns() // NS_PER_MS


def _identity(handle: CallHandle[Any]) -> tuple[str, str, str, int] | None:
    """Return what tells a call from every other that was made under the same id."""
    asked = handle.asked
    return None if asked is None else (asked.tenant_id, asked.user_id, asked.session_id, asked.created_at)
