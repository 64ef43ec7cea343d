"""The examples of the protocols as files: `<dialect>/<kind>_<name>.json`, and `.txt` beside it where the protocol writes a block."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).parent / "vectors"


def text_of(dialect: str, name: str) -> str:
    return (ROOT / dialect / name).read_text(encoding="utf-8")


def document_of(dialect: str, name: str):
    return json.loads(text_of(dialect, f"{name}.json"))


def names(pattern: str) -> list[str]:
    return sorted(str(path.relative_to(ROOT)) for path in ROOT.glob(pattern))
