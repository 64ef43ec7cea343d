"""A session by itself: how awake it is, what each change makes of it, and which changes conflict."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from comity.core.call.limits import Limits
from comity.core.envelope.envelope import Error, Reply, Request, Status
from comity.core.envelope.reserved import TRANSFER_FROM
from comity.core.session import session as core
from comity.core.session.conversation import SUMMARY_CHARS_MAX
from comity.core.session.session import (
    EXPIRED_MS,
    FACTS_MAX,
    IDLE_MS,
    OUTPUTS_MAX,
    PAUSED_MS,
    RESULT_CHARS_MAX,
    RESULTS_MAX,
    Answer,
    Assume,
    Conflict,
    Constrain,
    Decide,
    Fact,
    Keep,
    Learn,
    Place,
    Produce,
    Say,
    Session,
    Summarise,
    Workflow,
    answered,
    apply,
    heard,
    told,
)

NEW = Session(id="s", tenant_id="t", user_id="u", created_at=10, used_at=10)
NOW_MS = 5_000


def made(*changes: Any, session: Session = NEW) -> Session:
    for change in changes:
        session = apply(session, change, based_on=session.version, now_ms=NOW_MS)  # type: ignore[assignment]
        assert isinstance(session, Session)
    return session


def request(**fields: Any) -> Request:
    return Request(**{"request_id": "r", "target": "ANL/k", "capability": "NPV", "user_id": "u", "limits": Limits(), "deadline_at": 9} | fields)  # fmt: skip


# --- how awake it is ---


@pytest.mark.parametrize(
    ("rested_ms", "status", "can_be_used"),
    [
        (0, "active", True),
        (IDLE_MS - 1, "active", True),
        (IDLE_MS, "idle", True),
        (PAUSED_MS - 1, "idle", True),
        (PAUSED_MS, "paused", True),
        (EXPIRED_MS - 1, "paused", True),
        (EXPIRED_MS, "expired", False),
    ],
)
def test_a_session_falls_asleep_by_the_time_it_rested_and_is_used_until_it_expires(rested_ms, status, can_be_used):
    now_ms = NEW.used_at + rested_ms
    assert core.status(NEW, now_ms) == status
    assert core.use(NEW, now_ms) == (replace(NEW, used_at=now_ms) if can_be_used else None)
    assert core.resume(NEW, now_ms) == replace(NEW, used_at=now_ms, version=1)


# --- what a change makes of it ---


@pytest.mark.parametrize(
    ("change", "field", "value", "written"),
    [
        (Decide("go"), "decisions", ("go",), ""),
        (Assume("sun"), "assumptions", ("sun",), ""),
        (Learn("k", 1, "ANL", 0.5, "DOC"), "facts", {"k": Fact(1, "ANL", 0.5, NOW_MS, "DOC")}, "fact k"),
        (Constrain("k", 1), "constraints", {"k": 1}, "constraint k"),
        (Place("draft", 1, 3, {"a": 1}), "workflow", Workflow(1, 3, {"a": 1}), "workflow position"),
        (Produce("ANL", "k", 1), "prior_outputs", {"k": 1}, "output k"),
        (Answer("ANL", "ANL.NPV", 1), "prior_outputs", {"ANL.NPV": 1}, ""),
        (Keep("ANL", {"a": 1}), "private", {"ANL": {"a": 1}}, "private part of ANL"),
        (Summarise("x" * (SUMMARY_CHARS_MAX + 1)), "summary", "x" * SUMMARY_CHARS_MAX, "summary"),
    ],
)
def test_a_change_is_one_version_of_what_it_changes(change, field, value, written):
    session = made(change)
    assert getattr(session, field) == value
    assert (session.version, session.used_at) == (1, NOW_MS)
    assert session.written == ({written: 1} if written else {})
    assert made(change, session=session).version == 2


@pytest.mark.parametrize("change", [Decide("go"), Assume("sun")])
def test_what_stands_already_is_not_noted_twice(change):
    assert made(change, change).version == 2
    assert (*made(change, change).decisions, *made(change, change).assumptions) == (change.text,)


def test_agents_that_worked_are_named_once_and_parts_of_a_node_never():
    session = made(Answer("ANL"), Produce("DOC", "k", 1), Answer("ANL"), Answer(""), Answer("comity.workflow"))
    assert session.prior_agents == ("ANL", "DOC")
    assert session.prior_outputs == {"k": 1}


def test_the_users_first_words_are_the_original_request_and_no_agents_are():
    session = made(Say("ANL", "one"), Say("user", "two", by="ANL"), Say("user", "three"), Say("user", "four"))
    assert session.original_request == "three"
    assert [turn.version for turn in session.turns] == [1, 2, 3, 4]


def test_a_turn_was_said_now_unless_it_says_when():
    said = Say("ANL", "hello", by="B", request_id="r", status="partial", task="all", at_ms=7, claimed_role="C")
    first, second = made(Answer("", said=(said, replace(said, at_ms=0)))).turns
    assert (first.role, first.text, first.by, first.request_id) == ("ANL", "hello", "B", "r")
    assert (first.status, first.task, first.claimed_role, first.version) == ("partial", "all", "C", 1)
    assert (first.at_ms, second.at_ms) == (7, NOW_MS)


@pytest.mark.parametrize(("confidence", "source"), [(0.4, "A"), (0.5, "A"), (0.6, "B")])
def test_a_fact_said_again_keeps_the_surer_source(confidence, source):
    session = made(Learn("k", 1, "A", 0.5), Learn("k", 1, "B", confidence))
    assert session.facts["k"].source == source
    assert made(Learn("k", 1, "A", 0.5), Learn("k", 2, "B", 0.1)).facts["k"] == Fact(2, "B", 0.1, NOW_MS)


# --- conflicts ---


REPLACING = [
    (Learn("k", 1, "A"), Learn("k", 2, "A"), Learn("other", 2, "A")),
    (Constrain("k", 1), Constrain("k", 2), Constrain("other", 2)),
    (Produce("A", "k", 1), Produce("A", "k", 2), Produce("A", "other", 2)),
    (Keep("A", {"a": 1}), Keep("A", {"a": 2}), Keep("B", {"a": 2})),
    (Place("one", 1), Place("one", 2), Summarise("two")),
    (Summarise("one"), Summarise("two"), Place("two")),
]


@pytest.mark.parametrize(("first", "second", "other"), REPLACING, ids=[type(one).__name__ for one, _, _ in REPLACING])
def test_only_what_replaces_a_newer_value_by_another_conflicts(first, second, other):
    session = made(Decide("before"), first, Decide("after"))
    conflict = apply(session, second, based_on=1, now_ms=NOW_MS)
    assert conflict == Conflict(core.replaces(first), 1, 2)
    assert isinstance(apply(session, second, based_on=2, now_ms=NOW_MS), Session)
    assert isinstance(apply(session, first, based_on=0, now_ms=NOW_MS), Session)  # the same again
    assert isinstance(apply(session, other, based_on=0, now_ms=NOW_MS), Session)


@pytest.mark.parametrize("change", [Say("user", "x"), Decide("x"), Assume("x"), Answer("A", "A.B", 2)])
def test_what_only_adds_never_conflicts(change):
    session = made(Produce("A", "A.B", 1))
    assert core.replaces(change) == ""
    assert isinstance(apply(session, change, based_on=0, now_ms=NOW_MS), Session)


# --- bounds ---


@pytest.mark.parametrize(
    ("change", "field", "most"),
    [
        (lambda n: Learn(str(n), n, "A"), "facts", FACTS_MAX),
        (lambda n: Produce("A", str(n), n), "prior_outputs", OUTPUTS_MAX),
        (lambda n: Answer("A", str(n), n), "prior_outputs", RESULTS_MAX),
    ],
    ids=["facts", "outputs", "results"],
)
def test_of_too_many_values_the_oldest_tenth_goes_with_its_version(change, field, most):
    before = Fact(0, "A", 1.0, 1) if field == "facts" else 0
    full = replace(NEW, version=1, **{field: {str(n): before for n in range(most)}}, written={core.label(field, str(n)): 1 for n in range(most)})  # fmt: skip
    same = made(change(most - 1), session=full)
    assert len(getattr(same, field)) == most
    one_more = made(change(most), session=full)
    kept = [str(n) for n in range(most + 1 - most * 9 // 10, most + 1)]
    assert list(getattr(one_more, field)) == kept
    assert {name.split()[-1] for name in one_more.written} == {*kept} - ({str(most)} if not core.replaces(change(0)) else set())


# --- what calls say ---


def test_a_users_words_are_the_message_and_an_agents_the_whole_task():
    assert heard(request(message="hello"), {}) == Say("user", "hello", request_id="r")
    assert heard(request(message="hello"), {"a": 1}, 4) == Say("user", "hello", request_id="r", task='hello\n\nInputs:\n{"a":1}', at_ms=4)  # fmt: skip
    assert heard(request(message="hello", source="ORC"), {}) == Say("ORC", "hello", request_id="r", task="hello")
    assert heard(request(message="hello", source="user/k"), {}) == Say("user/k", "hello", by="user", request_id="r", task="hello")  # fmt: skip
    assert heard(request(objective="plan"), {}) == Say("user", "Objective: plan", request_id="r")
    assert heard(request(), {}) is None


FAILED = Reply(status=Status.ERROR, error=Error.of("TARGET_FAILED", "broken"))


def test_a_reply_says_its_words_and_how_it_ended_unless_all_is_well():
    assert told(request(), Reply.success(1, message="done"), 3) == Say("ANL/k", "done", request_id="r", at_ms=3)
    assert told(request(), FAILED) == Say("ANL/k", "broken", request_id="r", status="error")
    assert told(request(), Reply.success()) is None
    moved = Reply.success(message="done", metadata={TRANSFER_FROM: "ORC"})
    assert told(request(), moved) == Say("ANL/k", "done", by="ORC", request_id="r")
    assert told(request(target="user"), moved.success(message="x")) == Say("user", "x", by="user", request_id="r")


@pytest.mark.parametrize(
    ("fields", "reply", "answer"),
    [
        ({}, Reply.success({"npv": 1}), Answer("ANL", "ANL.NPV", {"npv": 1})),
        ({}, Reply.success(0), Answer("ANL", "ANL.NPV", 0)),
        ({}, Reply.success(), Answer("ANL")),
        ({}, Reply.success({}, message="done"), Answer("ANL")),  # it stands in the conversation
        ({"parent_id": "p"}, Reply.success([], message="done"), Answer("ANL", "ANL.NPV", "done")),
        ({"parent_id": "p"}, Reply.success(message=""), Answer("ANL")),
        ({}, FAILED, Answer("")),
        ({}, Reply.needs_input("which?", data={"a": 1}), Answer("ANL")),
        ({"target": "ANL"}, Reply.success("x" * RESULT_CHARS_MAX), Answer("ANL", "ANL.NPV", "x" * RESULT_CHARS_MAX)),
    ],
)
def test_the_end_of_a_call_leaves_its_result_under_agent_and_capability(fields, reply, answer):
    assert answered(request(**fields), reply) == answer


def test_a_long_result_is_kept_as_the_beginning_of_its_text():
    kept = answered(request(), Reply.success(["x" * RESULT_CHARS_MAX])).value
    assert kept == f'["{"x" * (RESULT_CHARS_MAX - 2)}\n(cut here: 4 more characters)'
    said = Say("ANL", "x")
    assert answered(request(), Reply.success(), (None, said)).said == (said,)


# --- what a callee gets of it ---


def test_a_callee_gets_everything_but_the_conversation():
    session = made(
        *(Say("user", "first"), Decide("go"), Assume("sun"), Constrain("k", 1), Place("draft")),
        *(Produce("DOC", "out", 2), Learn("fact", "x", "ANL", 0.5, "BOT"), Learn("more", {"a": 1}, "DOC")),
    )
    told_ = core.background(session, 3, above=("ORC", "DOC"))
    assert (told_.original_request, told_.workflow_position, told_.decisions) == ("first", "draft", ("go",))
    assert (told_.assumptions, told_.constraints, told_.prior_outputs) == (("sun",), {"k": 1}, {"out": 2})
    assert told_.prior_agents == ("ORC", "DOC")
    assert told_.facts == (
        "fact: x (source ANL, which names BOT, confidence 0.5)",
        'more: {"a":1} (source DOC, confidence 1)',
    )
    assert told_.history_ref == f"session:s@{session.version}?history=3"


def test_only_what_is_not_known_is_missing():
    assert core.missing(made(Learn("a", 1, "A")), ("b", "a", "c")) == ("b", "c")


def test_a_summary_stands_for_the_whole_conversation_and_not_for_its_beginning():
    session = made(Say("user", "one. more"), Say("ANL", "two"), Summarise("all of it"))
    assert [turn.text for turn in core.history_at(session, 2, "summary")] == ["all of it"]
    assert [turn.text for turn in core.history_at(session, 1, "summary")] == ["user: one"]
    assert [turn.text for turn in core.history_at(session, 1, "full")] == ["one. more"]
    assert [turn.text for turn in core.history(session, 1)] == ["two"]


@pytest.mark.parametrize(
    ("fields", "is_first"),
    [
        ({}, True),
        ({"source": "ORC"}, False),  # handed off
        ({"parent_id": "p", "source": "ORC"}, False),
        ({"parent_id": "p", "source": "ORC", "parent_session_id": "above"}, True),
    ],
)
def test_a_tree_begins_in_its_session_with_a_users_call_or_a_delegated_one(fields, is_first):
    assert core.is_first(request(**fields)) is is_first
