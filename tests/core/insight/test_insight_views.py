"""Five views of one set of insights, the settings they obey, and the agent's text under its cap."""

import random

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from comity.core.insight import views as subject
from comity.core.insight.insight import Audience, Evidence, Insight, Support, Type
from comity.core.insight.views import (
    DAY_MS,
    DEFAULTS,
    RANKED,
    SUMMARY_CHARS,
    SUMMARY_CHARS_MIN,
    AlertThreshold,
    Backend,
    Cadence,
    Format,
    Settings,
    View,
    agent_text,
    parse_settings,
    render,
)
from comity.core.model.tokens import estimate

NOW = 100 * DAY_MS
WEEK = 7 * DAY_MS


def make(number, type=Type.DECISION, age_ms=1000, **fields):  # noqa: A002
    given_fields = {
        "id": f"insight-{number}",
        "type": type,
        "summary": f"finding {number}",
        "confidence": 0.8,
        "project_id": "checkout",
        "agent_id": "claude-code",
        "created_at": NOW - age_ms,
    }
    return Insight(**given_fields | fields)


def show(view, insights, **changes):
    fields = {name: getattr(DEFAULTS[view], name) for name in Settings.__struct_fields__}
    facts = {"criticality": "high", "value": "revenue"}
    return render(view, insights, settings=Settings(**fields | changes), now_ms=NOW, window_ms=WEEK, facts=facts)


def ids(documents):
    return [one["id"] for one in documents]


# --- what everybody sees ---


@pytest.mark.parametrize("view", View)
def test_people_see_what_is_for_humans_and_agents_what_is_for_agents(view):
    insights = [make(one, audience=one) for one in Audience]
    assert show(view, insights)["total"] == 2
    assert show(view, [make(1, audience=Audience.HUMAN)])["total"] == (0 if view is View.AGENT else 1)


@pytest.mark.parametrize("view", View)
def test_nobody_sees_what_was_superseded_has_expired_or_is_older_than_the_window(view):
    hidden = [make(1), make(2, supersedes="insight-1"), make(3, expires_at=NOW), make(4, age_ms=WEEK)]
    assert show(view, hidden)["total"] == 1


def test_an_unresolved_blocker_is_shown_however_old_it_is():
    old = make(1, Type.BLOCKER, age_ms=50 * DAY_MS)
    assert show(View.EXECUTIVE, [old])["unresolved_blockers"] == 1
    assert show(View.MANAGER, [old])["unresolved_blockers"] == 1
    assert ids(show(View.DEVELOPER, [old])["insights"]) == ["insight-1"]
    assert ids(show(View.OPERATOR, [old])["blockers"]) == ["insight-1"]
    assert ids(show(View.AGENT, [old])["insights"]) == ["insight-1"]


# --- each view ---


def test_an_executive_sees_counts_and_trends_and_no_detail():
    insights = [
        make(1),
        make(2, age_ms=6 * DAY_MS),
        make(3, age_ms=5 * DAY_MS),
        make(4, Type.RISK),
        make(5, Type.BLOCKER, rationale="r"),
    ]
    found = show(View.EXECUTIVE, insights, summary_fields=("criticality", "sloCompliance"))
    assert found["by_type"] == {"decision": 3, "blocker": 1, "risk": 1}
    assert found["trend"] == {"decision": -1, "blocker": 1, "risk": 1}
    assert (found["decisions"], found["unresolved_blockers"]) == (3, 1)
    assert found["alerts"] == [{"id": "insight-5", "type": "blocker", "summary": "finding 5"}]
    assert found["summary"] == {"criticality": "high", "sloCompliance": None}


def test_a_manager_sees_insights_by_type_agent_and_reporting_period():
    insights = [make(1, confidence=0.95), make(2, Type.RISK, agent_id="o11y"), make(3, age_ms=2 * DAY_MS)]
    found = show(View.MANAGER, insights, reporting_cadence=Cadence.DAILY)
    assert found["by_agent"] == {"claude-code": {"decision": 2}, "o11y": {"risk": 1}}
    assert (found["high_confidence"], found["agents_active"], found["cadence"]) == (1, 2, "daily")
    assert [period["total"] for period in found["periods"]] == [2, 0, 1, 0, 0, 0, 0]
    assert len(show(View.MANAGER, insights)["periods"]) == 1


