"""The claims of two results, field by field: which fields mean the same, and which claims are about something else."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from comity.core.orchestration.conflict.finding import Finding, Relation, Rules, is_missing, name_of
from comity.core.orchestration.conflict.quantity import quantities
from comity.core.orchestration.conflict.units import CURRENCIES, UNITS

QUALIFIERS: Final = frozenset(
    {"period", "year", "quarter", "month", "scenario", "region", "country", "market", "entity", "company", "as_of",
    "asof", "basis",
     "date", "currency", "segment", "product", "case", "version", "method", "unit"}
)  # fmt: skip
_WHAT_IT_IS: Final = frozenset({"currency", "unit"})  # of the numbers beside it: read with them, not apart
KNOWN_AS: Final = {  # short names that everyone in business uses
    "irr": "internal_rate_of_return", "npv": "net_present_value", "roi": "return_on_investment", "ltv": "lifetime_value",
    "clv": "lifetime_value", "customer_lifetime_value": "lifetime_value", "cac": "customer_acquisition_cost",
    "ctr": "click_through_rate",
    "click_rate": "click_through_rate", "cpm": "cost_per_mille", "cost_per_thousand": "cost_per_mille", "cpc": "cost_per_click",
    "cpa": "cost_per_acquisition", "tco": "total_cost_of_ownership", "yoy": "year_on_year", "yoy_growth": "year_on_year_growth",
    "qty": "quantity", "amt": "amount", "num": "number", "avg": "average", "mean": "average", "tam": "total_addressable_market",
    "arr": "annual_recurring_revenue", "mrr": "monthly_recurring_revenue", "fte": "full_time_equivalents", "eta": "expected_at",
}  # fmt: skip
FIELDS_MAX: Final = 2_000


@dataclass(frozen=True, slots=True)
class Claim:
    """A field that two results have, its two values, and what they are to each other."""

    path: str
    left: Any
    right: Any
    finding: Finding


Compare = Callable[[Any, Any, str, Rules, int], Finding]
DEPTH_MAX: Final = 32


def walk(left: dict[str, Any], right: dict[str, Any], path: str, rules: Rules, depth: int, compare: Compare) -> list[Claim]:
    """Return a claim for each field that both objects have, nested objects field by field; `compare` judges two values."""
    if depth > DEPTH_MAX:
        return []
    differing = _differing_qualifier(left, right, rules, compare)
    theirs = {same_name(key, rules): key for key in right}
    found: list[Claim] = []
    for key in list(left)[:FIELDS_MAX]:
        other = theirs.get(same_name(key, rules))
        at = f"{path}.{key}" if path else str(key)
        if other is None:
            continue
        if differing and not is_missing(left[key]) and not is_missing(right[other]):
            if name_of(key) not in QUALIFIERS:
                found.append(Claim(at, left[key], right[other], Finding(Relation.DIFFERENT, "qualifier", differing)))
            continue
        if name_of(key) in _WHAT_IT_IS and _has_number(left) and _has_number(right):
            continue
        one, two = _measured(left, key, left[key]), _measured(right, other, right[other])
        if isinstance(one, dict) and isinstance(two, dict) and not (quantities(one) and quantities(two)):
            found += walk(one, two, at, rules, depth + 1, compare)
        else:
            found.append(Claim(at, left[key], right[other], compare(one, two, at, rules, depth)))
    return found


def _differing_qualifier(left: dict[str, Any], right: dict[str, Any], rules: Rules, compare: Compare) -> str:
    """Return the qualifier in which two objects differ, if one does; then what they say is about two things."""
    if len(left) == 1 or len(right) == 1:
        return ""  # the qualifier is the claim itself
    for key, value in left.items():
        name = name_of(key)
        other = next((one for one in right if name_of(one) == name), None)
        if (
            name not in QUALIFIERS - _WHAT_IT_IS
            or other is None
            or isinstance(value, dict | list)
            or isinstance(right[other], dict | list)
        ):
            continue
        if compare(value, right[other], key, rules, 0).relation is Relation.CONFLICT:
            return f"{key}: {value} / {right[other]}"
    return ""


_UNIT_SUFFIX: Final = re.compile(
    r"^(?P<name>.+)_(?P<unit>ms|s|sec|seconds|minutes|min|hours|days|weeks|months|years|usd|eur|gbp|chf|jpy|pct|percent|kg|g|km|m|mb|gb|kb|bytes|bps)$"
)


def same_name(key: Any, rules: Rules) -> str:
    """Return the name under which a field is looked for: aliases resolved, the unit at its end left out."""
    name = name_of(str(key))
    name = KNOWN_AS.get(name, name)
    name = name_of(rules.aliases.get(str(key), rules.aliases.get(name, name)))
    found = _UNIT_SUFFIX.match(name)
    return found["name"] if found else name


def _measured(owner: dict[str, Any], key: str, value: Any) -> Any:
    """Return a number with the unit that its name ends in, or that stands beside it."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return value
    found = _UNIT_SUFFIX.match(name_of(key))
    if found:
        unit = found["unit"]
        return {"value": value, "currency": unit.upper()} if unit.upper() in CURRENCIES else {"value": value, "unit": unit}
    currency = owner.get("currency")
    is_money = isinstance(currency, str) and bool(_MONEY.search(name_of(key)))
    if is_money:
        return {"value": value, "currency": currency}
    unit = owner.get("unit")
    return (
        {"value": value, "unit": unit} if isinstance(unit, str) and unit.lower() in UNITS and _is_only_number(owner) else value
    )


_MONEY: Final = re.compile(
    r"(?:^|_)(?:npv|amount|price|cost|costs|revenue|value|total|budget|spend|fee|fees|salary|profit|income|sales|market_size|capex|opex|investment|savings)(?:_|$)"
)


def _is_only_number(owner: dict[str, Any]) -> bool:
    return sum(isinstance(value, int | float) and not isinstance(value, bool) for value in owner.values()) == 1


def _has_number(owner: dict[str, Any]) -> bool:
    return any(isinstance(value, int | float) and not isinstance(value, bool) for value in owner.values())
