"""Checks the arguments of managers and receivers of handoffs.

Every later node must be able to read the queue, so nothing is stored unchecked.
"""

from __future__ import annotations

import math
from typing import Any, Final

from comity.core.agent.declaration import DeclarationError
from comity.core.call.limits import MESSAGE_BYTES_MAX
from comity.core.document.checks import rejected
from comity.core.document.payload import PayloadError, Problem, pack, text_problem
from comity.core.envelope.envelope import is_id

LISTED_MAX: Final = 1_000_000


def refuse(*problems: Problem | None) -> None:
    """Raise `CallerError` with all problems, if there are any."""
    found = tuple(problem for problem in problems if problem is not None)
    if found:
        raise rejected(PayloadError("INPUT_VALIDATION_FAILED", found))


def name_problem(value: Any, path: str) -> Problem | None:
    """Return the problem of a name, or None."""
    return None if is_id(value) else Problem(path, "must be printable text that is not empty")


def number_problem(value: Any, path: str, least: int, most: int) -> Problem | None:
    """Return the problem of a whole number, or None."""
    if type(value) is int and least <= value <= most:
        return None
    return Problem(path, f"must be a whole number from {least} to {most}")


def reason_problem(reason: Any) -> Problem | None:
    """Return the problem of a reason, or None."""
    return text_problem(reason, path="reason", bytes_max=MESSAGE_BYTES_MAX)


def confidence_problem(value: Any) -> Problem | None:
    """Return the problem of a confidence, or None."""
    if isinstance(value, (int, float)) and type(value) is not bool and math.isfinite(value) and 0 <= value <= 1:
        return None
    return Problem("confidence", "must be a number from 0 to 1")


def options_problem(options: Any) -> Problem | None:
    """Return the problem of a question's options, or None."""
    if isinstance(options, (list, tuple, set, frozenset)) and all(isinstance(one, str) for one in options):
        return None
    return Problem("options", "must be a list of texts")


def check_id(handoff_id: Any) -> None:
    """Raise `CallerError` if the value is no valid handoff id."""
    if not is_id(handoff_id):
        refuse(name_problem(handoff_id, "handoff_id"))


def packed(value: Any, path: str, bytes_max: int) -> bytes:
    """Return a value as JSON for the store, or raise `CallerError` with its problems."""
    try:
        return pack(value, path=path, bytes_max=bytes_max)
    except PayloadError as error:
        raise rejected(PayloadError("INPUT_VALIDATION_FAILED", error.problems)) from None


def tenants_of(takes_handoffs: Any) -> tuple[str, ...]:
    """Return the tenants of a node's setting `takes_handoffs`. Raises `DeclarationError` for an invalid one."""
    if isinstance(takes_handoffs, bool):
        return ("default",) if takes_handoffs else ()
    if not isinstance(takes_handoffs, (list, tuple, set, frozenset)) or not all(map(is_id, takes_handoffs)):
        raise DeclarationError("takes_handoffs must be True, False, or a list of tenants")
    return tuple(takes_handoffs)