def test_a_developer_sees_everything_with_references_newest_first():
    evidence, link = Evidence(type="file", ref="src/a.py", description="d"), Support(trace_id="a" * 32, span_id="b" * 16)
    insights = [make(1, age_ms=5, rationale="why", evidence=(evidence,), links=(link,), trace_id="c" * 32), make(2, age_ms=1)]
    found = show(View.DEVELOPER, insights)["insights"]
    assert ids(found) == ["insight-2", "insight-1"]
    assert found[1]["rationale"] == "why"
    assert found[1]["evidence"] == [{"type": "file", "ref": "src/a.py", "description": "d"}]
    assert found[1]["links"] == [{"trace": "a" * 32, "span": "b" * 16, "is": "evidence"}]
    assert found[1]["trace"] == "c" * 32


def test_an_operator_sees_what_blocks_what_threatens_and_where_to_look():
    trace = Evidence(type="trace", ref="t-1")
    insights = [
        make(1, Type.BLOCKER, evidence=(trace, Evidence(type="adr", ref="ADR-1"))),
        make(2, Type.RISK, evidence=(trace,), expires_at=NOW + DAY_MS),
        make(3, Type.PROGRESS, agent_id="o11y", age_ms=5000),
    ]
    found = show(View.OPERATOR, insights)
    assert (ids(found["blockers"]), ids(found["risks"]), ids(found["in_progress"])) == (
        ["insight-1"],
        ["insight-2"],
        ["insight-3"],
    )
    assert found["signals"] == [{"type": "trace", "ref": "t-1"}]
    assert found["expiring_within_a_day"] == ["insight-2"]
    assert found["last_seen"] == {"claude-code": "1970-04-10T23:59:59Z", "o11y": "1970-04-10T23:59:55Z"}


# --- settings ---


@pytest.mark.parametrize(
    ("threshold", "expected"),
    [
        (AlertThreshold.CRITICAL_ONLY, ["insight-1"]),
        (AlertThreshold.CRITICAL_HIGH, ["insight-1", "insight-2"]),
        (AlertThreshold.ALL, ["insight-1", "insight-3", "insight-2"]),
    ],
)
def test_the_alert_threshold_decides_what_is_an_alert(threshold, expected):
    insights = [make(1, Type.BLOCKER), make(2, Type.RISK), make(3)]
    assert ids(show(View.EXECUTIVE, insights, alert_threshold=threshold)["alerts"]) == expected


def test_the_preferred_format_decides_how_much_is_shown():
    insight = make(1, rationale="why", evidence=(Evidence(type="pr", ref="7"),))
    shown = {how: show(View.DEVELOPER, [insight], preferred_format=how)["insights"][0] for how in Format}
    assert set(shown[Format.MINIMAL]) == {"id", "type", "summary"}
    assert shown[Format.STANDARD]["refs"] == ["pr:7"]
    assert "rationale" not in shown[Format.STANDARD]
    assert shown[Format.DETAILED]["rationale"] == "why"


def test_the_seeds_settings_are_read_and_the_rest_is_default():
    document = yaml.safe_load(
        """
spec:
  personalization:
    executive: {dashboardId: exec-checkout, summaryFields: [criticality, value, sloCompliance], alertThreshold: critical_only}
    manager: {dashboardId: pm-checkout, reportingCadence: weekly}
    developer: {dashboardId: dev-checkout, preferredFormat: minimal}
    agent: {preferredQueryBackend: loki, maxContextTokens: 700}
"""
    )
    found, problems = parse_settings(document)
    assert problems == ()
    assert found[View.EXECUTIVE].summary_fields == ("criticality", "value", "sloCompliance")
    assert found[View.DEVELOPER].preferred_format is Format.MINIMAL
    assert (found[View.AGENT].preferred_query_backend, found[View.AGENT].max_context_tokens) == (Backend.LOKI, 700)
    assert found[View.OPERATOR] == DEFAULTS[View.OPERATOR]
    assert parse_settings({})[0] == DEFAULTS
    assert DEFAULTS[View.AGENT].preferred_query_backend is None, "an agent is not sent to a Tempo that nobody spoke of"


def test_settings_that_cannot_be_read_are_named_and_fall_back():
    raw = {
        "executive": {"alertThreshold": "some", "summaryFields": "x", "colour": 1, "dashboardId": 5},
        "agent": {"maxContextTokens": 0},
        "manager": [],
        "cat": {},
    }
    found, problems = parse_settings({"spec": {"personalization": raw}})
    assert {problem.path.removeprefix("spec.personalization.") for problem in problems} == {
        "executive.alertThreshold",
        "executive.summaryFields",
        "executive.colour",
        "executive.dashboardId",
        "agent.maxContextTokens",
        "manager",
        "cat",
    }
    assert found == DEFAULTS


def test_the_budgets_are_those_of_the_protocol():
    assert subject.READ_GUIDANCE == (200, 500)
    assert subject.QUERY_INSIGHTS == (500, 1000)
    assert subject.WRITE_INSIGHT == (50, None)
    assert subject.READ_FULL_CONTEXT == (800, 2000)
    assert DEFAULTS[View.AGENT].max_context_tokens == 2000


