"""The parts of a request, and which of them wait for which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Shape(StrEnum):
    """How the parts of a request hang together."""

    SINGLE = "single"
    SEQUENTIAL = "sequential"  # each part waits for the one before it
    PARALLEL = "parallel"  # no part waits
    MIXED = "mixed"


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that is asked for; `after` are the places of the parts whose results it needs."""

    text: str
    after: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The parts of a request in the order in which they can be done."""

    parts: tuple[Part, ...]

    @property
    def stages(self) -> tuple[tuple[int, ...], ...]:
        """The places of the parts, those that can run at the same time together."""
        depth: list[int] = []
        for part in self.parts:
            depth.append(1 + max((depth[at] for at in part.after), default=-1))
        return tuple(tuple(at for at, one in enumerate(depth) if one == level) for level in range(max(depth, default=-1) + 1))

    def expanded(self, texts: Sequence[Sequence[str]]) -> Plan:
        """Return the plan with a part for each of the texts of every part; what waited for a part waits for all of them."""
        starts = [sum(map(len, texts[:at])) for at in range(len(texts))]
        parts: list[Part] = []
        for part, said in zip(self.parts, texts, strict=True):
            after = tuple(starts[at] + more for at in part.after for more in range(len(texts[at])))
            parts += [Part(text, after) for text in said]
        return Plan(tuple(parts))

    @property
    def shape(self) -> Shape:
        """Whether there is one part, a chain, parts side by side, or both."""
        if len(self.parts) <= 1:
            return Shape.SINGLE
        sizes = [len(stage) for stage in self.stages]
        if len(sizes) == 1:
            return Shape.PARALLEL
        return Shape.SEQUENTIAL if max(sizes) == 1 else Shape.MIXED
