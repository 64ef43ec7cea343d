"""Scopes of a token: what it may be used for at all, whatever the rights of the agent or user who shows it.

A scope is a list of words, `call:ANL/ANL_NPV call:DOC/* insight:read`. `call:` names an agent and a capability, of which either
may be `*`; every other word is `area:verb`, of which the verb may be `*`.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from comity.errors import CallerError

SCOPE_CHARS_MAX: Final = 1_024
WORDS_MAX: Final = 64
_CALL: Final = re.compile(r"call:([A-Za-z0-9._-]+|\*)/([A-Za-z0-9._:-]+|\*)")
_WORD: Final = re.compile(r"[a-z_]+:([a-z_]+|\*)")


class Scope(Struct, frozen=True):
    """What a token may be used for. An empty scope allows nothing."""

    words: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str) -> Scope:
        """Return the scope that a text spells. Raises `CallerError` for a word that is none."""
        words = tuple(dict.fromkeys(text.split())) if len(text) <= SCOPE_CHARS_MAX else None
        if words is None or len(words) > WORDS_MAX:
            raise CallerError(f"a scope has at most {WORDS_MAX} words and {SCOPE_CHARS_MAX} characters", field="scope")
        words = tuple("call:*/*" if word == "call:*" else word for word in words)
        for word in words:
            if not (_CALL if word.startswith("call:") else _WORD).fullmatch(word):
                raise CallerError(f"{word!r} is no scope; write call:AGENT/CAPABILITY or area:verb", field="scope")
        return cls(words)

    def __str__(self) -> str:
        return " ".join(self.words)

    def allows_call(self, agent: str, capability: str) -> bool:
        """Return whether a capability of an agent may be called; `agent` is an id without a key."""
        return any(_covers(word, f"call:{agent}/{capability}") for word in self.words)

    def allows(self, word: str) -> bool:
        """Return whether one word, such as `insight:read`, is within the scope."""
        return any(_covers(mine, word) for mine in self.words)

    def includes(self, other: Scope) -> bool:
        """Return whether every word of another scope is within this one: what narrowing guarantees."""
        return all(self.allows(word) for word in other.words)


def _covers(wide: str, narrow: str) -> bool:
    """Return whether a word allows all that another one does."""
    area, _, rest = wide.partition(":")
    other_area, _, other_rest = narrow.partition(":")
    if area != other_area:
        return False
    if area != "call":
        return rest in ("*", other_rest)
    (agent, _, capability), (other_agent, _, other_capability) = rest.partition("/"), other_rest.partition("/")
    return agent in ("*", other_agent) and capability in ("*", other_capability)
