"""What the examples share: the model they think with, and how they show what happened."""

from __future__ import annotations

import os
from collections.abc import Iterable

from comity import Node
from comity.ports import Model
from comity.testing import ScriptedModel
from comity.testing.scripted import Step

REAL = {
    "OPENAI_API_KEY": "openai:gpt-5-mini",
    "ANTHROPIC_API_KEY": "anthropic:claude-sonnet-4-6",
    "GOOGLE_API_KEY": "google:gemini-2.5-flash",
}


def model_or(script: Iterable[Step], name: str) -> Model | str:
    """Return the model in `COMITY_MODEL`, or one there is a key for, or else one that follows the script."""
    with_key = next((model for variable, model in REAL.items() if os.environ.get(variable)), None)
    return os.environ.get("COMITY_MODEL") or with_key or ScriptedModel(script, name=f"script of {name}")


def show(node: Node) -> None:
    """Print every call, tool and question to a model in the order they began, each with how it ended."""
    rows = node.audit.rows()
    ends = {row.request_id: row for row in rows if row.status}
    for row in rows:
        if row.kind in {"admitted", "refused"}:
            end = ends.get(row.request_id, row)
            depth = len(row.chain.split())
            outcome = " ".join(filter(None, (end.status, end.error_code, f"{end.tokens} tokens" if end.tokens else "")))
            print(f"{'  ' * depth}{row.origin or row.user_id} → {row.target}: {outcome}")
