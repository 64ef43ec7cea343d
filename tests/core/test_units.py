"""Units of time have names."""

from __future__ import annotations

import re
from pathlib import Path

import comity
from comity.core.units import MS_PER_S, NS_PER_MS

SOURCE = Path(comity.__file__).parent
CONVERSION = re.compile(r"(_[mn]?s\b|stamp\(\)|deadline).* [/*]{1,2} (1_000_000|1000|1_000)\b")
LIMIT = re.compile(r"^_?[A-Z_]+(: Final)? = ")  # `CONSOLE_MS: Final = 12 * 60 * 60 * 1000`


def test_a_second_has_1000_milliseconds_and_a_millisecond_a_million_nanoseconds():
    assert (MS_PER_S * NS_PER_MS, NS_PER_MS) == (10**9, 10**6)


def test_times_are_converted_by_the_named_units_alone():
    lines = ((path, line) for path in SOURCE.rglob("*.py") for line in path.read_text().splitlines())
    assert [(path.name, line) for path, line in lines if CONVERSION.search(line) and not LIMIT.match(line)] == []
