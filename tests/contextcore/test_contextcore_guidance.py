"""Guidance in a file: the calls of the protocol, changes that are whole, and answers that are all kept."""

import concurrent.futures
import multiprocessing
import threading

import pytest
import yaml

from comity.contextcore.insights import InsightQuerier
from comity.core.guidance.guidance import Answer, Constraint, Guidance, QuestionStatus, Severity, answer, put
from comity.core.insight.insight import Type
from comity.engines.files.guidance import (
    DOCUMENT_BYTES_MAX,
    GuidanceFile,
    GuidanceReader,
    GuidanceResponder,
    get_project_context,
    project_of,
)
from comity.engines.sqlite.spans.store import SpanStore
from comity.errors import CallerError, UnavailableError

PROJECT = "checkout-service"
DOCUMENT = """
kind: ProjectContext
metadata: {name: checkout-service}
spec:
  agentGuidance:
    focus:
      areas: ["performance optimization", "reduce checkout latency"]
      reason: "Q1 performance target: P99 < 150ms"
      until: "2024-03-31T00:00:00Z"
    constraints:
      - id: "no-breaking-changes"
        rule: "Do not modify public API signatures"
        scope: "src/api/**"
        severity: blocking
    questions:
      - id: "q-latency-cause"
        question: "What is causing the P99 latency spike in checkout?"
        priority: critical
        status: open
      - {id: q-later, question: "And later?", priority: low}
    context:
      - topic: "Recent architecture changes"
        content: "We migrated from sync to async in payment processing last week"
  personalization: {agent: {maxContextTokens: 2000}}
"""


class Clock:
    def __init__(self, at_s):
        self.at_s = at_s

    def now_ns(self):
        return self.at_s * 10**9


IN_MARCH, IN_APRIL = Clock(1_710_000_000), Clock(1_712_000_000)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / f"{PROJECT}.yaml").write_text(DOCUMENT)
    return tmp_path


@pytest.fixture
def reader(folder):
    return GuidanceReader(project_id=PROJECT, folder=folder, clock=IN_MARCH)


def test_the_seeds_reading_example_runs(reader):
    assert reader.get_focus().areas == ("performance optimization", "reduce checkout latency")
    constraints = reader.get_constraints_for_path("src/api/checkout.py")
    assert [one.rule for one in constraints if one.severity == "blocking"] == ["Do not modify public API signatures"]
    assert [one.question for one in reader.get_open_questions() if one.priority == "critical"] == [
        "What is causing the P99 latency spike in checkout?"
    ]
    assert reader.get_context("architecture").content.startswith("We migrated")
    assert reader.get_context("billing") is None
    assert reader.problems == ()


def test_an_expired_focus_is_ignored(folder):
    assert GuidanceReader(PROJECT, folder=folder, clock=IN_APRIL).get_focus().areas == ()


def test_an_action_on_a_constrained_path_is_forbidden_until_the_constraint_is_removed(folder, reader):
    assert [one.id for one in reader.check_blocking_constraints(["README.md", "src/api/x.py"])] == ["no-breaking-changes"]
    assert reader.check_blocking_constraints(["README.md"]) == []
    GuidanceFile.of_project(PROJECT, folder).change(lambda _: Guidance())
    assert reader.check_blocking_constraints(["src/api/x.py"]) == []


def test_an_edit_by_a_person_is_seen_at_the_next_question(folder, reader):
    assert reader.get_constraints()[0].severity is Severity.BLOCKING
    path = folder / f"{PROJECT}.yaml"
    path.write_text(path.read_text().replace("severity: blocking", "severity: advisory"))
    assert reader.get_constraints()[0].severity is Severity.ADVISORY


def test_a_project_without_a_file_has_no_guidance(tmp_path):
    assert GuidanceReader("unknown", folder=tmp_path).get_guidance() == Guidance()


@pytest.mark.parametrize("project_id", ["", "../x", "a/b", ".hidden", "x" * 129])
def test_a_project_id_cannot_leave_its_folder(tmp_path, project_id):
    with pytest.raises(CallerError, match="project id"):
        GuidanceFile.of_project(project_id, tmp_path)


@pytest.mark.parametrize("text", ["spec: [", "a: !!python/object/apply:os.getcwd []", "\x00"])
def test_a_file_that_is_no_yaml_is_refused_not_taken_as_empty(folder, reader, text):
    (folder / f"{PROJECT}.yaml").write_text(text)
    with pytest.raises(CallerError, match="YAML"):
        reader.check_blocking_constraints(["src/api/x.py"])


