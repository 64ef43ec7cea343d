"""Leases: one holder at a time by the service's clock, and tokens that never go back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.core.cluster.lease import TRANSITIONS, Event, Grant, State, acquire, advance, release, renew

LEASE_MS = 100
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("acquire", "renew", "release", "wait")), st.sampled_from(("n1", "n2", "n3")), st.integers(0, 120)
    ),
    max_size=60,
)


@given(STEPS)
def test_whatever_nodes_do_one_holds_at_a_time_and_a_new_hold_has_a_greater_token_than_any_before(
    steps: list[tuple[str, str, int]],
) -> None:
    held: Grant | None = None
    now_ms = 0
    given_out: dict[int, str] = {}
    believed: dict[str, Grant] = {}
    for what, node, wait_ms in steps:
        now_ms += wait_ms
        if what == "acquire":
            before = held
            held = acquire(held, node, now_ms=now_ms, lease_ms=LEASE_MS)
            was_free = before is None or not before.holder or before.expires_at <= now_ms
            if was_free:
                assert held.holder == node
                assert all(held.token > token for token in given_out)
            else:
                assert before is not None
                assert (held.holder, held.token) == (before.holder, before.token)
            assert given_out.setdefault(held.token, held.holder) == held.holder
            if held.holder == node:
                believed[node] = held
                assert held.expires_at == now_ms + LEASE_MS
        elif what == "renew" and node in believed:
            mine = believed[node]
            renewed = renew(held, node, mine.token, now_ms=now_ms, lease_ms=LEASE_MS)
            is_still_mine = held is not None and held.holder == node and held.token == mine.token and held.expires_at > now_ms
            assert (renewed is not None) == is_still_mine
            if renewed is not None:
                held = believed[node] = renewed
                assert held.expires_at == now_ms + LEASE_MS
        elif what == "release" and node in believed:
            held = release(held, node, believed[node].token)
        assert held is None or held.token == max(given_out)


def test_only_the_grant_that_is_given_back_becomes_free() -> None:
    assert release(Grant("n1", 3, 500), "n1", 3) == Grant("", 3, 0)
    assert release(Grant("n1", 3, 500), "n1", 2) == Grant("n1", 3, 500)
    assert release(Grant("n1", 3, 500), "n2", 3) == Grant("n1", 3, 500)
    assert release(None, "n1", 1) is None


def test_a_lease_ends_at_its_time_and_not_after() -> None:
    held = Grant("n1", 1, 500)
    assert acquire(held, "n2", now_ms=499, lease_ms=LEASE_MS) is held
    assert acquire(held, "n2", now_ms=500, lease_ms=LEASE_MS) == Grant("n2", 2, 600)
    assert renew(held, "n1", 1, now_ms=499, lease_ms=LEASE_MS) == Grant("n1", 1, 599)
    assert renew(held, "n1", 1, now_ms=500, lease_ms=LEASE_MS) is None


TABLE: dict[tuple[str, str], str] = {
    ("unknown", "ask"): "asking",
    ("asking", "granted"): "held",
    ("asking", "denied"): "elsewhere",
    ("asking", "failed"): "unknown",
    ("held", "renewed"): "held",
    ("held", "lost"): "unknown",
    ("held", "released"): "unknown",
    ("elsewhere", "ask"): "asking",
    ("elsewhere", "lost"): "unknown",
}


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("event", list(Event))
def test_a_hold_moves_as_the_table_says_and_ignores_everything_else(state: State, event: Event) -> None:
    expected: Any = TABLE.get((state, event))
    assert advance(state, event) == expected
    assert set(TRANSITIONS) == set(State)
