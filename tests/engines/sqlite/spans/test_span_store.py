"""The span store answers as the query engine would over all spans in memory, and keeps what it was given."""

import json
import math
import sqlite3
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from span_world import MEASURED, SEARCHES, SECOND_NS, insight_span, span, worlds
from tempo_recording import recorded_answers, recorded_spans

from comity.core.tracing.query import QueryError, query_range, search
from comity.core.tracing.query.builder import either, spans, where
from comity.core.tracing.span import Event, Kind, Link, Span, SpanError, Status, encode_spans, group_by_trace
from comity.engines.sqlite.spans import rows as span_rows
from comity.engines.sqlite.spans import store as span_store
from comity.engines.sqlite.spans.store import SpanStore
from comity.errors import UnavailableError


@pytest.fixture
def store(tmp_path):
    with SpanStore(tmp_path / "spans.db") as opened:
        yield opened


def ids(result):
    return [int(trace.trace_id, 16) for trace in result.traces]


# --- what is stored ---

FULL = Span(
    trace_id="a" * 32,
    span_id="b" * 16,
    parent_id="c" * 16,
    name="x",
    kind=Kind.CLIENT,
    start_ns=2**63 + 5,
    end_ns=2**64 - 1,
    status=Status.ERROR,
    status_message="no",
    attributes={"text": "t", "whole": -7, "large": 2**63, "real": 1.5, "yes": True, "raw": b"\x00", "none": None,
                "list": ("a", 1), "map": {"inner": (1, (2,))}},
    resource={"service.name": "s", "list": (1,)},
    scope_name="lib",
    scope_version="2",
    scope_attributes={"deep": ({"a": (1,)},)},
    events=(Event(name="e", time_ns=9, attributes={"list": (True,)}, dropped_attributes_count=1),),
    links=(Link(trace_id="d" * 32, span_id="e" * 16, trace_state="k=v", flags=1, attributes={"a": "b"}, dropped_attributes_count=2),),
    trace_state="a=b",
    flags=1,
    dropped_attributes_count=3,
    dropped_events_count=4,
    dropped_links_count=5,
)  # fmt: skip


def test_a_span_is_read_back_with_every_field(store):
    store.ingest([FULL])
    assert store.trace(FULL.trace_id) == [FULL]
    (found,) = store.trace(FULL.trace_id)
    assert type(found.attributes["list"]) is tuple
    assert type(found.attributes["map"]["inner"][1]) is tuple


VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False), st.binary(max_size=4),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3).map(tuple), st.dictionaries(st.sampled_from("ab"), inner, max_size=2)),
    max_leaves=4,
)  # fmt: skip
BAGS = st.dictionaries(st.sampled_from(["insight.type", "project.id", "agent.id", "x"]), VALUES, max_size=3)


@given(st.lists(st.tuples(BAGS, BAGS), min_size=1, max_size=5))
def test_any_attribute_value_is_read_back_as_it_was(bags):
    made = [
        span(number, attributes=attributes, resource=resource, scope_attributes=resource, events=(Event(name="", time_ns=0, attributes=attributes),))
        for number, (attributes, resource) in enumerate(bags, 1)
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, SpanStore(Path(folder) / "spans.db") as opened:
        opened.ingest(made)
        assert opened.trace("1") == made


def test_a_span_sent_twice_is_stored_once_in_one_batch_or_two(store):
    first, second = span(1, start_ns=1, end_ns=2), span(2, 1)
    assert store.ingest([first, first]) == 1
    assert store.ingest([first, second]) == 1
    assert store.trace("1") == [first, second]
    assert store.count() == 2


def test_client_and_server_halves_that_share_an_id_are_both_kept(store):
    halves = [span(1, kind=Kind.CLIENT), span(1, kind=Kind.SERVER)]
    assert store.ingest(halves) == 2
    assert store.trace("1") == halves


def test_late_spans_join_their_trace(store):
    store.ingest([span(1, start_ns=10 * SECOND_NS, end_ns=11 * SECOND_NS)])
    store.ingest([span(2, 1, start_ns=50 * SECOND_NS, end_ns=60 * SECOND_NS)])
    assert [int(one.span_id, 16) for one in store.trace("1")] == [1, 2]
    (found,) = store.search("{}", start_ns=55 * SECOND_NS, end_ns=70 * SECOND_NS).traces
    assert found.duration_ns == 50 * SECOND_NS


def test_an_earlier_span_that_arrives_later_moves_the_start_of_its_trace(store):
    store.ingest([span(2, 1, start_ns=50 * SECOND_NS, end_ns=60 * SECOND_NS)])
    store.ingest([span(1, start_ns=10 * SECOND_NS, end_ns=11 * SECOND_NS)])
    assert len(store.search("{}", end_ns=20 * SECOND_NS).traces) == 1


def test_a_batch_with_a_span_that_cannot_be_stored_leaves_nothing_behind(store):
    for bad in (span(2, name="\ud800"), span(2, attributes={"x": "\ud800"}), span(2, attributes={"x": 2**64})):
        with pytest.raises(SpanError):
            store.ingest([span(1), bad])
        assert store.count() == 0
    assert store.ingest([span(1)]) == 1


def test_an_unknown_trace_has_no_spans(store):
    assert store.trace("77") == []


def test_spans_survive_reopening_and_share_a_file_with_other_tables(tmp_path):
    path = tmp_path / "shared.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE calls (x)")
    other.execute("INSERT INTO calls VALUES (1)")
    other.commit()
    for number in (1, 2):
        with SpanStore(path) as opened:
            opened.ingest([span(number)])
    with SpanStore(path) as opened:
        assert len(opened.trace("1")) == 2
    tables = {name for (name,) in other.execute("SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite%'")}
    assert all(name.startswith("span_") for name in tables - {"calls"})
    assert other.execute("SELECT * FROM calls").fetchall() == [(1,)]
    other.close()


