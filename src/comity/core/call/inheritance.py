"""What child calls inherit: the tools they may use, and their deadline.

A call without a timeout of its own gets its caller's remaining time less a margin, in which the caller can still answer.

A call is granted every tool until a caller names some with `tools=`; from there on down the grant only shrinks. What an agent
may use of a grant is up to its own profile (`tools_allowed`). Under `ToolRights.CHAIN` each profile shrinks the grant too.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Final

from msgspec import Struct

from comity.core.agent.declaration import shown
from comity.core.agent.tool import EVERYTHING, narrow

MARGIN_MS_MIN: Final = 50


class ToolRights(StrEnum):
    """Whose profiles decide whether a tool may be used."""

    OWN = "own"  # that of the agent which uses it
    CHAIN = "chain"  # that of every agent from the root down


class Inheritance(Struct, frozen=True, kw_only=True):
    """The inheritance rules of a node."""

    tool_rights: ToolRights = ToolRights.OWN
    margin: float = 0.05  # the share of its time that a caller keeps to handle the reply

    @classmethod
    def of(cls, *, tool_rights: str, margin: float) -> Inheritance:
        """Return the rules of a node's settings. Raises `ValueError` for invalid ones."""
        if tool_rights not in list(ToolRights):
            raise ValueError(f"tool_rights must be one of {', '.join(ToolRights)}, not {shown(tool_rights)}")
        if type(margin) not in {int, float} or not 0 <= margin < 1:
            raise ValueError(f"child_margin must be a number from 0 to below 1, not {shown(margin)}")
        return cls(tool_rights=ToolRights(tool_rights), margin=margin)

    def deadline_at(self, asked: int, latest: int, now_ms: int, has_own_time: bool) -> int:
        """Return the deadline of a child call that asks for `asked`, below a caller with the deadline `latest`.

        Only a call whose explicit timeout fits into its caller's time may use up the margin: its caller chose so.
        """
        left_ms = latest - now_ms
        if (has_own_time and asked < latest) or 2 * (asked - now_ms) <= left_ms:  # the margin is half of what is left at most
            return asked
        return min(asked, latest - self.margin_ms(left_ms))

    def margin_ms(self, left_ms: int) -> int:
        """Return how many of a call's remaining ms it keeps when a child call gets the rest."""
        if not self.margin or left_ms <= 0:
            return 0
        return min(max(int(left_ms * self.margin), MARGIN_MS_MIN), left_ms // 2)

    @property
    def is_chained(self) -> bool:
        """Whether each agent's profile narrows the grants of calls below it."""
        return self.tool_rights is ToolRights.CHAIN

    def tools(
        self, granted: Collection[str] | None, profile: frozenset[str], named: Collection[str] | None
    ) -> tuple[str, ...] | None:
        """Return the tools granted to a call; None for every tool.

        `granted` are the caller's granted tools, `profile` the caller's `tools_allowed`, `named` the call's `tools=`.
        """
        held = EVERYTHING if granted is None else frozenset(granted)
        if self.is_chained:
            held = narrow(held, profile)
        if named is not None:
            held = narrow(held, frozenset(named))
        return None if "*" in held else tuple(sorted(held))
