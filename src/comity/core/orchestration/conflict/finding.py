"""What a comparison finds, and what a workflow knows about the fields that are compared."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any

from comity.core.orchestration.conflict import texts


class Relation(StrEnum):
    """What two values of one field are to each other."""

    AGREE = "agree"
    CONFLICT = "conflict"
    UNKNOWN = "unknown"  # cannot be told: two currencies without a rate, two texts about different things
    GAP = "gap"  # one of them says nothing
    DIFFERENT = "different"  # two claims: of another period, scenario, region


@dataclass(frozen=True, slots=True)
class Finding:
    """The relation of two values, the rule that decided it, and what was assumed."""

    relation: Relation
    rule: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Rules:
    """What a workflow knows about its fields.

    tolerance: of numbers by path, as a share of the larger one. aliases: other names of a path, or of a word.
    rates: what one unit of a currency is worth in a common one. dollar: what `$` means. ordered, exact: paths whose lists are
    rankings, whose values are identifiers.
    """

    tolerance: Mapping[str, float] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    dollar: str = "USD"
    ordered: frozenset[str] = frozenset()
    exact: frozenset[str] = frozenset()


@lru_cache(maxsize=1_024)
def name_of(path: str) -> str:
    """Return the last name of a path in small letters with underscores."""
    last = path.rpartition(".")[2].split("[")[0]
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", last).lower()).strip("_")


def is_missing(value: Any) -> bool:
    """Return whether a value says nothing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    return texts.is_missing(value) if isinstance(value, str) else isinstance(value, list | dict | tuple) and not value


def verdict(is_same: bool) -> Relation:
    """Return that two values agree, or that they conflict."""
    return Relation.AGREE if is_same else Relation.CONFLICT
