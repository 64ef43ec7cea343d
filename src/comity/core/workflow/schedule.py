"""Schedules: when runs of a workflow start by themselves, and what becomes of times that no node was there for.

A schedule has an interval, counted from when it was made, or a `cron` line of five fields in a time zone. A local time that a
change of the clocks leaves out is not run; a local time that comes twice is run once, the first time.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum
from itertools import takewhile
from typing import Any, Final

from msgspec import Struct

from comity.core.units import MS_PER_S

EVERY_MS_MIN: Final = 1_000
MISSED_AFTER_MS: Final = 60_000  # a time that is noticed later than this was missed
MISSED_RUNS_MAX: Final = 100  # started at once, with `missed: all`; the newest
_YEARS_MAX: Final = 8  # the 29th of February may be that far away
_MONTHS: Final = {
    "jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11, "dec": 12,
}  # fmt: skip
_DAYS: Final = {"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}
_FIELDS: Final[tuple[tuple[str, int, int, dict[str, int]], ...]] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of the month", 1, 31, {}),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 7, _DAYS),
)
_NAMED: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}


class Overlap(StrEnum):
    """What is done at a time at which the run before has not ended."""

    SKIP = "skip"
    QUEUE = "queue"  # start once it has ended; of several such times the newest
    ALLOW = "allow"


class Missed(StrEnum):
    """What is done about times that passed while no node was there."""

    NONE = "none"
    ONE = "one"  # one run for all of them, at the newest
    ALL = "all"  # one run for each


class Schedule(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A schedule as the store keeps it."""

    name: str
    workflow: str
    definition: str  # the content hash, for a node that does not know the workflow
    user_id: str
    tenant_id: str = "default"
    input: Any = None
    cron: str = ""
    every_ms: int = 0
    zone: str = "UTC"
    overlap: Overlap = Overlap.SKIP
    missed: Missed = Missed.ONE
    is_paused: bool = False
    created_at: int
    next_at: int | None = None  # None: never again
    last_at: int | None = None  # the newest time that a run was started for
    last_run: str = ""
    starting: tuple[int, ...] = ()  # times that were taken and whose runs may not have been started yet
    taken_at: int = 0  # when they were
    runs: int = 0
    skipped: int = 0  # missed, or while the run before had not ended
    problem: str = ""  # why its newest run could not be started


