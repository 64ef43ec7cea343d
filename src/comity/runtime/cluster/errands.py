"""The errands that this node waits for, by request id."""

from __future__ import annotations

from collections.abc import Iterator

from comity.core.envelope.envelope import Request
from comity.runtime.call.errand import Errand


class Errands:
    """Errands in progress. Several may have one request id, even from different users."""

    def __init__(self) -> None:
        self._errands: dict[str, list[Errand]] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._errands)

    def begin(self, errand: Errand) -> None:
        """Add an errand."""
        self._errands.setdefault(errand.arrival.request.request_id, []).append(errand)

    def end(self, errand: Errand) -> None:
        """Remove an errand that has its reply."""
        request_id = errand.arrival.request.request_id
        self._errands[request_id].remove(errand)
        if not self._errands[request_id]:
            del self._errands[request_id]

    def is_wanted(self, request_id: str) -> bool:
        """Return whether a caller on this node waits for a call, wherever that runs."""
        return request_id in self._errands

    def without(self, request: Request, node_id: str) -> None:
        """Note that a node does not host the target of a request."""
        for errand in self._errands.get(request.request_id, ()):
            errand.without.append(node_id)
