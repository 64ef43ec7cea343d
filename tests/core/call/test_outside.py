"""A call that crosses nodes: it stands where its token says, with no more than its token leaves it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from comity.core.access.claims import Claims, Left, Standing
from comity.core.call.limits import CHAIN_MAX, Limits
from comity.core.call.outside import Outside, agent_of, outside_of, standing_of
from comity.core.envelope.envelope import Request
from comity.errors import RefusedError

HERE = Request(
    "r", "FAR", "DO", "u", Limits(depth_max=5, calls_max=9), 5_000, source="ORC", chain=("ORC",), parent_id="p", root_id="p"
)
LEFT = Limits(depth_max=3, calls_max=7, fan_out_max=2, tokens_max=50)


def test_a_call_from_outside_has_its_chain_and_the_tighter_of_both_limits():
    outside = Outside(("ORC::far", "CST::far"), Limits(depth_max=2, calls_max=20), 4_000)
    assert outside.source == "CST::far"
    applied = outside.applied(HERE)
    assert (applied.source, applied.chain) == ("CST::far", ("ORC::far", "CST::far"))
    assert (applied.limits.depth_max, applied.limits.calls_max, applied.deadline_at) == (2, 9, 4_000)
    assert replace(outside, deadline_at=6_000).applied(HERE).deadline_at == 5_000


def test_agents_of_this_node_stand_in_a_chain_under_their_plain_names():
    left = Left(deadline=5_000, calls=3, depth=1, fan_out=2)
    claims = Claims(
        iss="far",
        aud="here",
        sub="agent:CST",
        jti="j",
        iat=0,
        nbf=0,
        exp=9,
        cty=Standing(chain=("A::here", "CST::far"), left=left),
    )
    outside = outside_of(claims, "here", now_ms=1_000)
    assert (outside.chain, outside.deadline_at) == (("A", "CST::far"), 5_000)
    assert (outside.limits.depth_max, outside.limits.timeout_ms, outside.limits.calls_max) == (3, 4_000, 3)
    assert (agent_of("CST::far"), agent_of("A"), agent_of("A/k::far")) == ("CST", "A", "A/k")


@pytest.mark.parametrize(
    ("chain", "stands", "depth"),
    [
        (("ORC",), ("ORC::here",), 3),  # an agent of this node calls
        (("X::far", "ORC"), ("X::far", "ORC::here"), 3),
        ((), ("FAR::here",), 2),  # a user calls: the agent that stands for the other node is the caller
        (("X::far",), ("X::far", "FAR::here"), 2),
    ],
)
def test_a_call_to_another_node_stands_below_the_agent_of_this_node_that_makes_it(chain, stands, depth):
    standing = standing_of(replace(HERE, chain=chain), LEFT, "here", outgoing_id="out")
    assert (standing.chain, standing.req) == (stands, "out")
    assert standing.left == Left(deadline=5_000, calls=7, depth=depth, fan_out=2, tokens=50)


def test_no_call_leaves_without_a_hop_left_or_with_too_long_a_chain():
    assert standing_of(replace(HERE, chain=()), replace(LEFT, depth_max=1), "here", outgoing_id="").left.depth == 0
    assert len(standing_of(replace(HERE, chain=("A",) * CHAIN_MAX), LEFT, "here", outgoing_id="").chain) == CHAIN_MAX
    for request, left in (
        (replace(HERE, chain=()), replace(LEFT, depth_max=0)),
        (replace(HERE, chain=("A",) * (CHAIN_MAX + 1)), LEFT),
    ):
        with pytest.raises(RefusedError) as caught:
            standing_of(request, left, "here", outgoing_id="")
        assert caught.value.code == "LIMIT_DEPTH_EXCEEDED"