class Cron(Struct, frozen=True):
    """A cron line: the values that each field allows."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]  # 0 is Sunday
    either_day: bool  # both days are restricted: a day that fits one of them fits

    def fits(self, day: datetime) -> bool:
        """Return whether runs start on a day."""
        by_month, by_week = day.day in self.days, (day.weekday() + 1) % 7 in self.weekdays
        return day.month in self.months and ((by_month or by_week) if self.either_day else (by_month and by_week))


def read_cron(text: str) -> Cron:
    """Return a cron line as values. Raises `ValueError` that names the field."""
    fields = _NAMED.get(text.strip().lower(), text).lower().split()
    if len(fields) != len(_FIELDS):
        raise ValueError(
            f"cron {text!r} has {len(fields)} fields; write five: minute hour day-of-month month day-of-week, or "
            f"{', '.join(_NAMED)}"
        )
    minutes, hours, days, months, weekdays = (_values(one, *about) for one, about in zip(fields, _FIELDS, strict=True))
    either = not fields[2].startswith("*") and not fields[4].startswith("*")
    return Cron(minutes, hours, days, months, frozenset(one % 7 for one in weekdays), either)


def _values(text: str, what: str, least: int, most: int, names: dict[str, int]) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, slash, step_text = part.partition("/")
        step = _number(step_text, what, 1, most, {}) if slash else 1
        first_text, dash, last_text = span.partition("-")
        if span == "*":
            first, last = least, most
        else:
            first = _number(first_text, what, least, most, names)
            last = _number(last_text, what, least, most, names) if dash else most if slash else first
        if first > last:
            raise ValueError(f"{what} {part!r} begins after it ends")
        found.update(range(first, last + 1, step))
    return frozenset(found)


def _number(text: str, what: str, least: int, most: int, names: dict[str, int]) -> int:
    if text in names:
        return names[text]
    if not (text.isascii() and text.isdecimal() and len(text) <= 4 and least <= int(text) <= most):
        raise ValueError(f"{what} {text!r} is no number from {least} to {most}")
    return int(text)


def next_time(schedule: Schedule, after_ms: int, zone: tzinfo) -> int | None:
    """Return the first time of a schedule after a time; None if there is none. Raises `ValueError` for a bad cron line."""
    if not schedule.cron:
        every = schedule.every_ms
        return schedule.created_at + max((after_ms - schedule.created_at) // every + 1, 1) * every
    cron = read_cron(schedule.cron)
    day = _day(after_ms, zone)
    # The day before, too: where clocks go back over midnight, its last hour comes again.
    for offset in range(-1, 366 * _YEARS_MAX):
        for at_ms in _times(cron, day + timedelta(days=offset), zone, after_ms):
            return at_ms
    return None


def _day(at_ms: int, zone: tzinfo) -> datetime:
    """Return the beginning of the local day of a time."""
    local = datetime.fromtimestamp(at_ms // 60_000 * 60, UTC).astimezone(zone).replace(tzinfo=None)
    return local.replace(hour=0, minute=0)


def _times(cron: Cron, day: datetime, zone: tzinfo, after_ms: int) -> Iterator[int]:
    """Yield the times of a day that are after a time, in order."""
    if not cron.fits(day):
        return
    for hour in sorted(cron.hours):
        last_ms = _instant(day.replace(hour=hour, minute=max(cron.minutes)), zone)
        if last_ms is not None and last_ms <= after_ms:  # so are all before it: the first of two equal local times counts
            continue
        for minute in sorted(cron.minutes):
            at_ms = _instant(day.replace(hour=hour, minute=minute), zone)
            if at_ms is not None and at_ms > after_ms:
                yield at_ms


def _count(cron: Cron, day: datetime, zone: tzinfo) -> int:
    """Return how many times a day has."""
    if not cron.fits(day):
        return 0
    following = day + timedelta(days=1)
    if day.replace(tzinfo=zone).utcoffset() == following.replace(tzinfo=zone).utcoffset():
        return len(cron.hours) * len(cron.minutes)
    return sum(1 for _ in _times(cron, day, zone, -1))  # a day on which clocks change


def _instant(local: datetime, zone: tzinfo) -> int | None:
    """Return a local time in milliseconds since the epoch: the first of two, None for a time that the clocks leave out."""
    at = local.replace(tzinfo=zone, fold=0)
    if at.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != local:
        return None
    return int(at.timestamp() * MS_PER_S)


class Due(Struct, frozen=True):
    """What a look at a schedule found: the times to start runs for, and how many are left out."""

    times: tuple[int, ...]
    skipped: int
    next_at: int | None


def due(schedule: Schedule, now_ms: int, zone: tzinfo, *, is_busy: bool) -> Due:
    """Return what is due: by `missed` for times noticed late, by `overlap` while the run before has not ended (`is_busy`)."""
    if schedule.next_at is None or schedule.next_at > now_ms:
        return Due((), 0, schedule.next_at)
    total, passed = _passed(schedule, schedule.next_at, now_ms, zone)
    match schedule.missed:
        case Missed.ALL:
            chosen = passed
        case Missed.ONE:
            chosen = passed[-1:]
        case Missed.NONE:
            chosen = [one for one in passed[-1:] if now_ms - one <= MISSED_AFTER_MS]
    if schedule.overlap is not Overlap.ALLOW:
        chosen = chosen[-1:]  # a run that has begun has not ended
        if is_busy and schedule.overlap is Overlap.SKIP:
            chosen = []
        elif is_busy:
            return Due((), 0, passed[-1])  # looked at again once the run before has ended
    return Due(tuple(chosen), total - len(chosen), next_time(schedule, now_ms, zone))


def _passed(schedule: Schedule, first_ms: int, now_ms: int, zone: tzinfo) -> tuple[int, list[int]]:
    """Return how many times have passed, from `first_ms` on, and the newest of them in order.

    The days in the middle of a long absence are counted, and their times are not looked at.
    """
    if not schedule.cron:
        total = (now_ms - first_ms) // schedule.every_ms + 1
        last_ms = first_ms + (total - 1) * schedule.every_ms
        return total, [last_ms - back * schedule.every_ms for back in reversed(range(min(total, MISSED_RUNS_MAX)))]
    cron = read_cron(schedule.cron)
    last_day = _day(now_ms, zone)
    days = (last_day - _day(first_ms, zone)).days
    total, newest = 1, [first_ms]
    for back in range(-1, days + 2):  # a day more at both ends, as in `next_time`
        day = last_day - timedelta(days=back)
        begin_ms, end_ms = _instant(day, zone), _instant(day.replace(hour=23, minute=59), zone)
        is_whole = begin_ms is not None and end_ms is not None and first_ms < begin_ms and end_ms <= now_ms
        if is_whole and len(newest) > MISSED_RUNS_MAX:
            total += _count(cron, day, zone)
            continue
        times = list(takewhile(lambda one: one <= now_ms, _times(cron, day, zone, first_ms)))
        total += len(times)
        newest += times
    return total, sorted(newest)[-MISSED_RUNS_MAX:]
