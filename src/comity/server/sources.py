"""Texts of people that are read and judged away from the event loop: definitions of workflows and guidance.

Reading YAML takes tens of microseconds a character, so such a text is bounded, and read in a thread. The interpreter gives the
event loop its turn every few milliseconds meanwhile. One text is read at a time, and few may wait for that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from comity.errors import CallerError, UnavailableError

SOURCE_BYTES_MAX: Final = 64 * 1024
WAITING_MAX: Final = 16
Found = TypeVar("Found")


def check_source(source: str) -> None:
    """Raise `CallerError` ENVELOPE_TOO_LARGE for a text that is too long to be read here."""
    if len(source) > SOURCE_BYTES_MAX or len(source.encode(errors="replace")) > SOURCE_BYTES_MAX:
        raise CallerError(f"source has more than {SOURCE_BYTES_MAX:,} bytes", code="ENVELOPE_TOO_LARGE")


class Aside:
    """Does one piece of work on texts at a time, in a thread."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def run(self, work: Callable[[], Found]) -> Found:
        """Return what `work` returns. Raises `UnavailableError` AGENT_BUSY where too many pieces of work wait already."""
        if self._waiting >= WAITING_MAX:
            raise UnavailableError(f"{WAITING_MAX} texts wait to be read already", code="AGENT_BUSY", retry_after_ms=1_000)
        self._waiting += 1
        try:
            async with self._turn:
                return await asyncio.to_thread(work)
        finally:
            self._waiting -= 1
