"""The breaker: opens at its threshold, lets few through to test, and can always recover."""

from __future__ import annotations

import math
from functools import partial
from itertools import product

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.core.agent.breaker import SLOTS, TRANSITIONS, Breaker, Event, Policy, State, Window

WAYS = {
    (State.CLOSED, Event.THRESHOLD_REACHED): State.OPEN,
    (State.CLOSED, Event.RATE_REACHED): State.OPEN,
    (State.CLOSED, Event.TRIPPED): State.OPEN,
    (State.OPEN, Event.COOLED_DOWN): State.HALF_OPEN,
    (State.OPEN, Event.TRIPPED): State.OPEN,
    (State.HALF_OPEN, Event.PROBE_FAILED): State.OPEN,
    (State.HALF_OPEN, Event.TRIPPED): State.OPEN,
    (State.HALF_OPEN, Event.PROBES_PASSED): State.CLOSED,
}
DEFAULT = Policy()


def opened(policy: Policy = DEFAULT, *, now_ms: int = 0) -> Breaker:
    breaker = Breaker(policy)
    for _ in range(policy.failures_max):
        breaker.failed(now_ms, probe=0)
    assert breaker.state is State.OPEN
    return breaker


def half_open(policy: Policy = DEFAULT) -> Breaker:
    """A breaker with one probe under way, at `open_ms`."""
    breaker = opened(policy)
    assert breaker.enter(policy.open_ms)
    return breaker


# --- the table ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("state", "event"), list(product(State, Event)))
def test_every_event_in_every_state_leads_where_the_table_says_or_cannot_happen(state, event):
    assert TRANSITIONS[state].get(event) is WAYS.get((state, event))


def test_the_table_names_every_state():
    assert list(TRANSITIONS) == list(State)


# --- closed -------------------------------------------------------------------------------------------------------------


def test_a_new_breaker_lets_everything_pass_and_nothing_is_a_probe():
    breaker = Breaker(DEFAULT)
    assert breaker.state is State.CLOSED
    assert breaker.retry_after_ms(0) is None
    assert not breaker.enter(0)


def test_the_defaults_are_five_failures_thirty_seconds_and_two_probes():
    assert (DEFAULT.failures_max, DEFAULT.open_ms, DEFAULT.probes) == (5, 30_000, 2)
    assert (DEFAULT.rate_max, DEFAULT.rate_calls_min, DEFAULT.rate_window_ms) == (0.5, 20, 60_000)


@pytest.mark.parametrize("failures_max", [1, 2, 5])
def test_it_opens_at_exactly_failures_max_consecutive_failures(failures_max):
    breaker = Breaker(Policy(failures_max=failures_max))
    for _ in range(failures_max - 1):
        breaker.failed(0, probe=0)
        assert breaker.state is State.CLOSED
    breaker.failed(0, probe=0)
    assert breaker.state is State.OPEN


def test_a_success_in_between_begins_the_count_anew():
    breaker = Breaker(Policy(failures_max=3))
    for _ in range(4):
        breaker.failed(0, probe=0)
        breaker.failed(0, probe=0)
        breaker.succeeded(0, probe=0)
    assert breaker.state is State.CLOSED


def test_an_end_that_says_nothing_neither_counts_nor_resets():
    breaker = Breaker(Policy(failures_max=2))
    breaker.failed(0, probe=0)
    breaker.released(probe=0)
    assert breaker.state is State.CLOSED
    breaker.failed(0, probe=0)
    assert breaker.state is State.OPEN


def test_a_misconfiguration_opens_it_at_once():
    breaker = Breaker(DEFAULT)
    breaker.failed(7, probe=0, trips=True)
    assert breaker.state is State.OPEN
    assert breaker.retry_after_ms(7) == DEFAULT.open_ms


# --- the rate -----------------------------------------------------------------------------------------------------------


def end(breaker: Breaker, outcomes: str, *, now_ms: int = 0, every_ms: int = 0) -> int | None:
    """End calls, `F` as failed and `s` as succeeded; return after how many the breaker was open."""
    for count, outcome in enumerate(outcomes, 1):
        if outcome == "F":
            breaker.failed(now_ms, probe=0)
        else:
            breaker.succeeded(now_ms, probe=0)
        if breaker.state is State.OPEN:
            return count
        now_ms += every_ms
    return None


