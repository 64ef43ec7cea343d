"""Guidance is read with every problem named, errs on the safe side, and loses no answer."""

import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from comity.core.guidance.guidance import (
    Answer,
    Constraint,
    Focus,
    Guidance,
    Note,
    Preference,
    Priority,
    Question,
    QuestionStatus,
    Severity,
    answer,
    blocking,
    constraints_for,
    context,
    findings,
    focus,
    open_questions,
    parse,
    put,
    remove,
    to_document,
)
from comity.core.insight.insight import EXPIRES_AT_MAX, Evidence, parse_time
from comity.errors import CallerError

SEED = """
spec:
  agentGuidance:
    focus:
      areas: ["performance optimization", "reduce checkout latency"]
      reason: "Q1 performance target: P99 < 150ms"
      until: "2024-03-31T00:00:00Z"
    constraints:
      - {id: no-breaking-changes, rule: Do not modify public API signatures, scope: "src/api/**", severity: blocking, reason: External clients}
      - {id: auth-approval, rule: Authentication changes require explicit approval, scope: "src/auth/**", severity: blocking}
      - {id: style, rule: Keep functions short, scope: "src/**", severity: advisory}
      - {id: tests, rule: Add tests, scope: "src/**", severity: warning}
    preferences:
      - {id: async-preferred, preference: Prefer async patterns, reason: ADR-015}
    questions:
      - {id: q-low, question: "Why?", priority: low}
      - {id: q-latency-cause, question: "What is causing the latency?", priority: critical, context: 200ms to 800ms, status: open}
      - {id: q-medium, question: "How?", priority: medium}
      - {id: q-done, question: "Who?", status: answered}
    context:
      - {topic: Recent architecture changes, content: We migrated from sync to async, source: "https://docs.internal/x"}
"""
UNTIL = parse_time("2024-03-31T00:00:00Z")


@pytest.fixture
def guidance():
    found, problems = parse(yaml.safe_load(SEED))
    assert problems == ()
    return found


def ids(items):
    return [item.id for item in items]


def problems_of(part):
    _, problems = parse({"spec": {"agentGuidance": part}})
    return {problem.path.removeprefix("spec.agentGuidance."): problem.message for problem in problems}


def test_the_document_in_the_docs_is_one():
    page = (Path(__file__).parents[3] / "docs" / "guidance.md").read_text()
    (text,) = re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    found, problems = parse(yaml.safe_load(text))
    assert problems == ()
    assert [len(getattr(found, part)) for part in ("constraints", "preferences", "questions", "context")] == [2, 1, 1, 1]


# --- asking ---


def test_the_focus_holds_until_its_time_and_not_after(guidance):
    assert focus(guidance, now_ms=UNTIL - 1).areas == ("performance optimization", "reduce checkout latency")
    assert focus(guidance, now_ms=UNTIL) is None
    assert focus(Guidance(), now_ms=0) is None
    assert focus(Guidance(focus=Focus(areas=("x",))), now_ms=UNTIL).areas == ("x",)


def test_the_constraints_on_a_path_come_strictest_first(guidance):
    assert ids(constraints_for(guidance, "src/api/checkout.py")) == ["no-breaking-changes", "tests", "style"]
    assert ids(constraints_for(guidance, "docs/x.md")) == []


def test_only_blocking_constraints_on_a_touched_path_block(guidance):
    assert ids(blocking(guidance, ["src/web/x.py"])) == []
    assert ids(blocking(guidance, ["README.md", "src/auth/login.py", "src/api/x.py"])) == [
        "no-breaking-changes",
        "auth-approval",
    ]
    assert blocking(guidance, []) == []


def test_a_finding_names_the_constraint_what_it_is_about_and_why(guidance):
    (first, *others) = findings(guidance, ["docs/x.md", "src/api/checkout.py"])
    assert str(first) == (
        "constraint no-breaking-changes forbids touching src/api/checkout.py: Do not modify public API signatures (External clients)"
    )
    assert [(one.constraint.id, one.is_blocking) for one in others] == [("tests", False), ("style", False)]
    assert str(others[0]) == "constraint tests applies to touching src/api/checkout.py: Add tests"


