"""The cache of sessions: all in use, and the most recently used others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Final

from comity.core.session.parts import Parts
from comity.runtime.call.call import Call
from comity.runtime.session.live import Live

LIVE_MAX: Final = 10_000  # sessions kept in memory beyond those in use; others are read from the store again
LIVE_BYTES_MAX: Final = 64 * 1024 * 1024  # of these sessions, as they are stored
OWN_MAX: Final = 100  # cached implicit sessions of ended calls: another call seldom names one
_PUT_AWAY: Final = LIVE_MAX // 10  # sessions evicted at once: finding those in use scans all calls


class InMemory(ABC):
    """The sessions of a node that are in memory."""

    def __init__(self, calls: Mapping[str, Call]) -> None:
        self._calls = calls  # in progress, by request id
        self._live: dict[tuple[str, str], Live] = {}  # by tenant and id
        self._room = LIVE_MAX  # how many may be in memory before some are evicted
        self._live_bytes = 0  # of them, as they are stored
        self._room_bytes = LIVE_BYTES_MAX
        self._own: list[Live] = []  # implicit sessions of calls that ended since the last eviction of such sessions

    @abstractmethod
    def forget(self, tenant_id: str, session_id: str) -> None:
        """Drop a session from memory; it is read again when it is needed."""

    def is_live(self, tenant_id: str, session_id: str) -> bool:
        """Return whether a session is in memory."""
        return (tenant_id, session_id) in self._live

    def _let_go(self, tenant_id: str, session_id: str) -> Live | None:
        live = self._live.pop((tenant_id, session_id), None)
        if live is not None:
            self._live_bytes -= live.parts.size
        return live

    def put_parts(self, live: Live, parts: Parts) -> None:
        """Set the stored parts, with which the next save is compared."""
        if self._live.get((live.session.tenant_id, live.session.id)) is live:
            self._live_bytes += parts.size - live.parts.size
        live.parts = parts
        parts.compare(live.standing.document(live.session))

    def _remember(self, live: Live) -> Live:
        if len(self._live) >= self._room or self._live_bytes > self._room_bytes:
            self._put_away()
        self._live[live.session.tenant_id, live.session.id] = live
        self._live_bytes += live.parts.size
        return live

    def rest(self, live: Live) -> None:
        """Note that the call of this implicit session has ended; evict such sessions in batches, with their vaults."""
        self._own.append(live)
        if len(self._own) >= OWN_MAX:
            own, self._own = self._own, []
            in_use = {call.live for call in self._calls.values()}
            for one in own:
                place = (one.session.tenant_id, one.session.id)
                if one not in in_use and self._live.get(place) is one:
                    self.forget(*place)

    def _put_away(self) -> None:
        """Evict the least recently used sessions. A session in use stays: reading it again would make a second copy."""
        in_use = {call.live for call in self._calls.values()}
        idle = [(live.used_at, place) for place, live in self._live.items() if live not in in_use]
        idle.sort()
        most = _PUT_AWAY if len(self._live) >= self._room else 0
        for number, (_, place) in enumerate(idle):
            if number >= most and self._live_bytes <= LIVE_BYTES_MAX * 9 // 10:
                break
            self.forget(*place)
        self._room = max(LIVE_MAX, len(self._live) + _PUT_AWAY)
        self._room_bytes = max(LIVE_BYTES_MAX, self._live_bytes + LIVE_BYTES_MAX // 10)
