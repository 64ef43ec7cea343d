"""The inputs of a routed call: given, made by earlier parts, known in the session, or the words of the request themselves."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import json

from comity.agents.orchestrator.catalogue import MESSAGE, Offer
from comity.core.orchestration.conflict.fields import same_name
from comity.core.orchestration.conflict.finding import Rules

# Names of an input that takes a request in the user's own words.
WORDS: Final = frozenset(
    {"text", "request", "question", "query", "prompt", "message", "task", "objective", "topic", "subject", "instruction",
     "goal", "user_message", "description", "brief"}
)  # fmt: skip
_RULES: Final = Rules()


def fill(offer: Offer, text: str, *sources: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the inputs of a call, each from the first source that has it, and the required ones that no source has.

    A source may also hold the inputs of one capability under its code.
    """
    if offer.route.capability == MESSAGE:
        return {}, []
    properties = offer.inputs.get("properties", {})
    required = set(offer.inputs.get("required", ()))
    found: dict[str, Any] = {}
    for name, schema in properties.items():
        for source in sources:
            own = source.get(offer.route.capability)
            value = _known(name, own) if isinstance(own, Mapping) else None
            value = _known(name, source) if value is None else value
            if value is not None and _fits(value, schema):
                found[name] = value
                break
        else:
            if name in WORDS and _fits(text, schema):
                found[name] = text
    return found, [name for name in properties if name in required and name not in found]


def _known(name: str, source: Mapping[str, Any]) -> Any:
    if name in source:
        return source[name]
    wanted = same_name(name, _RULES)
    return next((value for key, value in source.items() if same_name(key, _RULES) == wanted), None)


_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,), "number": (int, float), "integer": (int,), "boolean": (bool,), "array": (list, tuple), "object": (dict,),
}  # fmt: skip


def _fits(value: Any, schema: Mapping[str, Any]) -> bool:
    """Return whether a value has the type that a schema names; the call itself checks the rest."""
    kind = schema.get("type")
    if kind not in _KINDS:
        return True
    is_sound = isinstance(value, _KINDS[kind])
    return is_sound and (kind == "boolean" or not isinstance(value, bool))


def value_of(text: str, schema: Mapping[str, Any]) -> Any:
    """Return an answer as the value that a schema wants; None if it is none."""
    if schema.get("type") == "string":
        return text.strip() or None
    try:
        return json.decode(text.strip().encode())
    except ValueError:
        number = re.sub(r"[,\s%$€£]", "", text)
        try:
            return float(number) / (100 if "%" in text else 1)
        except ValueError:
            return None