def test_an_empty_file_is_refused_not_taken_as_no_guidance(folder, reader):
    (folder / f"{PROJECT}.yaml").write_text("")
    with pytest.raises(CallerError, match="empty"):
        reader.get_constraints()


def test_a_file_that_has_gone_is_refused_not_taken_as_no_guidance(folder, reader):
    reader.get_constraints()
    (folder / f"{PROJECT}.yaml").unlink()
    with pytest.raises(CallerError, match="gone"):
        reader.get_constraints()


def test_a_file_too_large_to_be_guidance_is_refused(folder, reader):
    (folder / f"{PROJECT}.yaml").write_text("#" * (DOCUMENT_BYTES_MAX + 1))
    with pytest.raises(CallerError, match="bytes"):
        reader.get_guidance()


# --- answering ---


@pytest.fixture
def store(tmp_path):
    with SpanStore(tmp_path / "spans.db") as opened:
        yield opened


def respond(store, folder, agent="claude-code"):
    return GuidanceResponder(store, project_id=PROJECT, agent_id=agent, folder=folder, clock=IN_MARCH)


def test_the_seeds_answering_example_stores_the_answer_and_emits_an_insight(folder, store, reader):
    evidence = [{"type": "trace", "ref": "trace-abc123"}, {"type": "log_query", "ref": '{app="checkout"} |= "query_time"'}]
    respond(store, folder).answer_question(
        question_id="q-latency-cause",
        answer="Root cause is N+1 database query in payment verification",
        confidence=0.95,
        evidence=evidence,
    )
    question = reader.get_questions()[0]
    assert question.status is QuestionStatus.ANSWERED
    assert [item.ref for item in question.answers[0].evidence] == ["trace-abc123", '{app="checkout"} |= "query_time"']
    assert [one.id for one in reader.get_open_questions()] == ["q-later"]
    assert reader.get_critical_questions() == []
    (insight,) = InsightQuerier(store, clock=IN_MARCH).query(project_id=PROJECT)
    assert insight.type is Type.ANALYSIS
    assert "N+1 database query" in insight.summary
    assert insight.applies_to == ("q-latency-cause",)
    assert len(insight.evidence) == 2


def test_an_answer_leaves_the_rest_of_the_document_as_it_was(folder, store):
    respond(store, folder).answer_question("q-later", answer="Yes", confidence=1)
    document = yaml.safe_load((folder / f"{PROJECT}.yaml").read_text())
    assert document["metadata"] == {"name": PROJECT}
    assert document["spec"]["personalization"] == {"agent": {"maxContextTokens": 2000}}
    assert document["spec"]["agentGuidance"]["constraints"][0]["id"] == "no-breaking-changes"


def test_an_answer_to_no_question_changes_nothing(folder, store):
    before = (folder / f"{PROJECT}.yaml").read_text()
    with pytest.raises(CallerError, match="q-none"):
        respond(store, folder).answer_question("q-none", answer="x", confidence=0.5)
    assert (folder / f"{PROJECT}.yaml").read_text() == before
    assert store.count() == 0


@pytest.mark.parametrize(
    ("answer", "confidence", "path"),
    [
        ("\ud800", 0.5, "answer"),
        (5, 0.5, "answer"),
        ("x", "sure", "confidence"),
        ("x", 2, "confidence"),
        ("x", float("nan"), "confidence"),
    ],
)
def test_an_answer_that_could_not_be_read_again_changes_nothing(folder, store, answer, confidence, path):
    before = (folder / f"{PROJECT}.yaml").read_text()
    with pytest.raises(CallerError) as caught:
        respond(store, folder).answer_question("q-later", answer=answer, confidence=confidence)
    assert caught.value.facts["problems"][0].path == path
    assert (folder / f"{PROJECT}.yaml").read_text() == before
    assert store.count() == 0


def test_a_document_with_problems_is_not_written_over(folder, store):
    path = folder / f"{PROJECT}.yaml"
    path.write_text(path.read_text().replace("severity: blocking", "severity: fatal"))
    before = path.read_text()
    with pytest.raises(CallerError, match="severity"):
        respond(store, folder).answer_question("q-later", answer="x", confidence=0.5)
    assert path.read_text() == before


