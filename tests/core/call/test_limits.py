"""Limits: every bound is checked where it is set, and `narrow` only ever takes away."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import comity
from comity.core.access.claims import Kind
from comity.core.access.principal import Principal
from comity.core.access.scope import Scope
from comity.core.call import limits
from comity.core.call.limits import (
    CALLS_CEILING,
    CHAIN_MAX,
    CITED_CHARS_MAX,
    FAN_OUT_CEILING,
    REFUSAL_PAUSE_MS_MAX,
    TIMEOUT_MS_CEILING,
    Limits,
)
from comity.errors import RefusedError

CEILINGS: Final = {
    "depth_max": CHAIN_MAX,
    "fan_out_max": FAN_OUT_CEILING,
    "timeout_ms": TIMEOUT_MS_CEILING,
    "timeout_ms_max": TIMEOUT_MS_CEILING,
    "calls_max": CALLS_CEILING,
}
# Small ranges, so that equal fields and fields that pull in different directions are both common.
some_limits = st.builds(
    Limits,
    depth_max=st.integers(0, 6),
    fan_out_max=st.integers(0, 6),
    timeout_ms=st.integers(0, 6),
    timeout_ms_max=st.integers(0, 6),
    calls_max=st.integers(0, 6),
    tokens_max=st.none() | st.integers(0, 6),
)


def test_the_defaults_are_those_of_the_design():
    assert msgspec.structs.asdict(Limits()) == {
        "depth_max": 5,
        "fan_out_max": 10,
        "timeout_ms": 30_000,
        "timeout_ms_max": 300_000,
        "calls_max": 100,
        "tokens_max": None,
    }


@pytest.mark.parametrize("field", [*CEILINGS, "tokens_max"])
@pytest.mark.parametrize("value", [-1, 1.0, "1", True, [1]])
def test_a_value_that_is_no_whole_number_from_zero_is_refused_by_its_field(field, value):
    with pytest.raises(ValueError, match=rf"limits\.{field} must be a whole number"):
        Limits(**{field: value})


@pytest.mark.parametrize("field", CEILINGS)
def test_only_tokens_may_be_left_open(field):
    assert Limits(tokens_max=None).tokens_max is None
    with pytest.raises(ValueError, match=rf"limits\.{field}"):
        Limits(**{field: None})


@pytest.mark.parametrize(("field", "ceiling"), CEILINGS.items())
def test_a_ceiling_passes_and_one_more_is_refused(field, ceiling):
    assert getattr(Limits(**{field: ceiling}), field) == ceiling
    assert getattr(Limits(**{field: 0}), field) == 0
    with pytest.raises(ValueError, match=rf"limits\.{field} must be a whole number from 0 to {ceiling}, not {ceiling + 1}"):
        Limits(**{field: ceiling + 1})


def test_tokens_have_no_ceiling():
    assert Limits(tokens_max=10**12).tokens_max == 10**12


def test_limits_cannot_be_changed():
    with pytest.raises(AttributeError):
        Limits().depth_max = 9  # type: ignore[misc]


def test_limits_from_the_wire_are_checked_like_those_of_a_program():
    assert msgspec.json.decode(b'{"depth_max":2}', type=Limits) == Limits(depth_max=2)
    with pytest.raises(msgspec.ValidationError, match=r"limits\.fan_out_max"):
        msgspec.json.decode(b'{"fan_out_max":-1}', type=Limits)
    with pytest.raises(msgspec.ValidationError, match="depth"):
        msgspec.json.decode(b'{"depth":2}', type=Limits)


@given(some_limits, some_limits)
def test_narrow_takes_the_smaller_of_every_field(one, other):
    both = one.narrow(other)
    for field in CEILINGS:
        assert getattr(both, field) == min(getattr(one, field), getattr(other, field))
    tokens = [limit for limit in (one.tokens_max, other.tokens_max) if limit is not None]
    assert both.tokens_max == (min(tokens) if tokens else None)


@given(some_limits, some_limits, some_limits)
def test_the_order_of_narrowing_does_not_matter(one, other, third):
    assert one.narrow(other) == other.narrow(one)
    assert one.narrow(other).narrow(third) == one.narrow(other.narrow(third))
    assert one.narrow(other).narrow(other) == one.narrow(other)


@given(some_limits, some_limits)
def test_narrowed_limits_are_allowed_by_both(one, other):
    both = one.narrow(other)
    assert one.allows(both)
    assert other.allows(both)
    assert one.allows(one)


@given(some_limits, some_limits)
def test_limits_allow_only_what_is_no_wider_in_any_field(one, other):
    def is_wider(field: str) -> bool:
        mine, theirs = getattr(one, field), getattr(other, field)
        return (theirs is None and mine is not None) or (mine is not None and theirs is not None and theirs > mine)

    assert one.allows(other) == (not any(is_wider(field) for field in [*CEILINGS, "tokens_max"]))


def test_narrowing_by_nothing_changes_nothing():
    some = Limits(depth_max=1)
    assert some.narrow(None) is some
    assert some.narrow(some) is some


def test_every_bound_is_a_positive_number_that_says_its_unit():
    bounds = {name: value for name, value in vars(limits).items() if name.isupper()}
    assert len(bounds) > 15
    for name, value in bounds.items():
        assert type(value) is int
        assert value > 0
        assert name.endswith(("_MAX", "_CEILING")), name


def test_a_message_may_be_a_hundred_kibibytes_and_a_reply_one_mebibyte():
    assert (limits.MESSAGE_BYTES_MAX, limits.REPLY_BYTES_MAX, limits.NESTING_MAX) == (102_400, 1_048_576, 32)
    assert limits.REQUEST_BYTES_MAX >= limits.INPUTS_BYTES_MAX + limits.MESSAGE_BYTES_MAX


def test_a_refusal_is_kept_back_from_who_asked_more_often_than_a_whole_tree_may_call():
    limits = Limits(calls_max=5)
    assert [limits.pause_ms(asked) for asked in (1, 5, 6, 7, 8)] == [0, 0, 2, 4, 8]
    assert limits.pause_ms(15) == limits.pause_ms(10**9) == REFUSAL_PAUSE_MS_MAX


def test_a_message_cites_of_a_name_what_a_named_limit_allows():
    cut_by_number = re.compile(r"(Error|refused|Refused|Refusal|BadRequest)\(.*\[:[3-8]\d\]")
    lines = ((path, line) for path in Path(comity.__file__).parent.rglob("*.py") for line in path.read_text().splitlines())
    assert [(path.name, line) for path, line in lines if cut_by_number.search(line)] == []
    with pytest.raises(RefusedError) as raised:
        Principal(Kind.AGENT, "ann", "u", "t", frozenset(), Scope.of("call:ann/x")).check_call("x" * 100, "y" * 100)
    assert str(raised.value).endswith(f" {'x' * CITED_CHARS_MAX} {'y' * CITED_CHARS_MAX}")
