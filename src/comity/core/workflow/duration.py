"""Durations as people write them in a definition: `90s`, `15m`, `1h30m`, `3d`, or ISO 8601 such as `P3DT4H`."""

from __future__ import annotations

import re
from typing import Final

_UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_PART: Final = re.compile(r"(\d+)(ms|[smhdw])")
_SHORT: Final = re.compile(r"(?:\d+(?:ms|[smhdw]))+")
_ISO: Final = re.compile(r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")
DURATION_MS_MAX: Final = 10 * 365 * 86_400_000  # ten years
DURATION_PATTERN: Final = rf"^({_SHORT.pattern}|{_ISO.pattern})$"


def duration_ms(text: str) -> int | None:
    """Return a duration in milliseconds, or None if the text is none or exceeds `DURATION_MS_MAX`."""
    if len(text) > 64:
        return None
    if _SHORT.fullmatch(text):
        total = sum(int(count) * _UNITS_MS[unit] for count, unit in _PART.findall(text))
    elif (iso := _ISO.fullmatch(text)) and any(iso.groups()):
        units = ("w", "d", "h", "m", "s")
        total = sum(int(count or 0) * _UNITS_MS[unit] for count, unit in zip(iso.groups(), units, strict=True))
    else:
        return None
    return total if total <= DURATION_MS_MAX else None


def duration_text(ms: int) -> str:
    """Return a duration as `duration_ms` reads it, in the largest units: 5 400 000 is `1h30m`."""
    parts = []
    for unit in ("d", "h", "m", "s", "ms"):
        count, ms = divmod(ms, _UNITS_MS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
