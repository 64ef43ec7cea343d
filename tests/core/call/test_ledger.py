"""Budgets: whatever a tree does, nobody in it spends more than everybody above allowed."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.core.call.ledger import FIRST_SHARE, Account, Loan
from comity.core.call.limits import Limits

small = st.integers(0, 8)
some_limits = st.builds(Limits, calls_max=small, tokens_max=st.none() | small)
# Each step picks an account that exists: narrow it, make a call with it, or use tokens.
steps = st.lists(
    st.tuples(st.integers(0, 20), some_limits | st.just("call") | st.integers(0, 5)),
    max_size=40,
)


def lineage(account: Account | None) -> list[Account]:
    return [] if account is None else [account, *lineage(account.parent)]


def play(root: Account, sequence) -> list[Account]:
    """Spend as a node does: a call only while one is left, tokens as they come."""
    accounts = [root]
    for pick, step in sequence:
        account = accounts[pick % len(accounts)]
        if isinstance(step, Limits):
            accounts.append(account.narrowed(step))
        elif step == "call":
            if account.calls_left() >= 1:
                account.spend_call()
        else:
            account.spend_tokens(step)
    return accounts


@given(some_limits, steps)
def test_no_account_makes_more_calls_than_it_and_everybody_above_it_had(limits, sequence):
    for account in play(Account(limits), sequence):
        assert account.calls_used <= account.limits.calls_max
        assert account.calls_left() == min(one.limits.calls_max - one.calls_used for one in lineage(account)) >= 0


@given(some_limits, steps)
def test_what_is_spent_below_is_spent_above(limits, sequence):
    root = Account(limits)
    accounts = play(root, sequence)
    spent = sum(type(step) is int and step for _, step in sequence)
    assert root.tokens_used == spent
    for account in {one for one in accounts if one.parent is not None}:
        assert account.parent is not None
        assert account.calls_used <= account.parent.calls_used
        assert account.tokens_used <= account.parent.tokens_used


@given(some_limits, steps)
def test_tokens_left_are_the_least_that_anybody_above_has_left_and_never_negative(limits, sequence):
    for account in play(Account(limits), sequence):
        bounded = [one for one in lineage(account) if one.limits.tokens_max is not None]
        expected = min((max(one.limits.tokens_max - one.tokens_used, 0) for one in bounded), default=None)
        assert account.tokens_left() == expected


@given(some_limits, steps, some_limits)
def test_a_narrowed_account_never_has_more_left_than_its_caller_or_than_it_asked_for(limits, sequence, wanted):
    for account in play(Account(limits), sequence):
        below = account.narrowed(wanted)
        assert below.calls_left() == min(account.calls_left(), wanted.calls_max)
        assert below.tokens_left() == min(
            (t for t in (account.tokens_left(), wanted.tokens_max) if t is not None), default=None
        )


@pytest.mark.parametrize("tightest", range(3))
def test_the_tightest_account_of_the_whole_way_up_limits_calls_and_tokens(tightest):
    limits = [Limits(calls_max=2 if at == tightest else 9, tokens_max=3 if at == tightest else 9) for at in range(3)]
    root = Account(limits[0])
    lowest = Account(limits[2], Account(limits[1], root))
    assert lowest.left() == (2, 3)
    lowest.spend_call()
    assert lowest.spend_tokens(1)
    assert [(one.calls_used, one.tokens_used) for one in lineage(lowest)] == [(1, 1)] * 3
    lowest.give_back(1, 1)
    assert [(one.calls_used, one.tokens_used) for one in lineage(lowest)] == [(0, 0)] * 3


@pytest.mark.parametrize("tokens_max", [None, 0, 5])
@pytest.mark.parametrize("above", [None, Limits(calls_max=3), Limits(calls_max=3, tokens_max=4)])
def test_calls_and_tokens_left_are_the_same_asked_at_once_or_one_by_one(tokens_max, above):
    account = Account(Limits(calls_max=7, tokens_max=tokens_max), Account(above) if above else None)
    assert account.left() == (account.calls_left(), account.tokens_left())


@pytest.mark.parametrize("tightest", range(4))
@pytest.mark.parametrize("limited", [*range(4), None])
def test_what_is_left_counts_every_account_above_however_it_is_asked_for(tightest, limited):
    account: Account | None = None
    for number in range(4):
        limits = Limits(calls_max=2 if number == tightest else 9, tokens_max=5 if number == limited else None)
        account = Account(limits, account)
        left = account.left()
        assert left == (account.calls_left(), account.tokens_left())
        assert left == (2 if number >= tightest else 9, 5 if limited is not None and number >= limited else None)


def test_an_account_is_opened_only_where_the_budget_shrinks():
    root = Account(Limits(calls_max=10, tokens_max=100))
    assert root.narrowed(Limits(calls_max=10, tokens_max=100)) is root
    assert root.narrowed(Limits(calls_max=1_000, tokens_max=None)) is root
    assert root.narrowed(Limits(calls_max=9)) is not root
    assert root.narrowed(Limits(calls_max=10, tokens_max=99)) is not root
    assert Account(Limits()).narrowed(Limits(tokens_max=5)).tokens_left() == 5


def test_siblings_share_what_their_root_had():
    root = Account(Limits(calls_max=3))
    one, other = root.narrowed(Limits(calls_max=2)), root.narrowed(Limits(calls_max=2))
    one.spend_call()
    one.spend_call()
    assert (one.calls_left(), other.calls_left()) == (0, 1)
    other.spend_call()
    assert (root.calls_left(), other.calls_left()) == (0, 0)


def test_tokens_over_the_budget_are_recorded_and_reported():
    root = Account(Limits(tokens_max=10))
    assert root.spend_tokens(10)
    assert root.tokens_left() == 0
    assert not root.spend_tokens(1)
    assert root.tokens_used == 11
    assert root.tokens_left() == 0
    assert root.spend_tokens(0)


def test_tokens_over_the_budget_of_somebody_above_are_reported_too():
    root = Account(Limits(tokens_max=5))
    below = Account(Limits(tokens_max=100), root)
    assert not below.spend_tokens(6)
    assert (root.tokens_used, below.tokens_used, below.tokens_left()) == (6, 6, 0)


@pytest.mark.parametrize("tokens", [1, 10**9])
def test_without_a_limit_any_number_of_tokens_is_there_and_counted(tokens):
    account = Account(Limits(tokens_max=None))
    assert account.spend_tokens(tokens)
    assert (account.tokens_used, account.tokens_left()) == (tokens, None)


@given(
    st.integers(0, 200),
    st.one_of(st.none(), st.integers(0, 500)),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), max_size=60),
)
def test_what_is_lent_spent_and_given_back_never_adds_up_to_more_than_there_was(calls_max, tokens_max, steps):
    """Three borrowers that ask for more, spend what they have, and give back the rest."""
    lender = Account(Limits(calls_max=calls_max, tokens_max=tokens_max))
    loans: dict[int, Loan] = {}
    spent: Counter[int] = Counter()
    ended = 0
    for borrower, spends in steps:
        had = loans.get(borrower)
        loans[borrower] = lender.lend() if had is None else lender.lend(had)
        if had is not None:
            assert loans[borrower].calls >= had.calls
            assert (loans[borrower].tokens or 0) >= (had.tokens or 0)
        spent[borrower] = min(spent[borrower] + spends, loans[borrower].calls)
        if spends == 0 and had is not None:
            gone = loans.pop(borrower)
            lender.give_back(gone.calls - spent[borrower], gone.tokens or 0)
            ended += spent.pop(borrower)
        out = sum(loan.calls for loan in loans.values())
        assert lender.calls_left() == calls_max - ended - out >= 0
        if tokens_max is not None:
            assert lender.tokens_left() == tokens_max - sum(loan.tokens for loan in loans.values()) >= 0


def test_a_borrower_that_asks_again_and_again_gets_all_there_is():
    lender = Account(Limits(calls_max=100, tokens_max=1_000))
    loan = lender.lend()
    assert (loan.calls, loan.tokens, loan.tokens_most) == (100 // FIRST_SHARE, 1_000 // FIRST_SHARE, 1_000)
    for _ in range(12):
        loan = lender.lend(loan)
    assert (loan.calls, lender.calls_left()) == (100, 0)
    assert loan.of(Limits(calls_max=100, tokens_max=5)) == Limits(calls_max=100, tokens_max=5)
    assert loan.of(Limits(calls_max=500)).calls_max == 101


def test_what_is_charged_and_given_back_reaches_every_account_above():
    root = Account(Limits(calls_max=12, tokens_max=100))
    middle = root.narrowed(Limits(calls_max=9, tokens_max=50))
    lowest = middle.narrowed(Limits(calls_max=6, tokens_max=20))
    accounts = lineage(lowest)
    assert accounts == [lowest, middle, root]
    for _ in range(2):
        lowest.spend_call()
        lowest.spend_tokens(7)
    assert [(one.calls_used, one.tokens_used) for one in accounts] == [(2, 14)] * 3
    lowest.give_back(1, 5)
    assert [(one.calls_used, one.tokens_used) for one in accounts] == [(1, 9)] * 3


def test_a_borrower_gets_little_at_first_then_twice_as_much_and_at_most_half_of_what_is_left():
    lender = Account(Limits(calls_max=10, tokens_max=10))
    loans = [lender.lend()]
    for _ in range(6):
        loans.append(lender.lend(loans[-1]))
    assert [loan.calls for loan in loans] == [0, 1, 2, 4, 7, 9, 10]
    assert [loan.tokens for loan in loans] == [1, 2, 4, 7, 9, 10, 10]
    assert {loan.tokens_most for loan in loans} == {10}


def test_lending_calls_uses_no_tokens_where_tokens_have_no_limit():
    lender = Account(Limits(calls_max=32))
    assert lender.lend() == Loan(2, None, 0)
    assert (lender.calls_used, lender.tokens_used) == (2, 0)


def test_an_account_that_spent_more_calls_than_it_had_lends_none():
    lender = Account(Limits(calls_max=0), calls_used=1)
    assert lender.lend().calls == 0
    assert lender.calls_used == 1


def test_what_is_left_is_what_every_account_above_leaves():
    root = Account(Limits(calls_max=1))
    below = Account(Limits(calls_max=5), root)
    assert below.left() == (1, None)
    assert Account(Limits(calls_max=9), Account(Limits(tokens_max=3))).left() == (9, 3)


def test_an_account_is_within_its_limit_until_it_has_used_more_tokens_than_that():
    top = Account(Limits(tokens_max=1), tokens_used=9)  # its own is asked for elsewhere
    middle = Account(Limits(tokens_max=5), top, tokens_used=5)
    unlimited = Account(Limits(), middle, tokens_used=99)
    below = Account(Limits(tokens_max=2), unlimited, tokens_used=2)
    assert below.is_within(top)
    middle.tokens_used = 6
    assert not below.is_within(top)
    assert below.is_within(middle)
    below.tokens_used = 3
    assert not below.is_within(unlimited)
