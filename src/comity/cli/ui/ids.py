"""Ids as people type them: the last characters of a generated id, which its first ones do not tell from its neighbours'."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from comity.cli.ui.exits import CliError, Exit

SHORT_CHARS: Final = 8
# A part of an id must be this long to mean one.
PART_CHARS_LEAST: Final = 4
_SHOWN_MAX: Final = 5
# A generated id, and what the node adds to it for what the call makes.
_GENERATED: Final = re.compile(r"[0-9a-f]{24}(?P<short>[0-9a-f]{8}(?:[.#].*)?)")


def short(identifier: str) -> str:
    """Return the end of a generated id; an id that a caller chose is shown whole."""
    found = _GENERATED.fullmatch(identifier)
    return found["short"] if found else identifier


def find(part: str, known: Iterable[str], *, what: str) -> str | None:
    """Return the one known id that begins or ends with `part`, or None. Raises `CliError` where it fits several."""
    if len(part) < PART_CHARS_LEAST:
        return None
    fitting = sorted({one for one in known if one.endswith(part) or one.startswith(part)})
    if len(fitting) > 1:
        some = ", ".join(fitting[:_SHOWN_MAX]) + (", …" if len(fitting) > _SHOWN_MAX else "")
        raise CliError(Exit.USAGE, f"{part!r} fits {len(fitting)} {what}s: {some}", hint="Give more of the id.")
    return fitting[0] if fitting else None
