"""Timestamps and durations: their texts, and the parts of a moment in a time zone."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from comity.core.expression.errors import EvaluationError
from comity.core.expression.values import SECOND_NS, Duration, Timestamp, no_overload

_MOMENT: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:([Zz])|([+-])(\d\d):(\d\d))", re.ASCII
)
_UNITS: Final = {"h": 3600 * SECOND_NS, "m": 60 * SECOND_NS, "s": SECOND_NS, "ms": 10**6, "us": 10**3, "µs": 10**3, "ns": 1}
_PART: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(h|ms|m|s|us|µs|ns)", re.ASCII)
_OFFSET: Final = re.compile(r"([+-]?)(\d\d):(\d\d)", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ZONE_CHARS_MAX: Final = 64
DURATION_CHARS_MAX: Final = 256


def to_timestamp(value: Any) -> Timestamp:
    """Return the moment that a text in RFC 3339 or a number of seconds since 1970 names."""
    if type(value) is Timestamp:
        return value
    if type(value) is int:
        return Timestamp(value * SECOND_NS)
    found = _MOMENT.fullmatch(value) if type(value) is str else None
    if found is None:
        raise EvaluationError("this is no timestamp")
    year, month, day, hour, minute, second = (int(one) for one in found.groups()[:6])
    try:
        moment = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)
    except ValueError:
        raise EvaluationError("there is no such moment") from None
    shift_s = 0
    if found[9]:
        shift_s = (int(found[10]) * 3600 + int(found[11]) * 60) * (-1 if found[9] == "-" else 1)
    since = moment - _EPOCH
    seconds = since.days * 86_400 + since.seconds + (second - min(second, 59)) - shift_s
    return Timestamp(seconds * SECOND_NS + int((found[7] or "").ljust(9, "0")))


def timestamp_text(value: Timestamp) -> str:
    """Return a moment in RFC 3339, in UTC, with as many digits as it needs."""
    seconds, ns = divmod(value.ns, SECOND_NS)
    moment = _EPOCH + timedelta(seconds=seconds)
    fraction = f".{ns:09d}".rstrip("0") if ns else ""
    return f"{moment:%Y}".zfill(4) + f"{moment:-%m-%dT%H:%M:%S}{fraction}Z"


def to_duration(value: Any) -> Duration:
    """Return the duration that a text such as `1h30m` or `-1.5s` names."""
    if type(value) is Duration:
        return value
    if type(value) is not str:
        raise no_overload("duration()", value)
    if len(value) > DURATION_CHARS_MAX:
        raise EvaluationError(f"the text of a duration may have {DURATION_CHARS_MAX} characters")
    sign, text = (-1, value[1:]) if value.startswith("-") else (1, value.removeprefix("+"))
    if text == "0":
        return Duration(0)
    total = end = 0
    while end < len(text):
        part = _PART.match(text, end)
        if part is None:
            break
        number, unit = part[1], _UNITS[part[2]]
        before, _, after = number.partition(".")
        total += int(before or "0") * unit
        if after:
            total += int(after) * unit // 10 ** len(after)
        end = part.end()
    if not text or end < len(text):
        raise EvaluationError("this is no duration; write it as 1h30m or 1.5s")
    return Duration(sign * total)


def duration_text(value: Duration) -> str:
    """Return a duration in seconds, with as many digits as it needs."""
    seconds, ns = divmod(abs(value.ns), SECOND_NS)
    fraction = f".{ns:09d}".rstrip("0") if ns else ""
    return f"{'-' if value.ns < 0 else ''}{seconds}{fraction}s"


def _zone(name: str) -> tzinfo:
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        shift = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        if shift < timedelta(hours=24):
            return timezone(-shift if offset[1] == "-" else shift)
    elif len(name) <= _ZONE_CHARS_MAX and name:
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            pass
    raise EvaluationError("there is no such time zone")


def _moment(target: Any, zone: Any) -> datetime:
    if type(target) is not Timestamp or type(zone) is not str:
        raise no_overload("a part of a timestamp", target, zone)
    try:
        return (_EPOCH + timedelta(seconds=target.ns // SECOND_NS)).astimezone(UTC if zone in {"", "UTC"} else _zone(zone))
    except OverflowError:
        raise EvaluationError("the moment is outside the years 1 to 9999 there") from None


def _part(of_moment: Callable[[datetime], int], unit: int = 0, below: int = 0) -> Callable[..., int]:
    """Return a getter: a part of a moment, or where `unit` is given the whole units of a duration."""

    def get(target: Any, zone: Any = "UTC") -> int:
        if type(target) is Duration and unit and zone == "UTC":
            cut = abs(target.ns) // unit
            cut = cut % below if below else cut
            return -cut if target.ns < 0 else cut
        return of_moment(_moment(target, zone))

    return get


def _milliseconds(target: Any, zone: Any = "UTC") -> int:
    if type(target) is Duration:
        return (abs(target.ns) // 10**6 % 1_000) * (-1 if target.ns < 0 else 1)
    _moment(target, zone)
    return int(target.ns // 10**6 % 1_000)


_ONE_OR_TWO: Final = frozenset({1, 2})
METHODS: Final[dict[str, tuple[Callable[..., Any], frozenset[int]]]] = {
    name: (function, _ONE_OR_TWO)
    for name, function in {
        "getFullYear": _part(lambda moment: moment.year),
        "getMonth": _part(lambda moment: moment.month - 1),
        "getDate": _part(lambda moment: moment.day),
        "getDayOfMonth": _part(lambda moment: moment.day - 1),
        "getDayOfWeek": _part(lambda moment: moment.isoweekday() % 7),
        "getDayOfYear": _part(lambda moment: moment.timetuple().tm_yday - 1),
        "getHours": _part(lambda moment: moment.hour, 3600 * SECOND_NS),
        "getMinutes": _part(lambda moment: moment.minute, 60 * SECOND_NS),
        "getSeconds": _part(lambda moment: moment.second, SECOND_NS),
        "getMilliseconds": _milliseconds,
    }.items()
}
