"""One page of a list, and the cursor of the next: opaque to clients, bounded, and never a reason to fail."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any, Final, Generic

import msgspec
from msgspec import Meta, Struct
from typing_extensions import TypeVar

from comity.core.call.limits import CITED_CHARS_MAX
from comity.errors import CallerError

ROWS_DEFAULT: Final = 100
ROWS_MAX: Final = 1_000
Limit = Annotated[int, Meta(ge=1, le=ROWS_MAX)]
_CURSOR_CHARS_MAX: Final = 1_024
Item = TypeVar("Item", default=Any)
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[Any]).decode


class Page(Struct, Generic[Item], frozen=True):
    """Some items of a list, and the cursor of those after them; None on the last page."""

    items: list[Item]
    next: str | None = None


def write_cursor(*place: Any) -> str:
    """Return the cursor of a place in a list."""
    return base64.urlsafe_b64encode(_encode(place)).decode().rstrip("=")


def read_cursor(cursor: str, *kinds: type) -> tuple[Any, ...]:
    """Return the place that a cursor names. Raises `CallerError` for a text that `write_cursor` never gave."""
    if len(cursor) > _CURSOR_CHARS_MAX or not cursor.isascii():
        raise _unknown(cursor)
    try:
        place = _decode(base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True))
    except (ValueError, binascii.Error, msgspec.DecodeError):
        raise _unknown(cursor) from None
    if [type(one) for one in place] != list(kinds) or not all(_is_kept(one) for one in place):
        raise _unknown(cursor)
    return tuple(place)


def _is_kept(value: Any) -> bool:
    """Return whether a store could have given a value: it keeps whole numbers of 64 bits."""
    return not isinstance(value, int) or -(2**63) <= value < 2**63


def _unknown(cursor: str) -> CallerError:
    return CallerError(f"cursor {ascii(cursor)[:CITED_CHARS_MAX]} was not given by a page", code="HTTP_QUERY_INVALID")
