"""Spans that are kept no longer go with every entry of the index, whether they were sorted in or not."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from span_world import SECOND_NS, insight_span

from comity.core.journal.retention import Keep
from comity.core.tracing.span import Span
from comity.core.tracing.telemetry import Ended, Origin
from comity.engines.sqlite.spans import retention as span_retention
from comity.engines.sqlite.spans import rows as span_rows
from comity.engines.sqlite.spans.store import SpanStore

NOW_MS = 100_000
ORIGIN = Origin(resource={"service.name": "shop"})


def ended(second: int) -> Ended:
    at_ns = second * SECOND_NS
    return Ended(
        f"{second:032x}", f"{second:016x}", "", "ANL", "NPV", None, f"r{second}", f"r{second}", "s", "default",
        0, "normal", "success", "", 0, 0, 0, 1.0, False, at_ns - 5, at_ns,
    )  # fmt: skip


@pytest.fixture
def store(tmp_path):
    with SpanStore(tmp_path / "spans.db") as opened:
        yield opened


def gone(store: SpanStore, keep: Keep) -> int:
    would = sum(one.spans for one in span_retention.dry_sweep(store.path, keep, NOW_MS))
    found = sum(one.spans for one in store.prune(keep, NOW_MS))
    assert found == would
    return found


def left(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def test_by_age_a_trace_goes_once_its_last_span_is_too_old(store):
    late = Span(trace_id=f"{1:032x}", span_id="ab" * 8, name="late", start_ns=95 * SECOND_NS, end_ns=96 * SECOND_NS)
    store.ingest([*map(insight_span, (1, 2, 3, 91)), late])
    keep = Keep(age=timedelta(seconds=10))
    assert gone(store, keep) == 2
    assert [len(store.trace(f"{number:x}")) for number in (1, 2, 3, 91)] == [2, 0, 0, 1]
    assert [one.attributes["insight.id"] for one in store.find('{ span.insight.type = "decision" }')] == [
        "insight-91",
        "insight-1",
    ]


def test_by_number_the_newest_stay_and_nothing_of_the_others_is_left(store, monkeypatch):
    monkeypatch.setattr(span_retention, "SLICE_SPANS", 7)
    store.ingest(map(insight_span, range(1, 51)))
    assert gone(store, Keep(count=20)) == 30
    assert store.count() == 20
    assert gone(store, Keep(count=0)) == 20
    assert [left(store.path, table) for table in ("span_spans", "span_keys", "span_traces")] == [0, 0, 0]
    store.ingest([insight_span(60)])
    assert len(store.find('{ span.project.id = "checkout" }')) == 1


def test_what_waits_in_the_inbox_goes_without_being_sorted_in(store):
    for second in (1, 2, 95):
        store.post(ORIGIN, [ended(second)])
    assert gone(store, Keep(age=timedelta(seconds=10))) == 2
    assert left(store.path, "span_spans") == 0
    assert store.count() == 1
    store.post(ORIGIN, [ended(96)])
    assert gone(store, Keep(count=0)) == 2
    assert store.count() == 0


def test_a_span_that_cannot_be_read_goes_too(store):
    store.ingest(map(insight_span, (1, 2)))
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("UPDATE span_spans SET body = x'00' WHERE id = 1")
        connection.commit()
    assert gone(store, Keep(count=0)) == 2
    assert left(store.path, "span_keys") == 0


def steps_of_a_sweep(path: Path, keep: Keep) -> int:
    """Sweep and return how many statements were run and rows read for that."""
    steps: list[object] = []
    with closing(span_rows.connect(path)) as connection:
        connection.set_trace_callback(steps.append)
        connection.row_factory = lambda _, row: steps.append(row) or row
        sweep = span_retention.SpanSweep(keep, NOW_MS)
        while sweep.step(connection) is not None:
            pass
        connection.commit()
    return len(steps)


def test_a_sweep_takes_few_statements_for_many_spans(store):
    """Each statement and each row gives a busy event loop the interpreter lock: with some for each span a sweep falls behind."""
    store.ingest(map(insight_span, range(1, 301)))
    assert steps_of_a_sweep(store.path, Keep(count=0)) < 60
    assert left(store.path, "span_keys") == 0
    for batch in range(30):
        store.post(ORIGIN, [ended(batch) for _ in range(5)])
    assert steps_of_a_sweep(store.path, Keep(count=0)) < 30
    assert left(store.path, "span_inbox") == 0


def test_the_log_of_a_store_that_is_swept_does_not_grow(store):
    """What was removed is room for what comes, in the file and in its log."""
    sizes = []
    for _ in range(6):
        for _ in range(20):
            store.post(ORIGIN, [ended(second) for second in range(100)])
        assert gone(store, Keep(count=100)) > 0
        sizes.append(sum(path.stat().st_size for path in store.path.parent.glob("spans.db*")))
    assert sizes[-1] == sizes[2]


def test_a_batch_that_cannot_be_read_stays_in_the_inbox_by_age_and_goes_by_number(store):
    store.post(ORIGIN, [ended(1)])
    store.post(ORIGIN, [ended(2)])
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("UPDATE span_inbox SET body = x'00' WHERE id = 2")
        connection.commit()
    assert gone(store, Keep(age=timedelta(seconds=10))) == 1
    assert gone(store, Keep(count=0)) == 1
