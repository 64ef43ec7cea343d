"""Reads the workflows that a node is given."""

from __future__ import annotations

from pathlib import Path

from comity.core.workflow.model import Definition
from comity.core.workflow.read import load


def definition_from(given: Definition | str | Path) -> Definition:
    """Return a definition, or the one in a file or in a text of several lines. Raises `DefinitionError` and `OSError`."""
    if isinstance(given, Definition):
        return given
    is_text = isinstance(given, str) and ("\n" in given or given.lstrip().startswith("{"))
    return load(str(given) if is_text else Path(given).read_text(encoding="utf-8"))
