"""What happens to a value that was found, by its type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import cast


class Action(StrEnum):
    """What is done with a value."""

    TOKENISE = "tokenise"  # replaced by a token that this session's vault can turn back
    MASK = "mask"  # replaced by stars for good; a hint of the value may stay
    BLOCK = "block"  # masked, and the call that carries it is to be refused
    ALLOW = "allow"  # left in clear, and reported


@dataclass(frozen=True, slots=True)
class Policy:
    """What happens to a value of each type: `Policy({"CARD": "block", "IP": "allow"})`.

    `actions` maps a type to an `Action` or its word; every other type gets `default`. An unknown action is a `ValueError`.
    """

    actions: Mapping[str, Action | str] = field(default_factory=dict)
    default: Action | str = Action.TOKENISE

    def __post_init__(self) -> None:
        actions = {kind: _action(action) for kind, action in self.actions.items()}
        object.__setattr__(self, "actions", MappingProxyType(actions))
        object.__setattr__(self, "default", _action(self.default))

    def action(self, kind: str) -> Action:
        """Return what to do with a value of this type."""
        return cast("Action", self.actions.get(kind, self.default))  # made an Action above

    def allowing(self, kinds: Iterable[str]) -> Policy:
        """Return this policy with `kinds` in clear, as for a capability that was granted them.

        A blocked type stays blocked: a grant opens what the session hides, not what it forbids.
        """
        granted = {kind: Action.ALLOW for kind in kinds if self.action(kind) is not Action.BLOCK}
        return Policy({**self.actions, **granted}, self.default)


def _action(word: Action | str) -> Action:
    try:
        return Action(word)
    except ValueError:
        raise ValueError(f"unknown action {word!r}; choose from {', '.join(Action)}") from None


DEFAULT_POLICY = Policy()
