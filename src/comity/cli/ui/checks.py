"""What a check of this machine, a store or agents has found."""

from __future__ import annotations

from typing import NamedTuple

from comity.cli.ui.exits import Exit


class Check(NamedTuple):
    """One finding. `level` is ok, warning or failed; a failure names the exit code it means."""

    name: str
    level: str
    detail: str
    code: Exit = Exit.OK