@pytest.mark.parametrize(
    ("outcomes", "opened_after"),
    [
        ("sF" * 20, 20),  # half, at the twentieth
        ("sFFFF" * 8, 20),  # four in five, never five in a row
        ("sFFFF" * 3 + "sFFF", None),  # nineteen calls say nothing yet
        ("ssF" * 40, None),  # a third
        ("s" * 40 + "FFFF" + "sFFFF" * 12, 104),  # successes before count too
    ],
)
def test_it_opens_when_half_of_at_least_twenty_calls_failed_though_never_five_in_a_row(outcomes, opened_after):
    assert end(Breaker(DEFAULT), outcomes) == opened_after


def test_failures_that_are_further_apart_than_the_window_do_not_add_up():
    assert end(Breaker(DEFAULT), "sF" * 40, every_ms=DEFAULT.rate_window_ms // 10) is None
    assert end(Breaker(DEFAULT), "sF" * 40, every_ms=DEFAULT.rate_window_ms // 30) == 20


def test_a_closed_again_breaker_begins_its_window_anew():
    breaker = Breaker(Policy(failures_max=9, probes=1))
    assert end(breaker, "sF" * 10) == 20
    assert breaker.enter(DEFAULT.open_ms) == 1
    breaker.succeeded(DEFAULT.open_ms, probe=1)
    assert end(breaker, "F" * 8, now_ms=DEFAULT.open_ms) is None


def test_the_share_the_least_number_and_the_window_can_be_set():
    policy = Policy(failures_max=99, rate_max=1.0, rate_calls_min=3, rate_window_ms=100)
    assert end(Breaker(policy), "FFF") == 3
    assert end(Breaker(policy), "sFFFFF") is None
    assert end(Breaker(policy), "sFFFFF", every_ms=40) == 4


@given(
    st.integers(1, 2_000),
    st.lists(st.tuples(st.integers(-20, 700), st.booleans()), max_size=60),
)
def test_a_window_counts_all_of_its_newest_slots_and_nothing_older_than_itself(window_ms, ends):
    window, now_ms, told = Window(window_ms), 10_000, []
    slot_ms = max(window_ms // SLOTS, 1)
    for step_ms, failed in ends:
        now_ms += step_ms
        newest = max([now_ms // slot_ms, *(slot for slot, _ in told)])
        told.append((newest, failed))
        counted = [one for slot, one in told if slot > newest - SLOTS]
        assert window.note(now_ms, failed=failed) == (len(counted), sum(counted))
        assert slot_ms * SLOTS <= max(window_ms, SLOTS)


# --- open ---------------------------------------------------------------------------------------------------------------


def test_the_time_to_wait_counts_down_and_then_a_call_may_pass():
    breaker = opened(Policy(failures_max=1, open_ms=100), now_ms=1_000)
    assert [breaker.retry_after_ms(now_ms) for now_ms in (1_000, 1_001, 1_099, 1_100, 9_999)] == [100, 99, 1, None, None]


def test_asking_alone_changes_nothing():
    breaker = opened()
    assert breaker.retry_after_ms(DEFAULT.open_ms) is None
    assert breaker.state is State.OPEN


def test_late_ends_of_earlier_calls_do_not_touch_an_open_breaker():
    breaker = opened()
    breaker.succeeded(0, probe=0)
    breaker.failed(10_000, probe=0)
    breaker.released(probe=0)
    assert breaker.state is State.OPEN
    assert breaker.retry_after_ms(0) == DEFAULT.open_ms


def test_tripping_an_open_breaker_begins_its_time_anew():
    breaker = opened()
    breaker.failed(10_000, probe=0, trips=True)
    assert breaker.retry_after_ms(10_000) == DEFAULT.open_ms


# --- half-open ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("probes", [1, 2, 5])
def test_exactly_as_many_probes_as_the_policy_says_may_pass(probes):
    policy = Policy(probes=probes)
    breaker = half_open(policy)
    for _ in range(probes - 1):
        assert breaker.retry_after_ms(policy.open_ms) is None
        assert breaker.enter(policy.open_ms)
    wait = breaker.retry_after_ms(policy.open_ms)
    assert wait is not None
    assert wait > 0


def test_as_many_successes_as_probes_close_it():
    breaker = half_open()
    breaker.succeeded(0, probe=1)
    assert breaker.state is State.HALF_OPEN
    assert breaker.enter(DEFAULT.open_ms)
    assert breaker.retry_after_ms(DEFAULT.open_ms) is not None, "one has passed and one is under way: no third"
    breaker.succeeded(0, probe=1)
    assert breaker.state is State.CLOSED
    assert not breaker.enter(DEFAULT.open_ms)


def test_a_closed_again_breaker_counts_from_zero():
    breaker = half_open(Policy(failures_max=2, probes=1))
    breaker.succeeded(0, probe=1)
    breaker.failed(0, probe=0)
    assert breaker.state is State.CLOSED
    breaker.failed(0, probe=0)
    assert breaker.state is State.OPEN


def test_one_failed_probe_opens_it_again_for_the_whole_time():
    breaker = half_open()
    breaker.failed(40_000, probe=1)
    assert breaker.state is State.OPEN
    assert breaker.retry_after_ms(40_000) == DEFAULT.open_ms


def test_a_probe_that_says_nothing_gives_its_place_back():
    breaker = half_open(Policy(probes=1))
    assert breaker.retry_after_ms(DEFAULT.open_ms) is not None
    breaker.released(probe=1)
    assert breaker.state is State.HALF_OPEN
    assert breaker.retry_after_ms(DEFAULT.open_ms) is None


@pytest.mark.parametrize("probe", [1, 0])
def test_a_misconfiguration_found_while_half_open_opens_it(probe):
    breaker = half_open()
    breaker.failed(40_000, probe=probe, trips=True)
    assert breaker.state is State.OPEN


def test_calls_from_before_it_opened_decide_nothing():
    breaker = half_open()
    breaker.succeeded(0, probe=0)
    breaker.succeeded(0, probe=0)
    breaker.failed(40_000, probe=0)
    breaker.released(probe=0)
    assert breaker.state is State.HALF_OPEN
    assert breaker.retry_after_ms(40_000) is None
    assert breaker.enter(40_000)
    assert breaker.retry_after_ms(40_000) is not None


def test_successes_of_an_earlier_time_do_not_count_for_the_next():
    breaker = half_open()
    breaker.succeeded(0, probe=1)
    assert breaker.enter(DEFAULT.open_ms)
    breaker.failed(DEFAULT.open_ms, probe=1)
    assert breaker.enter(2 * DEFAULT.open_ms) == 2
    breaker.succeeded(0, probe=2)
    assert breaker.state is State.HALF_OPEN


def test_a_probe_of_an_earlier_time_says_nothing_about_the_next():
    breaker = half_open()
    assert breaker.enter(DEFAULT.open_ms) == 1
    breaker.failed(DEFAULT.open_ms, probe=1)
    assert [breaker.enter(2 * DEFAULT.open_ms) for _ in range(DEFAULT.probes)] == [2] * DEFAULT.probes
    for ended in (partial(breaker.succeeded, 0), breaker.released):
        ended(probe=1)
        assert breaker.retry_after_ms(2 * DEFAULT.open_ms) is not None, "its place was not one of these"
    breaker.failed(2 * DEFAULT.open_ms, probe=1)
    assert breaker.state is State.HALF_OPEN


# --- whatever happens ---------------------------------------------------------------------------------------------------

policies = st.builds(
    Policy,
    failures_max=st.integers(1, 4),
    open_ms=st.integers(1, 50),
    probes=st.integers(1, 3),
    rate_calls_min=st.integers(1, 6),
    rate_window_ms=st.integers(1, 100),
)
happenings = st.lists(
    st.tuples(st.just("call"), st.just(0))
    | st.tuples(st.just("wait"), st.integers(1, 60))
    | st.tuples(st.sampled_from(["succeed", "fail", "trip", "release"]), st.integers(0, 9)),
    max_size=60,
)


class World:
    """A node's use of one breaker: calls pass when they may, and end one way or another."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.breaker = Breaker(policy)
        self.now_ms = 0
        self.under_way: list[int] = []  # of which half-open time each is a probe, 0 for none
        self.time = 0  # half-open times so far

    def play(self, what: str, argument: int) -> None:
        if what == "wait":
            self.now_ms += argument
        elif what == "call":
            self.call()
        elif self.under_way:
            self.end(what, self.under_way.pop(argument % len(self.under_way)))

    def call(self) -> None:
        if self.breaker.retry_after_ms(self.now_ms) is not None:
            return
        was = self.breaker.state
        probe = self.breaker.enter(self.now_ms)
        self.time += was is State.OPEN
        assert probe == (self.time if self.breaker.state is State.HALF_OPEN else 0)
        self.under_way.append(probe)

    def end(self, what: str, probe: int) -> None:
        match what:
            case "succeed":
                self.breaker.succeeded(self.now_ms, probe=probe)
            case "release":
                self.breaker.released(probe=probe)
            case _:
                self.breaker.failed(self.now_ms, probe=probe, trips=what == "trip")

    @property
    def probes_under_way(self) -> int:
        return self.under_way.count(self.time)


@given(policies, happenings)
def test_probes_under_way_are_never_more_than_the_policy_allows(policy, sequence):
    world = World(policy)
    for what, argument in sequence:
        world.play(what, argument)
        if world.breaker.state is State.HALF_OPEN:
            assert world.probes_under_way <= policy.probes


@given(policies, happenings)
def test_it_is_never_stuck(policy, sequence):
    world = World(policy)
    for what, argument in sequence:
        world.play(what, argument)
        wait = world.breaker.retry_after_ms(world.now_ms)
        assert wait is None or wait > 0
    while world.under_way:  # every call ends at its deadline, if only as cancelled
        world.end("release", world.under_way.pop())
    world.now_ms += policy.open_ms
    for _ in range(policy.probes):
        assert world.breaker.retry_after_ms(world.now_ms) is None
        world.call()
        world.end("succeed", world.under_way.pop())
    assert world.breaker.state is State.CLOSED


@given(policies, happenings)
def test_an_open_breaker_lets_nothing_pass_before_its_time(policy, sequence):
    world = World(policy)
    opened_at = 0
    for what, argument in sequence:
        was = world.breaker.state
        world.play(what, argument)
        if world.breaker.state is State.OPEN:
            opened_at = opened_at if was is State.OPEN else world.now_ms
            wait = world.breaker.retry_after_ms(world.now_ms)
            assert (0 if wait is None else wait) in range(opened_at + policy.open_ms - world.now_ms, policy.open_ms + 1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"failures_max": 0},
        {"open_ms": 0},
        {"probes": 0},
        {"probes": -1},
        {"rate_calls_min": 0},
        {"rate_window_ms": 0},
        {"rate_max": 0},
        {"rate_max": 1.1},
        {"rate_max": math.nan},
    ],
)
def test_a_policy_that_could_never_open_or_recover_is_refused(wrong):
    with pytest.raises(ValueError, match=r"at least 1|at most 1"):
        Policy(**wrong)
    with pytest.raises(msgspec.ValidationError, match=r"at least 1|at most 1"):
        msgspec.convert(wrong, Policy)


def test_after_a_success_exactly_failures_max_failures_open_it():
    breaker = Breaker(DEFAULT)
    breaker.succeeded(0, probe=0)
    for _ in range(DEFAULT.failures_max):
        assert breaker.state is State.CLOSED
        breaker.failed(0, probe=0)
    assert breaker.state is State.OPEN


def test_a_call_waits_a_second_while_the_places_for_probes_are_taken_and_a_released_probe_gives_back_one():
    policy = Policy(probes=3)
    breaker = half_open(policy)
    probes = [breaker.enter(policy.open_ms) for _ in range(2)]
    assert breaker.retry_after_ms(policy.open_ms) == 1_000
    breaker.released(probe=probes[0])
    assert breaker.retry_after_ms(policy.open_ms) is None
    breaker.enter(policy.open_ms)
    assert breaker.retry_after_ms(policy.open_ms) == 1_000
