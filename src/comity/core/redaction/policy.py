"""What happens to a value that was found, by its type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType


class Action(StrEnum):
    """What is done with a value."""

    TOKENISE = "tokenise"  # replaced by a token that this session's vault can turn back
    MASK = "mask"  # replaced by stars for good; a hint of the value may stay
    BLOCK = "block"  # masked, and the call that carries it is to be refused
    ALLOW = "allow"  # left in clear, and reported


@dataclass(frozen=True, slots=True)
class Policy:
    """An action per type; every type not named is tokenised, and nothing is blocked, unless told otherwise."""

    actions: Mapping[str, Action] = field(default_factory=dict)
    default: Action = Action.TOKENISE

    def __post_init__(self) -> None:
        object.__setattr__(self, "actions", MappingProxyType(dict(self.actions)))

    def action(self, kind: str) -> Action:
        """Return what to do with a value of this type."""
        return self.actions.get(kind, self.default)

    def allowing(self, kinds: Iterable[str]) -> Policy:
        """Return this policy with `kinds` in clear, as for a capability that was granted them.

        A blocked type stays blocked: a grant opens what the session hides, not what it forbids.
        """
        granted = {kind: Action.ALLOW for kind in kinds if self.action(kind) is not Action.BLOCK}
        return Policy({**self.actions, **granted}, self.default)


DEFAULT_POLICY = Policy()
