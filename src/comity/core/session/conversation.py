"""The conversation of a session: its turns, how many are kept, how many a callee may see, and references to them.

A turn is a user's request to an agent, or a reply to the user: an answer, a question, data without a message, an error. Equal
turns are not merged.
"""

from __future__ import annotations

import re
from typing import Any, Final

from msgspec import Struct, json

from comity.core.document.payload import Problem
from comity.core.envelope.envelope import Reply, Request, Status
from comity.errors import CallerError

USER: Final = "user"
SUMMARY: Final = "summary"
TURNS_MAX: Final = 1_000
TURNS_CHARS_MAX: Final = 200_000  # of all turns of a session
DATA_CHARS_MAX: Final = 20_000  # of an answer that is data without a message
SUMMARY_CHARS_MAX: Final = 2_000
HISTORY: Final = "must be none, summary, full or a number of turns"
UNANSWERED: Final = frozenset({Status.ERROR, Status.TIMEOUT, Status.CANCELLED})

_REFERENCE: Final = re.compile(r"session:(.+)@([0-9]{1,15})\?history=(none|summary|full|[0-9]{1,9})", re.DOTALL)
_encode = json.Encoder().encode


class Turn(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One turn: `role` is `user`, or the address of the agent."""

    role: str
    text: str
    at_ms: int
    request_id: str = ""  # of the call it was said in; empty for what an agent's code noted
    status: str = ""  # of the reply, where it was no success
    by: str = ""  # the agent whose code noted the turn; empty where the node did
    task: str = ""  # the user's whole request if that is more than `text`: objective, message, inputs
    version: int = 0  # of the session once it was said
    claimed_role: str = ""  # the role that the agent `by` claimed, if not its own


class HistoryReference(Struct, frozen=True):
    """A parsed history reference: a session at a version, and a history policy."""

    session_id: str
    version: int
    policy: str | int

    def __str__(self) -> str:
        return f"session:{self.session_id}@{self.version}?history={self.policy}"


def writer_of(address: str) -> str:
    """Return `Turn.by` for an agent's turn that the node added: the agent's id if it could be read as another role."""
    agent_id = address.partition("/")[0]
    return agent_id if agent_id in (USER, SUMMARY) else ""


def read_reference(text: str) -> HistoryReference:
    """Parse a history reference. Raises `CallerError` for an invalid one."""
    match = _REFERENCE.fullmatch(text) if type(text) is str else None
    if match is None:
        problem = Problem("history_ref", "must read session:ID@VERSION?history=POLICY")
        raise CallerError(f"history_ref {problem.message}", code="INPUT_VALIDATION_FAILED", problems=(problem,))
    policy = match[3]
    return HistoryReference(match[1], int(match[2]), int(policy) if policy.isdigit() else policy)


def narrower(one: str | int, other: str | int) -> str | int:
    """Return the stricter of two history policies."""
    for policy, rest in ((one, other), (other, one)):
        if policy == "full":
            return rest
        if policy in ("none", 0):
            return "none"
    if isinstance(one, int) and isinstance(other, int):
        return min(one, other)
    return SUMMARY


def select(turns: tuple[Turn, ...], policy: str | int, summary: str = "", at_ms: int = 0) -> tuple[Turn, ...]:
    """Return the turns that a policy lets a callee see."""
    match policy:
        case "none":
            return ()
        case "full":
            return turns
        case "summary":
            text = summary or _digest(turns)
            return (Turn(SUMMARY, text, at_ms),) if text else ()
        case int() as last if last >= 0:
            return turns[-last:] if last else ()
        case _:
            raise ValueError(f"history policy {HISTORY}, not {policy!r}")


def size_of(turn: Turn) -> int:
    """Return how many characters a turn has."""
    return len(turn.text) + len(turn.task)


def bounded(turns: tuple[Turn, ...], chars: int) -> tuple[tuple[Turn, ...], int]:
    """Return the turns that a session keeps, and their number of characters: all, or the newest within half the limit.

    `chars` is the number of characters of all turns. Half is dropped at once, so that the beginning of a model's prompt stays
    the same for many turns.
    """
    if len(turns) <= TURNS_MAX and chars <= TURNS_CHARS_MAX:
        return turns, chars
    first = 0
    while first < len(turns) - 1 and (len(turns) - first > TURNS_MAX // 2 or chars > TURNS_CHARS_MAX // 2):
        chars -= size_of(turns[first])
        first += 1
    return turns[first:], chars


def task_text(objective: str, message: str, inputs: Any) -> str:
    """Return objective, message and inputs as one text."""
    parts = (f"Objective: {objective}" if objective else "", message, f"Inputs:\n{_encode(inputs).decode()}" if inputs else "")
    return "\n\n".join(filter(None, parts))


def answer_text(reply: Reply) -> str:
    """Return the text of a reply for the user: its message, its data, or its error."""
    if reply.error is not None:
        return reply.error.message or reply.message
    if reply.message or reply.data in (None, {}, []):
        return reply.message
    return clip(plain_text(reply.data), DATA_CHARS_MAX)


def plain_text(value: Any) -> str:
    """Return a text unchanged, any other value as JSON."""
    return value if isinstance(value, str) else _encode(value).decode()


def clip(text: str, chars_max: int) -> str:
    """Return a text cut to a length, with a note on how many characters are missing."""
    if len(text) <= chars_max:
        return text
    return f"{text[:chars_max]}\n(cut here: {len(text) - chars_max:,} more characters)"


def position_of(turns: tuple[Turn, ...], request: Request) -> int:
    """Return the index of a call's own message in a conversation; the end if it is not there."""
    return next((place for place, turn in enumerate(turns) if turn.request_id == request.request_id), len(turns))


def _digest(turns: tuple[Turn, ...]) -> str:
    """Return the first sentence of each turn, newest kept when there is too much."""
    lines = [f"{_speaker(turn)}: {turn.text.partition('. ')[0]}" for turn in turns]
    return "\n".join(lines)[-SUMMARY_CHARS_MAX:]


def _speaker(turn: Turn) -> str:
    return f"agent {turn.by}" if turn.by else turn.role
