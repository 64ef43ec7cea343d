"""A Tempo elsewhere answers what the embedded store would."""

import pytest
from tempo_fake import FakeTempo

from comity.contextcore.insights import InsightEmitter, InsightQuerier
from comity.core.insight.insight import Type
from comity.core.tracing.query import QueryError
from comity.core.tracing.span import Event, Link, Span, Status
from comity.engines.sqlite.spans.store import SpanStore
from comity.engines.tempo import ATTEMPTS_MAX, TempoStore
from comity.errors import CallerError, UnavailableError

NOW_NS = 1_700_000_000 * 10**9
RESOURCE = {"service.name": "shop"}
SPANS = [
    Span(
        trace_id=f"{number // 3 + 1:032x}",  # with many zeros in front
        span_id=f"{number + 1:016x}",
        parent_id=None if number % 3 == 0 else f"{number - number % 3 + 1:016x}",
        name=("invoke_agent ANL", "chat", "execute_tool x")[number % 3],
        start_ns=NOW_NS - 3600 * 10**9 + number * 10**9,
        end_ns=NOW_NS - 3600 * 10**9 + number * 10**9 + 5 * 10**8,
        status=Status.ERROR if number % 5 == 0 else Status.UNSET,
        attributes={"n": number, "insight.type": "risk" if number % 4 == 0 else "lesson", "many": (1, 2)},
        resource=RESOURCE,
        events=(Event(name="e", time_ns=NOW_NS, attributes={"evidence.ref": "r"}),),
        links=(Link(trace_id="a" * 32, span_id="b" * 16),),
    )
    for number in range(30)
]
QUERIES = [
    "{}",
    '{ insight.type = "risk" }',
    "{ status = error } | select(span.n, name)",
    '{ name = "invoke_agent ANL" } > { span.n > 10 }',
    "{ } | count() > 2",
    "{ span.n > 100 }",
]


class Clock:
    at_ns = NOW_NS

    def now_ns(self):
        return self.at_ns


@pytest.fixture
def store(tmp_path):
    with SpanStore(tmp_path / "spans.db") as opened:
        opened.ingest(SPANS)
        yield opened


@pytest.fixture
def fake():
    with FakeTempo(SPANS) as running:
        yield running


def tempo(fake, **more):
    return TempoStore(fake.url, clock=Clock(), **{"sleep": lambda _: None, **more})


@pytest.mark.parametrize("query", QUERIES)
def test_a_search_finds_what_the_embedded_store_finds(fake, store, query):
    there, here = tempo(fake).search(query, limit=100, spss=100), store.search(query, limit=100, spss=100)
    assert outline(there) == outline(here)


def outline(result):
    return [
        (t.trace_id, t.root_name, t.root_service_name, t.start_ns, t.services, [shown(spanset) for spanset in t.spansets])
        for t in result.traces
    ]


def shown(spanset):
    return (spanset.matched, [(m.span.span_id, m.span.start_ns, m.span.end_ns, m.attributes) for m in spanset.spans])


@pytest.mark.parametrize("query", QUERIES)
def test_finding_returns_whole_spans_as_the_embedded_store_does(fake, store, query):
    assert sorted(tempo(fake).find(query), key=repr) == sorted(store.find(query), key=repr)


def test_a_trace_is_found_by_an_id_without_its_zeros_and_is_whole(fake):
    assert tempo(fake).trace("1") == SPANS[:3]
    assert tempo(fake).trace("f" * 32) == []
    assert tempo(fake).trace("no hex") == []


@pytest.mark.parametrize(
    "query", ["{} | rate() by (name)", "{ status = error } | count_over_time()", "{} | max_over_time(span.n)"]
)
def test_metrics_are_those_of_the_embedded_store(fake, store, query):
    times = {"start_ns": NOW_NS - 7200 * 10**9, "end_ns": NOW_NS, "step_ns": 600 * 10**9}
    assert tempo(fake).query_range(query, **times) == store.query_range(query, **times)


def test_times_are_whole_seconds_that_cover_what_was_asked(fake):
    tempo(fake).search("{}", start_ns=1_500_000_000, end_ns=2_500_000_001)
    assert (fake.asked[-1][1]["start"], fake.asked[-1][1]["end"]) == ("1", "3")
    tempo(fake).search("{}")
    assert int(fake.asked[-1][1]["end"]) - int(fake.asked[-1][1]["start"]) == 7 * 24 * 3600


def test_a_lenient_query_is_sent_in_tempos_form_and_a_strict_one_is_refused_here(fake):
    tempo(fake).search('{ insight.type = "risk" }')
    assert fake.asked[-1][1]["q"] == '{ span.insight.type = "risk" }'
    with pytest.raises(QueryError):
        tempo(fake).search('{ insight.type = "risk" }', strict=True)


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_tempo_that_is_busy_is_asked_again_later_and_later(status):
    waited = []
    with FakeTempo(SPANS, failures=[status] * (ATTEMPTS_MAX - 1)) as fake:
        found = tempo(fake, sleep=waited.append, retry_s=1.0).search("{}")
    assert found.traces
    assert waited == ([3.0, 3.0, 4.0] if status == 429 else [1.0, 2.0, 4.0])


