"""Times in documents."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.dialects.reading.timestamp import read_time, write_time
from comity.errors import CallerError


def read(text):
    metadata = {}
    return read_time(text, metadata, key="k"), metadata


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("2024-03-31T00:00:00.000Z", 1_711_843_200_000),
        ("2024-03-31T00:00:00Z", 1_711_843_200_000),
        ("2024-03-31T02:00:00+02:00", 1_711_843_200_000),
        ("2024-03-31", 1_711_843_200_000),
        ("2024-03-31T00:00:00.001999Z", 1_711_843_200_001),
        ("1970-01-01T00:00:00.000Z", 0),
        ("1969-12-31T23:59:59.999Z", -1),
    ],
)
def test_a_time_is_read_and_written_as_it_came(text, time_ms):
    read_ms, metadata = read(text)
    assert read_ms == time_ms
    assert write_time(read_ms, metadata, key="k") == text


def test_only_what_we_would_write_otherwise_is_kept():
    assert read("2024-03-31T00:00:00.000Z")[1] == {}
    assert read("2024-03-31T00:00:00Z")[1] == {"k": "2024-03-31T00:00:00Z"}


def test_a_time_that_has_changed_is_written_anew():
    assert write_time(1_711_843_200_005, {"k": "2024-03-31T00:00:00Z"}, key="k") == "2024-03-31T00:00:00.005Z"
    assert write_time(5, {"k": ["not", "text"]}, key="k") == "1970-01-01T00:00:00.005Z"


def test_a_time_nobody_knows_is_not_written():
    assert write_time(0, {}, key="k") is None
    assert write_time(10**18, {}, key="k") is None


@pytest.mark.parametrize(
    "text", ["", "soon", "2024-13-01", "2024-03-31T00:00:00Z" + "0" * 60, "9999-12-31T23:59:59-23:59x", "²⁰²⁴-01-01"]
)
def test_what_is_no_time_is_refused_with_its_path(text):
    with pytest.raises(CallerError, match="created_at: must be an ISO 8601 time"):
        read(text)


@given(st.integers(-(10**13), 10**14))
def test_a_time_we_write_is_read_back_without_a_trace(time_ms):
    text = write_time(time_ms, {}, key="k")
    if time_ms:
        assert read(text) == (time_ms, {})
