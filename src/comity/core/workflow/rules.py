"""Conditions in the form of rules, `{rules: [{field, operator, value}], logic: AND}`, as texts of the one language."""

from __future__ import annotations

import math
from typing import Any, Final

import msgspec

from comity.core.workflow.mapping import read_path

_SIGNS: Final = {
    "eq": "==", "neq": "!=", "gt": ">", "gte": ">=", "lt": "<", "lte": "<=",
    "==": "==", "!=": "!=", ">": ">", ">=": ">=", "<": "<", "<=": "<=",
}  # fmt: skip
_METHODS: Final = {"starts_with": "startsWith", "ends_with": "endsWith", "matches": "matches"}
OPERATORS: Final = (*_SIGNS, "contains", "in", "not_in", "exists", "not_exists", *_METHODS)
# A field without one of these in front is one of the reply: `data.score` is `response.data.score`.
_FIELDS: Final = frozenset(
    {"status", "data", "message", "confidence", "outcome", "error", "warnings", "next_step_hint", "degraded"}
)


def expression_of(condition: Any) -> str:
    """Return the CEL text of a condition in rule form; raises `ValueError` with what is wrong."""
    if isinstance(condition, str):
        return condition
    if not isinstance(condition, dict):
        raise ValueError("must be a CEL expression, or rules with `field`, `operator` and `value`")  # noqa: TRY004  a mistake of data
    if "rules" in condition:
        return _group(condition["rules"], str(condition.get("logic", "AND")).upper(), set(condition) - {"rules", "logic"})
    for word in ("and", "or"):
        if word in condition:
            return _group(condition[word], word.upper(), set(condition) - {word})
    if condition.get("type") == "json_contains":
        condition = {"field": condition.get("field"), "operator": "contains", "value": condition.get("value")}
    return _rule(condition)


def _group(rules: Any, logic: str, unknown: set[str]) -> str:
    if unknown:
        raise ValueError(f"{', '.join(sorted(unknown))} is no part of a group of rules")
    if logic not in {"AND", "OR"}:
        raise ValueError(f"logic must be AND or OR, not {logic}")
    if not isinstance(rules, list) or not rules:
        raise ValueError("a group of rules must be a list of at least one rule")
    return f" {'&&' if logic == 'AND' else '||'} ".join(f"({expression_of(rule)})" for rule in rules)


def _rule(rule: dict[str, Any]) -> str:
    if unknown := set(rule) - {"field", "operator", "value"}:
        raise ValueError(f"{', '.join(sorted(unknown))} is no part of a rule; it has field, operator and value")
    field, operator = rule.get("field"), rule.get("operator", "eq")
    path = read_path(field) if isinstance(field, str) else None
    if path is None:
        raise ValueError(f"field must be a path such as response.data.score, not {field!r}")
    if path[0] in _FIELDS:
        field = f"response.{field}"
    if operator not in OPERATORS:
        raise ValueError(f"operator must be one of {', '.join(OPERATORS)}, not {operator!r}")
    if operator in {"exists", "not_exists"}:
        return f"{'!' if operator == 'not_exists' else ''}has({field})"
    if "value" not in rule:
        raise ValueError(f"operator {operator} needs a value")
    value = _literal(rule["value"])
    if operator in _SIGNS:
        return f"{field} {_SIGNS[operator]} {value}"
    if operator == "contains":  # of a text, a list, or the keys of an object
        return f"type({field}) == string ? {field}.contains(string({value})) : {value} in {field}"
    if operator in {"in", "not_in"}:
        return f"{'!' if operator == 'not_in' else ''}({field} in {value})"
    return f"{field}.{_METHODS[operator]}({value})"


def _literal(value: Any) -> str:
    """Return a JSON value as CEL writes it, which is the same but for what JSON cannot say."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("value must be a finite number")
    return msgspec.json.encode(value).decode()