def test_a_change_that_could_not_be_read_again_is_refused(folder):
    before = (folder / f"{PROJECT}.yaml").read_text()
    with pytest.raises(CallerError, match=r"constraints\[1\].scope"):
        GuidanceFile.of_project(PROJECT, folder).change(lambda now: put(now, Constraint(id="x", rule="r", scope="src/[")))
    assert (folder / f"{PROJECT}.yaml").read_text() == before


def test_the_project_is_the_one_the_environment_names_or_the_only_one_there_is(folder):
    assert project_of({"COMITY_PROJECT": "a", "CONTEXTCORE_PROJECT": "b"}, "x/c.yaml", folder) == "a"
    assert project_of({"CONTEXTCORE_PROJECT": "b"}, folder=folder) == "b"
    assert project_of({}, "x/c.yaml", folder) == "c"
    assert project_of({}, folder=folder) == PROJECT
    (folder / "other.yaml").write_text("spec: {}")
    assert project_of({}, folder=folder) == ""


def test_a_change_waits_for_the_one_before_it_and_builds_on_it(folder):
    def add(number):
        given = Answer(agent_id=f"agent-{number}", answer="x", confidence=0.5, answered_at=number)
        return lambda guidance: answer(guidance, "q-later", given)

    def slowly(guidance):
        second.start()
        second.join(timeout=0.2)
        return add(1)(guidance)

    second = threading.Thread(target=lambda: GuidanceFile.of_project(PROJECT, folder).change(add(2)))
    GuidanceFile.of_project(PROJECT, folder).change(slowly)
    second.join()
    answers = GuidanceReader(PROJECT, folder=folder).get_questions()[1].answers
    assert [one.agent_id for one in answers] == ["agent-1", "agent-2"]


def answer_from_a_process(folder, number):
    with SpanStore(folder / "spans.db") as store:
        for turn in range(4):
            respond(store, folder, f"agent-{number}").answer_question("q-later", answer=f"answer {turn}", confidence=0.5)


def test_answers_given_at_once_by_several_processes_are_all_kept(folder, store):
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        for done in [pool.submit(answer_from_a_process, folder, number) for number in range(2)]:
            done.result()
    question = GuidanceReader(PROJECT, folder=folder).get_questions()[1]
    expected = {(f"agent-{number}", f"answer {turn}") for number in range(2) for turn in range(4)}
    assert {(one.agent_id, one.answer) for one in question.answers} == expected
    assert len(question.answers) == 8
    assert len(InsightQuerier(store, clock=IN_MARCH).query(project_id=PROJECT)) == 8


def test_a_write_that_fails_leaves_the_old_document_and_no_litter(folder, store, monkeypatch):
    before = (folder / f"{PROJECT}.yaml").read_text()
    monkeypatch.setattr("os.fsync", fails)
    with pytest.raises(UnavailableError, match="disk"):
        GuidanceFile.of_project(PROJECT, folder).change(lambda _: Guidance())
    assert (folder / f"{PROJECT}.yaml").read_text() == before
    assert list(folder.glob("*.new")) == []


def fails(_):
    raise OSError("no disk")


def test_a_change_through_a_link_is_a_change_of_the_file_and_keeps_its_permissions(folder):
    real = folder / f"{PROJECT}.yaml"
    real.chmod(0o664)
    link = folder / "linked" / "mine.yaml"
    link.parent.mkdir()
    link.symlink_to(real)
    GuidanceFile(link).change(lambda guidance: put(guidance, Constraint(id="new", rule="r", severity=Severity.WARNING)))
    assert link.is_symlink()
    assert "new" in {one.id for one in GuidanceFile(real).read()[1].constraints}
    assert real.stat().st_mode & 0o777 == 0o664
    assert not link.with_suffix(".lock").exists(), "who changes the file by its own name would not wait for this lock"


def test_the_context_of_a_project_is_its_whole_document(tmp_path):
    text = "spec: {criticality: high, agentGuidance: {constraints: [{id: c, rule: r, severity: blocking}]}}"
    (tmp_path / "shop.yaml").write_text(text)
    found = get_project_context("shop", folder=tmp_path)
    assert (found.project_id, found.spec["criticality"]) == ("shop", "high")
    assert [one.id for one in found.guidance.constraints] == ["c"]
    assert GuidanceReader("shop", folder=tmp_path).get_project_context() == found
    assert get_project_context("nothing", folder=tmp_path).spec == {}
