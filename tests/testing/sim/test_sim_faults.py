"""Faults strike with a probability, where and when they may and as often as they may, and a schedule repeats them."""

from __future__ import annotations

import pytest

from comity.testing.sim.faults import Fault, Faults, Firing, Kind, parse_schedule, schedule


def hits(*plan, only=None, where="n1"):
    faults = Faults(1, plan, only)
    return [number for number in range(1, 1_001) if faults.strikes(Kind.NODE_CRASH, where, number / 1000) is not None]


def test_a_probability_is_about_kept():
    assert 60 < len(hits(Fault(kind=Kind.NODE_CRASH, probability=0.1))) < 140
    assert hits(Fault(kind=Kind.NODE_CRASH, probability=0.0)) == []
    assert len(hits(Fault(kind=Kind.NODE_CRASH, probability=1.0))) == 1_000


def test_a_count_is_never_exceeded():
    assert hits(Fault(kind=Kind.NODE_CRASH, probability=1.0, count=3)) == [1, 2, 3]


def test_a_pattern_says_where():
    fault = Fault(kind=Kind.NODE_CRASH, probability=1.0, where="n1*")
    assert hits(fault, where="n2") == []
    assert len(hits(fault, where="n12")) == 1_000


def test_a_window_says_when():
    assert hits(Fault(kind=Kind.NODE_CRASH, probability=1.0, from_ms=10, until_ms=13)) == [10, 11, 12]


def test_a_kind_that_is_not_planned_never_strikes():
    assert hits(Fault(kind=Kind.NODE_PAUSE, probability=1.0)) == []


def test_a_schedule_repeats_exactly_its_firings():
    fault = Fault(kind=Kind.NODE_CRASH, probability=0.1)
    first = hits(fault)
    only = [Firing(Kind.NODE_CRASH, number) for number in first[::2]]
    assert hits(fault, only=only) == first[::2]
    assert hits(fault, only=()) == []


def test_the_details_of_a_firing_do_not_depend_on_other_firings():
    def detail(only):
        faults = Faults(1, [Fault(kind=Kind.NODE_CRASH)], only)
        drawn = [faults.strikes(Kind.NODE_CRASH, "n1", 0) for _ in range(5)]
        return drawn[3].random()

    last = Firing(Kind.NODE_CRASH, 4)
    assert detail([last]) == detail([Firing(Kind.NODE_CRASH, 1), Firing(Kind.NODE_CRASH, 2), last])


def test_nothing_strikes_once_healed():
    faults = Faults(1, [Fault(kind=Kind.NODE_CRASH, probability=1.0)])
    faults.is_healed = True
    assert faults.strikes(Kind.NODE_CRASH, "n1", 0) is None
    assert faults.counts() == {}


def test_what_struck_is_counted():
    faults = Faults(1, [Fault(kind=Kind.NODE_CRASH, probability=1.0, count=2)])
    for _ in range(5):
        faults.strikes(Kind.NODE_CRASH, "n1", 0)
    assert faults.counts() == {Kind.NODE_CRASH: 2}


def test_a_seed_has_its_own_selection_of_faults():
    def selection(seed):
        faults = Faults(seed, [Fault(kind=kind) for kind in Kind], is_swarm=True)
        return tuple(kind for kind in Kind if faults.has(kind))

    assert selection(1) == selection(1)
    assert len({selection(seed) for seed in range(20)}) == 20


def test_a_schedule_survives_being_written_down():
    firings = (Firing(Kind.NODE_CRASH, 3), Firing(Kind.STORE_SLOW, 17))
    assert parse_schedule(schedule(firings)) == firings
    assert parse_schedule("none") == parse_schedule("") == ()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"kind": "NodeCrsh"}, "no fault 'NodeCrsh'; did you mean NodeCrash"),
        ({"probability": 1.5}, "between 0 and 1"),
        ({"count": 0}, "a count is at least 1"),
        ({"from_ms": 10, "until_ms": 10}, "from_ms 10 is not before until_ms 10"),
        ({"by": "steps"}, "by is 'time' or 'step', not 'steps'"),
    ],
)
def test_a_fault_that_could_never_strike_is_refused(wrong, told):
    with pytest.raises(ValueError, match=told):
        Fault(**({"kind": Kind.NODE_CRASH} | wrong))


def test_the_name_of_a_kind_does_for_the_kind():
    assert hits(Fault(kind="NodeCrash", probability=1.0)) == hits(Fault(kind=Kind.NODE_CRASH, probability=1.0)) != []


@pytest.mark.parametrize(("text", "told"), [("NodeCrsh:1", "did you mean NodeCrash"), ("NodeCrash", "such as NodeCrash:3")])
def test_a_schedule_that_nobody_wrote_is_refused(text, told):
    with pytest.raises(ValueError, match=told):
        parse_schedule(text)