def test_a_store_of_another_version_is_refused(tmp_path):
    path = tmp_path / "spans.db"
    SpanStore(path).close()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE span_meta SET version = 99")
    connection.commit()
    connection.close()
    with pytest.raises(UnavailableError, match="version 99"):
        SpanStore(path)


def test_a_closed_store_says_so(store):
    store.close()
    with pytest.raises(UnavailableError, match="closed"):
        store.ingest([span(1)])
    with pytest.raises(UnavailableError, match="closed"):
        store.search("{}")


# --- what is found ---


# The names the strategies use: without an index, each with one of its own, and both with the same.
INDEXES = st.sampled_from([{}, {"x": 20, "y": 21}, {"x": 20, "y": 20}])


@given(worlds, st.lists(SEARCHES, min_size=1, max_size=6), st.integers(0, 30), st.integers(0, 30), st.booleans(), INDEXES)
def test_a_search_finds_what_the_engine_finds_in_memory(world, queries, start_s, length_s, has_range, indexed):
    bounds = {"start_ns": start_s * SECOND_NS, "end_ns": (start_s + length_s) * SECOND_NS} if has_range else {}
    with (
        patch.dict(span_rows.INDEXED, indexed),
        tempfile.TemporaryDirectory() as folder,
        SpanStore(Path(folder) / "spans.db") as opened,
    ):
        opened.ingest(one for trace in world for one in trace)
        for query in queries:
            for limit in (0, 1):
                wanted = search(query, reversed(world), limit=limit, spans_per_spanset=0, **bounds)
                assert opened.search(query, limit=limit, spss=0, **bounds).traces == wanted.traces, str(query)


@given(worlds, st.lists(MEASURED, min_size=1, max_size=6), st.integers(0, 30), st.integers(0, 30), INDEXES)
def test_a_metric_is_what_the_engine_measures_in_memory(world, queries, start_s, length_s, indexed):
    bounds = {"start_ns": start_s * SECOND_NS, "end_ns": (start_s + length_s) * SECOND_NS, "step_ns": 7 * SECOND_NS}
    with (
        patch.dict(span_rows.INDEXED, indexed),
        tempfile.TemporaryDirectory() as folder,
        SpanStore(Path(folder) / "spans.db") as opened,
    ):
        opened.ingest(one for trace in world for one in trace)
        for query in queries:
            assert by_labels(opened.query_range(query, **bounds)) == by_labels(query_range(query, world, **bounds)), str(query)


def by_labels(series):
    """Equal labels of different types (1 and true) are one series, named after whichever span comes first."""
    return {one.labels: one.samples for one in series}


