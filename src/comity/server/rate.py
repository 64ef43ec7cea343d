"""How many requests one user or agent, or one address without a good token, may make: a token bucket each."""

from __future__ import annotations

import time
from typing import Final

from comity.core.access import Principal
from comity.core.units import MS_PER_S
from comity.errors import UnavailableError
from comity.server.settings import Settings

BUCKETS_MAX: Final = 10_000


def sender_of(principal: Principal) -> str:
    """Return whose requests are counted together: those of a user or an agent, however many tokens there are."""
    return " ".join((principal.kind, principal.tenant_id, principal.user_id, principal.name))


class Rates:
    """The buckets. A bucket that has been full for long is forgotten."""

    __slots__ = ("_burst", "_left", "_per_s")

    def __init__(self, settings: Settings) -> None:
        self._per_s, self._burst = settings.rate_per_s, float(settings.rate_burst)
        self._left: dict[str, tuple[float, float]] = {}  # how many requests, as of when

    def take(self, who: str) -> None:
        """Take one request. Raises `UnavailableError` HTTP_RATE_LIMITED when there is none left."""
        now = time.monotonic()
        known = self._left.get(who)
        if known is None:
            if len(self._left) >= BUCKETS_MAX:
                del self._left[next(iter(self._left))]
            left = self._burst
        else:
            left = known[0] + (now - known[1]) * self._per_s
            if left > self._burst:  # noqa: PLR1730  quicker than `min` on the path of every request
                left = self._burst
        if left < 1:
            wait_ms = int((1 - left) / self._per_s * MS_PER_S) + 1
            message = f"more than {self._per_s:g} requests a second"
            raise UnavailableError(message, code="HTTP_RATE_LIMITED", retry_after_ms=wait_ms)
        self._left[who] = (left - 1, now)
