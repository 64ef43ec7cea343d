"""OpenTelemetry's words for generative AI: who provides a model, what was said to it, why it stopped.

The attributes follow the GenAI conventions as they are now. Messages are JSON text, since an attribute holds no structure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import Struct

from comity.core.model.exchange import Assistant, Completion, Finish, Message, Prompt, Settings, System, ToolCall, ToolResult

OWN: Final = "comity"  # the provider of what no provider of models does
# What model names begin with here, and how the conventions call these providers. Others are called as they call themselves.
WELL_KNOWN: Final = {
    "openai-chat": "openai",
    "openai-responses": "openai",
    "azure": "azure.ai.openai",
    "azure-openai": "azure.ai.openai",
    "azure-ai": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "google": "gcp.gemini",
    "google-cloud": "gcp.vertex_ai",
    "google-gla": "gcp.gemini",
    "google-vertex": "gcp.vertex_ai",
    "vertexai": "gcp.vertex_ai",
    "grok": "x_ai",
    "xai": "x_ai",
    "mistral": "mistral_ai",
    "watsonx": "ibm.watsonx.ai",
}
_FINISHES: Final = {Finish.TOOL_CALLS: "tool_call", Finish.REFUSED: "content_filter"}
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class ModelFacts(Struct, frozen=True, array_like=True, gc=False):
    """Which model an agent asks, and where."""

    provider: str = ""
    model: str = ""
    address: str = ""
    port: int = 0


class AgentFacts(Struct, frozen=True, array_like=True, gc=False):
    """What an agent is declared with, as far as its spans say it."""

    description: str = ""
    provider: str = ""
    model: str = ""


class Asked(Struct, frozen=True, kw_only=True, gc=False):
    """One request to a model, with the attempts that failed before its end."""

    facts: ModelFacts
    settings: Settings = Settings()
    wants_json: bool = False
    prompt: Prompt | None = None  # only where its words are to be kept
    failures: tuple[str, ...] = ()  # the code of each attempt that failed
    status_code: int = 0  # of the last HTTP answer that was an error


class Chat(Struct, frozen=True, array_like=True, gc=False):
    """What goes into the span of a request to a model, and no more."""

    facts: ModelFacts
    max_tokens: int | None
    temperature: float | None
    top_p: float | None
    seed: int | None
    stop: tuple[str, ...]
    wants_json: bool
    failures: tuple[str, ...]
    status_code: int
    response_model: str = ""
    response_id: str = ""
    finish: str = ""


def provider_name(given: str) -> str:
    """Return a provider as the conventions call it."""
    return WELL_KNOWN.get(given.lower(), given)


def facts_of_name(name: str) -> ModelFacts:
    """Return what the name of a model, such as `openai:gpt-4o`, says about it."""
    provider, colon, model = name.partition(":")
    return ModelFacts(provider_name(provider), model) if colon else ModelFacts(OWN, name)


def finish_reason(finish: Finish) -> str:
    """Return why a model stopped, as the conventions call it."""
    return _FINISHES.get(finish, str(finish))


def chat_of(asked: Asked, answer: Any) -> Chat:
    """Return what the span of a request says; `answer` is what came of it, if a model answered."""
    settings = asked.settings
    known = answer if isinstance(answer, Completion) else None
    return Chat(
        asked.facts,
        settings.max_tokens,
        settings.temperature,
        settings.top_p,
        settings.seed,
        settings.stop,
        asked.wants_json,
        asked.failures,
        asked.status_code,
        "" if known is None else known.model,
        "" if known is None else known.id,
        "" if known is None else finish_reason(known.finish),
    )


def chat_content(asked: Asked, answer: Any) -> tuple[str, str, str]:
    """Return the system instructions, the input and the output of a request, each as JSON; empty text where there is none."""
    messages = () if asked.prompt is None else asked.prompt.messages
    system = [_text(message.text) for message in messages if isinstance(message, System)]
    said = [_message(message) for message in messages if not isinstance(message, System)]
    if not isinstance(answer, Completion):
        return _json(system), _json(said), ""
    parts = _assistant_parts(answer.text, answer.calls)
    output = {"role": "assistant", "parts": parts, "finish_reason": finish_reason(answer.finish)}
    return _json(system), _json(said), _json([output])


def message(role: str, texts: Iterable[str], finish: str = "") -> str:
    """Return one message of texts as JSON."""
    found: dict[str, Any] = {"role": role, "parts": [_text(text) for text in texts if text]}
    if finish:
        found["finish_reason"] = finish
    return _json([found])


def _message(given: Message) -> dict[str, Any]:
    if isinstance(given, ToolResult):
        part = {"type": "tool_call_response", "id": given.call_id, "response": given.text}
        return {"role": "tool", "parts": [part]}
    if isinstance(given, Assistant):
        return {"role": "assistant", "parts": _assistant_parts(given.text, given.calls)}
    return {"role": "user", "parts": [_text(given.text)]}


def _assistant_parts(text: str, calls: Iterable[ToolCall]) -> list[dict[str, Any]]:
    said = [_text(text)] if text else []
    wanted = [{"type": "tool_call", "id": one.id, "name": one.name, "arguments": _arguments(one.arguments)} for one in calls]
    return [*said, *wanted]


def _arguments(text: str) -> Any:
    """Return arguments as the object they are, or as the text that the model wrote where that is none."""
    try:
        return _decode(text)
    except msgspec.MsgspecError:
        return text


def _text(content: str) -> dict[str, Any]:
    return {"type": "text", "content": content}


def _json(found: list[Any]) -> str:
    return _encode(found).decode() if found else ""
