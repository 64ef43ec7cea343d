"""The life of a handoff: every state meets every event, and only its holder moves it."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from handoff_world import (
    CHANGES,
    DEADLINE,
    FAILURE,
    ME,
    MINE,
    NOW,
    OTHER,
    RESULT,
    accept,
    done,
    held,
    in_state,
    made,
    offered,
    tried,
)
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from comity.core.call.limits import HANDOFF_HISTORY_MAX
from comity.core.envelope.envelope import Status
from comity.core.handoff.holder import Holder
from comity.core.handoff.machine import (
    DEAD,
    ENDED,
    TRANSITIONS,
    Answer,
    Ask,
    Cancel,
    Complete,
    Event,
    Fail,
    Offer,
    Outcome,
    Progress,
    Question,
    Release,
    Renew,
    State,
    advance,
)
from comity.core.journal.records import HANDED_AT, Accepted, Document, Late, Saved, Settled

# Spelled out a second time, from the design: what leads where. Everything else is impossible.
POSSIBLE = {
    ("pending", "accept"): "accepted",
    ("pending", "reject"): "rejected",
    ("pending", "cancel"): "cancelled",
    ("pending", "expire"): "timeout",
    ("accepted", "start"): "in_progress",
    ("accepted", "release"): "pending",
    ("accepted", "cancel"): "cancelled",
    ("accepted", "expire"): "timeout",
    ("in_progress", "ask"): "input_required",
    ("in_progress", "complete"): "completed",
    ("in_progress", "fail"): "failed",
    ("in_progress", "release"): "pending",
    ("in_progress", "cancel"): "cancelled",
    ("in_progress", "expire"): "timeout",
    ("input_required", "answer"): "in_progress",
    ("input_required", "complete"): "completed",
    ("input_required", "fail"): "failed",
    ("input_required", "release"): "pending",
    ("input_required", "cancel"): "cancelled",
    ("input_required", "expire"): "timeout",
}
PAIRS = list(itertools.product(State, Event))
# Work that goes on or ends has begun: these changes start what was only accepted.
STARTS = {Event.ASK, Event.COMPLETE, Event.FAIL}


@pytest.mark.parametrize(("state", "event"), PAIRS)
def test_the_table_has_every_pair_of_the_design_and_no_other(state, event):
    assert advance(state, event) == POSSIBLE.get((state.value, event.value))


@pytest.mark.parametrize(("state", "event"), PAIRS)
def test_a_change_moves_a_handoff_exactly_as_the_table_says(state, event):
    change = CHANGES[event.value]
    before = in_state(state) if event is Event.ACCEPT else held(in_state(state))
    outcome = tried(before, change, now_ms=DEADLINE if event is Event.EXPIRE else NOW + 20)
    expected = POSSIBLE.get((state.value, event.value))
    if state is State.ACCEPTED and event in STARTS:
        expected = POSSIBLE["in_progress", event.value]
    if state is State.PENDING and event is Event.RELEASE:  # reserved, not accepted
        assert outcome.handoff.is_free
    elif event is Event.START and state in {State.IN_PROGRESS, State.INPUT_REQUIRED}:
        assert outcome.handoff.state is state  # progress starts what has not started, and else only tells
    elif expected is None:
        assert outcome.refusal is not None
        assert outcome.handoff is before
        assert not any(isinstance(record, Settled) for record in outcome.records)
    else:
        assert outcome.refusal is None
        assert outcome.handoff.state == expected


def test_what_has_ended_ends_its_call_once_and_the_rest_never_does():
    for state in State:
        handoff = in_state(state)
        assert handoff.has_ended == (state in ENDED) == (handoff.reply is not None) == (handoff.due_at is None)
    assert DEAD < ENDED
    assert not DEAD & {State.COMPLETED, State.CANCELLED}


@pytest.mark.parametrize(
    ("state", "status", "code"),
    [
        (State.COMPLETED, Status.SUCCESS, None),
        (State.FAILED, Status.ERROR, "TARGET_FAILED"),
        (State.REJECTED, Status.REFUSED, "HANDOFF_REJECTED"),
        (State.CANCELLED, Status.CANCELLED, "CALL_CANCELLED"),
        (State.TIMEOUT, Status.TIMEOUT, "CALL_TIMEOUT"),
    ],
)
def test_each_end_is_a_reply_the_caller_can_read(state, status, code):
    reply = in_state(state).reply
    assert (reply.status, reply.error.code if reply.error else None) == (status, code)
    assert (reply.request_id, reply.source, reply.session_id) == ("h-1", "o11y", "s-1")


# --- offering ---


def test_offering_accepts_the_call_for_whoever_takes_it():
    outcome = tried(None, Offer(made(), note="hidden: EMAIL"), now_ms=NOW)
    (record,) = outcome.records
    assert record == Accepted(made().request, NOW, HANDED_AT, "hidden: EMAIL")
    assert outcome.handoff.is_free
    assert outcome.handoff.due_at == DEADLINE


def test_offering_the_same_again_changes_nothing_and_something_else_under_its_id_is_refused():
    first = offered()
    again = tried(first, Offer(made()))
    assert (again.handoff, again.refusal, again.records) == (first, None, ())
    other = tried(first, Offer(made(user_id="somebody else")))
    assert other.refusal.code == "IDENTITY_REQUEST_ID_REUSED"
    assert other.handoff is None


def test_a_handoff_within_a_tree_writes_no_end_of_its_call():
    handoff = replace(made(), settles=False)
    outcome = tried(None, Offer(handoff))
    assert outcome.records == ()
    ended = tried(done(outcome.handoff, accept()), Complete(MINE, RESULT))
    assert ended.handoff.state is State.COMPLETED
    assert ended.records == ()


def test_whoever_runs_a_tree_again_becomes_the_maker_of_its_open_handoff():
    pending = done(None, Offer(replace(made(), settles=False)))
    again = Offer(replace(made(made_by="next life"), settles=False))
    for known in (pending, done(pending, accept())):
        assert tried(known, again) == Outcome(replace(known, made_by="next life"))
    ended = done(pending, accept(), Complete(MINE, RESULT))
    assert tried(ended, again).handoff is ended
    assert tried(offered(), Offer(made(made_by="another"))).handoff.made_by == "maker"  # who may wait for it still


# --- taking ---


def test_of_two_receivers_one_gets_it():
    taken = done(offered(), accept(ME))
    lost = tried(taken, accept(OTHER))
    assert (lost.refusal.code, lost.refusal.message) == ("HANDOFF_TAKEN", "another receiver has h-1")
    assert lost.handoff is taken


def test_what_is_reserved_for_one_cannot_be_accepted_by_another_and_keeps_its_lease_when_accepted():
    reserved = done(offered(), accept(ME, reserves=True))
    assert (reserved.state, reserved.fence, reserved.is_free) == (State.PENDING, 1, False)
    assert tried(reserved, accept(OTHER)).refusal.message == "h-1 is being looked at"
    mine = done(reserved, accept(ME))
    assert (mine.state, mine.fence, mine.attempts) == (State.ACCEPTED, 1, 1)


def test_every_new_holder_has_a_greater_fence():
    handoff = offered()
    fences = []
    for number in range(4):
        handoff = done(handoff, accept(f"node-{number}#1"))
        fences.append(handoff.fence)
        handoff = done(handoff, Release(None, "silent"))
    assert fences == [1, 2, 3, 4]


@pytest.mark.parametrize("name", ["ask", "complete", "fail", "reject", "release", "start"])
def test_whoever_lost_the_lease_changes_nothing(name):
    taken = done(offered(), accept(ME), Release(None, "silent"), accept(OTHER))
    outcome = tried(taken, CHANGES[name])
    assert outcome.refusal.code == "HANDOFF_LEASE_LOST"
    assert outcome.handoff is taken


def test_the_same_receiver_that_took_it_again_cannot_use_its_old_lease():
    again = done(offered(), accept(ME), Release(None, "silent"), accept(ME))
    assert tried(again, Complete(MINE, RESULT)).refusal.code == "HANDOFF_LEASE_LOST"
    assert done(again, Complete(Holder(ME, 2), RESULT)).state is State.COMPLETED


@pytest.mark.parametrize("change", [Complete(MINE, RESULT), Fail(MINE, FAILURE)])
def test_a_result_that_comes_too_late_is_recorded_and_goes_nowhere(change):
    completed = done(offered(), accept(ME), Release(None, "silent"), accept(OTHER), Complete(Holder(OTHER, 2), RESULT))
    outcome = tried(completed, change)
    assert outcome.refusal.code == "HANDOFF_ENDED"
    assert outcome.handoff is completed
    assert [type(record) for record in outcome.records] == [Late]


def test_what_is_to_be_kept_with_a_result_is_kept_only_if_it_is_the_result():
    vault = Saved(Document.VAULT, "k", 1, b"{}")
    accepted = in_state(State.ACCEPTED)
    assert tried(accepted, Complete(MINE, RESULT, saved=(vault,))).records[0] == vault
    assert vault not in tried(accepted, Complete(Holder(OTHER, 9), RESULT, saved=(vault,))).records


def test_a_renewed_lease_lasts_longer_and_nothing_else_changes():
    accepted = in_state(State.ACCEPTED)
    renewed = done(accepted, Renew(MINE, NOW + 40_000))
    assert renewed == replace(accepted, lease_until=NOW + 40_000)
    assert renewed.due_at == NOW + 40_000


def test_a_lease_is_not_renewed_from_the_deadline_on_nor_after_the_end():
    accepted = in_state(State.ACCEPTED)
    completed = done(accepted, Complete(MINE, RESULT))
    for handoff, now_ms in ((accepted, DEADLINE), (accepted, DEADLINE + 1), (completed, NOW + 20)):
        outcome = tried(handoff, Renew(MINE, DEADLINE + 40_000), now_ms=now_ms)
        assert outcome.refusal.code == "HANDOFF_ENDED"
        assert outcome.handoff == handoff


def test_a_handoff_let_go_has_no_lease_and_is_due_at_its_deadline():
    for reserves in (True, False):
        free = done(offered(), accept(reserves=reserves), Release(None, "silent"))
        assert (free.holder, free.lease_until, free.due_at) == ("", 0, DEADLINE)


def test_the_reply_says_how_long_the_handoff_took_and_the_handoff_how_long_it_had():
    handoff = in_state(State.ACCEPTED)
    assert handoff.timeout_ms == DEADLINE - NOW
    assert done(handoff, Complete(MINE, RESULT), now_ms=NOW + 250).reply.duration_ms == 250


def test_a_handoff_is_due_when_its_lease_ends_or_its_deadline_passes_whichever_is_first():
    assert done(offered(), accept(lease_until=NOW + 5)).due_at == NOW + 5
    assert done(offered(), accept(lease_until=DEADLINE + 5)).due_at == DEADLINE


# --- giving up ---


def test_after_so_many_receivers_it_is_a_dead_letter_that_says_why():
    handoff = replace(offered(), attempts_max=2)
    handoff = done(handoff, accept(ME), Release(None, "o11y fell silent"), accept(OTHER))
    outcome = tried(handoff, Release(None, "o11y fell silent"))
    assert outcome.handoff.state is State.FAILED
    assert outcome.handoff.reply.error.code == "HANDOFF_UNDELIVERABLE"
    assert outcome.handoff.reason == "given up after 2 receivers: o11y fell silent"
    assert [type(record) for record in outcome.records] == [Settled]


def test_being_reserved_and_let_go_is_no_attempt():
    handoff = replace(offered(), attempts_max=1)
    for _ in range(3):
        handoff = done(handoff, accept(reserves=True), Release(None, "silent"))
    assert (handoff.is_free, handoff.attempts) == (True, 0)


@pytest.mark.parametrize("name", sorted(set(CHANGES) - {"expire"}))
@pytest.mark.parametrize("state", sorted(set(State) - ENDED))
def test_whoever_comes_after_the_deadline_writes_the_timeout_down(state, name):
    outcome = tried(in_state(state), CHANGES[name], now_ms=DEADLINE)
    assert outcome.handoff.state is State.TIMEOUT
    assert outcome.refusal.code == "HANDOFF_ENDED"
    assert type(outcome.records[0]) is Settled
    assert str(state) in outcome.handoff.reason


# --- talking ---


def test_a_question_is_answered_and_the_work_goes_on():
    asked = in_state(State.INPUT_REQUIRED)
    assert asked.reason == "which year?"
    answered = done(asked, Answer(2026))
    assert (answered.state, answered.question.answer, answered.question.is_answered) == (State.IN_PROGRESS, 2026, True)
    assert answered.reason == ""
    assert tried(answered, Answer(2027)).refusal.code == "HANDOFF_STATE_CONFLICT"
    assert done(answered, Ask(MINE, Question(text="and which month?"))).state is State.INPUT_REQUIRED


def test_the_next_receiver_sees_what_was_asked_and_answered_before():
    handoff = done(in_state(State.INPUT_REQUIRED), Answer(2026), Release(None, "silent"), accept(OTHER))
    assert [entry.kind for entry in handoff.history] == [
        "created", "accepted", "progress", "input_required", "in_progress", "redelivered", "accepted",
    ]  # fmt: skip
    assert handoff.history[4].data == {"answer": 2026}


def test_progress_is_numbered_without_gaps_and_bounded():
    handoff = in_state(State.ACCEPTED)
    for number in range(HANDOFF_HISTORY_MAX + 20):
        handoff = done(handoff, Progress(MINE, number))
        assert len(handoff.history) == min(3 + number, HANDOFF_HISTORY_MAX)
    assert [entry.n for entry in handoff.history] == list(range(23, 23 + HANDOFF_HISTORY_MAX))
    assert handoff.history[-1].data == HANDOFF_HISTORY_MAX + 19


def test_a_result_names_the_trace_it_is_in_or_keeps_that_of_the_handoff():
    assert in_state(State.COMPLETED).result_trace_id == "0" * 31 + "1"
    assert done(in_state(State.ACCEPTED), Complete(MINE, RESULT, "abc")).result_trace_id == "abc"


def test_nothing_can_be_done_to_what_is_not_there():
    assert tried(None, Cancel("x")).refusal.code == "HANDOFF_UNKNOWN"


@given(st.lists(st.tuples(st.sampled_from(sorted(CHANGES)), st.integers(1, 3)), max_size=12))
def test_no_sequence_of_changes_ends_a_call_twice_or_leaves_the_table(steps):
    """The fence of each change is guessed, so that some are right."""
    handoff, ends = offered(), 0
    for name, fence in steps:
        change = CHANGES[name]
        if getattr(change, "by", None) is not None:
            change = replace(change, by=Holder(ME, fence))
        outcome = tried(handoff, change)
        ends += sum(isinstance(record, Settled) for record in outcome.records)
        after = outcome.handoff
        if after.state is not handoff.state:
            reachable = set(TRANSITIONS[handoff.state].values())
            reachable |= {further for one in reachable for further in TRANSITIONS[one].values()}
            assert after.state in reachable
        assert after.fence >= handoff.fence
        handoff = after
        assert ends == handoff.has_ended


def test_a_lease_is_the_name_and_the_fence_together():
    taken = done(offered(), accept(ME))
    assert tried(taken, Complete(Holder(OTHER, taken.fence), RESULT)).refusal.code == "HANDOFF_LEASE_LOST"
    assert tried(taken, Complete(Holder(ME, taken.fence + 1), RESULT)).refusal.code == "HANDOFF_LEASE_LOST"
    assert done(taken, Complete(Holder(ME, taken.fence), RESULT)).state is State.COMPLETED


def test_a_reservation_that_is_given_back_leaves_no_lease():
    free = done(offered(), accept(ME, reserves=True), Release(None, "silent"))
    assert (free.holder, free.lease_until, free.due_at) == ("", 0, DEADLINE)


def test_a_handoff_begins_without_lease_attempt_or_change_and_a_question_is_written_without_what_it_lacks():
    handoff = made()
    assert (handoff.fence, handoff.lease_until, handoff.attempts, handoff.changed_at) == (0, 0, 0, 0)
    assert msgspec.json.encode(Question(text="which year?")) == b'{"text":"which year?"}'
