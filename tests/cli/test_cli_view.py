"""One set of insights, five views of it on the command line."""

import pytest
import yaml

from comity.cli.commands.view import AUDIENCES
from comity.contextcore.insights import InsightEmitter
from comity.core.insight.views import View
from comity.core.model.tokens import estimate
from comity.core.tracing.naming import Mode
from comity.engines.sqlite.spans.store import SpanStore


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    for name in ("COMITY_PROJECT", "CONTEXTCORE_PROJECT", "COMITY_GUIDANCE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def told(comity, place):
    with SpanStore(place / "comity.db.spans") as store:
        emitter = InsightEmitter(store, project_id="checkout", agent_id="o11y", mode=Mode.DUAL)
        emitter.emit_decision(
            summary="Use events", confidence=0.92, rationale="Lower coupling", evidence=[{"type": "adr", "ref": "ADR-015"}]
        )
        emitter.emit_blocker(summary="No access to the payment logs")
        emitter.emit_risk(summary="The queue \x1b[31m may fill", confidence=0.6)
    return comity


def test_the_audiences_are_those_of_the_views():
    assert tuple(View) == AUDIENCES


@pytest.mark.parametrize(
    ("audience", "words"),
    [
        ("executive", ["3 insights", "decisions: 1", "unresolved blockers: 1", "trend: decision +1"]),
        ("manager", ["by agent: o11y decision 1, blocker 1, risk 1", "cadence: weekly", "periods"]),
        ("developer", ["Use events  92%  by o11y", "rationale: Lower coupling", "type adr, ref ADR-015"]),
        ("operator", ["blockers", "No access to the payment logs", "last seen: o11y"]),
        ("agent", ['audience: "agent"', 'type: "blocker"']),
    ],
)
def test_each_audience_sees_its_own(told, audience, words):
    ran = told("view", "--audience", audience, "--project", "checkout")
    assert ran.code == 0
    for one in words:
        assert one in ran.out
    assert "\x1b" not in ran.out


@pytest.mark.parametrize("audience", AUDIENCES)
def test_every_view_is_a_document_too(told, audience):
    document = told("view", "--audience", audience, "--project", "checkout", "--json").document
    assert (document["audience"], document["total"], document["project"]) == (audience, 3, "checkout")
    assert (yaml.safe_load(document["text"])["total"] == 3) if audience == "agent" else ("text" not in document)


def test_the_settings_of_the_project_are_obeyed(told, place):
    (place / "g.yaml").write_text(
        "spec: {personalization: {agent: {maxContextTokens: 60}, executive: {alertThreshold: all, dashboardId: exec-1}}}"
    )
    options = ["--project", "checkout", "--guidance", "g.yaml"]
    assert estimate(told("view", "--audience", "agent", *options).out.rstrip()) <= 60
    executive = told("view", "--audience", "executive", "--json", *options).document
    assert (len(executive["alerts"]), executive["dashboard_id"]) == (3, "exec-1")
    (place / "g.yaml").write_text("spec: {personalization: {agent: {maxContextTokens: 0}}}")
    assert told("view", *options).code == 2


def test_nothing_found_and_no_store_say_what_to_do(told, comity, place):
    empty = told("view", "--project", "other")
    assert (empty.code, "No insights of other in the last 24h. There are some of checkout." in empty.out) == (0, True)
    ran = comity("view", "--store", "none.db")
    assert (ran.code, "does not exist" in ran.err) == (4, True)
    assert not (place / "none.db.spans").exists()
    assert comity("view", "--range", "soon").code == 2
    assert comity("view", "--audience", "executiv").code == 2


def test_an_agent_is_told_where_to_look_further_only_if_the_project_says(told, place):
    arguments = ["view", "--audience", "agent", "--project", "checkout", "--json"]
    assert "query_backend" not in told(*arguments).document
    (place / "g.yaml").write_text("spec: {personalization: {agent: {preferredQueryBackend: loki}}}")
    assert told(*arguments, "--guidance", "g.yaml").document["query_backend"] == "loki"


def test_one_insight_is_counted_in_the_singular(comity, place):
    with SpanStore(place / "comity.db.spans") as store:
        InsightEmitter(store, project_id="default", agent_id="o11y").emit_blocker(summary="No access")
    assert ": 1 insight\n" in comity("view").out
