"""A user's plain call is read in a shorter way, which says what the long way says and takes nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from comity.core.agent.agent import Agent
from comity.core.agent.registry import Registry
from comity.core.call.inheritance import Inheritance
from comity.core.call.limits import Limits
from comity.core.envelope.envelope import Background
from comity.engines.clock import SystemIds
from comity.runtime.call.draft import Draft, Identity, Reader

PLAIN = Draft("ANL", "ANL_SUM", {"parts": [1.5, 2]}, "", "", None, "normal", None, None, "full")
ANN = Identity("ann", "default", "s1")
REQUEST_ID, TRACE_ID, NOW_MS = "r1", "0" * 15 + "1" + "2" * 16, 1_700_000_000_000


def reader(**declared: Any) -> Reader:
    """Return a reader to which the user is known, for an agent whose capability is prepared."""
    agent = Agent("ANL", aliases=("analyst",))

    @agent.capability("ANL_SUM", **declared)
    async def total(parts: list[float], scale: float = 1.0) -> float:
        return sum(parts) * scale

    agent.capabilities["ANL_SUM"].prepare()
    made = Reader(Registry([agent]), Limits(), SystemIds(), Inheritance.of(tool_rights="own", margin=0.05))
    for identity in (ANN, Identity("ann", "default", None)):
        made.read(PLAIN, identity, None, REQUEST_ID, NOW_MS, TRACE_ID)
    return made


@pytest.mark.parametrize("identity", [ANN, Identity("ann", "default", None)])
@pytest.mark.parametrize("target", ["ANL", "analyst", "ANL/key"])
@pytest.mark.parametrize("timeout_ms", [None, 1, 400_000])
def test_both_ways_make_the_same_request(identity: Identity, target: str, timeout_ms: int | None) -> None:
    made = reader(timeout_ms=timeout_ms)
    draft = replace(PLAIN, target=target)
    long = made.read(draft, identity, None, REQUEST_ID, NOW_MS, TRACE_ID)
    short = made.read_plain(draft, identity, REQUEST_ID, NOW_MS, TRACE_ID)
    assert short == long or (short is None and target not in made._addresses)


@pytest.mark.parametrize(
    "changes",
    [
        {"target": "NOBODY"},
        {"target": 1},
        {"capability": "ANL_OTHER"},
        {"capability": ["ANL_SUM"]},
        {"inputs": None},
        {"inputs": {}},
        {"inputs": [1.5]},
        {"inputs": {"parts": [float("nan")]}},
        {"inputs": {"parts": "all"}},
        {"objective": "add up"},
        {"message": "please"},
        {"timeout_ms": 5},
        {"priority": "high"},
        {"context": Background()},
        {"limits": Limits()},
        {"history": 3},
        {"tools": ()},
        {"correlation_id": "w1"},
        {"metadata": {}},
    ],
)
def test_a_call_that_says_more_goes_the_long_way(changes: dict[str, Any]) -> None:
    assert reader().read_plain(PLAIN, ANN, REQUEST_ID, NOW_MS, TRACE_ID) is not None
    assert reader().read_plain(replace(PLAIN, **changes), ANN, REQUEST_ID, NOW_MS, TRACE_ID) is None


@pytest.mark.parametrize(
    "identity",
    [
        Identity("bob", "default", "s1"),
        Identity(["ann"], "default", "s1"),
        Identity("ann", "default", "s1", "s0"),
        Identity("", "", ""),
    ],
)
def test_a_user_who_was_not_looked_at_goes_the_long_way(identity: Identity) -> None:
    assert reader().read_plain(PLAIN, identity, REQUEST_ID, NOW_MS, TRACE_ID) is None


def test_a_capability_with_limits_of_its_own_goes_the_long_way() -> None:
    made = reader(limits=Limits(calls_max=1))
    assert made.read_plain(PLAIN, ANN, REQUEST_ID, NOW_MS, TRACE_ID) is None
    assert made.read(PLAIN, ANN, None, REQUEST_ID, NOW_MS, TRACE_ID).request.limits.calls_max == 1
