"""Conflicts between components, which value is preferred, when the user is asked, and how sure the whole is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Final

from comity.core.orchestration.aggregate.component import Component
from comity.core.orchestration.conflict import Claim, Relation, Rules, claims, compare

AGREEING_PAIR: Final = 0.05  # what each pair that agrees adds
PER_CONFLICT: Final = 0.10  # what each conflict takes
FLOOR: Final = 0.30
CEILING: Final = 0.95
TOO_CLOSE: Final = 0.10  # two confidences this near do not decide: the user is asked


@dataclass(frozen=True, slots=True)
class Conflict:
    """A field on which components differ: every value with its source, the one preferred, and whether the user is asked."""

    path: str
    values: tuple[tuple[str, Any, float], ...]  # component, value, confidence; the surest first
    rule: str
    note: str = ""
    is_for_user: bool = False

    @property
    def preferred(self) -> Any:
        """The value of the surest component."""
        return self.values[0][1]

    def told(self) -> dict[str, Any]:
        """Return it as data."""
        return {
            "path": self.path,
            "values": [{"from": name, "value": value, "confidence": round(sure, 4)} for name, value, sure in self.values],
            "preferred": self.preferred,
            "rule": self.rule,
            **({"note": self.note} if self.note else {}),
            "ask_user": self.is_for_user,
        }


@dataclass(frozen=True, slots=True)
class Agreement:
    """What a comparison of all components found."""

    conflicts: tuple[Conflict, ...] = ()
    undecided: tuple[Claim, ...] = ()  # fields that could not be compared
    confidence: float = 0.0


@dataclass(slots=True)
class _Differing:
    rule: str
    note: str
    values: dict[str, tuple[Any, float]] = field(default_factory=dict)


def rules_of(options: Mapping[str, Any]) -> Rules:
    """Return what the options of an aggregate say about its fields."""
    return Rules(
        tolerance={str(path): float(share) for path, share in (options.get("tolerance") or {}).items()},
        aliases={str(name): str(same) for name, same in (options.get("aliases") or {}).items()},
        rates={str(code): float(rate) for code, rate in (options.get("rates") or {}).items()},
        dollar=str(options.get("dollar", "USD")),
        ordered=frozenset(map(str, options.get("ordered") or ())),
        exact=frozenset(map(str, options.get("exact") or ())),
    )


def agreement(found: Sequence[Component], options: Mapping[str, Any]) -> Agreement:
    """Return where good components conflict, and the confidence in all of them together."""
    good = [one for one in found if one.is_good]
    rules, important = rules_of(options), frozenset(map(str, options.get("important") or ()))
    differing: dict[str, _Differing] = {}
    undecided: list[Claim] = []
    pairs = 0
    for one, other in combinations(good, 2):
        told = _claims(one, other, rules)
        kinds = [claim.finding.relation for claim in told]
        pairs += Relation.AGREE in kinds and Relation.CONFLICT not in kinds
        for claim in told:
            if claim.finding.relation is Relation.UNKNOWN:
                undecided.append(claim)
            elif claim.finding.relation is Relation.CONFLICT:
                entry = differing.setdefault(claim.path, _Differing(claim.finding.rule, claim.finding.note))
                entry.values[one.name] = (claim.left, one.confidence)
                entry.values[other.name] = (claim.right, other.confidence)
    conflicts = tuple(_conflict(path, entry, important) for path, entry in differing.items())
    return Agreement(conflicts, tuple(undecided), consensus([one.confidence for one in good], pairs, len(conflicts)))


def _claims(one: Component, other: Component, rules: Rules) -> list[Claim]:
    if isinstance(one.data, dict) and isinstance(other.data, dict):
        return claims(one.data, other.data, "", rules)
    if isinstance(one.data, dict) or isinstance(other.data, dict):
        return []
    return [Claim("$", one.data, other.data, compare(one.data, other.data, "", rules))]


def _conflict(path: str, entry: _Differing, important: frozenset[str]) -> Conflict:
    values = sorted(((name, value, sure) for name, (value, sure) in entry.values.items()), key=lambda one: -one[2])
    is_close = values[0][2] - values[1][2] <= TOO_CLOSE + 1e-9
    return Conflict(path, tuple(values), entry.rule, entry.note, is_close or path in important)


def consensus(confidences: Sequence[float], agreeing_pairs: int, conflicts: int) -> float:
    """Return the confidence in several results together: their mean, more for agreement, less for each conflict."""
    if not confidences:
        return 0.0
    mean = sum(confidences) / len(confidences)
    if len(confidences) == 1:
        return mean
    return max(FLOOR, min(CEILING, mean + AGREEING_PAIR * agreeing_pairs - PER_CONFLICT * conflicts))
