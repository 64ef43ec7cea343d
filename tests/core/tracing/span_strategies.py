"""Spans with everything a span can have."""

from hypothesis import strategies as st

from comity.core.tracing.span import INT64_MAX, INT64_MIN, Event, Kind, Link, Span, Status

# The texts and numbers that a codec may treat in different ways: what is arbitrary stands in the values of attributes.
TEXT = st.sampled_from(["", "a", "b", "\0", "\n", "é", "\U0001d4b3", "x" * 127, "x" * 128])
TIMES = st.sampled_from([0, 1, 2**32, 1_700_000_000_123_456_789, 2**63])
COUNTS = st.sampled_from([0, 1, 127, 128, 2**32 - 1])
_PLAIN = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    st.booleans(),
    st.integers(INT64_MIN, INT64_MAX),
    st.floats(allow_nan=False),
    st.binary(max_size=6),
    st.none(),
)
_ARRAYS = st.lists(_PLAIN, max_size=3).map(tuple)
_MAPS = st.dictionaries(TEXT, st.one_of(_PLAIN, _ARRAYS), max_size=2)
VALUES = st.one_of(_PLAIN, _ARRAYS, _MAPS, st.lists(st.one_of(_PLAIN, _ARRAYS, _MAPS), max_size=2).map(tuple))
ATTRIBUTES = st.dictionaries(TEXT, VALUES, max_size=3)


def ids(size_bytes):
    return st.binary(min_size=size_bytes, max_size=size_bytes).filter(any).map(bytes.hex)


EVENTS = st.builds(Event, name=TEXT, time_ns=TIMES, attributes=ATTRIBUTES, dropped_attributes_count=COUNTS)
LINKS = st.builds(
    Link,
    trace_id=ids(16),
    span_id=ids(8),
    trace_state=TEXT,
    flags=COUNTS,
    attributes=ATTRIBUTES,
    dropped_attributes_count=COUNTS,
)
SPANS = st.builds(
    Span,
    trace_id=ids(16),
    span_id=ids(8),
    parent_id=st.one_of(st.none(), ids(8)),
    name=TEXT,
    kind=st.sampled_from(Kind),
    start_ns=TIMES,
    end_ns=TIMES,
    status=st.sampled_from(Status),
    status_message=TEXT,
    attributes=ATTRIBUTES,
    resource=ATTRIBUTES,
    scope_name=TEXT,
    scope_version=TEXT,
    scope_attributes=ATTRIBUTES,
    events=st.lists(EVENTS, max_size=2).map(tuple),
    links=st.lists(LINKS, max_size=2).map(tuple),
    trace_state=TEXT,
    flags=COUNTS,
    dropped_attributes_count=COUNTS,
    dropped_events_count=COUNTS,
    dropped_links_count=COUNTS,
)