INDEXED_QUERIES = [
    '{ span.insight.type = "decision" }',
    '{ span.insight.type = "decision" && span.project.id = "checkout" }',
    '{ span.insight.type =~ "decision|blocker" && span.n > 3 }',
    '{ span.agent.id = "a1" || span.gen_ai.agent.id = "a1" }',
    '{ .project.id = "checkout" }',
    '{ resource.service.name = "agents" && span.n >= 17 }',
    '{ name = "insight.blocker" }',
    '{ trace:id = "5" }',
    '{ trace:id = "0005" || span.insight.type = "blocker" }',
    '{ span.insight.type = "blocker" } && { span.project.id = "search" }',
    '{ span.insight.type = "blocker" } || { span.n = 2 }',
    '{ span.tags = "red" }',
    "{ span.ratio = 3 }",
    "{ span.ratio = 3.0 }",
    "{ span.ratio > 2.5 && span.n < 9 }",
    "{ span.zero = 0.0 }",
    "{ span.insight.type = nil }",
    '{ span.insight.type != "decision" }',
    "{ duration > 1s }",
    "{ kind = internal && status = unset }",
    '{ span:id = "0000000000000007" }',
]
FEW = [
    insight_span(
        number,
        kind="blocker" if number % 3 == 0 else "decision",
        project="search" if number % 5 == 0 else "checkout",
        n=number,
        ratio=3.0 if number % 2 else 3,
        zero=-0.0,
        tags=("red", "blue") if number % 4 == 0 else (),
        **{"agent.id" if number % 2 else "gen_ai.agent.id": f"a{number % 3}"},
    )
    for number in range(1, 21)
]


WORLD = [[one] for one in reversed(FEW)]
RANGES = ({}, {"start_ns": 4 * SECOND_NS, "end_ns": 12 * SECOND_NS}, {"start_ns": 17 * SECOND_NS})


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """A store that tests only read."""
    with SpanStore(tmp_path_factory.mktemp("few") / "spans.db") as opened:
        opened.ingest(FEW)
        yield opened


@pytest.mark.parametrize("query", INDEXED_QUERIES)
def test_an_indexed_or_scanned_search_finds_the_same_as_memory(few, query, monkeypatch):
    monkeypatch.setattr(span_store, "RANGE_TRACES_MAX", 5)
    wanted = [search(query, WORLD, limit=0, **bounds).traces for bounds in RANGES]
    for probed in (0, 1, 500):
        monkeypatch.setattr(span_store, "PROBED_TRACES", probed)
        assert [few.search(query, limit=0, strict=True, **bounds).traces for bounds in RANGES] == wanted


@pytest.mark.parametrize("query", [query for query in INDEXED_QUERIES if "&& {" not in query and "|| {" not in query])
def test_an_indexed_or_scanned_metric_is_the_same_as_in_memory(few, query, monkeypatch):
    bounds = {"start_ns": 3 * SECOND_NS, "end_ns": 15 * SECOND_NS, "step_ns": SECOND_NS}
    text = f"{query} | count_over_time() by (span.insight.type)"
    wanted = query_range(text, WORLD, **bounds)
    for spans_max in (0, 500):
        monkeypatch.setattr(span_store, "RANGE_SPANS_MAX", spans_max)
        assert few.query_range(text, strict=True, **bounds) == wanted


def test_an_indexed_search_reads_only_the_traces_that_every_index_names(store):
    store.ingest(insight_span(number, project="rare" if number == 40 else "checkout") for number in range(1, 101))
    found = store.search('{ span.insight.type = "decision" && span.project.id = "rare" }')
    assert ids(found) == [40]
    assert found.inspected_traces == 1


def test_a_limited_search_stops_at_the_latest_arrivals(store):
    store.ingest(insight_span(number) for number in range(1, 101))
    found = store.search('{ span.insight.type = "decision" }', limit=3)
    assert ids(found) == [100, 99, 98]
    assert found.inspected_traces == 3


def test_a_lenient_text_is_rewritten_and_a_strict_one_refused(store):
    store.ingest([insight_span(1, **{"gen_ai.agent.id": "x"})])
    assert ids(store.search('{ insight.type = "decision" && agent.id = "x" }')) == [1]
    with pytest.raises(QueryError):
        store.search('{ insight.type = "decision" }', strict=True)


@pytest.mark.parametrize("query", ['{ span.a = "\ud800" }', '{ span.insight.type = "\ud800" }', '{ span."\ud800" = 1 }'])
def test_a_query_that_is_not_valid_unicode_is_refused_as_a_query(store, query):
    store.ingest([insight_span(1)])
    with pytest.raises(QueryError, match="surrogate"):
        store.search(query)


