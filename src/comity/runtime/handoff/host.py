"""`DeskHost`: how a manager or receiver of handoffs gets its desk (`Handoffs`)."""

from __future__ import annotations

from abc import ABC, abstractmethod

from comity.runtime.handoff.desk import Handoffs
from comity.runtime.handoff.listening import Ear, closed


class DeskHost(ABC):
    """Opens a desk on first use and keeps it until it is closed."""

    def __init__(self) -> None:
        self._is_closed = False
        self._desk: Handoffs | None = None  # once it is known
        self._ears: dict[Ear, None] = {}  # subscriptions of this object's waiters

    @abstractmethod
    async def _find_desk(self) -> Handoffs:
        """Return the desk."""

    async def desk(self) -> Handoffs:
        """Return the desk. Raises `UnavailableError` NODE_CLOSED once this is closed."""
        if self._is_closed:
            raise closed()
        self._desk = await self._find_desk()
        return self._desk

    async def close(self) -> None:
        """Close this object and fail its waiters."""
        self._is_closed = True
        self._desk = None
        for ear in tuple(self._ears):
            ear.fail(closed())
