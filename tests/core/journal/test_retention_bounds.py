"""Retention, without a store: which records are too old or too many, and what is left of a reply."""

from __future__ import annotations

from datetime import timedelta

import pytest

from comity.core.agent.declaration import DeclarationError
from comity.core.envelope.envelope import Error, Reply, Status
from comity.core.envelope.usage import Usage
from comity.core.journal.retention import (
    CONTENT_REMOVED,
    KINDS,
    Keep,
    Pruned,
    Retention,
    checked_retention,
    is_doomed,
    without_content,
)

SECOND = Keep(age=timedelta(seconds=1))


@pytest.mark.parametrize(
    ("keep", "at_ms", "is_surplus", "goes"),
    [
        (SECOND, 8_999, False, True),
        (SECOND, 9_000, False, False),
        (SECOND, 9_001, False, False),
        (SECOND, 9_001, True, True),
        (SECOND, None, True, False),  # it has not ended
        (Keep(count=1), 0, False, False),
        (Keep(count=1), 0, True, True),
        (Keep(), 0, False, False),
        (Keep(age=timedelta(0)), 9_999, False, True),
        (Keep(age=timedelta(0)), 10_000, False, False),
    ],
)
def test_an_ended_record_goes_once_it_is_older_than_the_age_or_one_too_many(keep, at_ms, is_surplus, goes):
    assert is_doomed(keep, at_ms, is_surplus, now_ms=10_000) is goes


def test_a_bound_is_an_age_or_a_count_of_nothing_or_more():
    assert [Keep().is_bounded, Keep(count=0).is_bounded, Keep(age=timedelta(0)).is_bounded] == [False, True, True]
    assert (Keep(count=3).before_ms(5), Keep(age=timedelta(milliseconds=2)).before_ms(5)) == (None, 3)
    for wrong in ({"age": timedelta(-1)}, {"age": 7}, {"count": -1}, {"count": True}, {"count": 1.0}):
        with pytest.raises(DeclarationError, match=f"the {next(iter(wrong))} to keep"):
            Keep(**wrong)


@pytest.mark.parametrize("kind", ["calls", "handoffs"])
def test_calls_and_handoffs_go_no_later_than_their_sessions(kind):
    other = {"calls": SECOND, "handoffs": SECOND}
    assert Retention(sessions=SECOND, **other).is_bounded
    for keep in (Keep(), Keep(count=1), Keep(age=timedelta(seconds=1, milliseconds=1))):
        with pytest.raises(DeclarationError, match=f"{kind} would outlive their sessions"):
            Retention(sessions=SECOND, **other | {kind: keep})
    Retention(sessions=SECOND, **other | {kind: Keep(age=timedelta(0))})
    Retention(sessions=Keep(count=1))


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_takes_a_bound_and_only_that(kind):
    with pytest.raises(DeclarationError, match=f"retention.{kind} is a Keep"):
        Retention(**{kind: 7})
    assert Retention(**{kind: Keep(count=1)}).is_bounded
    assert not Retention().is_bounded


def test_a_node_without_a_retention_keeps_everything():
    assert checked_retention(None) == Retention()
    assert checked_retention(given := Retention(calls=Keep(count=1))) is given
    with pytest.raises(DeclarationError, match="the retention of a node is a Retention"):
        checked_retention({})


def test_slices_of_a_sweep_add_up_kind_by_kind():
    first, second = Pruned(calls=1, spans=2), Pruned(calls=10, replies=3, sessions=4, handoffs=5, audit=6, session_keys=("k",))
    assert first + second == Pruned(calls=11, replies=3, sessions=4, handoffs=5, spans=2, audit=6)
    assert ((first + second).total, Pruned().total) == (31, 0)


def test_of_a_reply_stays_how_the_call_ended_and_it_is_emptied_once():
    reply = Reply(
        status=Status.PARTIAL,
        data={"secret": 1},
        message="secret",
        confidence=0.5,
        warnings=("secret",),
        error=Error.of("A_B", "no"),
        usage=Usage(prompt_tokens=1),
        request_id="r",
        duration_ms=2,
        degraded=True,
        source="A",
        session_id="s",
        thought="secret",
    )
    left = without_content(reply)
    assert left is not None
    assert "secret" not in repr(left)
    assert left.warnings == (CONTENT_REMOVED,)
    kept = (
        "status",
        "confidence",
        "error",
        "usage",
        "request_id",
        "duration_ms",
        "degraded",
        "version",
        "source",
        "session_id",
    )
    assert [getattr(left, name) for name in kept] == [getattr(reply, name) for name in kept]
    assert without_content(left) is None
