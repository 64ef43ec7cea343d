"""Selects the engine of a node. Adding one is a folder in `engines/` and a line here."""

from __future__ import annotations

from pathlib import Path

from comity.engines.memory.engine import MemoryEngine
from comity.engines.sqlite.engine import SqliteEngine
from comity.ports import Engine, Journal


def engine_for(store: str | Path | None, node_id: str) -> Engine:
    """Return the default engine for a store."""
    return MemoryEngine(node_id) if store is None else SqliteEngine(store, node_id)


def check_engine(engine: object, store: str | Path | None, journal: Journal | None) -> None:
    """Raise `ValueError` for an invalid engine, or if more than one of engine, store and journal is given."""
    if isinstance(engine, str):
        message = f"there is no engine for {engine!r}; leave it out, or give an object that fits `comity.ports.Engine`"
        raise ValueError(message)  # noqa: TRY004  an address of an engine there is none for, not a wrong type
    given = [name for name, one in (("engine", engine), ("store", store), ("journal", journal)) if one is not None]
    if "engine" in given and len(given) > 1:
        raise ValueError(f"a node takes one of {' and '.join(given)}: an engine brings its own journal")
