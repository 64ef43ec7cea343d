"""Insights survive being spans in every mode, hide when they no longer hold, and are asked for safely."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.core.insight import insight as subject
from comity.core.insight.insight import (
    CREATED_AT_MAX,
    EXPIRES_AT_MAX,
    Audience,
    Evidence,
    Insight,
    Mode,
    Support,
    Type,
    current,
    for_audience,
    from_span,
    parse_time,
    read_spans,
    to_span,
)
from comity.core.insight.queries import query
from comity.core.tracing.query import parse, search
from comity.core.tracing.span import Kind, Span, decode_spans, encode_spans
from comity.errors import CallerError

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAMES = TEXTS.filter(bool)
HEX = st.integers(1, 2**64 - 1)
INSIGHTS = st.builds(
    Insight,
    id=NAMES,
    type=st.sampled_from(Type),
    summary=NAMES,
    confidence=st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0])),
    project_id=NAMES,
    agent_id=NAMES,
    created_at=st.integers(0, CREATED_AT_MAX),
    audience=st.sampled_from(Audience),
    session_id=TEXTS,
    provider=TEXTS,
    rationale=TEXTS,
    evidence=st.lists(st.builds(Evidence, type=NAMES, ref=TEXTS, description=TEXTS, query=TEXTS), max_size=3).map(tuple),
    links=st.lists(
        st.builds(Support, trace_id=HEX.map("{:032x}".format), span_id=HEX.map("{:016x}".format), relationship=NAMES),
        max_size=2,
    ).map(tuple),
    supersedes=TEXTS,
    expires_at=st.one_of(st.none(), st.integers(0, EXPIRES_AT_MAX)),
    applies_to=st.lists(TEXTS, max_size=3).map(tuple),
    category=TEXTS,
    trace_id=HEX.map("{:032x}".format),
    span_id=HEX.map("{:016x}".format),
)


def make(number=1, type=Type.DECISION, **fields):  # noqa: A002
    given_fields = {
        "id": f"i{number}",
        "type": type,
        "summary": "s",
        "confidence": 0.9,
        "project_id": "checkout",
        "agent_id": "claude-code",
        "created_at": number,
        "trace_id": f"{number:032x}",
        "span_id": f"{number:016x}",
    }
    return Insight(**given_fields | fields)


def names(insights):
    return [insight.id for insight in insights]


# --- as a span ---


@given(INSIGHTS, st.sampled_from(Mode))
def test_an_insight_survives_being_a_span_in_every_mode(insight, mode):
    assert from_span(to_span(insight, mode=mode)) == insight


@given(INSIGHTS, st.sampled_from(Mode))
def test_an_insight_survives_otlp(insight, mode):
    (span,) = decode_spans(encode_spans([to_span(insight, mode=mode)]))
    assert from_span(span) == insight


def test_the_mode_decides_the_names_of_agent_session_and_provider_and_nothing_else():
    insight = make(session_id="s-1", provider="anthropic")
    spans = {mode: to_span(insight, mode=mode).attributes for mode in Mode}
    legacy = {"agent.id": "claude-code", "agent.session_id": "s-1", "gen_ai.system": "anthropic"}
    otel = {
        "gen_ai.agent.id": "claude-code",
        "gen_ai.conversation.id": "s-1",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.operation.name": "insight.emit",
    }
    shared = spans[Mode.DUAL].keys() - legacy.keys() - otel.keys()
    assert {"insight.id", "insight.type", "insight.summary", "insight.confidence", "insight.audience", "project.id"} <= shared
    for mode, own in ((Mode.LEGACY, legacy), (Mode.OTEL, otel), (Mode.DUAL, legacy | otel)):
        assert spans[mode] == {name: spans[Mode.DUAL][name] for name in shared} | own


def test_a_span_is_named_by_type_internal_and_carries_evidence_and_links_as_the_seed_writes_them():
    evidence = (Evidence(type="adr", ref="ADR-015"), Evidence(type="trace", ref="t", description="200ms"))
    link = Support(trace_id="a" * 32, span_id="b" * 16)
    span = to_span(make(evidence=evidence, links=(link,), expires_at=0, created_at=7), mode=Mode.DUAL)
    assert (span.name, span.kind, span.start_ns) == ("insight.decision", Kind.INTERNAL, 7 * 10**6)
    assert [(event.name, dict(event.attributes)) for event in span.events] == [
        ("evidence.added", {"evidence.type": "adr", "evidence.ref": "ADR-015"}),
        ("evidence.added", {"evidence.type": "trace", "evidence.ref": "t", "evidence.description": "200ms"}),
    ]
    assert span.links[0].attributes == {"link.relationship": "evidence"}
    assert span.attributes["insight.expires_at"] == "1970-01-01T00:00:00.000Z"


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"insight.type": 7}, "insight.type"),
        ({"insight.audience": "cats"}, "cats"),
        ({"insight.confidence": "high"}, "insight.confidence"),
        ({"insight.confidence": 1.5}, "1.5"),
        ({"insight.summary": ""}, "summary"),
        ({"insight.expires_at": "soon"}, "soon"),
    ],
)
def test_a_span_that_is_no_good_insight_is_told_apart_with_the_reason(attributes, message):
    good = to_span(make(), mode=Mode.DUAL)
    bad = Span(trace_id="1" * 32, span_id="2" * 16, attributes={**good.attributes, **attributes})
    unrelated = Span(trace_id="1" * 32, span_id="3" * 16, name="chat")
    insights, problems = read_spans([good, bad, unrelated])
    assert names(insights) == ["i1"]
    assert len(problems) == 1
    assert message in problems[0]


def test_foreign_emitters_are_read_leniently():
    attributes = {
        "insight.type": "risk",
        "insight.summary": "s",
        "insight.confidence": 1,
        "insight.expires_at": 5000,
        "insight.applies_to": "src/api",
        "agent.id": "a",
    }
    found = from_span(Span(trace_id="1" * 32, span_id="2" * 16, attributes=attributes, resource={"project.id": "p"}))
    assert (found.id, found.project_id, found.confidence, found.audience) == ("2" * 16, "p", 1.0, Audience.BOTH)
    assert (found.expires_at, found.applies_to) == (5000, ("src/api",))


def test_a_type_without_a_word_here_is_kept_under_its_own_word():
    good = to_span(make(), mode=Mode.DUAL)
    found = from_span(Span(trace_id="1" * 32, span_id="2" * 16, attributes={**good.attributes, "insight.type": "hypothesis"}))
    assert (found.type, found.type_name) == (Type.OTHER, "hypothesis")
    again = to_span(found, mode=Mode.OTEL)
    assert (again.name, again.attributes["insight.type"]) == ("insight.hypothesis", "hypothesis")


@pytest.mark.parametrize(("resource", "agent_id"), [({"service.name": "scanner"}, "scanner"), ({}, "unknown")])
def test_an_insight_without_an_agent_is_its_services(resource, agent_id):
    attributes = {"insight.type": "risk", "insight.summary": "s", "insight.confidence": 0.5, "project.id": "p"}
    assert from_span(Span(trace_id="1" * 32, span_id="2" * 16, attributes=attributes, resource=resource)).agent_id == agent_id


@pytest.mark.parametrize("field", ["id", "summary", "project_id", "agent_id"])
def test_an_insight_needs_its_required_texts(field):
    with pytest.raises(CallerError, match=field):
        make(**{field: ""})


@pytest.mark.parametrize("confidence", [-0.01, 1.01, float("nan")])
def test_confidence_lies_between_0_and_1(confidence):
    with pytest.raises(CallerError, match="confidence"):
        make(confidence=confidence)


@pytest.mark.parametrize("field", ["created_at", "expires_at"])
@pytest.mark.parametrize("at", [-1, EXPIRES_AT_MAX + 1])
def test_a_time_that_no_span_could_hold_is_refused(field, at):
    with pytest.raises(CallerError, match=field):
        make(**{field: at})


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("1970-01-01T00:00:01Z", 1000),
        ("1970-01-01T02:00:00+02:00", 0),
        ("1970-01-01T00:00:00.5", 500),
        ("1970-01-02", 86_400_000),
        ("tomorrow", None),
        ("", None),
    ],
)
def test_a_time_is_read_in_any_iso_form_and_means_utc_without_a_zone(text, at):
    assert parse_time(text) == at


# --- which still hold ---


def test_a_superseded_insight_is_hidden_and_so_is_every_one_before_it():
    chain = [make(1), make(2, supersedes="i1"), make(3, supersedes="i2")]
    assert names(current(chain, now_ms=9)) == ["i3"]


def test_an_insight_is_hidden_from_the_moment_it_expires():
    assert names(current([make(expires_at=10)], now_ms=9)) == ["i1"]
    assert names(current([make(expires_at=10)], now_ms=10)) == []


def test_what_was_superseded_stays_so_when_its_successor_expires():
    assert current([make(1), make(2, supersedes="i1", expires_at=5)], now_ms=9) == []


def test_an_insight_of_another_project_supersedes_nothing():
    assert names(current([make(1), make(2, supersedes="i1", project_id="other")], now_ms=9)) == ["i2", "i1"]


def test_insights_that_supersede_each_other_leave_the_newest_word():
    assert names(current([make(1, supersedes="i1")], now_ms=9)) == ["i1"]
    assert names(current([make(1, supersedes="i2"), make(2, supersedes="i1")], now_ms=9)) == ["i2"]
    circle = [make(1, supersedes="i3"), make(2, supersedes="i1"), make(3, supersedes="i2")]
    assert names(current(circle, now_ms=9)) == ["i3"]


def test_a_third_insight_does_not_undo_the_newest_word_of_two_that_disagree():
    insights = [make(1, supersedes="i2"), make(2, supersedes="i1"), make(3, supersedes="i1")]
    assert names(current(insights, now_ms=9)) == ["i3", "i2"]


def test_of_an_insight_sent_twice_the_newest_counts():
    found = current([make(1, summary="old"), make(1, summary="new", created_at=5)], now_ms=9)
    assert [insight.summary for insight in found] == ["new"]


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 9)), max_size=8))
def test_something_always_remains_of_what_has_not_expired(edges):
    insights = [make(1, id=f"i{a}", supersedes=f"i{b}", created_at=at) for a, b, at in edges]
    assert bool(current(insights, now_ms=0)) is bool(insights)


def test_a_blocker_is_unresolved_until_any_insight_supersedes_it():
    blocker, other = make(1, Type.BLOCKER), make(2, Type.BLOCKER)
    solved = make(3, Type.PROGRESS, supersedes="i1")
    assert names(current([blocker, other], now_ms=9)) == ["i2", "i1"]
    assert names(current([blocker, other, solved], now_ms=9)) == ["i3", "i2"]


def test_what_is_for_both_is_for_agents_and_for_humans():
    insights = [make(at, audience=audience) for at, audience in enumerate(Audience)]
    assert [i.audience for i in for_audience(insights, Audience.AGENT)] == [Audience.AGENT, Audience.BOTH]
    assert [i.audience for i in for_audience(insights, Audience.HUMAN)] == [Audience.HUMAN, Audience.BOTH]
    assert [i.audience for i in for_audience(insights, Audience.BOTH)] == [Audience.BOTH]


# --- asking for them ---


def found(asked, insights, mode=Mode.DUAL):
    result = search(asked, [[to_span(insight, mode=mode)] for insight in insights], limit=0)
    return {match.span.attributes["insight.id"] for trace in result.traces for s in trace.spansets for match in s.spans}


FILTERS = {
    "project_id": ("checkout", {"project_id": "other"}),
    "types": ((Type.DECISION, Type.RISK), {"type": Type.LESSON}),
    "agent_id": ("claude-code", {"agent_id": "gpt"}),
    "session_id": ("s-1", {"session_id": "s-2"}),
    "audience": (Audience.AGENT, {"audience": Audience.HUMAN}),
    "min_confidence": (0.8, {"confidence": 0.79}),
    "category": ("perf", {"category": "cost"}),
    "applies_to": ("src/b", {"applies_to": ("src/c",)}),
    "insight_id": ("i1", {"id": "i3"}),
    "is_superseding": (True, {"supersedes": ""}),
}


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("name", FILTERS)
def test_each_filter_finds_what_it_names_and_nothing_else_in_every_mode(name, mode):
    value, other = FILTERS[name]
    shared = {"session_id": "s-1", "category": "perf", "applies_to": ("src/a", "src/b"), "confidence": 1.0, "supersedes": "i0"}
    wanted, unwanted = make(1, **shared), make(2, **shared | other)
    assert found(query(**{name: value}), [wanted, unwanted], mode) == {"i1"}
    assert found(query(), [wanted, unwanted], mode) == {"i1", unwanted.id}


def test_a_confidence_written_as_an_integer_is_found():
    span = to_span(make(), mode=Mode.DUAL)
    whole = Span(trace_id=span.trace_id, span_id=span.span_id, attributes={**span.attributes, "insight.confidence": 1})
    assert len(search(query(min_confidence=0.8), [[whole]]).traces) == 1


@given(TEXTS, TEXTS, TEXTS)
def test_no_value_changes_what_is_asked(project_id, agent_id, category):
    asked = query(project_id=project_id, agent_id=agent_id, category=category)
    assert parse(str(asked)) == asked
    insights = [make(1, project_id=project_id or "x", agent_id=agent_id or "x", category=category), make(2)]
    expected = {"i1"} if project_id and agent_id and category else set()
    assert found(asked, insights) == expected
    assert found(parse(str(asked)), insights) == expected


def test_a_value_that_looks_like_a_query_stays_a_value():
    attack = 'x" } || { name != "'
    assert found(query(project_id=attack), [make()]) == set()
    assert found(query(project_id=attack), [make(project_id=attack)]) == {"i1"}


def test_the_types_are_those_of_the_protocol_and_its_origin():
    words = "decision recommendation blocker discovery analysis question risk progress lesson"
    assert set(subject.Type) - {subject.Type.OTHER} == set(words.split())
