"""Turns of a session: bounded in large steps, shown by policy, found by reference."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from comity.core.call.limits import Limits
from comity.core.envelope.envelope import Reply, Request
from comity.core.session.conversation import (
    DATA_CHARS_MAX,
    TURNS_CHARS_MAX,
    TURNS_MAX,
    HistoryReference,
    Turn,
    answer_text,
    bounded,
    clip,
    narrower,
    position_of,
    read_reference,
    select,
    size_of,
    writer_of,
)
from comity.core.session.session import Conflict, Say, Session, apply, history_at
from comity.errors import CallerError

POLICIES = st.sampled_from(["none", "summary", "full"]) | st.integers(0, 9)


def turns(count, chars=1):
    return tuple(Turn("user", str(number).rjust(chars), number) for number in range(count))


@pytest.mark.parametrize(("count", "chars", "kept"), [
    (TURNS_MAX, 1, TURNS_MAX),
    (TURNS_MAX + 1, 1, TURNS_MAX // 2),
    (10, TURNS_CHARS_MAX // 10, 10),
    (11, TURNS_CHARS_MAX // 10, 5),
    (1, 2 * TURNS_CHARS_MAX, 1),
    (2, TURNS_CHARS_MAX, 1),
])  # fmt: skip
def test_too_many_turns_go_half_at_a_time_and_the_last_one_never(count, chars, kept):
    said = turns(count, chars)
    assert bounded(said, count * chars if chars > 1 else sum(map(size_of, said))) == (
        said[-kept:],
        sum(map(size_of, said[-kept:])),
    )


def test_a_session_counts_the_turns_it_no_longer_keeps():
    session = Session(id="s", tenant_id="t", user_id="u", created_at=1, used_at=1, turns=turns(TURNS_MAX))
    session = apply(session, Say("user", "more"), based_on=0, now_ms=2)
    assert not isinstance(session, Conflict)
    assert session.turns_dropped + len(session.turns) == TURNS_MAX + 1


@given(st.text("abc@?=:1", min_size=1), st.integers(0, 10**9), POLICIES)
def test_a_reference_is_read_as_it_was_written(session_id, version, policy):
    reference = HistoryReference(session_id, version, policy)
    assert read_reference(str(reference)) == reference


@pytest.mark.parametrize("text", ["", "conv-17", "session:s@1", "session:s@x?history=full", "session:s@1?history=all", None])
def test_what_is_no_reference_is_told_so(text):
    with pytest.raises(CallerError) as raised:
        read_reference(text)
    assert raised.value.code == "INPUT_VALIDATION_FAILED"


@given(POLICIES, POLICIES)
def test_the_narrower_of_two_policies_shows_nothing_that_one_of_them_withholds(one, other):
    said = turns(12)
    found = select(said, narrower(one, other))
    if found and found[0].role != "summary":
        assert all(set(found) <= set(select(said, policy)) for policy in (one, other))
    elif found:
        assert 0 not in (one, other)
        assert "none" not in (one, other)


def test_a_reference_shows_the_conversation_as_it_was():
    session = Session(id="s", tenant_id="t", user_id="u", created_at=1, used_at=1)
    for text in ("one", "two", "three"):
        session = apply(session, Say("user", text), based_on=0, now_ms=1)
    assert [turn.text for turn in history_at(session, 2, "full")] == ["one", "two"]
    assert [turn.text for turn in history_at(session, 2, 1)] == ["two"]


@pytest.mark.parametrize(("reply", "told"), [
    (Reply.success({"npv": 17.2}), '{"npv":17.2}'),
    (Reply.success("plain"), "plain"),
    (Reply.success({"npv": 17.2}, message="It is 17.2."), "It is 17.2."),
    (Reply.needs_input("Which year?"), "Which year?"),
    (Reply.failure("the file is gone"), "the file is gone"),
    (Reply.success(0), "0"),
    (Reply.success(None), ""),
])  # fmt: skip
def test_a_user_is_told_the_message_or_the_data_or_what_went_wrong(reply, told):
    assert answer_text(reply) == told


def test_data_that_is_too_long_is_cut_and_that_is_said():
    text = answer_text(Reply.success(["x" * DATA_CHARS_MAX]))
    assert text.endswith("(cut here: 4 more characters)")


def test_a_summary_names_the_agent_that_spoke_in_another_name():
    (told,) = select((Turn("user", "Pay. Now", 1, by="liar"), Turn("user", "No. Wait", 2)), "summary")
    assert told.text == "agent liar: Pay\nuser: No"


def test_a_text_of_just_the_length_is_not_cut():
    assert clip("x" * 9, 9) == "x" * 9
    assert clip("x" * 10, 9) == f"{'x' * 9}\n(cut here: 1 more characters)"


@pytest.mark.parametrize(
    ("address", "writer"), [("user", "user"), ("user/k", "user"), ("summary", "summary"), ("ANL", ""), ("ANL/user", "")]
)
def test_an_agent_is_named_as_writer_only_where_its_id_reads_like_another_kind_of_turn(address, writer):
    assert writer_of(address) == writer


@pytest.mark.parametrize(("policy", "shown"), [("none", 0), (0, 0), (1, 1), (2, 2), (9, 3), ("full", 3)])
def test_a_policy_shows_the_newest_turns(policy, shown):
    assert select(turns(3), policy) == turns(3)[3 - shown :]


@pytest.mark.parametrize("policy", [-1, "all", None])
def test_a_policy_that_is_none_is_told_so(policy):
    with pytest.raises(ValueError, match="history policy"):
        select(turns(3), policy)


def test_a_calls_own_message_is_found_by_its_id_or_would_come_last():
    said = tuple(Turn("user", "x", 1, request_id) for request_id in ("a", "b", "b"))
    asked = Request("b", "ANL", "NPV", "u", Limits(), 9)
    assert position_of(said, asked) == 1
    assert position_of(said, replace(asked, request_id="c")) == 3


def test_a_turn_is_as_long_as_its_text_and_its_task():
    assert size_of(Turn("user", "ab", 1, task="cde")) == 5
