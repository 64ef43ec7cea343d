"""What a delegation response says of every result: the result in words, a summary of it, and whether an answer is awaited.

Agents that return data, and models, say nothing of the kind. A node fills it in where its answer leaves; `delegation` writes
what a reply says and nothing else, so that a document comes back as it was.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from comity.core.call.limits import MESSAGE_BYTES_MAX
from comity.core.envelope.envelope import Reply, Status
from comity.dialects.reading.form import plain_of

SENTENCES_MAX: Final = 3
SUMMARY_CHARS_MAX: Final = 300
_NAMES_MAX: Final = 5
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+")


def finished(reply: Reply, capability_version: str) -> Reply:  # noqa: ARG001  the protocol has no word for it
    """Return a node's reply with the texts that the protocol asks for, where its agent did not write them."""
    error = "" if reply.error is None else reply.error.message
    return replace(
        reply,
        message=reply.message or _in_words(reply.data),
        summary=reply.summary or (summary_of(reply.message or error) if reply.message or error else _outline(reply.data)),
        requires_followup=reply.requires_followup or reply.status is Status.NEEDS_INPUT,
    )


def summary_of(text: str) -> str:
    """Return the first sentences of a text, at most three; a long one is cut between words."""
    whole = " ".join(text.split())
    sentences = _SENTENCE_END.split(whole, SENTENCES_MAX)[:SENTENCES_MAX]
    while len(sentences) > 1 and len(" ".join(sentences)) > SUMMARY_CHARS_MAX:
        sentences.pop()
    summary = " ".join(sentences)
    if len(summary) <= SUMMARY_CHARS_MAX:
        return summary
    return (
        summary[: SUMMARY_CHARS_MAX - 1].rpartition(" ")[0] + "…" if " " in summary else summary[: SUMMARY_CHARS_MAX - 1] + "…"
    )


def _in_words(data: Any) -> str:
    if data is None or isinstance(data, str):
        return data or ""
    text = msgspec.json.encode(plain_of(data)).decode()
    return text if len(text.encode()) <= MESSAGE_BYTES_MAX else "The result is the artifact labelled data."


def _outline(data: Any) -> str:
    """Return an outline of data for which the agent gave no description."""
    match data:
        case None:
            return ""
        case dict():
            more = f" and {len(data) - _NAMES_MAX} more" if len(data) > _NAMES_MAX else ""
            names = ", ".join(list(data)[:_NAMES_MAX]) + more
            return summary_of(f"The result has the fields {names}.") if data else "The result is empty."
        case list():
            return f"The result has {len(data)} {'item' if len(data) == 1 else 'items'}."
        case _:
            return summary_of(str(data))
