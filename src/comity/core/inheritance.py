"""What a call passes on to the calls it makes: which tools they may use at most, and how much of its own time.

A call is granted every tool until a caller names some with `tools=`; from there on down the grant only shrinks. What an agent
may use of a grant is up to its own profile (`tools_allowed`). Under `ToolRights.CHAIN` each profile shrinks the grant too.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from msgspec import Struct

from comity.core.declaration import shown
from comity.core.tool import EVERYTHING, narrow


class ToolRights(StrEnum):
    """Whose profiles decide whether a tool may be used."""

    OWN = "own"  # that of the agent which uses it
    CHAIN = "chain"  # that of every agent from the root down


class Inheritance(Struct, frozen=True, kw_only=True):
    """How a node lets calls pass on what they have."""

    tool_rights: ToolRights = ToolRights.OWN

    @classmethod
    def of(cls, *, tool_rights: str) -> Inheritance:
        """Return the rules that a node was given as words. Raises `ValueError` for what is none."""
        if tool_rights not in list(ToolRights):
            raise ValueError(f"tool_rights must be one of {', '.join(ToolRights)}, not {shown(tool_rights)}")
        return cls(tool_rights=ToolRights(tool_rights))

    @property
    def is_chained(self) -> bool:
        """Whether each agent's profile shrinks what is granted below it."""
        return self.tool_rights is ToolRights.CHAIN

    def tools(
        self, granted: Collection[str] | None, profile: frozenset[str], named: Collection[str] | None
    ) -> tuple[str, ...] | None:
        """Return what is granted to a call; None for every tool.

        `granted` is what its caller was granted, `profile` what that agent may use itself, `named` the `tools=` of the call.
        """
        held = EVERYTHING if granted is None else frozenset(granted)
        if self.is_chained:
            held = narrow(held, profile)
        if named is not None:
            held = narrow(held, frozenset(named))
        return None if "*" in held else tuple(sorted(held))
