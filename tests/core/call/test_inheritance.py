"""What a call passes on: its time but for a margin, and no tool that it was not granted."""

from __future__ import annotations

import pytest

from comity.core.call.inheritance import MARGIN_MS_MIN, Inheritance, ToolRights

OWN = Inheritance(margin=0.1)
CHAIN = Inheritance(tool_rights=ToolRights.CHAIN)
ANY = frozenset({"*"})


@pytest.mark.parametrize("margin", [0, 0.0, 0.05, 0.999])
def test_a_margin_is_a_share_of_the_time(margin):
    assert Inheritance.of(tool_rights="own", margin=margin) == Inheritance(margin=margin)


@pytest.mark.parametrize("margin", [-0.001, 1, 1.5, True, None, "0.1", float("nan")])
def test_a_margin_that_is_no_share_is_refused(margin):
    with pytest.raises(ValueError, match="child_margin must be a number from 0 to below 1"):
        Inheritance.of(tool_rights="own", margin=margin)


def test_rights_of_an_unknown_kind_are_refused():
    assert Inheritance.of(tool_rights="chain", margin=0).is_chained
    assert not Inheritance.of(tool_rights="own", margin=0).is_chained
    with pytest.raises(ValueError, match="tool_rights must be one of own, chain"):
        Inheritance.of(tool_rights="all", margin=0)


@pytest.mark.parametrize(
    ("left_ms", "kept_ms"),
    [
        (-1, 0),
        (0, 0),
        (1, 0),
        (2, 1),
        (99, 49),
        (100, MARGIN_MS_MIN),
        (510, 51),
        (1_000, 100),
    ],
)
def test_a_call_keeps_its_share_at_least_a_moment_and_at_most_half(left_ms, kept_ms):
    assert OWN.margin_ms(left_ms) == kept_ms
    assert Inheritance(margin=0).margin_ms(left_ms) == 0


@pytest.mark.parametrize(
    ("asked", "has_own_time", "deadline_at"),
    [
        (1_500, True, 1_500),  # fits into its caller's time
        (1_950, True, 1_950),
        (2_000, True, 1_900),  # all of its caller's time: the margin is kept
        (2_500, True, 1_900),
        (1_950, False, 1_900),
        (1_500, False, 1_500),
    ],
)
def test_only_a_time_of_its_own_that_fits_may_use_up_the_margin(asked, has_own_time, deadline_at):
    assert OWN.deadline_at(asked, 2_000, 1_000, has_own_time) == deadline_at


@pytest.mark.parametrize(
    ("rules", "granted", "profile", "named", "held"),
    [
        (OWN, None, frozenset(), None, None),
        (OWN, None, frozenset(), ("b", "a"), ("a", "b")),
        (OWN, ("a",), frozenset({"b"}), None, ("a",)),
        (OWN, ("a",), ANY, ("a", "b"), ("a",)),
        (OWN, (), ANY, ("a",), ()),
        (OWN, None, ANY, (), ()),
        (CHAIN, None, ANY, None, None),
        (CHAIN, None, frozenset({"a"}), None, ("a",)),
        (CHAIN, ("a", "b"), frozenset({"b"}), None, ("b",)),
        (CHAIN, ("a", "b"), frozenset({"b"}), ("a",), ()),
        (CHAIN, None, frozenset(), ("a",), ()),
    ],
)
def test_a_grant_only_shrinks_by_names_and_under_chain_by_profiles(rules, granted, profile, named, held):
    assert rules.tools(granted, profile, named) == held


@pytest.mark.parametrize("has_own_time", [False, True])
def test_a_call_without_a_time_of_its_own_ends_before_the_margin_of_its_caller_begins(has_own_time):
    for latest in (1_000, 1_001, 1_080, 1_100, 1_101, 2_000, 9_999):
        for asked in range(1_000, 10_100, 7):
            margin_ms = 0 if has_own_time and asked < latest else OWN.margin_ms(latest - 1_000)
            assert OWN.deadline_at(asked, latest, 1_000, has_own_time) == min(asked, latest - margin_ms)
