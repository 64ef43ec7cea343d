"""Budgets of a call tree: who may still spend how many calls and tokens.

Every call spends from an account. A call that narrows its budget opens an account under its caller's; spending is charged to
the account and to everyone above it, so children together can never exceed what their root had.
"""

from __future__ import annotations

from msgspec import Struct

from comity.core.limits import Limits


class Account(Struct, eq=False, gc=False):
    """Calls and tokens of one subtree."""

    limits: Limits
    parent: Account | None = None
    calls_used: int = 0
    tokens_used: int = 0

    @property
    def calls_left(self) -> int:
        """Calls this subtree may still make, here and under every account above."""
        left = self.limits.calls_max - self.calls_used
        above = self.parent
        while above is not None:
            left = min(left, above.limits.calls_max - above.calls_used)
            above = above.parent
        return left

    @property
    def tokens_left(self) -> int | None:
        """Tokens this subtree may still use, or None where nobody set a limit. Never below zero."""
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
        account: Account | None = self
        while account is not None:
            account.calls_used += 1
            account = account.parent

    def spend_tokens(self, tokens: int) -> bool:
        """Charge tokens that were used; return whether they were all there. What was used is recorded either way."""
        left = self.tokens_left
        account: Account | None = self
        while account is not None:
            account.tokens_used += tokens
            account = account.parent
        return left is None or tokens <= left

    def narrowed(self, limits: Limits) -> Account:
        """Return an account for a call with `limits`: this one, unless they leave less than it has."""
        tokens = self.tokens_left
        narrows_tokens = limits.tokens_max is not None and (tokens is None or limits.tokens_max < tokens)
        return Account(limits, self) if narrows_tokens or limits.calls_max < self.calls_left else self
