"""What only the platform says in a reply: that a call was refused, withdrawn or timed out, its own error codes, some metadata.

Callers, budgets, replays and prompts rest on these words, so a reply of an agent that holds one is no reply. What the node
itself told an agent the agent may pass on: the call that passes it on has failed, and says whose words they are.
"""

from __future__ import annotations

from collections.abc import Collection
from types import CodeType
from typing import Any, Final

from msgspec.structs import replace

from comity.core.call.limits import CITED_CHARS_MAX
from comity.core.envelope.envelope import Error, Reply, Status
from comity.core.session.conversation import clip
from comity.errors import AGENT_CODES, CODES, ComityError

CODE: Final = "OUTPUT_RESERVED"
SAID_CHARS_MAX: Final = 500  # of what was said in the platform's words
VERDICTS: Final = frozenset({Status.REFUSED, Status.CANCELLED, Status.TIMEOUT})
CYCLE_TARGET: Final = "cycle.target"  # the agent whose repeat ended the turn of a model agent
TRANSFER_FROM: Final = "transfer.from"  # the agent whose words the reply is, after a transfer
PASSED_ON_BY: Final = "passed_on_by"  # in an error's facts: the agent that got the error from a call, and did not fail itself
MESSAGE: Final = "message"  # the capability that a message asks for
APPROVAL_ID: Final = "approval_id"  # in the data of the node's own question to a person
_PREFIXES: Final = ("cycle.", "transfer.", "comity.")
_OURS: Final = "comity."
# Agents and models for tests and demonstrations speak for themselves; faulty twins of the ports speak for the platform.
_NOT_OURS: Final = (
    "comity.demo.",
    *(
        f"comity.testing.{name}"
        for name in ("cassette", "errands", "faulty_model", "mesh", "refusals", "scenarios", "scripted")
    ),
)
_UNWRAP: Final[CodeType] = Reply.unwrap.__code__


def is_reserved(code: str) -> bool:
    """Return whether a code is the platform's to say; an agent's own codes are not in the table."""
    return code in CODES and code not in AGENT_CODES


def is_own_metadata(name: str) -> bool:
    """Return whether a name in a reply's metadata is the platform's to write."""
    return name.startswith(_PREFIXES)


def words_of(reply: Reply) -> tuple[str, ...]:
    """Return what an agent that is given this reply may pass on: its code, and names of the platform's metadata."""
    names = tuple(filter(is_own_metadata, reply.metadata)) if reply.metadata else ()
    return names if reply.error is None else (reply.error.code, *names)


def problem_of(reply: Reply, data: Any, told: Collection[str]) -> str:
    """Return what an agent's reply with this data says that only the platform may say; empty if nothing.

    `told` are the words (see `words_of`) of the replies that the agent was given.
    """
    error = reply.error
    is_told = error is not None and error.code in told
    if reply.status in VERDICTS and not is_told:
        return f"the status {reply.status}"
    if error is not None and is_reserved(error.code) and not is_told:
        return f"the code {error.code}"
    for name in reply.metadata:
        if is_own_metadata(name) and name not in told:
            return f"the metadata {name[:CITED_CHARS_MAX]}"
    if reply.status is Status.NEEDS_INPUT and isinstance(data, dict) and APPROVAL_ID in data:
        return f"the {APPROVAL_ID} of a question to a person"
    return ""


def passed_on(error: Error, agent: str) -> Error:
    """Return an error that an agent got from a call as the error of the agent's own call."""
    if not is_reserved(error.code):
        return error
    return replace(error, message=f"{agent} passed on: {error.message}", facts={PASSED_ON_BY: agent})


def reserved_error(what: str, said: str) -> Error:
    """Return the error of `what`, which is the platform's to say, and what was said with it."""
    return Error.of(CODE, f"{what}, which is the platform's to say; it was said: {clip(said, SAID_CHARS_MAX)}")


def without_marks(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return metadata without the platform's own."""
    return {name: value for name, value in metadata.items() if not is_own_metadata(name)}


def is_raised_by_platform(raised: ComityError) -> bool:
    """Return whether the platform's own code raised an error, not an agent's, a tool's or a model's.

    An agent that unwraps a reply raises for itself.
    """
    frames = []
    traceback = raised.__traceback__
    while traceback is not None:
        frames.append(traceback.tb_frame)
        traceback = traceback.tb_next
    if frames and frames[-1].f_code is _UNWRAP:
        frames.pop()
    module = str(frames[-1].f_globals.get("__name__", "")) if frames else ""
    return module.startswith(_OURS) and not module.startswith(_NOT_OURS)
