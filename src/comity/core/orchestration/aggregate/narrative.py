"""One narrative of several results: in order, in one set of words, with confidences, differences and what is missing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from comity.core.envelope.confidence import band
from comity.core.orchestration.aggregate.component import Component
from comity.core.orchestration.aggregate.consensus import Agreement, Conflict
from comity.core.orchestration.conflict.finding import name_of

FIELDS_SHOWN: Final = 8  # of a result, in a narrative
VALUE_CHARS_MAX: Final = 120
_SHARES: Final = re.compile(r"(?:^|_)(?:rate|share|growth|margin|irr|ctr|percent|pct)(?:_|$)")
_YEARS: Final = re.compile(r"(?:^|(?<!per)_)(?:year|fy|founded|established|since|vintage)(?:_|$)")
_YEARS_SHOWN: Final = range(1900, 2200)


def narrative(found: Sequence[Component], agreed: Agreement, terms: Mapping[str, str], strategy: str, result: Any) -> str:
    """Return what all components say, as one text for a person; `result` is what `strategy` made of the good ones.

    strategy: its name; empty for a custom one.
    """
    good = [one for one in found if one.is_good]
    lines = [_told(one) for one in good]
    lines += [_differs(one, good, strategy, result) for one in agreed.conflicts]
    if missing := [one for one in found if not one.is_good]:
        lines.append(f"Not included:{reasons(missing)}")
    return with_terms("\n".join(lines), terms)


def reason(component: Component) -> str:
    """Return which component is missing and why; a reason that names the component itself stands alone."""
    why = component.message.rstrip(".") or component.error or component.status.replace("_", " ")
    if component.shown.casefold() in why.casefold():
        return why
    return f"{component.shown}, because {why[:1].lower() + why[1:] if why[1:2].islower() else why}"


def reasons(missing: Sequence[Component]) -> str:
    """Return what follows a colon: which components are missing and why, each on a line of its own if there are several."""
    told = [f"{reason(one)}." for one in missing]
    return f" {told[0]}" if len(told) == 1 else "".join(f"\n- {_capital(one)}" for one in told)


def question(conflict: Conflict, found: Sequence[Component]) -> str:
    """Return what the user is asked about a conflict."""
    titles = {one.name: one.shown for one in found}
    offered = " or ".join(f"{show(value, conflict.path)} ({titles.get(name, name)})" for name, value, _ in conflict.values[:3])
    return f"The results differ on {_label(conflict.path)}: which should count, {offered}?"


def _told(component: Component) -> str:
    sure = f" ({band(component.confidence).value.lower()} confidence)"
    said = component.message.strip() or facts(component.data)
    warned = "; ".join(one.rstrip(". ") for one in component.warnings)
    limits = f" Limited: {warned}." if warned else ""
    return f"{_capital(component.shown)}{sure}: {said.rstrip('.')}.{limits}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def facts(data: Any) -> str:
    """Return the first fields of a result in words."""
    if not isinstance(data, dict):
        return show(data)
    shown = [f"{_label(key)} {show(value, key)}" for key, value in list(data.items())[:FIELDS_SHOWN]]
    more = len(data) - FIELDS_SHOWN
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def _label(path: str) -> str:
    return path.rpartition(".")[2].replace("_", " ")


def show(value: Any, path: str = "") -> str:
    """Return a value as a person reads it: grouped digits but in years, per cent where the name says so, lists with commas."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and abs(value) <= 1 and _SHARES.search(path.lower()):
        return f"{100 * value:.4g} %"
    if isinstance(value, int) and value in _YEARS_SHOWN and _YEARS.search(name_of(path)):
        return str(value)
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) or abs(value) < 1 else f"{value:,.2f}".rstrip("0").rstrip(".")
    if value is None:
        return "not known"
    if isinstance(value, list | tuple):
        text = ", ".join(show(one) for one in value[:FIELDS_SHOWN])
    elif isinstance(value, dict):
        text = ", ".join(f"{_label(str(key))} {show(one, str(key))}" for key, one in list(value.items())[:FIELDS_SHOWN])
    else:
        text = str(value)
    return text if len(text) <= VALUE_CHARS_MAX else f"{text[:VALUE_CHARS_MAX]}…"


def _differs(conflict: Conflict, good: Sequence[Component], strategy: str, result: Any) -> str:
    shown = {one.name: one.shown for one in good}
    said = "; ".join(
        f"{shown[name]} says {show(value, conflict.path)} ({band(sure).value.lower()} confidence)"
        for name, value, sure in conflict.values
    )
    used = _used(conflict, good, strategy, result)
    if conflict.is_for_user:
        used = ("your choice is needed", *used[1:])
    return f"The results differ on {_label(conflict.path)}: {'; '.join(one for one in (said, ': '.join(used)) if one)}."


def _used(conflict: Conflict, good: Sequence[Component], strategy: str, result: Any) -> tuple[str, ...]:
    """Return which of the values the result has, in words, and the value if it is one; nothing for a custom strategy."""
    values = {name: value for name, value, _ in conflict.values}
    match strategy:
        case "merge" | "synthesise":
            return "the surer one is used", show(conflict.preferred, conflict.path)
        case "concat":
            return ("all are in the result",)
        case "first":
            name, words = good[0].name, "the first one is used"
        case "best":
            name, words = max(good, key=lambda one: one.confidence).name, "the one of the surest result is used"
        case "vote":
            name, words = result["voters"][0], "the one with the most votes is used"
            whole = next(one.data for one in good if one.name == name)
            if result["winner"] not in (whole, values.get(name)):
                return ("none is used, since the vote is on another field",)
        case _:
            return ()
    return (words, show(values[name], conflict.path)) if name in values else ("none is used",)


def with_terms(text: str, terms: Mapping[str, str]) -> str:
    """Return a text in which each term is replaced by the term that the whole reply uses."""
    for term, used in terms.items():
        text = re.sub(rf"\b{re.escape(term)}\b", used.replace("\\", r"\\"), text, flags=re.IGNORECASE)
    return text
