"""The thread between a node and its store."""

import sqlite3
import threading
from contextlib import closing

import pytest
from msgspec.structs import replace

from comity.core.journal.retention import Keep
from comity.core.tracing.span import Span
from comity.core.tracing.telemetry import Settings
from comity.engines.sqlite.spans import drain as span_drain
from comity.engines.sqlite.spans import inbox as span_inbox
from comity.engines.sqlite.spans import losses as span_losses
from comity.engines.sqlite.spans.drain import SpanDrain
from comity.engines.sqlite.spans.store import SpanStore
from comity.errors import UnavailableError


def spans(count, first=0, **attributes):
    return [
        Span(trace_id=f"{number + 1:032x}", span_id=f"{number + 1:016x}", attributes=attributes)
        for number in range(first, first + count)
    ]


@pytest.fixture
def store(tmp_path):
    with SpanStore(tmp_path / "spans.db") as opened:
        yield opened


def wait_for(drain):
    done = threading.Event()
    drain.when_done(done.set)
    assert done.wait(5)


def test_what_was_offered_is_in_the_store_when_it_says_so(store):
    drain = SpanDrain(Settings(), store, None)
    drain.offer(spans(3))
    wait_for(drain)
    assert store.count() == 3
    drain.close()


def test_closing_leaves_the_sorting_to_whoever_asks_first(store):
    drain = SpanDrain(Settings(), store, None)
    drain.offer(spans(3))
    drain.close()
    assert store.sort_in()
    assert store.count() == 3


class Slow:
    """A store whose disk stands still until it is let go."""

    def __init__(self, store):
        self.store = store
        self.go = threading.Event()

    def post(self, *given):
        assert self.go.wait(5)
        self.store.post(*given)

    def __getattr__(self, name):
        return getattr(self.store, name)


def test_what_the_store_cannot_take_in_time_is_dropped_and_written_down_but_never_an_insight(store, monkeypatch):
    monkeypatch.setattr(span_drain, "WAITING_MAX", 4)
    slow = Slow(store)
    drain = SpanDrain(Settings(), slow, None)
    drain.offer(spans(4))
    drain.offer([*spans(2, first=4), *spans(1, first=6, **{"insight.id": "i1"})])
    assert drain.dropped == 2
    slow.go.set()
    drain.close()
    assert store.count() == 5
    assert store.trace(f"{7:032x}")
    ((why, lost, _),) = store.losses()
    assert (why, lost) == ("the store could not take them in time", 2)


def test_a_store_that_fails_costs_its_batch_and_not_the_thread(store, tmp_path):
    class Failing(Slow):
        def post(self, origin, ended, some):
            if len(some) == 2:
                raise UnavailableError("the disk is full", code="STORE_UNAVAILABLE")
            self.store.post(origin, ended, some)

    drain = SpanDrain(Settings(), Failing(store), None)
    drain.offer(spans(2))
    drain.offer(spans(1, first=5))
    drain.close()
    assert drain.dropped == 2
    assert store.count() == 1


def test_a_span_that_cannot_be_stored_costs_itself_and_not_its_batch(store):
    drain = SpanDrain(Settings(), store, None)
    drain.offer([*spans(1), Span(trace_id="1" * 32, span_id="1" * 16, name="\ud800"), *spans(1, first=5)])
    drain.close()
    assert (drain.dropped, store.count()) == (1, 2)


def test_a_fault_nobody_thought_of_costs_its_batch_and_not_the_thread(store, caplog):
    class Faulty(Slow):
        def post(self, origin, ended, some):
            if len(some) == 2:
                raise ZeroDivisionError
            self.store.post(origin, ended, some)

    drain = SpanDrain(Settings(), Faulty(store), None)
    drain.offer(spans(2))
    drain.offer(spans(1, first=5))
    drain.close()
    assert (drain.dropped, store.count()) == (2, 1)
    assert "ZeroDivisionError" in caplog.text


def test_a_span_that_cannot_be_stored_is_counted_and_does_not_take_its_batch_along(store):
    drain = SpanDrain(Settings(), store, None)
    good, bad = spans(3), [replace(one, name=name) for one, name in zip(spans(2, first=3), (5, "\ud800"), strict=True)]
    drain.offer([*good, *bad])
    wait_for(drain)
    assert (store.count(), drain.dropped) == (3, 2)
    assert [span_inbox.overview(store.path, most)[0] for most in (-1, 2)] == [3, 2]  # the second counts no further
    drain.close()


def test_what_is_lost_is_seen_though_not_even_the_loss_could_be_written_down(store):
    drain = SpanDrain(Settings(), store, None)
    wait_for(drain)
    store._writer.execute("PRAGMA query_only = ON")  # nothing can be written, as on a disk that is full
    for number in range(3):
        drain.offer(spans(20, first=20 * number, text="x" * 2_000))
    wait_for(drain)
    assert drain.dropped == 60
    assert "could not be written" in drain.last_error
    kept, waiting, losses = span_inbox.overview(store.path)
    assert (kept, waiting, [lost for _, lost, _ in losses]) == (0, 0, [60])
    store._writer.execute("PRAGMA query_only = OFF")
    drain.offer(spans(1))
    wait_for(drain)
    drain.close()
    assert [(why, lost) for why, lost, _ in store.losses()] == [(span_losses.WHY, 60)]
    assert not span_losses.place(store.path).exists()
    assert [lost for _, lost, _ in span_inbox.overview(store.path)[2]] == [60]


def test_a_later_life_writes_down_what_an_earlier_one_could_not(store):
    for lost in (3, 4):
        span_losses.add(store.path, lost)
    SpanDrain(Settings(), store, None).close()
    assert [(why, lost) for why, lost, _ in store.losses()] == [(span_losses.WHY, 7)]


def test_spans_that_a_retention_removed_from_the_inbox_make_nothing_be_sorted_in(store, monkeypatch):
    """A busy node with a retention would else sort in, with every entry of the index, what is removed seconds later."""
    monkeypatch.setattr(span_drain, "INBOX_SPANS_MAX", 10)
    drain = SpanDrain(Settings(), store, None)
    for number in range(20):
        drain.offer(spans(2, 2 * number))
        wait_for(drain)
        assert [one.spans for one in store.prune(Keep(count=2), 0)] in ([], [2])
    drain.close()
    with closing(sqlite3.connect(store.path)) as connection:
        assert connection.execute("SELECT count(*) FROM span_spans").fetchone() == (0,)
