"""Times as text in documents, as epoch milliseconds in envelopes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from comity.core.document.payload import Problem
from comity.dialects.reading.document import malformed

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_CHARS_MAX: Final = 64


def read_time(text: str, metadata: dict[str, Any], *, key: str) -> int:
    """Return the epoch milliseconds of `created_at`. A text that we would write otherwise is kept in `metadata` under `key`."""
    time_ms = _milliseconds(text)
    if time_ms is None:
        raise malformed([Problem("created_at", "must be an ISO 8601 time")])
    # An envelope made at 0 says that its time is unknown.
    if time_ms == 0 or _text(time_ms) != text:
        metadata[key] = text
    return time_ms


def write_time(time_ms: int, metadata: dict[str, Any], *, key: str) -> str | None:
    """Return the time as text: as it came if that still says the same, None if the envelope does not know it."""
    came = metadata.get(key)
    if isinstance(came, str) and _milliseconds(came) == time_ms:
        return came
    return _text(time_ms) if time_ms else None


def _milliseconds(text: str) -> int | None:
    """A time without an offset is UTC; what is finer than a millisecond is cut off."""
    if len(text) > _CHARS_MAX:
        return None
    try:
        time = datetime.fromisoformat(text)
        return ((time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH) // _MILLISECOND
    except (ValueError, OverflowError):
        return None


def _text(time_ms: int) -> str | None:
    try:
        return (_EPOCH + time_ms * _MILLISECOND).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except OverflowError:
        return None
