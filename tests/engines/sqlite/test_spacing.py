"""The pause between commits: half the last commit at most, and with several users only where a commit serves many."""

from __future__ import annotations

import pytest

from comity.engines.sqlite.spacing import CALLERS_MANY, COMMITS_COMPARED, GATHER_S, Spacing

MS = 0.001


def after(*took_ms: float, served: int = CALLERS_MANY, has_left: bool = False) -> Spacing:
    """Return the spacing after commits that took so long, the last of which began at 1 s."""
    spacing = Spacing()
    for took in took_ms:
        spacing.begin(1.0, served, has_left=has_left)
        spacing.end(1.0 + took * MS)
    return spacing


@pytest.mark.parametrize(
    ("took_ms", "later_ms", "delay_ms"),
    [
        (4, 0, 2),  # half of what it took
        (4, 1, 1),
        (4, 2, 0),
        (4, 9, 0),
        (100, 0, GATHER_S / MS),  # and no more than records are gathered
    ],
)
@pytest.mark.parametrize("served", [0, CALLERS_MANY])
@pytest.mark.parametrize("has_left", [False, True])
def test_a_commit_of_one_user_waits_for_half_of_what_the_last_one_took(took_ms, later_ms, delay_ms, served, has_left):
    spacing = after(took_ms, served=served, has_left=has_left)
    found = spacing.delay_s(1.0 + (took_ms + later_ms) * MS, is_shared=False)
    assert found == pytest.approx(delay_ms * MS)


@pytest.mark.parametrize(
    ("served", "has_left", "delay_ms"),
    [(CALLERS_MANY, False, 1), (CALLERS_MANY + 1, False, 1), (CALLERS_MANY - 1, False, 0), (CALLERS_MANY, True, 0)],
)
def test_with_several_users_the_shortest_commit_counts_and_only_for_many_callers(served, has_left, delay_ms):
    spacing = after(2, 8, served=served, has_left=has_left)
    assert spacing.delay_s(1.008, is_shared=True) == pytest.approx(delay_ms * MS)
    assert spacing.delay_s(0.998, is_shared=True) == pytest.approx((10 + delay_ms) * MS)  # until the last one has ended
    assert spacing.served == served


def test_a_short_commit_is_forgotten_after_so_many_others():
    kept = after(2, *[8] * (COMMITS_COMPARED - 1))
    assert kept.delay_s(1.008, is_shared=True) == pytest.approx(1 * MS)
    gone = after(2, *[8] * COMMITS_COMPARED)
    assert gone.delay_s(1.008, is_shared=True) == pytest.approx(4 * MS)


def test_the_first_commit_waits_for_nothing():
    assert Spacing().delay_s(0.0, is_shared=False) == 0.0
    assert Spacing().delay_s(0.0, is_shared=True) == 0.0
