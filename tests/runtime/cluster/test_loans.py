"""Loans: which call borrows when, from whom, and what a loan that comes twice, late or for an ended call changes."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from comity.core.call.ledger import Account, Loan
from comity.core.call.limits import Limits
from comity.core.call.machine import State
from comity.core.cluster.messages import Borrow, Lend, Taken
from comity.runtime.call.way import Way
from comity.runtime.cluster.budgets import Loans, is_short


class World:
    """A node that serves the call `top` for n1, and has sent the call `top.1`, made by `top`, to n2."""

    def __init__(self, loan: Loan | None = None, *, calls: int = 8, tokens: int | None = None) -> None:
        self.told: list[tuple[str, Any]] = []
        self.limits = Limits(calls_max=calls, tokens_max=tokens)
        request = SimpleNamespace(request_id="top", deadline_at=60_000, limits=self.limits)
        account = Account(loan.of(self.limits) if loan is not None else self.limits)
        self.top = SimpleNamespace(request=request, state=State.RUNNING, account=account, way=Way(is_served=True, loan=loan))
        self.top.top = self.top
        self.sent = SimpleNamespace(
            request=SimpleNamespace(request_id="top.1"), state=State.SENT, account=account, top=self.top, way=Way(node_id="n2")
        )
        peers = SimpleNamespace(
            send=lambda node_id, message: self.told.append((node_id, message)),
            now_ms=lambda: int(asyncio.get_running_loop().time() * 1000),
            ids=SimpleNamespace(chance=lambda: 0.0),
        )
        self.served = {"top": SimpleNamespace(asker="n1")}
        self.loans = Loans(peers, {"top": self.top}, SimpleNamespace(sent=self.find), self.served)

    def find(self, request_id: str, sender: str) -> Any:
        is_there = (request_id, sender) == ("top.1", "n2") and self.sent.state is State.SENT
        return SimpleNamespace(call=self.sent, way=self.sent.way) if is_there else None

    def spend(self, calls: int) -> None:
        for _ in range(calls):
            self.top.account.spend_call()

    def told_to(self, node_id: str) -> list[Any]:
        return [message for receiver, message in self.told if receiver == node_id]


@pytest.mark.parametrize(
    ("calls", "tokens", "used", "tokens_used", "is_so"),
    [(2, None, 1, 0, False), (2, None, 2, 0, True), (2, 5, 0, 4, False), (2, 5, 0, 5, True), (2, 0, 0, 0, True)],
)
def test_a_call_is_short_without_a_call_or_without_a_token(calls, tokens, used, tokens_used, is_so):
    account = Account(Limits(calls_max=calls, tokens_max=tokens), calls_used=used, tokens_used=tokens_used)
    assert is_short(SimpleNamespace(account=account)) is is_so


async def test_a_call_that_has_enough_or_runs_on_no_loan_or_has_ended_borrows_nothing():
    enough, own, ended = World(Loan(1)), World(), World(Loan(0))
    own.spend(8)
    ended.spend(1)
    ended.top.state = State.SETTLED
    for world in (enough, own, ended):
        await asyncio.wait_for(world.loans.cover(world.top), 1)
        assert world.told == []


async def test_what_waits_for_a_loan_goes_on_with_more_of_it_or_once_nothing_is_left_and_asks_once():
    world = World(Loan(0))
    world.spend(1)
    waiters = [asyncio.ensure_future(world.loans.cover(world.top)) for _ in range(2)]
    await asyncio.sleep(0.01)
    assert world.told == [("n1", Borrow("top", Loan(0)))]
    assert not any(one.done() for one in waiters)
    world.loans.received("n1", Lend("top", Loan(1), Loan(0)))
    await asyncio.sleep(0.01)
    assert [one.done() for one in waiters] == [True, True]
    assert (world.top.way.loan, world.top.account.calls_left(), world.top.way.borrowing) == (Loan(1), 1, None)
    world.spend(1)
    last = asyncio.ensure_future(world.loans.cover(world.top))
    await asyncio.sleep(0.01)
    world.loans.received("n1", Lend("top", Loan(1), Loan(1)))  # all it has: nothing is left
    await asyncio.wait_for(last, 0.01)
    assert world.told_to("n1") == [Borrow("top", Loan(0)), Borrow("top", Loan(1))]


@pytest.mark.parametrize(
    ("lent", "to", "loan", "goes_on"),
    [
        (Loan(4, 40), Loan(2, 20), Loan(4, 40), True),
        (Loan(4, 40), None, Loan(4, 40), True),
        (Loan(2, 20), Loan(2, 20), Loan(2, 20), True),  # nothing more is left
        (Loan(2, 20), Loan(1, 10), Loan(2, 20), False),  # the answer to an earlier wish
        (Loan(1, 40), Loan(1, 10), Loan(2, 20), False),  # an old one has less of either
        (Loan(4, 10), Loan(1, 10), Loan(2, 20), False),
        (Loan(1, 10), None, Loan(2, 20), True),
    ],
)
async def test_a_loan_counts_if_it_has_no_less_than_the_one_before_and_ends_the_wait_it_answers(lent, to, loan, goes_on):
    world = World(Loan(2, 20), tokens=100)
    asked = world.top.way.borrowing = asyncio.Event()
    world.loans.received("n1", Lend("top", lent, to))
    assert (world.top.way.loan, asked.is_set()) == (loan, goes_on)
    assert world.top.account.limits == loan.of(world.limits)


async def test_a_loan_changes_nothing_of_a_call_that_is_not_served_here_or_runs_on_none():
    own, alone = World(Loan(1)), World()
    own.top.way.is_served = False
    for world, loan in ((own, Loan(1)), (alone, None)):
        before = world.top.account.limits
        world.loans.received("n1", Lend("top", Loan(5), None))
        world.loans.received("n1", Lend("unknown", Loan(5), None))
        world.loans.received("n1", Taken("top", is_root=False))
        assert (world.top.way.loan, world.top.account.limits) == (loan, before)


async def test_a_wish_is_repeated_until_it_is_answered_or_its_call_has_ended_or_moved():
    failures: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    for end in (
        lambda world: setattr(world.top, "state", State.SETTLED),
        lambda world: world.served.clear(),
        lambda world: setattr(world.top.way, "loan", None),
    ):
        world = World(Loan(0))
        world.spend(1)
        asked = asyncio.ensure_future(world.loans.cover(world.top))
        await asyncio.sleep(0.35)  # at 0, 100 and 300 ms
        assert world.told_to("n1") == [Borrow("top", Loan(0))] * 3
        end(world)
        await asyncio.sleep(1)
        assert (len(world.told), asked.done(), world.top.way.borrowing) == (3, True, None)
        assert failures == []


async def test_tokens_are_borrowed_once_more_than_half_are_used_and_once_at_a_time():
    world = World(Loan(1, 10, 30), tokens=100)
    for used, wishes in ((5, 0), (1, 1), (1, 1)):
        world.top.account.spend_tokens(used)
        assert world.loans.top_up(world.top, were_there=True)
        await asyncio.sleep(0)
        assert len(world.told) == wishes


@pytest.mark.parametrize(("used", "within", "is_there"), [(30, True, True), (31, True, False), (30, False, False)])
async def test_tokens_used_in_advance_were_there_up_to_all_that_the_lender_had(used, within, is_there):
    world = World(Loan(1, 10, 30), tokens=100)
    below = Account(Limits(tokens_max=used if within else used - 1), world.top.account)
    below.spend_tokens(used)
    call = SimpleNamespace(top=world.top, account=below)
    assert world.loans.top_up(call, were_there=False) is is_there
    assert world.loans.top_up(call, were_there=True)


@pytest.mark.parametrize("loan", [None, Loan(1)])
async def test_without_a_loan_of_tokens_only_the_account_says_whether_they_were_there(loan):
    world = World(loan, tokens=None)
    world.top.account.spend_tokens(1_000)
    assert [world.loans.top_up(world.top, were_there=it) for it in (True, False)] == [True, False]
    assert world.top.way.borrowing is None


async def test_a_call_elsewhere_gets_more_of_what_is_left_here_and_hears_again_what_it_did_not_hear():
    world = World(calls=8)
    world.sent.way.loan = Loan(1)
    world.loans.received("n3", Borrow("top.1", Loan(1)))
    world.loans.received("n2", Borrow("top.1", Loan(1)))
    await asyncio.sleep(0.01)
    assert world.told == [("n2", Lend("top.1", Loan(2), Loan(1)))]
    assert world.top.account.calls_used == 1
    world.loans.received("n2", Borrow("top.1", Loan(1)))  # the answer was lost
    await asyncio.sleep(0.01)
    assert world.told[1:] == [("n2", Lend("top.1", Loan(2), Loan(1)))]
    assert (world.sent.way.loan, world.top.account.calls_used) == (Loan(2), 1)


@pytest.mark.parametrize(("state", "loan"), [(State.SETTLED, Loan(1)), (State.SENT, None), (State.SENT, Loan(2))])
async def test_a_call_that_ended_or_was_answered_while_its_lender_borrowed_costs_the_lender_nothing(state, loan):
    world = World(Loan(0))
    world.spend(1)
    world.sent.way.loan = Loan(1)
    world.loans.received("n2", Borrow("top.1", Loan(1)))
    await asyncio.sleep(0.01)
    assert world.told == [("n1", Borrow("top", Loan(0)))]
    world.sent.state, world.sent.way.loan = state, loan
    world.loans.received("n1", Lend("top", Loan(4), Loan(0)))
    await asyncio.sleep(0.01)
    assert (world.top.account.calls_used, world.sent.way.loan) == (1, loan)
    assert world.told_to("n2") == ([] if loan is None else [Lend("top.1", loan, Loan(1))])
