"""Which ids a caller may choose for a call, so that none of them is ever an id that a node makes."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from comity.core.envelope.envelope import Request, is_id

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
    return ""


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
