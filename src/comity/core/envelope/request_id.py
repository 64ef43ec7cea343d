"""Which ids a caller may choose for a call, so that none of them is ever an id that a node makes."""

from __future__ import annotations

import re
from typing import Any, Final

from msgspec.structs import replace

from comity.core.envelope.envelope import Request, is_id

# The audit outlives the erasure of a person, and has ids of calls as they were chosen. Other numbers are those of orders.
_PHONE: Final = re.compile(r"\+[0-9][0-9 ()/-]{6,}")
_SHOWN_CHARS: Final = 64
OWN: Final = "comity:"  # before the id of what a node starts by itself: a run of a schedule, or of the parts of a request
_CHOSEN: Final = ".@"  # before an id that an agent chose below a call; a node numbers its own from `.1`


def chosen_id_problem(value: Any) -> str:
    """Return why a caller may not name a call so, or nothing.

    A node numbers what is below a call: `r.1` is the first call that `r` makes, `r#1` the first tool it uses and the question
    whether it may. A caller that could take such an id would get another call's reply, or answer in its place.
    """
    if not is_id(value):
        return "must be printable text that is not empty"
    if "." in value or "#" in value:
        return "must not contain . or #, which number what is below a call: write - or _ instead"
    if value.startswith(OWN):
        return f"must not begin with {OWN}, which names what a node starts by itself"
    if _PHONE.fullmatch(value):
        return "must not be a phone number, since it stands in the audit as it is"
    return ""


def as_refused(value: Any) -> str:
    """Return an id that no caller may choose as a refusal and its audit row name it: quoted, for it may be another call's.

    An address and a phone number are not repeated.
    """
    if not issubclass(type(value), str):
        return f"({type(value).__name__})"
    text = str.__str__(value)
    return "(personal)" if "@" in text or _PHONE.fullmatch(text.strip()) else ascii(text)[:_SHOWN_CHARS]


def below(above: str, chosen: str) -> str:
    """Return the id of a call that an agent outside made under an id of its own: one per calling call and chosen id."""
    return f"{above}{_CHOSEN}{chosen}"


def chosen_part(request_id: str) -> str:
    """Return the id that an agent outside chose for a call, or nothing if the node numbered the call."""
    _, mark, chosen = request_id.rpartition(_CHOSEN)
    return chosen if mark and "." not in chosen and "#" not in chosen else ""


def as_asked(request: Request) -> Request:
    """Return a request as its refusal is recorded: under the id that an agent outside chose, which stays free to be used."""
    chosen = chosen_part(request.request_id)
    return replace(request, request_id=chosen, parent_id=None) if chosen else request
