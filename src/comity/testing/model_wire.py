"""How three providers write an answer down, whole and as a stream of events: OpenAI's chat completions, which most local
servers speak too, Anthropic's messages and Google's generateContent. No more of each than a client needs to read an answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

PIECE_CHARS = 6


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call the model makes. Arguments given as text are sent as they are, broken or not."""

    name: str
    arguments: dict[str, Any] | str
    id: str = ""

    @property
    def text(self) -> str:
        """The arguments as the wire has them."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model says. Text and arguments are streamed in pieces of `piece_chars`; the first byte comes after `delay_s`."""

    text: str = ""
    tool_uses: tuple[ToolUse, ...] = ()
    usage: tuple[int, int] | None = (10, 5)  # prompt and completion tokens; None: the server does not say
    is_cut: bool = False  # the model ran into its own limit of tokens
    piece_chars: int = PIECE_CHARS
    delay_s: float = 0.0

    def pieces(self, text: str) -> Iterator[str]:
        """Cut a text into what one event carries."""
        return (text[at : at + self.piece_chars] for at in range(0, len(text), self.piece_chars))


@dataclass(frozen=True, slots=True)
class Wire:
    """One provider's way to write."""

    path: str  # the end of the path under which it is asked
    whole: Callable[[Answer, str], dict[str, Any]]
    events: Callable[[Answer, str], Iterator[str]]
    error: Callable[[int, str, str], dict[str, Any]]


def _event(data: dict[str, Any] | str, name: str = "") -> str:
    text = data if isinstance(data, str) else json.dumps(data)
    return f"event: {name}\ndata: {text}\n\n" if name else f"data: {text}\n\n"


def _chat_finish(answer: Answer) -> str:
    return "length" if answer.is_cut else "tool_calls" if answer.tool_uses else "stop"


def _chat_usage(usage: tuple[int, int]) -> dict[str, int]:
    prompt, completion = usage
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _chat_whole(answer: Answer, model: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.tool_uses:
        message["tool_calls"] = [
            {"id": use.id or f"call_{at}", "type": "function", "function": {"name": use.name, "arguments": use.text}}
            for at, use in enumerate(answer.tool_uses)
        ]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": _chat_finish(answer)}],
    } | ({"usage": _chat_usage(answer.usage)} if answer.usage else {})


def _chat_deltas(answer: Answer) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    for piece in answer.pieces(answer.text):
        yield {"content": piece}
    for at, use in enumerate(answer.tool_uses):
        start = {"id": use.id or f"call_{at}", "type": "function", "function": {"name": use.name, "arguments": ""}}
        yield {"tool_calls": [{"index": at, **start}]}
        for piece in answer.pieces(use.text):
            yield {"tool_calls": [{"index": at, "function": {"arguments": piece}}]}


def _chat_events(answer: Answer, model: str) -> Iterator[str]:
    def chunk(choices: list[dict[str, Any]], **more: Any) -> str:
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": model}
        return _event(head | {"choices": choices} | more)

    for delta in _chat_deltas(answer):
        yield chunk([{"index": 0, "delta": delta, "finish_reason": None}])
    yield chunk([{"index": 0, "delta": {}, "finish_reason": _chat_finish(answer)}])
    if answer.usage:
        yield chunk([], usage=_chat_usage(answer.usage))
    yield _event("[DONE]")


def _messages_stop(answer: Answer) -> str:
    return "max_tokens" if answer.is_cut else "tool_use" if answer.tool_uses else "end_turn"


def _messages_head(answer: Answer, model: str) -> dict[str, Any]:
    prompt, completion = answer.usage or (0, 0)  # this provider always says
    usage = {"input_tokens": prompt, "output_tokens": completion}
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "stop_sequence": None, "usage": usage}


def _messages_whole(answer: Answer, model: str) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": answer.text}] if answer.text else []
    content += [
        {"type": "tool_use", "id": use.id or f"toolu_{at}", "name": use.name, "input": json.loads(use.text)}
        for at, use in enumerate(answer.tool_uses)
    ]
    return _messages_head(answer, model) | {"content": content, "stop_reason": _messages_stop(answer)}


def _messages_blocks(answer: Answer) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    if answer.text:
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in answer.pieces(answer.text)]
    for at, use in enumerate(answer.tool_uses):
        block = {"type": "tool_use", "id": use.id or f"toolu_{at}", "name": use.name, "input": {}}
        yield block, [{"type": "input_json_delta", "partial_json": piece} for piece in answer.pieces(use.text)]


def _messages_events(answer: Answer, model: str) -> Iterator[str]:
    def event(kind: str, **more: Any) -> str:
        return _event({"type": kind} | more, kind)

    head = _messages_head(answer, model)
    yield event(
        "message_start", message=head | {"content": [], "stop_reason": None, "usage": head["usage"] | {"output_tokens": 1}}
    )
    for index, (block, deltas) in enumerate(_messages_blocks(answer)):
        yield event("content_block_start", index=index, content_block=block)
        for delta in deltas:
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    yield event("message_delta", delta={"stop_reason": _messages_stop(answer), "stop_sequence": None}, usage=head["usage"])
    yield event("message_stop")


def _generate(parts: list[dict[str, Any]], answer: Answer, model: str, *, ends: bool) -> dict[str, Any]:
    candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": parts}}
    body: dict[str, Any] = {"candidates": [candidate], "modelVersion": model, "responseId": "r1"}
    if ends:
        candidate["finishReason"] = "MAX_TOKENS" if answer.is_cut else "STOP"
        if answer.usage:
            prompt, completion = answer.usage
            counts = {"promptTokenCount": prompt, "candidatesTokenCount": completion}
            body["usageMetadata"] = counts | {"totalTokenCount": prompt + completion}
    return body


def _generate_calls(answer: Answer) -> list[dict[str, Any]]:
    return [{"functionCall": {"name": use.name, "args": json.loads(use.text)}} for use in answer.tool_uses]


def _generate_whole(answer: Answer, model: str) -> dict[str, Any]:
    text = [{"text": answer.text}] if answer.text else []
    return _generate([*text, *_generate_calls(answer)], answer, model, ends=True)


def _generate_events(answer: Answer, model: str) -> Iterator[str]:
    for piece in answer.pieces(answer.text):
        yield _event(_generate([{"text": piece}], answer, model, ends=False))
    yield _event(_generate(_generate_calls(answer) or [{"text": ""}], answer, model, ends=True))


def _chat_error(status: int, code: str, message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "server_error" if status >= 500 else "invalid_request_error", "code": code}}


def _messages_error(status: int, code: str, message: str) -> dict[str, Any]:
    kinds = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error", 529: "overloaded_error"}
    kind = kinds.get(status, "api_error" if status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": code or kind, "message": message}}


def _generate_error(status: int, code: str, message: str) -> dict[str, Any]:
    kinds = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}
    return {"error": {"code": status, "message": message, "status": code or kinds.get(status, "INTERNAL")}}


WIRES = (
    Wire("/chat/completions", _chat_whole, _chat_events, _chat_error),
    Wire("/messages", _messages_whole, _messages_events, _messages_error),
    Wire(":generateContent", _generate_whole, _generate_events, _generate_error),
    Wire(":streamGenerateContent", _generate_whole, _generate_events, _generate_error),
)


def wire_of(path: str) -> Wire | None:
    """Return the wire asked for by a request's path."""
    return next((wire for wire in WIRES if path.endswith(wire.path)), None)
