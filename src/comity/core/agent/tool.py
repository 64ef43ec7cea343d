"""Tools: what an agent may do in the world, and who may use which.

A call may use what its agent's profile allows of what was granted to it; a grant only shrinks on the way down (see
`core/call/inheritance.py`). A tool of high risk needs a person's approval.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final, Literal

from msgspec import Struct

from comity.core.agent import effects as touch
from comity.core.agent.declaration import DeclarationError, shown
from comity.core.agent.effects import Touches
from comity.core.agent.running import RunIn, place_of
from comity.core.document.schema import Checker, SchemaError, from_signature

EVERYTHING: Final = frozenset({"*"})


class Risk(StrEnum):
    """What a tool can do at worst."""

    LOW = "low"  # reads
    MEDIUM = "medium"  # writes what can be undone
    HIGH = "high"  # pays, deletes, publishes: needs approval


class Tool(Struct, frozen=True, kw_only=True):
    """A function agents may use, under a name and a risk."""

    name: str
    function: Callable[..., Any]
    risk: Risk | Literal["low", "medium", "high"] = Risk.LOW
    description: str = ""
    idempotent: bool = False  # a retry may run it again when the node cannot know whether it ran
    takes_key: bool = False  # wants `idempotency_key`, the same for every attempt
    clear: frozenset[str] = frozenset()  # types of personal data it is given in clear
    typed: bool = False  # inputs must fit the function's type hints, and it is given values of these types
    touches: Touches = ()  # what people's constraints are held against
    effects: bool | None = None  # whether it changes something in the world; None: all but those of low risk do
    run_in: RunIn | str | None = None  # a plain function in a thread, unless this says loop or process

    @classmethod
    def of(cls, function: Callable[..., Any], **more: Any) -> Tool:
        """Return a function as a typed tool under its own name, described by the first paragraph of its docstring."""
        description = " ".join((inspect.getdoc(function) or "").partition("\n\n")[0].split())
        known: dict[str, Any] = {"name": getattr(function, "__name__", ""), "description": description, "typed": True}
        return cls(function=function, **known | more)

    def inputs(self) -> Checker:
        """Return the checker of what the tool is given; the key that some tools take is not given by who uses them."""
        checker, wants_context = from_signature(self.function, without=("idempotency_key",) if self.takes_key else ())
        if wants_context:
            raise SchemaError(f"{self.name}: a tool is given no ctx; whatever needs one is a capability")
        return checker

    @property
    def has_effects(self) -> bool:
        """Whether an agent sees what it did only once that is on disk, so that no crash makes it happen twice."""
        return self.risk != Risk.LOW if self.effects is None else self.effects

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise DeclarationError(f"the name of a tool must be text that is not empty, not {shown(self.name)}")
        if not callable(self.function):
            raise DeclarationError(f"the function of tool {self.name} must be callable, not {shown(self.function)}")
        if self.risk not in list(Risk):  # a word that is no risk must not pass for a low one
            raise DeclarationError(f"the risk of tool {self.name} must be one of {', '.join(Risk)}, not {shown(self.risk)}")
        if self.effects is not None and type(self.effects) is not bool:
            raise DeclarationError(f"the effects of tool {self.name}: effects must be True or False, not {shown(self.effects)}")
        touch.declare(self.touches, self.function)
        place_of(self.function, self.run_in)


def narrow(held: frozenset[str], profile: frozenset[str]) -> frozenset[str]:
    """Return the tools that are in both. `*` stands for everything."""
    if not profile:  # as of most agents
        return profile
    if "*" in profile:
        return held
    return profile if "*" in held else held & profile


def may_use(held: frozenset[str], name: str) -> bool:
    """Return whether a call that holds these rights may use a tool."""
    return name in held or "*" in held
