"""Which request each token was used for: a token id that was used once cannot be used for another request."""

from __future__ import annotations

import heapq
from typing import Final

TOKENS_KEPT_MAX: Final = 100_000


class Replays:
    """Token ids and the requests they were used for, until the tokens expire."""

    __slots__ = ("_expiring", "_most", "_used")

    def __init__(self, most: int = TOKENS_KEPT_MAX) -> None:
        self._most = most
        self._used: dict[tuple[str, str], str] = {}
        self._expiring: list[tuple[int, tuple[str, str]]] = []

    def __len__(self) -> int:
        return len(self._used)

    def bound(self, issuer: str, token_id: str) -> str | None:
        """Return the request a token was used for."""
        return self._used.get((issuer, token_id))

    def entries(self) -> list[tuple[str, str, str, int]]:
        """Return issuer, token id, request id and expiry of every token, the first to expire first."""
        return [(*key, self._used[key], expires_s) for expires_s, key in sorted(self._expiring)]

    def bind(self, issuer: str, token_id: str, request_id: str, expires_s: int, *, now_s: float) -> bool:
        """Return whether a token may be used for a request: for the first one, and for that one again.

        A full table refuses tokens it has not seen, since it could not notice their second use.
        """
        while self._expiring and self._expiring[0][0] <= now_s:
            del self._used[heapq.heappop(self._expiring)[1]]
        key = (issuer, token_id)
        if (known := self._used.get(key)) is not None:
            return known == request_id
        if len(self._used) >= self._most:
            return False
        self._used[key] = request_id
        heapq.heappush(self._expiring, (expires_s, key))
        return True
