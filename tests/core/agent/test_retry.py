"""Retries: as often as said, later each time, within the jitter, never past the deadline."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.core.agent.retry import Retry

policies = st.builds(
    lambda attempts, delay, more, multiplier, jitter: Retry(
        attempts=attempts, delay_ms=delay, delay_ms_max=delay + more, multiplier=multiplier, jitter=jitter
    ),
    attempts=st.integers(1, 100),
    delay=st.integers(0, 10_000),
    more=st.integers(0, 100_000),
    multiplier=st.floats(1, 100),
    jitter=st.floats(0, 1),
)
chances = st.floats(0, 1, exclude_max=True)


def test_nothing_is_tried_again_unless_it_was_asked_for():
    assert Retry().pause_ms(1, left_ms=math.inf, chance=0) is None


def test_attempts_count_the_first_try():
    policy = Retry(attempts=3, jitter=0)
    assert [policy.pause_ms(failures, left_ms=math.inf, chance=0) for failures in (1, 2, 3, 4)] == [100, 200, None, None]


def test_the_pause_grows_by_the_multiplier_up_to_its_bound():
    policy = Retry(attempts=10, delay_ms=10, multiplier=3, delay_ms_max=100, jitter=0)
    assert [policy.pause_ms(failures, left_ms=math.inf, chance=0.9) for failures in (1, 2, 3, 4, 5)] == [10, 30, 90, 100, 100]


def test_chance_takes_away_at_most_the_jitter():
    policy = Retry(attempts=2, delay_ms=100, jitter=0.25)
    assert policy.pause_ms(1, left_ms=math.inf, chance=0) == 100
    assert policy.pause_ms(1, left_ms=math.inf, chance=0.5) == 87.5
    assert policy.pause_ms(1, left_ms=math.inf, chance=1) == 75


@given(policies, st.integers(1, 100), chances, st.floats(-1e6, 1e6))
def test_no_pause_reaches_the_deadline(policy, failures, chance, left_ms):
    pause = policy.pause_ms(failures, left_ms=left_ms, chance=chance)
    assert pause is None or 0 <= pause < left_ms


def test_a_pause_that_ends_with_the_deadline_is_not_taken():
    policy = Retry(attempts=2, delay_ms=100, jitter=0)
    assert policy.pause_ms(1, left_ms=100.001, chance=0) == 100
    assert policy.pause_ms(1, left_ms=100, chance=0) is None
    assert policy.pause_ms(1, left_ms=0, chance=0) is None


@given(policies, st.integers(1, 99), chances)
def test_every_pause_lies_within_the_jitter_of_its_full_length(policy, failures, chance):
    pause = policy.pause_ms(failures, left_ms=math.inf, chance=chance)
    if failures >= policy.attempts:
        assert pause is None
        return
    full = min(policy.delay_ms * policy.multiplier ** (failures - 1), policy.delay_ms_max)
    assert pause is not None
    assert full * (1 - policy.jitter) <= pause <= full


@given(policies, chances)
def test_pauses_never_get_shorter(policy, chance):
    pauses = [policy.pause_ms(failures, left_ms=math.inf, chance=chance) for failures in range(1, policy.attempts)]
    assert pauses == sorted(pauses)


@pytest.mark.parametrize(
    "wrong",
    [
        {"attempts": 0},
        {"attempts": 101},
        {"delay_ms": -1},
        {"delay_ms": 11, "delay_ms_max": 10},
        {"multiplier": 0.99},
        {"multiplier": 101},
        {"multiplier": math.inf},
        {"multiplier": math.nan},
        {"jitter": -0.1},
        {"jitter": 1.1},
        {"jitter": math.nan},
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(ValueError, match="retry needs"):
        Retry(**wrong)


def test_a_policy_from_a_file_may_hold_nothing_unknown():
    with pytest.raises(msgspec.ValidationError, match="attemps"):
        msgspec.json.decode(b'{"attemps":3}', type=Retry)
