"""A token id belongs to the first request it was used for, until it expires."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from comity.core.access.replay import Replays


def test_the_first_request_may_be_repeated_and_no_other_be_made():
    used = Replays()
    assert used.bind("n", "t", "r1", 10, now_s=0)
    assert used.bind("n", "t", "r1", 10, now_s=9)
    assert not used.bind("n", "t", "r2", 10, now_s=9)
    assert used.bind("other", "t", "r2", 10, now_s=9)


def test_a_full_table_refuses_what_it_could_not_remember_and_forgets_what_expired():
    used = Replays(most=1)
    assert used.bind("n", "a", "r", 5, now_s=0)
    assert not used.bind("n", "b", "r", 9, now_s=1)
    assert used.bind("n", "b", "r", 9, now_s=5)
    assert len(used) == 1


def test_the_first_to_expire_is_forgotten_whatever_the_order_of_use():
    used = Replays()
    for token, expires_s in (("a", 9), ("b", 3), ("c", 6)):
        assert used.bind("n", token, "r", expires_s, now_s=0)
    assert used.entries() == [("n", "b", "r", 3), ("n", "c", "r", 6), ("n", "a", "r", 9)]
    assert used.bind("n", "d", "r", 9, now_s=6)
    assert [used.bound("n", token) for token in "abcd"] == ["r", None, None, "r"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.integers(0, 20)), max_size=30))
def test_no_token_serves_two_requests_before_it_expires(uses):
    used, first, now_s = Replays(), {}, 0
    for token, request, wait in uses:
        now_s += wait
        if token in first and first[token][1] <= now_s:
            del first[token]
        allowed = used.bind("n", token, request, now_s + 10, now_s=now_s)
        assert allowed == (first.setdefault(token, (request, now_s + 10))[0] == request)
