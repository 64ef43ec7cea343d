"""Schedules: the times of a cron line and of an interval, what is done about missed times and overlapping runs."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from steps import count_steps

from comity.core.workflow.schedule import (
    MISSED_AFTER_MS,
    MISSED_RUNS_MAX,
    Cron,
    Due,
    Missed,
    Overlap,
    Schedule,
    due,
    next_time,
    read_cron,
)

BERLIN = ZoneInfo("Europe/Berlin")
NEW_YORK = ZoneInfo("America/New_York")


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def cron(line: str, **more) -> Schedule:
    return Schedule(name="s", workflow="w", definition="", user_id="u", cron=line, created_at=0, **more)


def every(duration_ms: int, **more) -> Schedule:
    return Schedule(name="s", workflow="w", definition="", user_id="u", every_ms=duration_ms, created_at=0, **more)


@pytest.mark.parametrize(
    ("line", "after", "expected"),
    [
        ("0 9 * * mon-fri", "2027-01-01T10:00:00+00:00", "2027-01-04T09:00:00+00:00"),  # a Friday
        ("*/15 * * * *", "2027-01-01T10:15:00+00:00", "2027-01-01T10:30:00+00:00"),
        ("*/15 * * * *", "2027-01-01T10:14:59+00:00", "2027-01-01T10:15:00+00:00"),
        ("5,50 8-10/2 * * *", "2027-01-01T08:50:00+00:00", "2027-01-01T10:05:00+00:00"),
        ("0 0 29 feb *", "2025-01-01T00:00:00+00:00", "2028-02-29T00:00:00+00:00"),
        ("0 0 13 * fri", "2027-01-02T00:00:00+00:00", "2027-01-08T00:00:00+00:00"),  # the 13th, or a Friday
        ("0 0 * * 7", "2027-01-01T00:00:00+00:00", "2027-01-03T00:00:00+00:00"),  # 7 is Sunday too
        ("@monthly", "2027-12-01T00:00:00+00:00", "2028-01-01T00:00:00+00:00"),
    ],
)
def test_a_cron_line_gives_the_next_time_after_a_time(line, after, expected):
    assert next_time(cron(line), ms(after), UTC) == ms(expected)


def test_a_day_that_never_comes_gives_none():
    assert next_time(cron("0 0 30 feb *"), 0, UTC) is None


def test_a_local_time_that_the_clocks_leave_out_is_not_run():
    after = ms("2027-03-27T12:00:00+00:00")  # 28 March 2027: 02:00 becomes 03:00 in Berlin
    assert next_time(cron("30 2 * * *"), after, BERLIN) == ms("2027-03-29T02:30:00+02:00")


def test_a_local_time_that_comes_twice_is_run_the_first_time_alone():
    first = next_time(cron("30 2 * * *"), ms("2027-10-30T12:00:00+00:00"), BERLIN)
    assert first == ms("2027-10-31T02:30:00+02:00")
    assert next_time(cron("30 2 * * *"), first, BERLIN) == ms("2027-11-01T02:30:00+01:00")


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("* * * *", "4 fields"),
        ("60 * * * *", "minute '60'"),
        ("* 24 * * *", "hour '24'"),
        ("* * 0 * *", "day of the month '0'"),
        ("* * * 13 *", "month '13'"),
        ("* * * * 8", "day of the week '8'"),
        ("5-1 * * * *", "begins after it ends"),
        ("*/0 * * * *", "minute '0'"),
        ("x * * * *", "minute 'x'"),
        (", * * * *", "minute ''"),
        ("² * * * *", "minute"),
    ],
)
def test_a_cron_line_that_cannot_be_read_names_its_field(line, what):
    with pytest.raises(ValueError, match=what.replace("(", r"\(")):
        read_cron(line)


@given(st.text(alphabet="0123456789*/,- @monfrijan", max_size=24))
def test_any_text_is_a_cron_line_or_a_value_error(text):
    with contextlib.suppress(ValueError):
        read_cron(text)


@given(
    st.sampled_from(["* * * * *", "7 3 * * *", "*/20 */5 * * *", "0 12 1 * *", "15 6 * * sat,sun"]),
    st.integers(0, 4_000_000_000_000),
    st.sampled_from([UTC, BERLIN, NEW_YORK]),
)
def test_times_come_after_the_given_one_and_fit_their_line(line, after_ms, zone):
    found = next_time(cron(line), after_ms, zone)
    assert found is not None and found > after_ms  # noqa: PT018
    local = datetime.fromtimestamp(found / 1000, UTC).astimezone(zone)
    about = read_cron(line)
    assert about.fits(local)
    assert (local.hour in about.hours, local.minute in about.minutes, local.second) == (True, True, 0)


@given(st.integers(1_000, 10_000_000), st.integers(0, 2_000_000_000_000))
def test_an_interval_counts_from_when_it_was_made(every_ms, after_ms):
    found = next_time(every(every_ms), after_ms, UTC)
    assert found % every_ms == 0
    assert 0 < found - after_ms <= every_ms


HOUR = 3_600_000


@pytest.mark.parametrize(
    ("missed", "times", "skipped"),
    [
        (Missed.NONE, (), 3),
        (Missed.ONE, (3 * HOUR,), 2),
        (Missed.ALL, (HOUR, 2 * HOUR, 3 * HOUR), 0),
    ],
)
def test_times_that_passed_unnoticed_are_run_by_the_rule_for_missed_ones(missed, times, skipped):
    schedule = every(HOUR, next_at=HOUR, missed=missed, overlap=Overlap.ALLOW)
    found = due(schedule, 3 * HOUR + HOUR // 2, UTC, is_busy=False)
    assert (found.times, found.skipped, found.next_at) == (times, skipped, 4 * HOUR)


def test_a_time_noticed_within_a_minute_was_not_missed():
    found = due(every(HOUR, next_at=HOUR, missed=Missed.NONE), 3 * HOUR + 59_000, UTC, is_busy=False)
    assert (found.times, found.skipped) == ((3 * HOUR,), 2)


def test_a_long_absence_starts_at_most_the_named_number_of_runs():
    schedule = every(1_000, next_at=1_000, missed=Missed.ALL, overlap=Overlap.ALLOW)
    found = due(schedule, 10_000_000_000, UTC, is_busy=False)
    assert len(found.times) <= MISSED_RUNS_MAX + 1
    assert found.times[-1] == 10_000_000_000
    assert found.skipped + len(found.times) == 10_000_000


def test_runs_that_overlap_are_skipped_queued_or_allowed():
    schedule = every(HOUR, next_at=HOUR)
    busy = {one: due(replace(schedule, overlap=one), HOUR, UTC, is_busy=True) for one in Overlap}
    assert (busy[Overlap.SKIP].times, busy[Overlap.SKIP].skipped, busy[Overlap.SKIP].next_at) == ((), 1, 2 * HOUR)
    assert (busy[Overlap.QUEUE].times, busy[Overlap.QUEUE].next_at) == ((), HOUR)
    assert busy[Overlap.ALLOW].times == (HOUR,)


def test_nothing_is_due_before_its_time():
    found = due(every(HOUR, next_at=HOUR), HOUR - 1, UTC, is_busy=False)
    assert (found.times, found.skipped, found.next_at) == ((), 0, HOUR)


def test_a_day_has_its_minutes():
    at = int((datetime(2027, 5, 5, tzinfo=UTC) - timedelta(milliseconds=1)).timestamp() * 1000)
    found = 0
    while (at := next_time(cron("*/30 * 5 * *"), at, UTC)) < ms("2027-05-06T00:00:00+00:00"):
        found += 1
    assert found == 48


@pytest.mark.parametrize("schedule", [cron("0 * * * *", next_at=HOUR), every(HOUR, next_at=HOUR)], ids=["cron", "every"])
def test_the_times_that_are_left_out_are_counted(schedule):
    for hours, missed in ((1, 0), (2, 1), (5, 4), (MISSED_RUNS_MAX + 7, MISSED_RUNS_MAX + 6)):
        found = due(replace(schedule, missed=Missed.ONE), hours * HOUR + 1, UTC, is_busy=False)
        assert (found.times, found.skipped, found.next_at) == ((hours * HOUR,), missed, (hours + 1) * HOUR)


def test_the_fields_of_a_cron_line_are_the_values_that_they_allow():
    every_day = read_cron("* * * * *")
    assert every_day == Cron(
        frozenset(range(60)), frozenset(range(24)), frozenset(range(1, 32)), frozenset(range(1, 13)), frozenset(range(7)), False
    )
    assert read_cron("7 * * * *").minutes == {7}
    assert read_cron("1-5 * * * *").minutes == {1, 2, 3, 4, 5}
    assert read_cron("1-6/2 * * * *").minutes == {1, 3, 5}
    assert read_cron("50/5 * * * *").minutes == {50, 55}  # from there on
    assert read_cron("*/30,7,0059 * * * *").minutes == {0, 7, 30, 59}
    with pytest.raises(ValueError, match="minute '00059'"):
        read_cron("00059 * * * *")


@pytest.mark.parametrize(
    ("field", "names", "first"),
    [(3, "jan feb mar apr may jun jul aug sep oct nov dec", 1), (4, "sun mon tue wed thu fri sat", 0)],
)
def test_months_and_weekdays_have_names_in_any_case(field, names, first):
    for number, name in enumerate(names.split(), first):
        for spelled in (name, name.upper()):
            named, plain = (read_cron(" ".join(["0", "0", "1", "1", "0"][:field] + [one] + ["0"] * (4 - field)))
                            for one in (spelled, str(number)))  # fmt: skip
            assert named == plain
    with pytest.raises(ValueError, match="minute"):
        read_cron(f"{names.split()[0]} * * * *")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("@hourly", "0 * * * *"),
        (" @Daily ", "0 0 * * *"),
        ("@weekly", "0 0 * * sun"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 jan *"),
    ],
)
def test_usual_lines_have_names(name, line):
    assert read_cron(name) == read_cron(line)


@pytest.mark.parametrize(
    ("line", "either"), [("0 0 1 * 1", True), ("0 0 * * 1", False), ("0 0 1 * *", False), ("0 0 */2 * 1", False)]
)
def test_a_day_fits_one_of_two_restricted_fields_and_both_where_one_is_open(line, either):
    found = read_cron(line)
    assert found.either_day is either
    monday_the_first, tuesday_the_first = datetime(2027, 2, 1, tzinfo=UTC), datetime(2027, 6, 1, tzinfo=UTC)
    fits = [found.fits(one) for one in (monday_the_first, datetime(2027, 8, 2, tzinfo=UTC), tuesday_the_first)]
    assert (
        fits
        == {
            "0 0 1 * 1": [True, True, True],
            "0 0 * * 1": [True, True, False],
            "0 0 1 * *": [True, False, True],
            "0 0 */2 * 1": [True, False, False],
        }[line]
    )
    assert not read_cron("0 0 1 3 *").fits(monday_the_first)


@pytest.mark.parametrize(
    ("overlap", "missed", "busy", "times", "skipped", "next_at"),
    [
        (Overlap.ALLOW, Missed.ALL, True, (1_000, 2_000, 3_000), 0, 4_000),
        (Overlap.ALLOW, Missed.ONE, True, (3_000,), 2, 4_000),
        (Overlap.ALLOW, Missed.NONE, True, (3_000,), 2, 4_000),
        (Overlap.SKIP, Missed.ALL, False, (3_000,), 2, 4_000),
        (Overlap.SKIP, Missed.ALL, True, (), 3, 4_000),
        (Overlap.QUEUE, Missed.ALL, False, (3_000,), 2, 4_000),
        (Overlap.QUEUE, Missed.ALL, True, (), 0, 3_000),  # looked at again once the run before has ended
    ],
)
def test_what_is_due_follows_from_missed_and_overlap(overlap, missed, busy, times, skipped, next_at):
    found = due(every(1_000, overlap=overlap, missed=missed, next_at=1_000), 3_999, UTC, is_busy=busy)
    assert (found.times, found.skipped, found.next_at) == (times, skipped, next_at)


@pytest.mark.parametrize(("late", "times", "skipped"), [(MISSED_AFTER_MS, (1_000,), 0), (MISSED_AFTER_MS + 1, (), 1)])
def test_a_time_noticed_later_than_the_limit_was_missed(late, times, skipped):
    found = due(every(1_000_000, missed=Missed.NONE, next_at=1_000), 1_000 + late, UTC, is_busy=False)
    assert (found.times, found.skipped) == (times, skipped)


def test_nothing_is_due_before_its_time_or_where_no_time_is_left():
    assert due(every(1_000, next_at=1_000), 999, UTC, is_busy=False) == Due((), 0, 1_000)
    assert due(every(1_000, next_at=None), 999, UTC, is_busy=False) == Due((), 0, None)


@pytest.mark.parametrize("absent", [MISSED_RUNS_MAX - 1, MISSED_RUNS_MAX, MISSED_RUNS_MAX + 1, 3 * MISSED_RUNS_MAX])
@pytest.mark.parametrize("line", ["", "* * * * *"])
def test_of_a_long_absence_the_newest_times_are_run_and_all_others_counted(absent, line):
    more = {"missed": Missed.ALL, "overlap": Overlap.ALLOW, "next_at": 60_000}
    found = due(cron(line, **more) if line else every(60_000, **more), 60_000 * absent, UTC, is_busy=False)
    assert found.times == tuple(60_000 * at for at in range(max(absent - MISSED_RUNS_MAX, 0) + 1, absent + 1))
    assert (found.skipped, found.next_at) == (max(absent - MISSED_RUNS_MAX, 0), 60_000 * (absent + 1))


DAY = 24 * 60 * 60_000


@given(
    st.sampled_from(["0 * * * *", "30 2 * * *", "*/20 0-3,23 * * *", "0 0 * 3,10 *", "0,30 1-3 1-7 * 0", "59 23 * * *"]),
    st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/Havana", "Pacific/Apia", "America/St_Johns"]),
    st.sampled_from(["2011-12-24", "2026-03-05", "2026-03-26", "2026-10-22", "2026-10-30"]),
    st.integers(0, 12 * DAY),
)
def test_an_absence_has_the_times_that_one_after_the_other_would_come(line, zone, day, absent):
    begin, at = ms(f"{day}T00:00:00+00:00"), ZoneInfo(zone)
    schedule = cron(line, zone=zone, missed=Missed.ALL, overlap=Overlap.ALLOW)
    following = first = next_time(schedule, begin, at)
    times = []
    while following <= begin + absent:
        times.append(following)
        following = next_time(schedule, following, at)
    found = due(replace(schedule, next_at=first), begin + absent, at, is_busy=False)
    assert found == Due(tuple(times[-MISSED_RUNS_MAX:]), max(len(times) - MISSED_RUNS_MAX, 0), following)


def test_a_year_of_minutes_is_counted_without_a_look_at_each():
    schedule = cron("* * * * *", zone="Europe/Berlin", missed=Missed.ALL, overlap=Overlap.ALLOW, next_at=0)
    found = []
    assert count_steps(lambda: found.append(due(schedule, 365 * DAY, BERLIN, is_busy=False))) < 50_000
    assert found[0].skipped == 365 * 24 * 60 + 1 - MISSED_RUNS_MAX
    assert found[0].times[-1] == 365 * DAY