def test_numbers_beyond_64_bits_are_compared_rightly(store):
    vast = span(1, start_ns=0, end_ns=2**64 - 1, attributes={"project.id": 2**64 - 1, "x": 2**63})
    store.ingest([vast])
    for query in (
        "{ duration > 9223372036854775807ns }",
        "{ span.x > 9223372036854775807 }",
        "{ duration >= 9223372036854775807ns }",
    ):
        assert len(store.search(query).traces) == len(search(query, [[vast]]).traces) == 1, query
    loose = "{ span.project.id = 18446744073709551616.0 || span.project.id != nil }"
    assert len(store.search(loose).traces) == len(search(loose, [[vast]]).traces) == 1


def test_a_query_with_thousands_of_alternatives_is_still_answered(store):
    store.ingest(insight_span(number) for number in range(1, 4))
    names = [f"insight-{number}" for number in range(3, 3000)]
    assert ids(store.search(spans(where("span.insight.id", "=", names)).build())) == [3]
    fields = [where(f"span.x{number}", "=", 1) for number in range(300)]
    assert ids(store.search(spans(either(where("span.insight.id", "=", "insight-2"), *fields)).build())) == [2]


# --- who reads while who writes ---

WRITER = """
import json, sys
from comity.core.tracing.span import decode_spans
from comity.engines.sqlite.spans.store import SpanStore
with SpanStore(sys.argv[1]) as store:
    for span in decode_spans(json.load(sys.stdin)):
        store.ingest([span])
        if span.span_id.endswith("01"):
            print("writing", flush=True)
"""


def test_a_reader_sees_whole_batches_while_another_process_writes(store):
    command = [sys.executable, "-c", WRITER, str(store.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        json.dump(encode_spans([insight_span(number) for number in range(1, 61)]), writer.stdin)
        writer.stdin.close()
        assert writer.stdout.readline() == "writing\n"
        counts = [len(store.search('{ span.insight.type = "decision" }', limit=0).traces)]
        while writer.poll() is None:
            counts.append(len(store.search('{ span.insight.type = "decision" }', limit=0).traces))
            store.ingest([insight_span(1000 + len(counts), kind="risk")])
    assert writer.returncode == 0
    assert counts[0] >= 1
    assert counts == sorted(counts)
    assert len(store.search('{ span.insight.type = "decision" }', limit=0).traces) == 60


def test_threads_may_share_a_store(store):
    def work(first):
        for number in range(first, first + 10):
            store.ingest([insight_span(number)])
            found.append(len(store.search('{ span.insight.type = "decision" }', limit=0).traces))

    found = []

    threads = [threading.Thread(target=work, args=(1 + 100 * at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(found) == 40
    assert store.count() == 40


# --- what a real Tempo answered ---


def test_every_query_recorded_from_tempo_is_answered_by_the_store_as_in_memory(store):
    answers, sent = recorded_answers(), recorded_spans()
    for first in range(0, len(sent), 100):
        store.ingest(sent[first : first + 100])
    world = group_by_trace(sent)
    assert store.trace(world[0][0].trace_id) == world[0]
    bounds = {"start_ns": answers["start_s"] * SECOND_NS, "end_ns": answers["end_s"] * SECOND_NS}
    compared = 0
    for entry in answers["answers"]:
        if entry["status"] != 200:
            continue
        compared += 1
        if entry["kind"] == "metrics":
            step_ns = 10 * SECOND_NS
            found = store.query_range(entry["q"], strict=True, step_ns=step_ns, **bounds)
            same_series(found, query_range(entry["q"], world, step_ns=step_ns, **bounds), entry["q"])
        else:
            found = store.search(entry["q"], strict=True, limit=0, spss=0, **bounds)
            wanted = search(entry["q"], world, limit=0, spans_per_spanset=0, **bounds)
            assert found.traces == wanted.traces, entry["q"]
    assert compared > 50


def same_series(found, wanted, query):
    """Sums of floats differ in their last digit with the order of the spans."""
    assert [one.labels for one in found] == [one.labels for one in wanted], query
    for ours, theirs in zip(found, wanted, strict=True):
        assert [at for at, _ in ours.samples] == [at for at, _ in theirs.samples], query
        pairs = zip(ours.samples, theirs.samples, strict=True)
        assert all(math.isclose(a, b, rel_tol=1e-12) for (_, a), (_, b) in pairs), query
