"""The parameters of Tempo's HTTP API, read as Tempo reads them. Unknown ones are ignored; a bad one is a `BadRequest`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from comity.core.call.limits import CITED_CHARS_MAX

SECOND_NS: Final = 10**9
LIMIT_DEFAULT: Final = 20
LIMIT_MAX: Final = 10_000
SPSS_DEFAULT: Final = 3
SPSS_MAX: Final = 100
TAGS_MAX: Final = 5_000
QUERY_CHARS_MAX: Final = 128 * 1024
RANGE_S_DEFAULT: Final = 60 * 60
_STEP_NS_LEAST: Final = 5 * SECOND_NS
_UNITS: Final = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": SECOND_NS, "m": 60 * SECOND_NS, "h": 3600 * SECOND_NS}
_PART: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h|d)")
_PAIR: Final = re.compile(r'([^\s="]+)=("(?:[^"\\]|\\.)*"|[^\s"]*)')
_NAME: Final = re.compile(r"[A-Za-z_][\w.:/-]*")


class BadRequest(Exception):  # noqa: N818  named as the answer it leads to
    """The request cannot be answered as it is; the text is shown to people."""


class NotFound(Exception):  # noqa: N818  as above
    """There is no such trace; Tempo says so by the status alone."""


class Range(Struct, frozen=True):
    """A stretch of time in epoch nanoseconds; None is open."""

    start_ns: int | None
    end_ns: int | None


class SearchRequest(Struct, frozen=True):
    """What `/api/search` was asked."""

    query: str
    range: Range
    limit: int
    spss: int


class MetricsRequest(Struct, frozen=True):
    """What `/api/metrics/query_range` and `/api/metrics/query` were asked."""

    query: str
    start_ns: int
    end_ns: int
    step_ns: int


def search_request(given: Mapping[str, str]) -> SearchRequest:
    """Read the parameters of a search: a TraceQL query, or the older tags and durations."""
    query = given.get("q") or _query_of_tags(given)
    if len(query) > QUERY_CHARS_MAX:
        raise BadRequest(f"invalid q: longer than {QUERY_CHARS_MAX:,} characters")
    limit = _whole(given, "limit", LIMIT_DEFAULT, least=1)
    if limit > LIMIT_MAX:
        raise BadRequest(f"invalid limit: limit {limit} exceeds max limit {LIMIT_MAX}")
    spss = _whole(given, "spss", SPSS_DEFAULT, least=0)
    if spss > SPSS_MAX:
        raise BadRequest(f"invalid spss: spansPerSpanSet {spss} exceeds max {SPSS_MAX}")
    return SearchRequest(query, time_range(given), limit, spss)


def time_range(given: Mapping[str, str]) -> Range:
    """Read `start` and `end` in whole seconds; both or neither."""
    start_s, end_s = _whole(given, "start", 0, least=0), _whole(given, "end", 0, least=0)
    if not start_s and not end_s:
        return Range(None, None)
    if start_s >= end_s:
        raise BadRequest(f"http parameter start must be before end. received start={start_s} end={end_s}")
    return Range(start_s * SECOND_NS, end_s * SECOND_NS)


def metrics_request(given: Mapping[str, str], *, now_ns: int) -> MetricsRequest:
    """Read the parameters of a metrics query; without a range it is the last hour, without a step the step fits the range."""
    query = given.get("q") or given.get("query") or ""
    if not query or len(query) > QUERY_CHARS_MAX:
        raise BadRequest("invalid q: a metrics query is required")
    end_ns = _moment(given, "end", now_ns)
    since_ns = _duration(given["since"], "since") if given.get("since") else RANGE_S_DEFAULT * SECOND_NS
    start_ns = _moment(given, "start", end_ns - since_ns)
    if start_ns >= end_ns:
        raise BadRequest("http parameter start must be before end")
    step_ns = _duration(given["step"], "step") if given.get("step") else default_step_ns(start_ns, end_ns)
    if step_ns <= 0:
        raise BadRequest("invalid step: must be greater than 0")
    return MetricsRequest(query, start_ns, end_ns, step_ns)


def default_step_ns(start_ns: int, end_ns: int) -> int:
    """Return the step of a range that names none: about 240 samples, in steps of 5 s."""
    return max((end_ns - start_ns) // 240 // _STEP_NS_LEAST * _STEP_NS_LEAST, _STEP_NS_LEAST)


def tags_max(given: Mapping[str, str]) -> int:
    """Return how many names or values an answer lists at most."""
    return min(_whole(given, "limit", TAGS_MAX, least=0) or TAGS_MAX, TAGS_MAX)


def trace_id(text: str) -> str:
    """Return a trace id of 32 hex digits; leading zeros may be missing. Raises `BadRequest` as Tempo words it."""
    for at, character in enumerate(text, 1):
        if character not in "0123456789abcdefABCDEF":
            raise BadRequest(f"trace IDs can only contain hex characters: invalid character '{character}' at position {at}")
    if len(text) > 32:
        raise BadRequest("trace IDs can't be larger than 128 bits")
    return text.lower().rjust(32, "0")


def _whole(given: Mapping[str, str], name: str, otherwise: int, *, least: int) -> int:
    text = given.get(name)
    if not text:
        return otherwise
    if not re.fullmatch(r"-?[0-9]{1,19}", text):
        raise BadRequest(f'invalid {name}: "{text[:CITED_CHARS_MAX]}" is not a whole number')
    if int(text) < least:
        raise BadRequest(f"invalid {name}: must be at least {least}")
    return int(text)


def _moment(given: Mapping[str, str], name: str, otherwise: int) -> int:
    """Read a moment in seconds, with decimals if there are any, or in nanoseconds if it is that long."""
    text = given.get(name)
    if not text:
        return otherwise
    if re.fullmatch(r"[0-9]{1,19}", text):
        return int(text) if len(text) > 10 else int(text) * SECOND_NS
    if re.fullmatch(r"[0-9]{1,10}\.[0-9]{1,12}", text):
        return int(float(text) * SECOND_NS)
    raise BadRequest(f'invalid {name}: "{text[:CITED_CHARS_MAX]}" is not a time in seconds')


def _duration(text: str, name: str) -> int:
    """Read a duration as Go writes it, or as a number of seconds."""
    try:
        seconds = float(text)
    except ValueError:
        parts, at = [], 0
        while (found := _PART.match(text, at)) is not None:
            unit = 24 * _UNITS["h"] if found[2] == "d" else _UNITS[found[2]]
            parts.append(float(found[1]) * unit)
            at = found.end()
        if not parts or at != len(text):
            raise BadRequest(f'invalid {name}: "{text[:CITED_CHARS_MAX]}" is no duration') from None
        return int(sum(parts))
    if not math.isfinite(seconds) or not 0 <= seconds <= 10**9:
        raise BadRequest(f'invalid {name}: "{text[:CITED_CHARS_MAX]}" is no duration')
    return int(seconds * SECOND_NS)


def _query_of_tags(given: Mapping[str, str]) -> str:
    """Return the TraceQL of a search by `tags` (`key=value` pairs), `minDuration` and `maxDuration`."""
    conditions = []
    for key, value in _PAIR.findall(given.get("tags", "")):
        if not _NAME.fullmatch(key):
            raise BadRequest(f'invalid tags: "{key[:CITED_CHARS_MAX]}" is no name')
        text = json.loads(value) if value.startswith('"') else value
        named = {"name": "name", "status": "status", "root.name": "rootName", "root.service.name": "rootServiceName"}
        field = named.get(key, f".{key}")
        conditions.append(f"{field} = {text if field == 'status' else json.dumps(text, ensure_ascii=False)}")
    for name, op in (("minDuration", ">="), ("maxDuration", "<=")):
        if given.get(name):
            conditions.append(f"duration {op} {_duration(given[name], name)}ns")
    return f"{{ {' && '.join(conditions)} }}" if conditions else "{}"
