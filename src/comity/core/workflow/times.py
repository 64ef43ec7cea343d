"""Points in time as a definition writes them: ISO 8601 with a zone, or milliseconds since the epoch."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from comity.core.units import MS_PER_S


def time_ms(value: Any) -> int | None:
    """Return a time in milliseconds since the epoch, or None if the value is none. A time without a zone is UTC."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if not isinstance(value, str) or len(value) > 64:
        return None
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return None
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    return int(found.timestamp() * MS_PER_S)
