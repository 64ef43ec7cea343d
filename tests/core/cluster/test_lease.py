"""Leases: one holder at a time by the service's clock, and tokens that never go back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.core.cluster.lease import TRANSITIONS, Event, Lease, LeaseTable, State, advance

LEASE_MS = 100
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("acquire", "keep", "release", "bury")),
        st.sampled_from(("n1", "n2", "n3")),
        st.sampled_from(("A", "B")),
        st.integers(0, 120),
    ),
    max_size=60,
)


@given(STEPS)
def test_whatever_nodes_do_one_holds_at_a_time_and_a_new_hold_has_a_greater_token_than_any_before(
    steps: list[tuple[str, str, str, int]],
) -> None:
    table, now_ms = LeaseTable(LEASE_MS), 0
    given_out: dict[str, dict[int, str]] = {"A": {}, "B": {}}
    until: dict[str, int] = {}
    believed: dict[tuple[str, str], Lease] = {}
    for what, node, address, wait_ms in steps:
        now_ms += wait_ms
        before = table.find(address, now_ms=now_ms)
        assert before is None or (until[before.holder] > now_ms and before.left_ms == until[before.holder] - now_ms)
        if what == "acquire":
            until.setdefault(node, now_ms + LEASE_MS)
            lease = table.acquire(address, node, now_ms=now_ms)
            assert (lease is None) == (until[node] <= now_ms)
            if lease is not None:
                assert lease.holder == (node if before is None else before.holder)
                assert before is not None or all(lease.token > token for token in given_out[address])
                assert before is None or lease.token == before.token
                assert given_out[address].setdefault(lease.token, lease.holder) == lease.holder
                if lease.holder == node:
                    believed[node, address] = lease
        elif what == "keep":
            was_over = until.get(node, now_ms + 1) <= now_ms
            assert table.keep(node, now_ms=now_ms) == (None if was_over else LEASE_MS)
            until[node] = now_ms + LEASE_MS
            held = [table.find(one, now_ms=now_ms) for one in ("A", "B")]
            assert not was_over or all(one is None or one.holder != node for one in held)
        elif what == "release" and (node, address) in believed:
            mine = believed[node, address]
            table.release(mine)
            is_mine = before is not None and (before.holder, before.token) == (node, mine.token)
            assert table.find(address, now_ms=now_ms) == (None if is_mine else before)
        elif what == "bury":
            table.bury(node, now_ms=now_ms)
            until[node] = now_ms


def test_a_node_is_alive_until_its_time_is_over_and_not_after() -> None:
    table = LeaseTable(LEASE_MS)
    assert table.keep("n1", now_ms=0) == LEASE_MS
    held = table.acquire("A", "n1", now_ms=0)
    assert held == Lease("A", "n1", 1, LEASE_MS)
    assert table.acquire("A", "n2", now_ms=LEASE_MS - 1) == Lease("A", "n1", 1, 1)
    assert table.acquire("A", "n1", now_ms=LEASE_MS) is None
    assert table.acquire("A", "n2", now_ms=LEASE_MS) == Lease("A", "n2", 2, LEASE_MS - 1)


def test_only_the_lease_that_holds_an_address_frees_it_and_its_token_is_never_given_again() -> None:
    table = LeaseTable(LEASE_MS)
    held = table.acquire("A", "n1", now_ms=0)
    assert held is not None
    for other in (Lease("A", "n2", 1, 1), Lease("A", "n1", 2, 1), Lease("B", "n1", 1, 1)):
        table.release(other)
        assert table.find("A", now_ms=0) == held
    table.release(held)
    assert table.find("A", now_ms=0) is None
    assert table.acquire("A", "n2", now_ms=0) == Lease("A", "n2", 2, LEASE_MS)
    table.expire("A")
    table.expire("never held")
    assert table.acquire("A", "n1", now_ms=0) == Lease("A", "n1", 3, LEASE_MS)


def test_a_node_whose_time_was_over_begins_anew_without_what_it_held() -> None:
    table = LeaseTable(LEASE_MS)
    table.acquire("A", "n1", now_ms=0)
    assert table.keep("n1", now_ms=LEASE_MS - 1) == LEASE_MS
    table.acquire("B", "n2", now_ms=LEASE_MS)
    assert table.keep("n1", now_ms=2 * LEASE_MS - 1) is None
    assert table.find("A", now_ms=2 * LEASE_MS - 1) is None
    assert table.find("B", now_ms=2 * LEASE_MS - 1) == Lease("B", "n2", 1, 1)
    table.bury("n2", now_ms=2 * LEASE_MS - 1)
    assert table.find("B", now_ms=2 * LEASE_MS - 1) is None


TABLE: dict[tuple[str, str], str] = {
    ("unknown", "ask"): "asking",
    ("asking", "granted"): "held",
    ("asking", "denied"): "elsewhere",
    ("asking", "failed"): "unknown",
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
