"""What a token may say: times, kinds, and the standing of the calling agent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from comity.core.access.claims import (
    AGENT_LIFE_S_MAX,
    FORBIDDEN_HEADERS,
    SKEW_S,
    USER_LIFE_S_MAX,
    Claims,
    Kind,
    Left,
    Standing,
    check_audience,
    check_header,
    check_time,
    encode,
    read,
)
from comity.core.access.rights import Role
from comity.core.call.limits import CALLS_CEILING, CHAIN_MAX, FAN_OUT_CEILING, TIMEOUT_MS_CEILING, Limits
from comity.errors import RefusedError

LEFT = Left(deadline=60_000, calls=5, depth=2, fan_out=3, tokens=100)
AGENT = Claims(
    iss="n1", aud="n2", sub="agent:CST", jti="j", iat=0, nbf=0, exp=60, scope="call:ANL/*", uid="ann",
    cty=Standing(chain=("ORC::n1", "CST::n1"), left=LEFT),
)  # fmt: skip
USER = Claims(iss="n1", aud="n1", sub="user:ann", jti="j", iat=0, nbf=0, exp=60)
HEADER = {"alg": "EdDSA", "typ": str(Kind.AGENT), "kid": "k"}


def code_of(function, *args, **kwargs) -> str:
    with pytest.raises(RefusedError) as caught:
        function(*args, **kwargs)
    return caught.value.code


def test_what_is_written_is_what_is_read():
    assert read(encode(AGENT), Kind.AGENT) == AGENT
    assert read(encode(USER), Kind.USER) == USER


@pytest.mark.parametrize(
    "changed",
    [
        {"cty": None},
        {"uid": ""},
        {"cty": replace(AGENT.cty, chain=())},
        {"cty": replace(AGENT.cty, chain=("CST::n1", "ORC::n1"))},  # another agent is the last
        {"cty": replace(AGENT.cty, chain=("CST::n2",))},  # an agent of another node
        *({"cty": replace(AGENT.cty, left=replace(LEFT, **{name: -1}))} for name in LEFT.__struct_fields__),
        {"cty": replace(AGENT.cty, chain=(*("ORC::n1",) * CHAIN_MAX, "CST::n1"))},
        {"cty": replace(AGENT.cty, chain=("", "CST::n1"))},
        {"roles": (Role.VIEWER,)},  # roles are a user's
        {"exp": AGENT_LIFE_S_MAX + 1},
        {"exp": -1, "nbf": -2},  # before it was issued
        {"nbf": 61},
        {"sub": "user:CST"},
        {"sub": "agent:"},
        *({name: value} for name in ("iss", "aud", "jti", "tid") for value in ("", "a\nb")),
        {"uid": "a\nb"},
        {"sid": "a\nb"},
    ],
)
def test_an_agents_claims_that_are_not_sound_are_refused(changed):
    assert code_of(read, encode(replace(AGENT, **changed)), Kind.AGENT) == "IDENTITY_FORGED"


@pytest.mark.parametrize(
    "claims",
    [
        replace(AGENT, exp=AGENT_LIFE_S_MAX),
        replace(USER, exp=USER_LIFE_S_MAX),
        replace(USER, exp=0),
        replace(AGENT, nbf=AGENT.exp),
        replace(AGENT, sid="s1"),
        replace(AGENT, cty=replace(AGENT.cty, chain=(*("ORC::n1",) * (CHAIN_MAX - 1), "CST/key::n1"))),
        replace(AGENT, cty=replace(AGENT.cty, left=Left(deadline=0, calls=0, depth=0, fan_out=0, tokens=0))),
    ],
)
def test_claims_at_the_very_border_are_sound(claims):
    assert read(encode(claims), claims.kind) == claims


def test_a_users_token_lives_no_longer_than_a_users_token_may():
    assert code_of(read, encode(replace(USER, exp=USER_LIFE_S_MAX + 1)), Kind.USER) == "IDENTITY_FORGED"


def test_a_token_says_for_which_user_it_works():
    assert (AGENT.kind, AGENT.name, AGENT.user_id) == (Kind.AGENT, "CST", "ann")
    assert (USER.kind, USER.name, USER.user_id) == (Kind.USER, "ann", "ann")
    assert AGENT.cty.depth == 2


def test_a_token_for_another_node_is_refused_with_whose_it_is():
    check_audience(AGENT, "n2")
    with pytest.raises(RefusedError) as caught:
        check_audience(AGENT, "n1")
    assert caught.value.code == "IDENTITY_WRONG_AUDIENCE"
    assert caught.value.facts == {"user_id": "ann", "tenant_id": "default", "token_id": "j"}


def test_a_refusal_quotes_no_more_than_the_beginning_of_a_claim():
    with pytest.raises(RefusedError, match=f"cannot be about user:{'x' * 59}$"):
        read(encode(replace(AGENT, sub="user:" + "x" * 60)), Kind.AGENT)
    with pytest.raises(RefusedError, match=f"is for {'x' * 64}, not"):
        check_audience(replace(AGENT, aud="x" * 65), "n1")


def test_a_token_cannot_be_of_the_other_kind():
    assert code_of(read, encode(AGENT), Kind.USER) == "IDENTITY_FORGED"
    assert code_of(read, encode(USER), Kind.AGENT) == "IDENTITY_FORGED"


@pytest.mark.parametrize(
    "more",
    [*({name: "x"} for name in FORBIDDEN_HEADERS), {"alg": "none"}, {"alg": "HS256"}, {"typ": "JWT"}],
)
def test_a_header_that_chooses_its_own_key_or_algorithm_is_refused(more):
    assert code_of(check_header, HEADER | more, algorithm="EdDSA") == "IDENTITY_FORGED"


def test_expiry_has_no_grace_and_a_clock_ahead_has_a_little():
    assert code_of(check_time, USER, now_s=60) == "IDENTITY_EXPIRED"
    check_time(USER, now_s=59.9)
    later = replace(USER, nbf=100, iat=100, exp=200)
    check_time(later, now_s=100 - SKEW_S)
    for early in (later, replace(later, nbf=0), replace(later, iat=0)):
        assert code_of(check_time, early, now_s=99 - SKEW_S) == "IDENTITY_NOT_YET_VALID"


@given(st.binary(max_size=200) | st.text().map(str.encode), st.sampled_from(Kind))
def test_no_body_raises_anything_else(body, kind):
    try:
        read(body, kind)
    except RefusedError as error:
        assert error.code == "IDENTITY_FORGED"


COUNTS = st.integers(0, 10**6)
LEFTS = st.builds(Left, deadline=COUNTS, calls=COUNTS, depth=st.integers(0, 40), fan_out=COUNTS, tokens=st.none() | COUNTS)


@given(LEFTS, LEFTS, st.integers(0, 10), COUNTS)
def test_narrowing_what_is_left_never_widens_the_limits(one, other, depth, now_ms):
    limits = one.limits(now_ms=now_ms, depth=depth)
    narrowed = one.narrow(other).limits(now_ms=now_ms, depth=depth)
    assert limits.allows(narrowed)
    assert Limits().narrow(limits).timeout_ms <= max(one.deadline - now_ms, 0)


def test_what_is_left_becomes_limits_below_the_ceilings():
    limits = LEFT.limits(now_ms=10_000, depth=3)
    assert limits == Limits(depth_max=5, fan_out_max=3, timeout_ms=50_000, timeout_ms_max=50_000, calls_max=5, tokens_max=100)
    assert LEFT.limits(now_ms=60_001, depth=0).timeout_ms == 0
    most = Left(deadline=10**15, calls=10**9, depth=10**3, fan_out=10**9).limits(now_ms=0, depth=1)
    assert most == Limits(
        depth_max=CHAIN_MAX,
        fan_out_max=FAN_OUT_CEILING,
        timeout_ms=TIMEOUT_MS_CEILING,
        timeout_ms_max=TIMEOUT_MS_CEILING,
        calls_max=CALLS_CEILING,
    )


def test_narrowing_takes_the_smaller_of_every_field():
    wide = Left(deadline=9, calls=9, depth=9, fan_out=9)
    for name in LEFT.__struct_fields__:
        tight = replace(wide, **{name: 1})
        assert wide.narrow(tight) == tight.narrow(wide) == tight
    assert wide.narrow(None) is wide
