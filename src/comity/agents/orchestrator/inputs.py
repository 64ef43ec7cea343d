"""The inputs of a routed call: what the user said first, then what agents gave, then the words of the request themselves.

A capability with effects takes a value from an agent only where the request asks for that value; else the user is asked.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from msgspec import json

from comity.agents.orchestrator.catalogue import MESSAGE, Offer
from comity.core.orchestration.conflict.fields import same_name
from comity.core.orchestration.conflict.finding import Rules
from comity.core.orchestration.split.reference import refers_back
from comity.core.orchestration.split.verbs import tokens

# Names of an input that takes a request in the user's own words.
WORDS: Final = frozenset(
    {"text", "request", "question", "query", "prompt", "message", "task", "objective", "topic", "subject", "instruction",
     "goal", "user_message", "description", "brief"}
)  # fmt: skip
# Names of an input that are in most sentences, and so name nothing.
_COMMON: Final = frozenset(
    {"to", "from", "by", "at", "in", "on", "of", "for", "with", "as", "via", "is", "do", "and", "or", "the", "a"}
)
_RULES: Final = Rules()


@dataclass(frozen=True, slots=True)
class Gave:
    """Data that an agent gave, and the words of the part that asked for it; no words for what agents noted in the session."""

    asked: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the inputs of a call may come from. The user's values come first; `gave` is in the order of precedence."""

    given: Mapping[str, Any]  # with this request; may hold the inputs of one capability under its code
    stated: Mapping[str, Any]  # by the user, earlier in the session
    gave: Sequence[Gave]


@dataclass(frozen=True, slots=True)
class Filled:
    """The inputs of a call, the required ones that are not known, and what agents gave for those."""

    inputs: dict[str, Any]
    lacking: list[str]
    doubted: dict[str, tuple[Any, str]]  # for every lacking input or for none: the value, and the words that asked for it
    unfit: tuple[str, ...] = ()  # of the lacking ones: those that the user gave with another type

    @property
    def offered(self) -> dict[str, Any]:
        """The values that the call takes if the user says yes."""
        return {name: value for name, (value, _) in self.doubted.items()}

    @property
    def asked_for(self) -> dict[str, Any]:
        """The data of the question for what is lacking."""
        return {"missing": self.lacking, **({"offered": self.offered} if self.doubted else {})}


def fill(offer: Offer, text: str, sources: Sources) -> Filled:
    """Return the inputs of a call for a part of a request, each from the first source that has it.

    Where the user's value has a type that a capability with effects cannot take, no agent's value stands in for it.
    """
    if offer.route.capability == MESSAGE:
        return Filled({}, [], {})
    properties = offer.inputs.get("properties", {})
    required = [name for name in properties if name in offer.inputs.get("required", ())]
    own = sources.given.get(offer.route.capability)
    said = [*([own] if isinstance(own, Mapping) else []), sources.given, sources.stated]
    found: dict[str, Any] = {}
    told: dict[str, tuple[Any, str]] = {}  # by agents: the value, and the words that asked for it
    for name, schema in properties.items():
        value = next((one for source in said if _suits(one := _known(name, source), schema)), None)
        gave = [(one, source.asked) for source in sources.gave if _suits(one := _known(name, source.data), schema)]
        is_worded = name in WORDS and _suits(text, schema)
        if value is not None:
            found[name] = value
        elif gave and not (is_worded and _is_beside(text, gave[0][1], has_effects=offer.has_effects)):
            told[name] = gave[0]
        elif is_worded:
            found[name] = text
    lacking = [name for name in required if name not in found]
    used = _asked_for(text, told, lacking) if offer.has_effects else told
    found |= {name: told[name][0] for name in used if not (offer.has_effects and any(name in source for source in said))}
    lacking = [name for name in lacking if name not in found]
    is_whole = all(name in told for name in lacking)
    unfit = tuple(name for name in lacking if any(_known(name, source) is not None for source in said))
    return Filled(found, lacking, {name: told[name] for name in lacking} if is_whole else {}, unfit)


def _is_beside(text: str, asked: str, *, has_effects: bool) -> bool:
    """Return whether the words of a part say more about it than what an agent gave for other words, or noted."""
    return not refers_back(text, asked) if asked else has_effects


def _asked_for(text: str, told: Mapping[str, tuple[Any, str]], lacking: Sequence[str]) -> list[str]:
    """Return the values of agents that a request says to use: "look up the account and pay it".

    These are the values that the words of the earlier part name. Where they name none, a part that refers back ("email it")
    means the one value that it lacks, if it lacks one only.
    """
    earlier = {name: asked for name, (_, asked) in told.items() if asked and asked != text}
    if named := [name for name, asked in earlier.items() if _is_named(name, asked)]:
        return named
    meant = list(lacking or told)
    is_meant = len(meant) == 1 and meant[0] in earlier and refers_back(text, earlier[meant[0]])
    return meant if is_meant else []


def _is_named(name: str, text: str) -> bool:
    said = {word.removesuffix("s") for word in tokens(text)}
    words = {word.removesuffix("s") for word in tokens(name.replace("_", " "))}
    return words <= said and bool(words - _COMMON)


def _known(name: str, source: Mapping[str, Any]) -> Any:
    if name in source:
        return source[name]
    wanted = same_name(name, _RULES)
    return next((value for key, value in source.items() if same_name(key, _RULES) == wanted), None)


_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,), "number": (int, float), "integer": (int,), "boolean": (bool,), "array": (list, tuple), "object": (dict,),
}  # fmt: skip


def _suits(value: Any, schema: Mapping[str, Any]) -> bool:
    """Return whether there is a value and it has the type that a schema names, as have its items; the call checks the rest."""
    kind = schema.get("type")
    if value is None:
        return False
    if kind not in _KINDS:
        return True
    is_sound = isinstance(value, _KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool))
    items = schema.get("items")
    if is_sound and kind == "array" and isinstance(items, Mapping):
        return all(one is None or _suits(one, items) for one in value)
    return is_sound


def unknown(given: Collection[str], known: Iterable[str]) -> list[str]:
    """Return the names of given inputs that are none of the known ones, in another spelling either."""
    spelled = {same_name(name, _RULES) for name in known}
    return [name for name in given if same_name(name, _RULES) not in spelled]


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
