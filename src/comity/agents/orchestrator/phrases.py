"""What a user reads while requests are routed: in the user's words, without the names of agents."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from comity.agents.orchestrator.catalogue import Offer
from comity.core.orchestration.intent import Intent
from comity.core.orchestration.split import Plan
from comity.core.session.conversation import plain_text

HELP: Final = Intent(
    "(help)",
    "Say what can be done here, which abilities there are",
    ("help", "what can you do", "what can you help me with", "how does this work", "who are you", "list your abilities"),
)
THANKS: Final = Intent(
    "(thanks)", "Thanks and greetings", ("thank you", "thanks a lot", "hello", "hi there", "good morning", "bye")
)
STATUS: Final = Intent(
    "(status)", "Where the work stands", ("where are we", "what is the status", "how far are you", "what have we done so far")
)
LOCAL: Final = (HELP, THANKS, STATUS)  # what an orchestrator answers itself: routing them would add nothing but time
LOCAL_NAMES: Final = frozenset(one.name for one in LOCAL)
_AGAIN: Final = re.compile(
    r"\b(?:again|re-?run|redo|refresh|re-?calculate|once more|anew|fresh|re-?do|update)\b", re.IGNORECASE
)
_CHOICE: Final = re.compile(r"^\W*(?:option\s*|number\s*|no\.?\s*)?([1-3])\W*$", re.IGNORECASE)
_ORDINALS: Final = {"first": 0, "second": 1, "third": 2, "last": -1}
QUOTED_CHARS_MAX: Final = 80
_KINDS: Final = {
    "string": "a text", "number": "a number", "integer": "a whole number", "boolean": "true or false", "array": "a list",
    "object": "an object",
}  # fmt: skip
_ITEMS: Final = {"string": "texts", "number": "numbers", "integer": "whole numbers", "object": "objects"}
_YES: Final = re.compile(
    r"\W*(?:yes|yeah|yep|sure|ok|okay|correct|right|go ahead|please do|do (?:it|so)|use (?:it|them|that|those))"
    r"(?:\W+(?:please|thanks|do|so|use|it|them|that|those|this|go|ahead))*\W*",
    re.IGNORECASE,
)
_NO: Final = re.compile(
    r"\W*(?:no|nope|stop|cancel|don['’]?t|do not|never)(?:\W+(?:please|thanks|thank|you|do|use|it|them|that|those|this))*\W*",
    re.IGNORECASE,
)
_BEGINS: Final = re.compile(r"\W*(?:yes|yeah|yep|sure|ok|okay|no|nope|stop|cancel|don['’]?t|do not|never)\b", re.IGNORECASE)


def is_yes(text: str) -> bool:
    """Return whether an answer is yes and nothing more."""
    return bool(_YES.fullmatch(text))


def is_no(text: str) -> bool:
    """Return whether an answer is no and nothing more."""
    return bool(_NO.fullmatch(text))


def begins_as_answer(text: str) -> bool:
    """Return whether a text begins as yes or no does, and so is no value."""
    return bool(_BEGINS.match(text))


def wants_again(text: str) -> bool:
    """Return whether a request asks for something to be done again."""
    return bool(_AGAIN.search(text))


def clarifying(text: str, offers: Sequence[Offer]) -> str:
    """Return the one question that is asked when it is not clear what a request wants."""
    if len(offers) == 1:
        return f'By "{quoted(text)}", do you want me to {_verb(offers[0].label)}? Please say yes, or what you want instead.'
    return f'What do you want for "{quoted(text)}"?\n{listed(offers)}'


def options(text: str, offers: Sequence[Offer]) -> str:
    """Return the question that offers two or three ways to serve a request."""
    return f'I can do several things for "{quoted(text)}". Which one?\n{listed(offers)}'


def listed(offers: Sequence[Offer]) -> str:
    """Return the numbered options."""
    return "\n".join(f"{at}. {offer.label}" for at, offer in enumerate(offers, 1))


def declined(text: str, near: Sequence[Offer]) -> str:
    """Return the sentence that says that nothing here serves a request, with what comes nearest."""
    nearest = f" The nearest I can do: {'; '.join(offer.label for offer in near)}." if near else ""
    return f'I cannot help with "{quoted(text)}".{nearest}'


def missing(offer: Offer, names: Sequence[str], unfit: Sequence[str] = ()) -> str:
    """Return the question for inputs that are needed and not known; `unfit`: those that were given with another type."""
    wanted = ", ".join(name.replace("_", " ") for name in names)
    schemas = offer.inputs.get("properties", {})
    wrong = "".join(f" What was given for {name.replace('_', ' ')} is not {_kind(schemas.get(name, {}))}." for name in unfit)
    return f"To {_verb(offer.label)} I need: {wanted}.{wrong}"


def unused(names: Sequence[str]) -> str:
    """Return the warning about given inputs that nothing here takes."""
    return f"Not used, because nothing here takes it: {', '.join(name[:QUOTED_CHARS_MAX] for name in names)}"


def _kind(schema: Mapping[str, Any]) -> str:
    """Return the type of a schema in words."""
    kind = str(schema.get("type", ""))
    items = str((schema.get("items") or {}).get("type", "")) if kind == "array" else ""
    return f"a list of {_ITEMS[items]}" if items in _ITEMS else _KINDS.get(kind, "what it takes")


def doubted(offer: Offer, found: Mapping[str, tuple[Any, str]]) -> str:
    """Return the question whether to use values that only an agent gave, each with the words that asked for it."""
    told = "; ".join(
        f"{name.replace('_', ' ')} {quoted(plain_text(value))} ({f'from “{quoted(asked)}”' if asked else 'noted earlier'})"
        for name, (value, asked) in found.items()
    )
    return (
        f"To {_verb(offer.label)} I have this, which you did not say: {told}. Shall I use it? Say yes, or what to use instead."
    )


def abilities(offers: Sequence[Offer]) -> str:
    """Return what can be done here, for people."""
    if not offers:
        return "Nothing can be done here yet."
    return "I can help with:\n" + "\n".join(f"- {offer.label}" for offer in offers[:20])


def planned(plan: Plan) -> str:
    """Return a plan as steps that a user can read."""
    lines = []
    for number, stage in enumerate(plan.stages, 1):
        texts = [plan.parts[at].text.strip(" .") for at in stage]
        lines.append(f"{number}. {' · at the same time: '.join(texts)}")
    return "\n".join(lines)


def referred(offer: Offer, minutes: int) -> str:
    """Return the sentence that refers to an analysis presented before."""
    told = f"I presented this {_ago(minutes)} ({offer.label}), from the same data"
    return f"{told}; nothing was run again. Say “again” for a fresh one."


def recalled(facts: str, minutes: int) -> str:
    """Return what an analysis presented before said, as one part of several."""
    return f"{facts} (presented {_ago(minutes)}, from the same data; not run again)"


def _ago(minutes: int) -> str:
    return "just now" if minutes < 1 else f"{minutes} minute{'s' if minutes > 1 else ''} ago"


def choice(text: str, labels: Sequence[str]) -> int | None:
    """Return which option an answer takes: its number, an ordinal, yes for the only one, or its words; None for none."""
    if found := _CHOICE.match(text):
        at = int(found[1]) - 1
        return at if at < len(labels) else None
    words = re.findall(r"[a-z]+", text.lower())
    for word, at in _ORDINALS.items():
        if word in words and len(words) <= 4:
            return at % len(labels) if -len(labels) <= at < len(labels) else None
    if len(labels) == 1 and words[:1] in (["yes"], ["yeah"], ["yep"], ["sure"], ["ok"], ["okay"], ["correct"], ["right"]):
        return 0
    said = text.strip(" .!").casefold()
    return next((at for at, label in enumerate(labels) if said and said == label.casefold()), None)


def quoted(text: str) -> str:
    """Return the beginning of a request on one line."""
    line = " ".join(text.split())
    return line if len(line) <= QUOTED_CHARS_MAX else f"{line[:QUOTED_CHARS_MAX]}…"


def _verb(label: str) -> str:
    """Return a label as what follows "to": a label that begins with no verb gets one."""
    from comity.core.orchestration.split.verbs import VERBS  # noqa: PLC0415  a word list that only questions need

    first = label.split(" ", 1)[0].lower()
    return label if first in VERBS else f"give you {label}"
