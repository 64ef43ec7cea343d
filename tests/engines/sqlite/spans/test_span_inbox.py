"""The inbox: what is put there quickly is found by the first who asks, once."""

import sqlite3
from contextlib import closing

import pytest
from msgspec.structs import replace

from comity.core.tracing.call_spans import call_span
from comity.core.tracing.naming import Mode
from comity.core.tracing.span import Link, Span
from comity.core.tracing.telemetry import Ended, Origin
from comity.engines.sqlite.spans import inbox as span_inbox
from comity.engines.sqlite.spans.store import SpanStore

ORIGIN = Origin(mode=Mode.OTEL, resource={"service.name": "shop", "list": ("a", 1)}, version="1")


def ended(number, session_id="s1", tenant_id="default", content=()):
    return Ended(
        f"{number:032x}", f"{number:016x}", "", "ANL", "NPV", None, f"r{number}", f"r{number}", session_id, tenant_id,
        0, "normal", "success", "", 0, 0, 0, 1.0, False, 10, 20, content=content,
    )  # fmt: skip


@pytest.fixture
def store(tmp_path):
    with SpanStore(tmp_path / "spans.db") as opened:
        yield opened


def test_what_was_posted_is_read_as_it_was_whichever_way_it_is_asked_for(store):
    other = Span(trace_id="a" * 32, span_id="b" * 16, name="insight.risk", attributes={"insight.type": "risk", "x": (1, "a")})
    store.post(ORIGIN, [ended(1)], [other])
    assert store.trace(f"{1:032x}") == [call_span(ended(1), ORIGIN)]
    store.post(ORIGIN, [ended(2)])
    assert {trace.trace_id for trace in store.search('{ resource.service.name = "shop" }').traces} == {f"{1:032x}", f"{2:032x}"}
    assert store.trace("a" * 32) == [other]
    assert store.count() == 3


def test_another_holder_of_the_file_finds_what_was_posted_and_nothing_twice(store):
    store.post(ORIGIN, [ended(1)])
    with SpanStore(store.path) as other:
        assert other.count() == 1
        assert not other.sort_in()
    store.post(ORIGIN, [ended(1), ended(2)])
    assert store.count() == 2


def test_sorting_in_takes_about_as_much_as_it_is_told(store):
    for number in range(1, 6):
        store.post(ORIGIN, [ended(number)])
    assert store.sort_in(spans_max=2)
    with closing(sqlite3.connect(store.path)) as connection:
        (left,) = connection.execute("SELECT count(*) FROM span_inbox").fetchone()
    assert left == 3
    assert store.count() == 5


def test_losses_add_up_by_reason(store):
    store.note_loss("full", 3, at_ms=10)
    store.note_loss("full", 4, at_ms=20)
    store.note_loss("away", 1, at_ms=15)
    assert store.losses() == [("away", 1, 15), ("full", 7, 20)]


@pytest.mark.parametrize("mode", Mode)
def test_erasing_a_session_leaves_no_byte_of_it_and_keeps_the_others(store, mode):
    origin = Origin(mode=mode, resource=ORIGIN.resource)
    told = ("objective", "my secret", "{}", "", "", "")
    store.post(origin, [ended(1, content=told), ended(2, "s2"), ended(3, tenant_id="t2")])
    assert store.trace(f"{1:032x}")
    store.post(origin, [ended(4, content=told)])
    assert store.erase("s1") == 2
    assert store.count() == 2
    assert store.trace(f"{1:032x}") == []
    assert store.search('{ span.comity.request.id = "r1" }').traces == ()
    assert {trace.trace_id for trace in store.search('{ name = "invoke_agent ANL" }').traces} == {f"{2:032x}", f"{3:032x}"}
    files = [path.read_bytes() for path in store.path.parent.iterdir()]
    assert not any(b"my secret" in content for content in files)


OTHER = Span(trace_id="a" * 32, span_id="b" * 16, name="other")


@pytest.mark.parametrize(
    "bad",
    [{"name": 5}, {"attributes": {1: "x"}}, {"name": "\ud800"}, {"links": (Link(trace_id=5, span_id="c" * 16),)}],
    ids=["name", "attribute name", "surrogate", "link"],
)
def test_nothing_that_could_not_be_read_again_is_put_in(store, bad):
    with pytest.raises(span_inbox.UNSOUND):
        store.post(ORIGIN, [ended(1)], [OTHER, replace(OTHER, span_id="c" * 16, **bad)])
    assert store.count() == 0


def test_what_cannot_be_read_in_the_inbox_is_named_and_counted_and_the_rest_is_found(store, caplog):
    store.post(ORIGIN, [ended(1), replace(ended(2), tenant_id=5), ended(3)])
    store.post(ORIGIN, [ended(4)], [OTHER])
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("INSERT INTO span_inbox (spans, body) VALUES (7, 'rubbish')")
    assert {span.trace_id for span in store.find("{ }")} == {f"{number:032x}" for number in (1, 3, 4)} | {"a" * 32}
    assert "1 of 3 spans cannot be read" in caplog.text
    assert [(why, lost) for why, lost, _ in store.losses()] == [("they could not be read", 8)]
    assert not store.sort_in()


def test_a_span_that_cannot_be_read_is_passed_over_by_who_asks(store, caplog):
    store.post(ORIGIN, [ended(1), ended(2)])
    assert store.count() == 2
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("UPDATE span_spans SET body = 'rubbish' WHERE id = 1")
    assert [span.trace_id for span in store.find("{ }")] == [f"{2:032x}"]
    assert f"trace {1:032x} cannot be read" in caplog.text
    assert store.query_range("{ } | count_over_time()", start_ns=0, end_ns=10**9, step_ns=10**9)
    assert store.erase("s1") == 2
