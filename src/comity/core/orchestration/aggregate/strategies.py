"""How several results become one: merge, concat, first, best, vote. Each is a function of the components."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from comity.core.orchestration.aggregate.component import Component
from comity.core.orchestration.aggregate.consensus import Agreement, rules_of
from comity.core.orchestration.conflict import Relation, Rules, compare
from comity.core.orchestration.conflict.fields import same_name

Strategy = Callable[[Sequence[Component], Agreement, Mapping[str, Any]], Any]  # of the good components


def merge(found: Sequence[Component], agreed: Agreement, options: Mapping[str, Any]) -> Any:
    """Return one object with the fields of all; on a conflict the surest value, of two lists that agree the longer."""
    del agreed
    rules = rules_of(options)
    merged: dict[str, Any] = {}
    for component in sorted(found, key=lambda one: -one.confidence):
        data = component.data if isinstance(component.data, dict) else {component.name: component.data}
        _fold(merged, data, {same_name(key, rules): key for key in merged}, rules)
    order = [key for component in found if isinstance(component.data, dict) for key in component.data]
    return {key: merged[key] for key in dict.fromkeys([*order, *merged]) if key in merged}


def _fold(into: dict[str, Any], data: dict[str, Any], known: dict[str, str], rules: Rules) -> None:
    for key, value in data.items():
        same = known.get(same_name(key, rules), key)
        held = into.get(same)
        if held is None or held in ("", [], {}):
            into[same] = value
        elif isinstance(held, dict) and isinstance(value, dict):
            inner = dict(held)
            _fold(inner, value, {same_name(one, rules): one for one in inner}, rules)
            into[same] = inner
        elif isinstance(held, list) and isinstance(value, list) and _is_longer(value, held, same, rules):
            into[same] = value


def _is_longer(value: list[Any], held: list[Any], name: str, rules: Rules) -> bool:
    """Return whether a list has all of another and more."""
    return len(value) > len(held) and compare(held, value, name, rules).relation is Relation.AGREE


def concat(found: Sequence[Component], agreed: Agreement, options: Mapping[str, Any]) -> Any:
    """Return all results in order, each with its name."""
    del agreed, options
    return [{"name": one.name, "data": one.data} for one in found]


def first(found: Sequence[Component], agreed: Agreement, options: Mapping[str, Any]) -> Any:
    """Return the first result."""
    del agreed, options
    return found[0].data


def best(found: Sequence[Component], agreed: Agreement, options: Mapping[str, Any]) -> Any:
    """Return the result of the surest component; of equally sure ones the first."""
    del agreed, options
    return max(found, key=lambda one: one.confidence).data


def vote(found: Sequence[Component], agreed: Agreement, options: Mapping[str, Any]) -> Any:
    """Return the answer that most components give; values that agree count together, confidence breaks a tie.

    `options.field` names the field that is voted on; without it the whole result is.
    """
    del agreed
    rules, name = rules_of(options), options.get("field")
    groups: list[tuple[Any, list[Component]]] = []
    for component in found:
        value = component.data.get(name) if name and isinstance(component.data, dict) else component.data
        for held, voters in groups:
            if compare(held, value, str(name or ""), rules).relation is Relation.AGREE:
                voters.append(component)
                break
        else:
            groups.append((value, [component]))
    groups.sort(key=lambda one: (-len(one[1]), -sum(voter.confidence for voter in one[1])))
    winner, voters = groups[0]
    return {
        "winner": winner,
        "votes": len(voters),
        "of": len(found),
        "voters": [one.name for one in voters],
        "others": [{"value": value, "votes": len(one)} for value, one in groups[1:]],
    }


STRATEGIES: Final[dict[str, Strategy]] = {"merge": merge, "concat": concat, "first": first, "best": best, "vote": vote}
SYNTHESISE: Final = "synthesise"  # by a model, which is not pure; `aggregate` does what it does without one
# What the options of the strategies here may say; `aggregate` has what each means.
_OPTIONS: Final = frozenset(
    {"order", "titles", "terms", "important", "tolerance", "aliases", "rates", "dollar", "ordered", "exact", "need"}
)
OPTIONS: Final[dict[str, frozenset[str]]] = {
    **dict.fromkeys(STRATEGIES, _OPTIONS), "vote": _OPTIONS | {"field"}, SYNTHESISE: _OPTIONS | {"agent"}
}  # fmt: skip
