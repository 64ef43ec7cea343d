"""What happens to a run, as values: events, which are journaled and are its whole truth, and the commands that follow.

An event is a fact from outside: a step ended, a timer fired, a person answered. A command is what the planner wants done next.
The same events give the same commands, so commands are never stored. Both hold plain data without cycles, which the garbage
collector need not look at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from comity.core.envelope.usage import Cost


class Started(Struct, frozen=True, tag="started", omit_defaults=True, gc=False):
    """The run began."""

    at_ms: int
    run_id: str
    input: Any = None


class Settled(Struct, frozen=True, tag="settled", omit_defaults=True, gc=False):
    """A step ended; `reply` is what conditions and mappings see of it."""

    at_ms: int
    step: int
    reply: dict[str, Any]
    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0  # made below the step
    cost: Cost | None = None  # of the tokens, by the node's prices
    over: str = ""  # `calls` or `tokens`: the run had none left for the step, or for a call below it
    is_outlined: bool = False  # the reply's data is left to the record of the call, which has it


class Fired(Struct, frozen=True, tag="fired", omit_defaults=True, gc=False):
    """A timer is due."""

    at_ms: int
    timer: int


class Answered(Struct, frozen=True, tag="answered", omit_defaults=True, gc=False):
    """A person answered a question."""

    at_ms: int
    question: int
    answer: Any = None
    by: str = ""


class Received(Struct, frozen=True, tag="received", omit_defaults=True, gc=False):
    """An event came from outside."""

    at_ms: int
    event: str
    data: Any = None


class Cancelled(Struct, frozen=True, tag="cancelled", omit_defaults=True, gc=False):
    """A person or a program asked for the end of the run."""

    at_ms: int
    reason: str = ""
    by: str = ""


class Migrated(Struct, frozen=True, tag="migrated", omit_defaults=True, gc=False):
    """The run goes on with another version of its definition, which `migrate` proved to agree with what happened."""

    at_ms: int
    definition: str  # the content hash


Event = Started | Settled | Fired | Answered | Received | Cancelled | Migrated

_decode = msgspec.json.Decoder(Event).decode
encode_event: Callable[[Event], bytes] = msgspec.json.Encoder().encode  # as JSON


def decode_event(raw: bytes) -> Event:
    """Return the event in JSON that `encode_event` made."""
    event: Event = _decode(raw)
    return event


# --- commands ---


class Call(Struct, frozen=True, gc=False):
    """Make a governed call. It ends with `Settled`, whatever happens to it."""

    step: int
    place: str  # the activation: `node`, `node@2` in the second turn of a loop, `each[3]/node` inside a map
    node: str
    agent: str
    capability: str
    inputs: Any
    message: str = ""
    objective: str = ""
    timeout_ms: int | None = None
    attempt: int = 1
    instruction: str = ""  # why the work came back
    question: str = ""  # what the agent had asked, and the answer to it
    answer: Any = None
    is_undo: bool = False


class Aggregate(Struct, frozen=True, gc=False):
    """Make one reply of several. It ends with `Settled`."""

    step: int
    place: str
    node: str
    strategy: str
    parts: tuple[tuple[str, dict[str, Any]], ...]  # the nodes, in order, with their replies as conditions see them
    options: dict[str, Any]
    timeout_ms: int | None = None


class Ask(Struct, frozen=True, gc=False):
    """Ask a person. The question stays open until `Answered` or `Drop`."""

    question: int
    place: str
    node: str
    text: str
    options: tuple[Any, ...] = ()
    schema: dict[str, Any] | None = None
    due_at: int | None = None
    is_clarification: bool = False  # an agent asked, and is called again with the answer


class Timer(Struct, frozen=True, gc=False):
    """Send `Fired` at a time."""

    timer: int
    due_at: int
    place: str = ""


class Listen(Struct, frozen=True, gc=False):
    """Wait for an event from outside."""

    wait: int
    place: str
    node: str
    event: str
    due_at: int | None = None


class Cancel(Struct, frozen=True, gc=False):
    """Stop a step that runs; its `Settled` still comes."""

    step: int


class Drop(Struct, frozen=True, gc=False):
    """Forget a question, a timer or a wait: nothing depends on it any more."""

    number: int


class Finish(Struct, frozen=True, gc=False):
    """The run has ended."""

    status: str  # completed, failed or cancelled
    reply: dict[str, Any]


Command = Call | Aggregate | Ask | Timer | Listen | Cancel | Drop | Finish
