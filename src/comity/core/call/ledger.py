"""Budgets of a call tree: who may still spend how many calls and tokens.

Every call spends from an account. A call that narrows its budget opens an account under its caller's; spending is charged to
the account and to everyone above it, so children together can never exceed what their root had.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from comity.core.call.limits import Limits

# Of what is left, a call that goes to another node gets this part to begin with.
FIRST_SHARE: Final = 16


class Loan(Struct, frozen=True, array_like=True, gc=False):
    """What is set aside of a budget for the calls below a call that runs on another node; tokens only where they are limited.

    Using tokens cannot wait for more to be lent: up to `tokens_most`, all there were at the time, they may be used in advance.
    """

    calls: int = 0
    tokens: int | None = None
    tokens_most: int = 0

    def of(self, limits: Limits) -> Limits:
        """Return what of its limits a call may spend with this."""
        return limits.narrow(replace(limits, calls_max=min(1 + self.calls, limits.calls_max), tokens_max=self.tokens))


NOTHING: Final = Loan()


class Account(Struct, eq=False, gc=False):
    """Calls and tokens of one subtree."""

    limits: Limits
    parent: Account | None = None
    calls_used: int = 0
    tokens_used: int = 0

    def left(self) -> tuple[int, int | None]:
        """Return how many calls and tokens are left: what every call is admitted by, asked for at once."""
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
        """Charge tokens that were used; return whether they were all there. What was used is recorded either way."""
        left = self.tokens_left()
        account: Account | None = self
        while account is not None:
            account.tokens_used += tokens
            account = account.parent
        return left is None or tokens <= left

    def is_within(self, top: Account) -> bool:
        """Return whether no account from here to below `top` has used more tokens than it had."""
        account: Account | None = self
        while account is not None and account is not top:
            if account.limits.tokens_max is not None and account.tokens_used > account.limits.tokens_max:
                return False
            account = account.parent
        return True

    def widen(self, limits: Limits) -> None:
        """Allow what more was lent."""
        self.limits = limits

    def lend(self, has: Loan = NOTHING) -> Loan:
        """Set calls and tokens aside for a call that spends them where this account cannot be seen; return all it has then.

        Little at first and twice as much each time, so that many who spend nothing leave enough for one who needs more. What
        was not spent comes back with `give_back`.
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
        """Take back what was charged."""
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
