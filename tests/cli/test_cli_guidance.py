"""People set guidance, agents' answers are kept, and a path is judged as admission judges it."""

import pytest
import yaml

from comity.contextcore.insights import InsightQuerier
from comity.engines.sqlite.spans.store import SpanStore


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    for name in ("COMITY_PROJECT", "CONTEXTCORE_PROJECT", "COMITY_GUIDANCE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def guided(comity):
    for words in (
        ["set", "focus", "speed", "cost", "--reason", "Q1", "--until", "2020-01-01T00:00:00Z"],
        ["set", "constraint", "api", "Leave the API alone", "--scope", "src/api/**", "--reason", "clients"],
        ["set", "constraint", "tests", "Add tests", "--scope", "src/**", "--severity", "warning"],
        ["set", "preference", "async", "Prefer async"],
        ["set", "context", "Payments", "They are asynchronous", "--source", "docs/x"],
        ["ask", "Why is it slow?", "--priority", "critical"],
    ):
        ran = comity("guidance", *words)
        assert (ran.code, ran.err) == (0, ""), ran
    return comity


def test_a_project_without_guidance_says_how_to_begin(comity, place):
    ran = comity("guidance", "show")
    assert ran.code == 0
    assert "comity guidance set constraint" in ran.out
    assert not (place / ".comity").exists()


def test_what_was_set_is_shown(guided):
    shown = guided("guidance", "show").out
    for words in ("speed, cost (Q1)", "(over: ignored)", "blocking  api  src/api/**", "warning   tests", "async  Prefer async", "Payments: They", "critical q-why-is-it-slow"):  # fmt: skip
        assert words in shown
    document = guided("guidance", "show", "--json").document
    assert document["project"] == "default"
    assert [one["id"] for one in document["agentGuidance"]["constraints"]] == ["api", "tests"]
    assert document["problems"] == []


@pytest.mark.parametrize(
    ("path", "code", "found"), [("src/api/x.py", 3, ["api", "tests"]), ("src/x.py", 0, ["tests"]), ("x.md", 0, [])]
)
def test_a_path_is_checked(guided, path, code, found):
    ran = guided("guidance", "check", path, "--json")
    assert (ran.code, [one["id"] for one in ran.document["constraints"]]) == (code, found)
    assert ran.document["blocked"] is (code == 3)
    told = guided("guidance", "check", path)
    assert told.code == code
    assert ("forbids touching" in told.out) is (code == 3)
    assert ("No constraint" in told.out) is (not found)


def test_a_constraint_that_is_removed_blocks_no_more(guided):
    assert guided("guidance", "set", "constraint", "api", "--remove").code == 0
    assert guided("guidance", "check", "src/api/x.py").code == 0
    again = guided("guidance", "set", "constraint", "api", "--remove")
    assert again.code == 2
    assert "there is no constraint 'api'" in again.err


def test_an_answer_is_kept_and_emitted(guided, place):
    ran = guided("guidance", "answer", "q-why-is-it-slow", "N+1 queries", "--confidence", "0.9", "--evidence", "trace=t1", "--agent", "o11y", "--json")  # fmt: skip
    assert ran.code == 0
    shown = guided("guidance", "show").out
    assert "answered" in shown
    assert "o11y (0.9): N+1 queries" in shown
    with SpanStore(place / "comity.db.spans") as store:
        (insight,) = InsightQuerier(store).query(project_id="default")
    assert (insight.id, insight.agent_id, insight.evidence[0].ref) == (ran.document["insight_id"], "o11y", "t1")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["answer", "q-why-is-it-slow", "x", "--evidence", "t1"], "no evidence"),
        (["answer", "q-why-is-it-slow", "x", "--confidence", "7"], "between 0 and 1"),
        (["ask", "Why is it slow?"], "already"),
        (["set", "focus", "x", "--until", "soon"], "is no time"),
        (["set", "constraint", "x"], "to say"),
        (["set", "constraint", "x", "r", "--scope", "src/["], "scope"),
        (["set", "constraint", "x", "r", "--severity", "fatal"], "unknown severity"),
        (["show", "--project", "../x"], "project id"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(guided, place, words, told):
    before = (place / ".comity" / "default.yaml").read_text()
    ran = guided("guidance", *words)
    assert ran.code == 2
    assert told in ran.err
    assert (place / ".comity" / "default.yaml").read_text() == before


def test_an_answer_to_no_question_is_exit_4_and_makes_nothing(comity, place):
    before = sorted(place.iterdir())
    ran = comity("guidance", "answer", "q-none", "x")
    assert (ran.code, "there is no question 'q-none'" in ran.err) == (4, True)
    assert sorted(place.iterdir()) == before


@pytest.mark.parametrize("named", [["--guidance", "missing.yaml"], ["--project", "missing"]])
def test_a_check_against_guidance_that_was_named_and_is_not_there_does_not_pass(comity, named):
    ran = comity("guidance", "check", "src/a.py", *named)
    assert (ran.code, "there is no guidance in" in ran.err) == (4, True)


def test_a_check_where_there_is_no_guidance_says_so(comity):
    ran = comity("guidance", "check", "src/a.py")
    assert (ran.code, ran.out) == (0, "There is no guidance in .comity/default.yaml.\n")


def test_a_document_with_problems_is_shown_with_them_and_not_changed(comity, place):
    path = place / "g.yaml"
    path.write_text("spec: {agentGuidance: {constraints: [{id: a, rule: r, severity: fatal}]}}")
    shown = comity("guidance", "show", "--guidance", "g.yaml")
    assert (shown.code, "problem: spec.agentGuidance.constraints[0].severity" in shown.out) == (2, True)
    assert comity("guidance", "check", "x", "--guidance", "g.yaml").code == 2
    assert comity("guidance", "ask", "Why?", "--guidance", "g.yaml").code == 2
    assert "fatal" in path.read_text()


def test_the_environment_names_the_project_and_the_file(comity, place, monkeypatch):
    monkeypatch.setenv("COMITY_PROJECT", "checkout")
    assert comity("guidance", "set", "focus", "speed").code == 0
    assert yaml.safe_load((place / ".comity" / "checkout.yaml").read_text())["spec"]["agentGuidance"]["focus"]["areas"] == [
        "speed"
    ]
    monkeypatch.delenv("COMITY_PROJECT")
    assert comity("guidance", "show", "--json").document["project"] == "checkout"
    monkeypatch.setenv("COMITY_GUIDANCE", "other.yaml")
    ran = comity("guidance", "show", "--json")
    assert (ran.code, ran.document["error"]["message"]) == (4, "there is no guidance in other.yaml")


def test_the_doctor_looks_at_the_guidance_that_is_there(guided, place):
    def found():
        return [
            (one["level"], one["detail"]) for one in guided("doctor", "--json").document["checks"] if one["name"] == "guidance"
        ]

    assert found() == [("ok", ".comity/default.yaml: 2 constraints, 1 question")]
    (place / ".comity" / "a.yaml").write_text("spec: {agentGuidance: {constraints: [{id: a}]}}")
    (place / ".comity" / "b.yaml").write_text("spec: [")
    levels = [level for level, _ in found()]
    assert levels == ["failed", "failed", "ok"]
    assert "constraints[0].rule is missing" in found()[0][1]


def test_the_focus_is_removed_only_where_that_is_asked_for(comity):
    comity("guidance", "set", "focus", "speed")
    for words in ([], ["cost", "--remove"]):
        ran = comity("guidance", "set", "focus", *words)
        assert (ran.code, "name the areas of the focus, or --remove it" in ran.err) == (2, True)
    assert "speed" in comity("guidance", "show").out
    assert comity("guidance", "set", "focus", "--remove").code == 0
    assert "speed" not in comity("guidance", "show").out
