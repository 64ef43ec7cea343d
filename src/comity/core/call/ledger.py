"""Budgets of a call tree: how many calls and tokens each subtree may still use.

Every call spends from an account. A call that narrows its budget opens an account under its caller's; spending is charged to
the account and to all accounts above it, so children together can never exceed the root's budget.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from comity.core.call.limits import Limits

# A call that goes to another node first gets one part in this many of the remaining budget.
FIRST_SHARE: Final = 16


class Loan(Struct, frozen=True, array_like=True, gc=False):
    """The part of a budget that is lent to a call on another node; tokens only if they are limited.

    Using tokens cannot wait for a larger loan: up to `tokens_most`, all that the lender had, may be used in advance.
    """

    calls: int = 0
    tokens: int | None = None
    tokens_most: int = 0

    def of(self, limits: Limits) -> Limits:
        """Return a call's limits, narrowed to this loan."""
        return limits.narrow(replace(limits, calls_max=min(1 + self.calls, limits.calls_max), tokens_max=self.tokens))


NOTHING: Final = Loan()


class Account(Struct, eq=False, gc=False):
    """Calls and tokens of one subtree."""

    limits: Limits
    parent: Account | None = None
    calls_used: int = 0
    tokens_used: int = 0

    def left(self) -> tuple[int, int | None]:
        """Return the calls and tokens left, in one pass: every admission needs both."""
        above = self.parent
        if self.limits.tokens_max is None:
            calls = self.limits.calls_max - self.calls_used
            if above is None:
                return calls, None
            if above.parent is None and above.limits.tokens_max is None:  # as below the root of a workflow run
                most = above.limits.calls_max - above.calls_used
                return min(calls, most), None
        return self.calls_left(), self.tokens_left()

    def calls_left(self) -> int:
        """Return how many calls this subtree may still make, here and under every account above."""
        left = self.limits.calls_max - self.calls_used
        above = self.parent
        while above is not None:
            left = min(left, above.limits.calls_max - above.calls_used)
            above = above.parent
        return left

    def tokens_left(self) -> int | None:
        """Return how many tokens this subtree may still use, or None where no limit is set. Never below zero."""
        left: int | None = None
        account: Account | None = self
        while account is not None:
            most = account.limits.tokens_max
            if most is not None:
                here = max(most - account.tokens_used, 0)
                left = here if left is None else min(left, here)
            account = account.parent
        return left

    def spend_call(self) -> None:
        """Charge one call."""
        self.calls_used += 1
        above = self.parent
        while above is not None:
            above.calls_used += 1
            above = above.parent

    def spend_tokens(self, tokens: int) -> bool:
        """Charge used tokens; return whether the budget covered them. They count either way."""
        left = self.tokens_left()
        account: Account | None = self
        while account is not None:
            account.tokens_used += tokens
            account = account.parent
        return left is None or tokens <= left

    def is_within(self, top: Account) -> bool:
        """Return whether no account from here up to, and without, `top` has exceeded its tokens."""
        account: Account | None = self
        while account is not None and account is not top:
            if account.limits.tokens_max is not None and account.tokens_used > account.limits.tokens_max:
                return False
            account = account.parent
        return True

    def widen(self, limits: Limits) -> None:
        """Raise the limits to those of an enlarged loan."""
        self.limits = limits

    def lend(self, has: Loan = NOTHING) -> Loan:
        """Reserve calls and tokens for a call on another node, which cannot see this account; return its whole loan.

        A loan starts small and doubles each time, so that many borrowers who spend nothing leave enough for one who needs more.
        `give_back` returns the unspent part.
        """
        left, tokens_left = max(self.calls_left(), 0), self.tokens_left()
        calls = min((left + 1) // 2, max(has.calls, 1)) if has is not NOTHING else left // FIRST_SHARE
        if tokens_left is None:
            self.give_back(-calls, 0)
            return Loan(has.calls + calls)
        had = has.tokens or 0
        tokens = min((tokens_left + 1) // 2, max(had, tokens_left // FIRST_SHARE, 1))
        self.give_back(-calls, -tokens)
        return Loan(has.calls + calls, had + tokens, had + tokens_left)

    def give_back(self, calls: int, tokens: int) -> None:
        """Undo a charge."""
        account: Account | None = self
        while account is not None:
            account.calls_used -= calls
            account.tokens_used -= tokens
            account = account.parent

    def narrowed(self, limits: Limits) -> Account:
        """Return an account for a call with `limits`: this one, unless they leave less than it has."""
        calls, tokens = self.left()
        narrows_tokens = limits.tokens_max is not None and (tokens is None or limits.tokens_max < tokens)
        return Account(limits, self) if narrows_tokens or limits.calls_max < calls else self