def test_an_action_that_touches_nothing_concerns_no_constraint():
    everywhere = Guidance(constraints=(Constraint(id="freeze", rule="Change nothing"),))
    assert findings(everywhere, []) == ()
    assert ids(blocking(everywhere, ["x"])) == ["freeze"]
    assert findings(everywhere, [""])[0].touched == "."


def test_open_questions_come_most_urgent_first(guidance):
    assert ids(open_questions(guidance)) == ["q-latency-cause", "q-medium", "q-low"]


def test_context_is_found_by_part_of_its_topic(guidance):
    assert [note.content for note in context(guidance, "ARCHITECTURE")] == ["We migrated from sync to async"]
    assert context(guidance, "billing") == []


# --- answering ---


def given_answer(text="N+1 query", agent="claude-code", at=1):
    return Answer(agent_id=agent, answer=text, confidence=0.95, answered_at=at, evidence=(Evidence(type="trace", ref="t"),))


def test_an_answer_is_kept_with_its_evidence_and_closes_the_question(guidance):
    after = answer(guidance, "q-latency-cause", given_answer())
    (question,) = [one for one in after.questions if one.id == "q-latency-cause"]
    assert question.status is QuestionStatus.ANSWERED
    assert question.answers == (given_answer(),)
    assert ids(open_questions(after)) == ["q-medium", "q-low"]
    assert ids(open_questions(guidance)) == ["q-latency-cause", "q-medium", "q-low"]


def test_every_answer_is_kept_and_the_same_one_only_once(guidance):
    first, second = given_answer(), given_answer("Slow disk", "o11y", 2)
    for one in (first, second, first):
        guidance = answer(guidance, "q-low", one)
    assert guidance.questions[0].answers == (first, second)


def test_an_answer_to_a_question_nobody_asked_is_refused(guidance):
    with pytest.raises(CallerError, match="q-none"):
        answer(guidance, "q-none", given_answer())


@pytest.mark.parametrize("bad", [{"answer": ""}, {"agent_id": ""}, {"confidence": 1.5}])
def test_an_answer_without_substance_is_refused(guidance, bad):
    fields = {"agent_id": "a", "answer": "x", "confidence": 0.5, "answered_at": 0}
    with pytest.raises(CallerError):
        answer(guidance, "q-low", Answer(**fields | bad))


# --- changing ---


@pytest.mark.parametrize(
    ("item", "place"),
    [
        (Constraint(id="style", rule="Keep it short", severity=Severity.WARNING), "constraints"),
        (Preference(id="async-preferred", preference="Prefer sync"), "preferences"),
        (Question(id="q-low", question="Why not?"), "questions"),
        (Note(topic="Recent architecture changes", content="We went back"), "context"),
    ],
)
def test_an_item_takes_the_place_of_the_one_it_replaces_and_can_be_removed(guidance, item, place):
    before = getattr(guidance, place)
    after = getattr(put(guidance, item), place)
    (at,) = (at for at in range(len(before)) if before[at] != after[at])
    assert (after[at], len(after)) == (item, len(before))
    removed = remove(guidance, type(item), getattr(item, "id", None) or item.topic)
    assert getattr(removed, place) == before[:at] + before[at + 1 :]
    assert getattr(put(removed, item), place)[-1] == item


def test_what_is_not_there_cannot_be_removed(guidance):
    with pytest.raises(CallerError, match="no constraint 'nothing'"):
        remove(guidance, Constraint, "nothing")


# --- reading ---


def test_all_problems_are_reported_with_their_paths():
    part = {
        "focus": {"areas": "speed", "until": "soon"},
        "constraints": [{"id": "a", "scope": "src/[", "severity": "fatal"}, {"id": "a", "rule": "r"}, "x"],
        "preferences": {"id": "p"},
        "questions": [{"id": "q", "question": 5, "priority": "urgent", "status": "closed", "answers": [{"confidence": 7}]}],
        "context": [{"topic": "t", "content": "c", "link": "l"}, None],
        "focsu": {},
    }
    assert set(problems_of(part)) == {
        "focus.areas",
        "focus.until",
        "constraints[0].rule",
        "constraints[0].scope",
        "constraints[0].severity",
        "constraints[1].id",
        "constraints[2]",
        "preferences",
        "questions[0].question",
        "questions[0].priority",
        "questions[0].status",
        "questions[0].answers[0].confidence",
        "questions[0].answers[0].agentId",
        "questions[0].answers[0].answer",
        "context[0].link",
        "context[1]",
        "focsu",
    }


