"""What a token may say: times, kinds, and the standing of the calling agent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from comity.core.access.claims import SKEW_S, Claims, Kind, Left, Standing, check_header, check_time, encode, read
from comity.core.call.limits import Limits
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
        {"cty": replace(AGENT.cty, left=replace(LEFT, calls=-1))},
        {"exp": 301},  # longer than an agent's token may live
        {"nbf": 61},
        {"sub": "user:CST"},
        {"sub": "agent:"},
        {"jti": ""},
        {"tid": "a\nb"},
    ],
)
def test_an_agents_claims_that_are_not_sound_are_refused(changed):
    assert code_of(read, encode(replace(AGENT, **changed)), Kind.AGENT) == "IDENTITY_FORGED"


def test_a_token_cannot_be_of_the_other_kind():
    assert code_of(read, encode(AGENT), Kind.USER) == "IDENTITY_FORGED"
    assert code_of(read, encode(USER), Kind.AGENT) == "IDENTITY_FORGED"


@pytest.mark.parametrize(
    "more",
    [{"jku": "x"}, {"jwk": {}}, {"x5u": "x"}, {"x5c": []}, {"crit": []}, {"alg": "none"}, {"alg": "HS256"}, {"typ": "JWT"}],
)
def test_a_header_that_chooses_its_own_key_or_algorithm_is_refused(more):
    assert code_of(check_header, HEADER | more, algorithm="EdDSA") == "IDENTITY_FORGED"


def test_expiry_has_no_grace_and_a_clock_ahead_has_a_little():
    assert code_of(check_time, USER, now_s=60) == "IDENTITY_EXPIRED"
    check_time(USER, now_s=59.9)
    later = replace(USER, nbf=100, iat=100, exp=200)
    check_time(later, now_s=100 - SKEW_S)
    assert code_of(check_time, later, now_s=99 - SKEW_S) == "IDENTITY_NOT_YET_VALID"


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
