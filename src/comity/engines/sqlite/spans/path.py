"""Where spans are: beside the store of the node that records them."""

from __future__ import annotations

import atexit
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from comity.engines.sqlite.spans.store import SpanStore

STORE_DEFAULT: Final = "comity.db"


def spans_path(store: str | Path) -> Path:
    """Return where the spans of a node with a store are kept: beside it, so that writing them never delays a call."""
    path = Path(store)
    return path.with_name(f"{path.name}.spans")


def default_spans() -> SpanStore:
    """Return the spans beside the store that `COMITY_STORE` names, else beside `./comity.db`; open until the program ends."""
    return _open(spans_path(os.environ.get("COMITY_STORE") or STORE_DEFAULT).absolute())


@cache
def _open(path: Path) -> SpanStore:
    from comity.engines.sqlite.spans.store import SpanStore  # noqa: PLC0415  most programs name their store

    store = SpanStore(path)
    atexit.register(store.close)
    return store
