"""The error for a wrong declaration of an agent, a tool or a node."""

from __future__ import annotations

from typing import Any

_SHOWN_CHARS_MAX = 60


class DeclarationError(ValueError):
    """An agent, capability, tool, node or registry file is declared wrongly."""


def shown(value: Any) -> str:
    """Return a value that was given by mistake as a message can show it: short, and with its type."""
    text = repr(value)
    return f"{text if len(text) <= _SHOWN_CHARS_MAX else f'{text[:_SHOWN_CHARS_MAX]}…'} ({type(value).__name__})"