@pytest.mark.parametrize("broken", [{"severity": "fatal"}, {"severity": 3}, {"scope": "src/["}, {"scope": 7}])
def test_a_constraint_that_cannot_be_read_blocks_rather_than_vanishes(broken):
    document = {"spec": {"agentGuidance": {"constraints": [{"id": "c", "rule": "r", "scope": "src/**"} | broken]}}}
    found, problems = parse(document)
    assert problems
    assert ids(blocking(found, ["src/x.py"])) == ["c"]


def test_a_time_yaml_has_already_read_is_taken():
    found, problems = parse(yaml.safe_load("spec: {agentGuidance: {focus: {areas: [x], until: 2024-03-31T00:00:00Z}}}"))
    assert problems == ()
    assert found.focus.until == UNTIL


@pytest.mark.parametrize("document", [None, {}, {"spec": None}, {"spec": {"agentGuidance": None}}, {"kind": "ProjectContext"}])
def test_a_document_without_guidance_is_no_problem(document):
    assert parse(document) == (Guidance(), ())


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["focus", "constraints", "questions", "id", "rule", "scope", "until", "answers"]), inner, max_size=4),
    ),
    max_leaves=12,
)  # fmt: skip


@given(JSON)
def test_no_document_breaks_the_reader(part):
    parse(part)
    parse({"spec": part})
    found, _ = parse({"spec": {"agentGuidance": part}})
    assert parse(to_document(found))[0] == found


# --- writing ---

TEXTS = st.text(min_size=1, max_size=6)
MAYBE = st.text(max_size=6)
TIMES = st.integers(0, EXPIRES_AT_MAX)
EVIDENCE = st.lists(st.builds(Evidence, type=TEXTS, ref=TEXTS, description=MAYBE, query=MAYBE), max_size=2).map(tuple)
ANSWERS = st.builds(Answer, agent_id=TEXTS, answer=TEXTS, confidence=st.floats(0, 1), answered_at=TIMES, evidence=EVIDENCE)


def several(items, key):
    return st.lists(items, max_size=3, unique_by=key).map(tuple)


def by_id(item):
    return item.id


GUIDANCE = st.builds(
    Guidance,
    focus=st.one_of(
        st.none(), st.builds(Focus, areas=st.lists(TEXTS, max_size=2).map(tuple), reason=MAYBE, until=st.one_of(st.none(), TIMES))
    ),
    constraints=several(
        st.builds(
            Constraint, id=TEXTS, rule=TEXTS, scope=st.sampled_from(["", "src/**", "*.py"]), severity=st.sampled_from(Severity), reason=MAYBE
        ),
        by_id,
    ),
    preferences=several(st.builds(Preference, id=TEXTS, preference=TEXTS, reason=MAYBE), by_id),
    questions=several(
        st.builds(
            Question, id=TEXTS, question=TEXTS, priority=st.sampled_from(Priority), context=MAYBE,
            status=st.sampled_from(QuestionStatus), answers=st.lists(ANSWERS, max_size=2).map(tuple),
        ),
        by_id,
    ),
    context=st.lists(st.builds(Note, topic=TEXTS, content=TEXTS, source=MAYBE), max_size=2).map(tuple),
)  # fmt: skip


@given(GUIDANCE)
def test_guidance_survives_being_written_and_read_again(guidance):
    assert parse(to_document(guidance)) == (guidance, ())


def test_writing_keeps_the_rest_of_the_document():
    document = yaml.safe_load(SEED) | {"kind": "ProjectContext", "metadata": {"name": "checkout"}}
    document["spec"]["personalization"] = {"agent": {"maxContextTokens": 2000}}
    guidance, _ = parse(document)
    written = to_document(guidance, document)
    assert written["metadata"] == {"name": "checkout"}
    assert written["spec"]["personalization"] == {"agent": {"maxContextTokens": 2000}}
    assert parse(written)[0] == guidance
