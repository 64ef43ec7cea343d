"""What this node has asked for and waits for, by request id."""

from __future__ import annotations

from collections.abc import Iterator

from comity.core.envelope.envelope import Request
from comity.runtime.call.errand import Errand


class Errands:
    """Errands under way. Several may go under one id, those of strangers too."""

    def __init__(self) -> None:
        self._errands: dict[str, list[Errand]] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._errands)

    def begin(self, errand: Errand) -> None:
        """Note an errand."""
        self._errands.setdefault(errand.arrival.request.request_id, []).append(errand)

    def end(self, errand: Errand) -> None:
        """Forget an errand that has its reply."""
        request_id = errand.arrival.request.request_id
        self._errands[request_id].remove(errand)
        if not self._errands[request_id]:
            del self._errands[request_id]

    def is_wanted(self, request_id: str) -> bool:
        """Return whether a caller here waits for a call, wherever it is."""
        return request_id in self._errands

    def without(self, request: Request, node_id: str) -> None:
        """Note that a node has no agent of the name a request asks for."""
        for errand in self._errands.get(request.request_id, ()):
            errand.without.append(node_id)
