"""The sentences in which the delegation protocol tells what went wrong, and the codes they stand for.

Clients of that protocol know errors by their texts, so an error whose facts are known is written in the protocol's own form.
Any other error is written as in every dialect with one text for errors: `CODE: sentence`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from comity.core.envelope.envelope import Error

_Facts = Mapping[str, Any]


class _Form(NamedTuple):
    """One sentence: how it is written from the facts of an error, and how it is read."""

    code: str
    write: Callable[[_Facts], str]
    pattern: re.Pattern[str]
    read: Callable[[re.Match[str]], dict[str, Any]]


def _form(code: str, write: Callable[[_Facts], str], pattern: str, read: Callable[[re.Match[str]], dict[str, Any]]) -> _Form:
    return _Form(code, write, re.compile(pattern), read)


# A delegation's `max_depth` is the first depth that is refused.
_FORMS: Final = (
    _form(
        "LIMIT_DEPTH_EXCEEDED",
        lambda facts: (
            f"Delegation depth limit reached ({facts['depth']:d}/{facts['depth_max'] + 1:d}). "
            "Cannot delegate further. Return results to parent."
        ),
        r"Delegation depth limit reached \((\d{1,9})/(\d{1,9})\)\. Cannot delegate further\. Return results to parent\.",
        lambda found: {"depth": int(found[1]), "depth_max": int(found[2]) - 1},
    ),
    _form(
        "LIMIT_FAN_OUT_EXCEEDED",
        lambda facts: (
            f"Too many concurrent delegates ({facts['calls']:d}/{facts['fan_out_max']:d}). "
            f"Choose top {facts['fan_out_max']:d} most relevant employees."
        ),
        r"Too many concurrent delegates \((\d{1,9})/(\d{1,9})\)\. Choose top \2 most relevant employees\.",
        lambda found: {"calls": int(found[1]), "fan_out_max": int(found[2])},
    ),
    _form(
        "ROUTING_OBJECTIVE_IN_PROGRESS",
        lambda facts: f"Cycle detected: {facts['caller']} → {facts['target']} with same objective already in progress.",
        r"Cycle detected: ([^→\n]+) → ([^→\n]+) with same objective already in progress\.",
        lambda found: {"caller": found[1], "target": found[2]},
    ),
    _form(
        "ROUTING_CYCLE_DETECTED",
        lambda facts: f"Cycle detected: {facts['caller']} → {facts['target']} is already in {' → '.join(facts['chain'])}.",
        r"Cycle detected: ([^→\n]+) → ([^→\n]+?) is already in ([^\n]+)\.",
        lambda found: {"caller": found[1], "target": found[2], "chain": found[3].split(" → ")},
    ),
    _form(
        "CALL_TIMEOUT",
        lambda facts: f"Delegation timeout after {facts['timeout_ms']:d}ms",
        r"Delegation timeout after (\d{1,12})ms",
        lambda found: {"timeout_ms": int(found[1])},
    ),
    _form(
        "BUDGET_TOKENS_EXHAUSTED",
        lambda facts: (
            f"Estimated tokens ({facts['estimated']:d}) exceeds budget ({facts['tokens_max']:d}). "
            "Simplify task or increase budget."
        ),
        r"Estimated tokens \((\d{1,12})\) exceeds budget \((\d{1,12})\)\. Simplify task or increase budget\.",
        lambda found: {"estimated": int(found[1]), "tokens_max": int(found[2])},
    ),
    _form(
        "IDENTITY_MISMATCH",
        lambda facts: {"user": "User ID mismatch - security violation"}[facts["claim"]],
        r"User ID mismatch - security violation",
        lambda _: {"claim": "user"},
    ),
    _form(
        "TOOL_NOT_PERMITTED",
        lambda facts: f"Employee {facts['agent']} not authorized to use tool {facts['tool']}",
        r"Employee ([^\s]+) not authorized to use tool ([^\s]+)",
        lambda found: {"agent": found[1], "tool": found[2]},
    ),
)


def sentence_of(error: Error) -> str | None:
    """Return an error in the protocol's own words, or None where it has none, or the facts are not there."""
    for form in _FORMS:
        if form.code == error.code:
            try:
                text = form.write(error.facts)
            except (KeyError, TypeError, ValueError):  # facts may come from any sender
                return None
            return text if _read(form, text) == error.facts else None
    return None


def read_sentence(text: str) -> Error | None:
    """Return the error that one of the protocol's sentences tells of, or None for any other text."""
    for form in _FORMS:
        facts = _read(form, text)
        if facts is not None:
            error = Error.of(form.code, text, facts=facts)
            return error if sentence_of(error) == text else None
    return None


def _read(form: _Form, text: str) -> dict[str, Any] | None:
    found = form.pattern.fullmatch(text)
    return None if found is None else form.read(found)