def test_a_tempo_that_stays_busy_or_away_is_an_error_that_says_so():
    with FakeTempo(SPANS, failures=[503] * ATTEMPTS_MAX) as fake, pytest.raises(UnavailableError, match="HTTP 503"):
        tempo(fake).search("{}")
    with pytest.raises(UnavailableError, match="ConnectionRefused"):
        TempoStore("http://127.0.0.1:9", sleep=lambda _: None).search("{}")


def test_another_failure_is_not_tried_again():
    with FakeTempo(SPANS, failures=[500]) as fake:
        with pytest.raises(UnavailableError, match="500"):
            tempo(fake).search("{}")
        assert len(fake.asked) == 1


def test_what_tempo_refuses_points_at_the_place_it_names():
    with FakeTempo(SPANS) as fake:
        fake.answer = lambda *_: (400, "invalid TraceQL query: parse error at line 2, col 7: unknown identifier: x")
        with pytest.raises(QueryError) as caught:
            tempo(fake).search("{}")
    assert (caught.value.line, caught.value.column, caught.value.problem) == (2, 7, "unknown identifier: x")


@pytest.mark.parametrize("answer", ["no json", "[]", '{"traces": [{}]}', '{"traces": 7}'])
def test_an_answer_no_tempo_gives_is_an_error_and_no_crash(answer):
    with FakeTempo(SPANS) as fake:
        fake.answer = lambda *_: (200, answer)
        with pytest.raises(UnavailableError, match="no Tempo"):
            tempo(fake).search("{}")


def test_the_tenant_is_named_in_its_header():
    with FakeTempo(SPANS, tenant="team-a") as fake:
        assert tempo(fake, tenant="team-a").search("{}").traces
        with pytest.raises(UnavailableError, match="401"):
            tempo(fake).search("{}")


@pytest.mark.parametrize("url", ["localhost:3200", "ftp://x", "http://", ""])
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(CallerError, match="address"):
        TempoStore(url)


def test_a_querier_takes_the_address_of_a_tempo(fake):
    assert InsightQuerier(tempo_url=fake.url).store.search("{}", start_ns=0).traces


def test_insights_are_asked_of_a_tempo_as_of_the_store(tmp_path):
    with SpanStore(tmp_path / "spans.db") as store:
        emitter = InsightEmitter(store, project_id="shop", agent_id="a", clock=Clock())
        first = emitter.emit_blocker(summary="stuck", evidence=[{"type": "file", "ref": "x.py"}])
        emitter.emit_decision(summary="go on", confidence=0.9, supersedes=first.id)
        emitter.emit_decision(summary="unsure", confidence=0.2)
        spans = store.find("{}")
        with FakeTempo(spans) as fake:
            there, here = (InsightQuerier(one, clock=Clock()) for one in (tempo(fake), store))
            for asked in ({}, {"insight_type": Type.DECISION, "min_confidence": 0.8}, {"is_current": False}):
                assert there.query(project_id="shop", **asked) == here.query(project_id="shop", **asked)
            assert there.get_blockers("shop") == []
            (all_of_them,) = (one for one in there.query(is_current=False) if one.type is Type.BLOCKER)
            assert [one.ref for one in all_of_them.evidence] == ["x.py"]


def test_a_limit_reads_a_few_of_the_newest_traces_and_not_every_one_that_matches(tmp_path):
    clock = Clock()
    with SpanStore(tmp_path / "spans.db") as store:
        emitter = InsightEmitter(store, project_id="shop", agent_id="a", clock=clock)
        for number in range(300):
            clock.at_ns = NOW_NS - (300 - number) * 10**9
            emitter.emit_decision(summary=f"decision {number}", confidence=0.9)
        with FakeTempo(store.find("{}")) as fake:
            found = InsightQuerier(tempo(fake), clock=Clock()).query(project_id="shop", limit=10)
            assert [one.summary for one in found] == [f"decision {number}" for number in range(299, 289, -1)]
            assert len([path for path, _ in fake.asked if path.startswith("/api/traces/")]) <= 50


def test_where_many_were_superseded_more_traces_are_read_until_there_are_enough(tmp_path):
    clock = Clock()
    with SpanStore(tmp_path / "spans.db") as store:
        emitter = InsightEmitter(store, project_id="shop", agent_id="a", clock=clock)
        kept = [emitter.emit_decision(summary=f"kept {number}", confidence=0.9) for number in range(3)]
        newest = ""
        for number in range(60):
            clock.at_ns = NOW_NS - (60 - number) * 10**9
            newest = emitter.emit_decision(summary=f"{number}", confidence=0.9, supersedes=newest).id
        with FakeTempo(store.find("{}")) as fake:
            found = InsightQuerier(tempo(fake), clock=Clock()).query(project_id="shop", limit=3)
    assert {one.id for one in found} <= {newest, *(one.id for one in kept)}
    assert len(found) == 3


def test_more_traces_than_are_read_are_said_to_be_left_out(fake, monkeypatch, caplog):
    monkeypatch.setattr("comity.engines.tempo.TRACES_MAX", 5)
    assert len({span.trace_id for span in tempo(fake).find("{ }")}) == 5
    assert "the rest is left out" in caplog.text
