"""What is said to a language model and what it answers, as plain data, and the ways it can fail.

Providers differ; these types are what all of them have in common and an agent needs. Who speaks to a provider implements the
`Model` port and translates at the edge.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct

from comity.core.envelope.usage import Usage
from comity.errors import ComityError, family


class ToolCall(Struct, frozen=True, kw_only=True):
    """A tool the model wants used. `arguments` is the text as the model wrote it: no code has checked that it is JSON."""

    id: str
    name: str
    arguments: str = "{}"


class System(Struct, frozen=True, tag="system"):
    """What the author of the agent tells the model."""

    text: str


class User(Struct, frozen=True, tag="user"):
    """What the caller tells the model."""

    text: str


class Assistant(Struct, frozen=True, tag="assistant"):
    """What the model said earlier, and the tools it wanted used."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()


class ToolResult(Struct, frozen=True, tag="tool"):
    """What came of a tool call."""

    call_id: str
    name: str
    text: str
    is_error: bool = False


Message = System | User | Assistant | ToolResult


class ToolDefinition(Struct, frozen=True, kw_only=True):
    """A tool offered to the model; `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the model should answer. None leaves it to the provider. `extra` goes to the provider as it is."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    extra: Mapping[str, Any] = {}


class Prompt(Struct, frozen=True, kw_only=True):
    """One request to a model. With a `response_schema` the text of the answer should be JSON that fits it.

    A provider that can enforce the schema should; a provider that cannot may leave it out, since the answer is checked anyway.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...] = ()
    settings: Settings = Settings()
    response_schema: Mapping[str, Any] | None = None


class Finish(StrEnum):
    """Why the model stopped."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"  # max_tokens was reached: the text is cut
    REFUSED = "refused"  # the model or a filter of the provider declined


class Completion(Struct, frozen=True, kw_only=True):
    """One whole answer. `usage` is what the provider counted, or zero where it counts nothing."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    finish: Finish = Finish.STOP
    model: str = ""  # as the provider names what answered
    id: str = ""  # of the answer, as the provider gives it


class Fault(StrEnum):
    """How asking a model can fail. The values are error codes, whose meaning stands in the code table."""

    RATE_LIMITED = "MODEL_RATE_LIMITED"
    OVERLOADED = "MODEL_OVERLOADED"
    TIMEOUT = "MODEL_TIMEOUT"
    UNREACHABLE = "MODEL_UNREACHABLE"
    FAILED = "MODEL_FAILED"
    REFUSED = "MODEL_REFUSED"
    CONTEXT_TOO_LONG = "MODEL_CONTEXT_TOO_LONG"
    MISCONFIGURED = "MODEL_MISCONFIGURED"


TRANSIENT = frozenset({Fault.RATE_LIMITED, Fault.OVERLOADED, Fault.TIMEOUT, Fault.UNREACHABLE})
"""What asking again, a little later, may cure."""


def model_error(fault: Fault, message: str, *, retry_after_ms: int | None = None, **facts: Any) -> ComityError:
    """Return the error to raise for a fault: of the family that says who must act, with the fault's code."""
    return family(fault)(message, code=str(fault), retry_after_ms=retry_after_ms, **facts)