# --- the agent's text ---


def text_of(insights, cap, count_tokens=estimate):
    return agent_text(
        insights, settings=Settings(max_context_tokens=cap), now_ms=NOW, window_ms=WEEK, count_tokens=count_tokens
    )


def crowd(count, blockers, seed=1):
    chance = random.Random(seed)
    kinds = [kind for kind in Type if kind is not Type.BLOCKER]
    return [
        make(
            number,
            Type.BLOCKER if number < blockers else chance.choice(kinds),
            age_ms=chance.randrange(1, WEEK),
            confidence=round(chance.random(), 2),
            summary=f"finding {number}: " + "latency rises with load " * chance.randrange(1, 9),
            rationale="because " * 20,
            evidence=(Evidence(type="trace", ref=f"t-{number}"),),
        )
        for number in range(count)
    ]


@pytest.mark.parametrize("cap", [2000, 1000, 500])
def test_of_500_insights_the_text_keeps_every_blocker_and_stays_under_its_cap(cap):
    text = text_of(crowd(500, blockers=12), cap)
    assert estimate(text) <= cap
    document = yaml.safe_load(text)
    shown = ids(document["insights"])
    assert {f"insight-{number}" for number in range(12)} <= set(shown)
    assert document["omitted"] == {"blockers": 0, "others": 500 - len(shown)}
    assert document["total"] == 500


def test_the_cap_is_used_and_the_most_important_are_kept():
    text = text_of(crowd(500, blockers=3), 2000)
    document = yaml.safe_load(text)
    assert estimate(text) > 1900
    kinds = [RANKED.index(one["type"]) for one in document["insights"]]
    assert kinds == sorted(kinds)
    confidences = [one["confidence"] for one in document["insights"] if one["type"] == "decision"]
    assert confidences == sorted(confidences, reverse=True)
    assert confidences


def detailed(found):
    return sum("rationale" in one for one in found)


def test_detail_of_others_goes_before_others_go_and_both_before_detail_of_blockers():
    insights = crowd(6, blockers=2)
    whole = estimate(text_of(insights, 10_000))
    details = []
    for cap in range(whole, 60, -10):
        document = yaml.safe_load(text_of(insights, cap) or "{insights: []}")
        blockers = [one for one in document["insights"] if one["type"] == "blocker"]
        others = [one for one in document["insights"] if one["type"] != "blocker"]
        lengths = min((len(one["summary"]) for one in blockers), default=0)
        details.append((len(blockers), lengths, detailed(blockers), len(others), detailed(others)))
        if others:
            assert len(blockers) == 2
    assert details == sorted(details, reverse=True)
    assert details[0][2:] == (2, 4, 4)


def test_summaries_of_blockers_are_cut_before_blockers_are_left_out():
    blockers = [make(number, Type.BLOCKER, summary="x" * 500, age_ms=number + 1) for number in range(10)]
    lengths = {}
    for cap in (2000, 700, 350, 150):
        document = yaml.safe_load(text_of(blockers, cap))
        lengths[cap] = (len(document["insights"]), max(len(one["summary"]) for one in document["insights"]))
        assert document["omitted"]["blockers"] == 10 - len(document["insights"])
    assert lengths[2000] == (10, 500)
    assert lengths[700] == (10, SUMMARY_CHARS)
    assert lengths[350] == (10, SUMMARY_CHARS_MIN)
    assert lengths[150][0] < 10
    newest_first = ids(yaml.safe_load(text_of(blockers, 150))["insights"])
    assert newest_first == [f"insight-{number}" for number in range(len(newest_first))]


@given(
    st.integers(1, 600),
    st.integers(0, 30),
    st.integers(0, 12),
    st.sampled_from([estimate, len, lambda text: len(text.split())]),
)
def test_no_cap_is_ever_exceeded_by_any_measure(cap, count, blockers, count_tokens):
    text = text_of(crowd(count, blockers), cap, count_tokens)
    assert count_tokens(text) <= cap
    if text:
        document = yaml.safe_load(text)
        shown = len(document["insights"])
        assert shown + document["omitted"]["blockers"] + document["omitted"]["others"] == count


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.floats(0, 1))
def test_the_text_is_yaml_that_reads_back_as_it_was_whatever_it_holds(summary, confidence):
    text = text_of([make(1, summary=summary, confidence=confidence)], 10_000)
    (found,) = yaml.safe_load(text)["insights"]
    assert found["summary"] == summary
    assert found["confidence"] == confidence
    assert type(found["confidence"]) is float
