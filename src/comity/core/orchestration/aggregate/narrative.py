"""One narrative of several results: in order, in one set of words, with confidences, differences and what is missing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from comity.core.envelope.confidence import band
from comity.core.orchestration.aggregate.component import Component
from comity.core.orchestration.aggregate.consensus import Agreement, Conflict

FIELDS_SHOWN: Final = 8  # of a result, in a narrative
VALUE_CHARS_MAX: Final = 120
_SHARES: Final = re.compile(r"(?:^|_)(?:rate|share|growth|margin|irr|ctr|percent|pct)(?:_|$)")


def narrative(found: Sequence[Component], agreed: Agreement, terms: Mapping[str, str]) -> str:
    """Return what all components say, as one text for a person."""
    lines = [_told(one) for one in found if one.is_good]
    lines += [_differs(one, {component.name: component for component in found}) for one in agreed.conflicts]
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
    """Return a value as a person reads it: grouped digits, per cent where the name says so, lists with commas."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and abs(value) <= 1 and _SHARES.search(path.lower()):
        return f"{100 * value:.4g} %"
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


def _differs(conflict: Conflict, found: Mapping[str, Component]) -> str:
    said = "; ".join(
        f"{found[name].shown} says {show(value, conflict.path)} ({band(sure).value.lower()} confidence)"
        for name, value, sure in conflict.values
    )
    chosen = "your choice is needed" if conflict.is_for_user else "the surer one is used"
    return f"The results differ on {_label(conflict.path)}: {said}; {chosen}: {show(conflict.preferred, conflict.path)}."


def with_terms(text: str, terms: Mapping[str, str]) -> str:
    """Return a text in which each term is replaced by the term that the whole reply uses."""
    for term, used in terms.items():
        text = re.sub(rf"\b{re.escape(term)}\b", used.replace("\\", r"\\"), text, flags=re.IGNORECASE)
    return text
