"""Schedules: when runs of a workflow start by themselves, and what becomes of times that no node was there for.

A schedule has an interval, counted from when it was made, or a `cron` line of five fields in a time zone. A local time that a
change of the clocks leaves out is not run; a local time that comes twice is run once, the first time.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

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
    after = datetime.fromtimestamp(after_ms // 60_000 * 60, UTC).astimezone(zone).replace(tzinfo=None)
    day = after.replace(hour=0, minute=0)
    # The day before, too: where clocks go back over midnight, its last hour comes again.
    for offset in range(-1, 366 * _YEARS_MAX):
        if not cron.fits(one := day + timedelta(days=offset)):
            continue
        for hour in sorted(cron.hours):
            for minute in sorted(cron.minutes):
                at_ms = _instant(one.replace(hour=hour, minute=minute), zone)
                if at_ms is not None and at_ms > after_ms:
                    return at_ms
    return None


def _instant(local: datetime, zone: tzinfo) -> int | None:
    """Return a local time in milliseconds since the epoch: the first of two, None for a time that the clocks leave out."""
    at = local.replace(tzinfo=zone, fold=0)
    if at.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != local:
        return None
    return int(at.timestamp() * 1000)


class Due(Struct, frozen=True):
    """What a look at a schedule found: the times to start runs for, and how many are left out."""

    times: tuple[int, ...]
    skipped: int
    next_at: int | None


def due(schedule: Schedule, now_ms: int, zone: tzinfo, *, is_busy: bool) -> Due:
    """Return what is due: by `missed` for times noticed late, by `overlap` while the run before has not ended (`is_busy`)."""
    passed: list[int] = []
    at_ms, count = schedule.next_at, 0
    if not schedule.cron and at_ms is not None:  # the middle of a long absence need not be counted out
        count = max((now_ms - at_ms) // schedule.every_ms - MISSED_RUNS_MAX, 0)
        at_ms += count * schedule.every_ms
    while at_ms is not None and at_ms <= now_ms:
        passed.append(at_ms)
        if len(passed) > MISSED_RUNS_MAX:
            del passed[0]
            count += 1
        at_ms = next_time(schedule, at_ms, zone)
    if not passed:
        return Due((), 0, at_ms)
    on_time = [one for one in passed[-1:] if now_ms - one <= MISSED_AFTER_MS]
    match schedule.missed:
        case Missed.ALL:
            chosen = passed
        case Missed.ONE:
            chosen = passed[-1:]
        case Missed.NONE:
            chosen = on_time
    if schedule.overlap is not Overlap.ALLOW:
        chosen = chosen[-1:]  # a run that has begun has not ended
        if is_busy and schedule.overlap is Overlap.SKIP:
            chosen = []
        elif is_busy:
            return Due((), 0, passed[-1])  # looked at again once the run before has ended
    return Due(tuple(chosen), count + len(passed) - len(chosen), at_ms)
