"""What happened, in order: one line for each event, the same bytes for the same seed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from comity.core.units import MS_PER_S


class Trace:
    """The events of one run. They are put into words only when a reader asks for the text."""

    __slots__ = ("events",)

    def __init__(self) -> None:
        self.events: list[tuple[float, str, str, str]] = []

    def add(self, at_s: float, who: str, what: str, about: str) -> None:
        """Note an event: when, in which process, what, and what about."""
        self.events.append((at_s, who, what, about))

    def lines(self, last: int | None = None) -> list[str]:
        """Return the timeline, or its last lines."""
        events: Iterable[tuple[float, str, str, str]] = self.events if last is None else self.events[-last:]
        return [f"{at_s * MS_PER_S:12.3f} ms  {who:<8} {what:<10} {about}" for at_s, who, what, about in events]

    def text(self) -> str:
        """Return the whole timeline."""
        return "\n".join(self.lines()) + "\n"

    def digest(self) -> str:
        """Return a short name for the whole trace."""
        return hashlib.blake2b(self.text().encode(), digest_size=8).hexdigest()
