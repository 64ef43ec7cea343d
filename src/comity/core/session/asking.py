"""Avoids asking the user for facts that are known already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from comity.core.envelope.envelope import Reply
from comity.core.session.conversation import plain_text
from comity.core.session.memory import plain_key

MISSING: Final = "missing"  # the field in a question's data that lists the facts asked for


def asked_for(reply: Reply, known: Iterable[str]) -> tuple[str, ...]:
    """Return the known facts that a question asks for: those it lists as missing, else those that its text names."""
    listed = reply.data.get(MISSING) if isinstance(reply.data, Mapping) else None
    if isinstance(listed, (list, tuple)):
        wanted = {plain_key(one) for one in listed if isinstance(one, str)}
        return tuple(key for key in known if plain_key(key) in wanted)
    words = f"_{plain_key(reply.message)}_"
    return tuple(key for key in known if (plain := plain_key(key)) and f"_{plain}_" in words)


def answers(facts: Mapping[str, Any]) -> str:
    """Return the facts as lines, one per key."""
    return "\n".join(f"- {key}: {plain_text(value)}" for key, value in facts.items())


def reminder(quoted: str) -> str:
    """Return the text for a model that asks for known facts; `quoted` are these facts."""
    return (
        f"What you ask for may be known already:\n{quoted}\n"
        "If that answers your question, go on with it. If it does not, ask again, for what is still missing."
    )
