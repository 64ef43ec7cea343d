"""How many spans were lost while not even that could be written down: the size of an empty file beside them.

A disk that is full takes no more bytes, but a file can still be made longer without any: it has a hole, and its length is the
number. As soon as the store can be written the number goes there, and the file goes.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

from comity.core.units import NS_PER_MS

WHY: Final = "they could not be stored, and at first not even that written down"


def place(spans: Path) -> Path:
    """Return the path of the file that counts losses which the span store could not record."""
    return spans.with_name(f"{spans.name}.lost")


def add(spans: Path, lost: int) -> None:
    """Count further losses."""
    file = os.open(place(spans), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)  # several processes may lose at once
        os.ftruncate(file, os.fstat(file).st_size + lost)
    finally:
        os.close(file)


def read(spans: Path) -> tuple[int, int]:
    """Return how many were counted, and when last (epoch milliseconds)."""
    try:
        found = place(spans).stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_size, found.st_mtime_ns // NS_PER_MS


def clear(spans: Path) -> None:
    """Reset the count: the store has recorded the losses."""
    place(spans).unlink(missing_ok=True)
