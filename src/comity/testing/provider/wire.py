"""How three providers write an answer down, whole and as a stream of events: OpenAI's chat completions, which most local
servers speak too, Anthropic's messages and Google's generateContent. No more of each than a client needs to read an answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from comity.core.envelope.usage import Usage
from comity.core.model.exchange import Completion, Finish

Pieces = Callable[[str], Iterable[str]]
"""Cuts a text into what one event carries."""


@dataclass(frozen=True, slots=True)
class Wire:
    """One provider's way to write."""

    path: str  # the end of the path under which it is asked
    whole: Callable[[Completion], dict[str, Any]]
    events: Callable[[Completion, Pieces], Iterator[str]]
    error: Callable[[int, str, str], dict[str, Any]]


def _event(data: dict[str, Any] | str, name: str = "") -> str:
    text = data if isinstance(data, str) else json.dumps(data)
    return f"event: {name}\ndata: {text}\n\n" if name else f"data: {text}\n\n"


def _chat_finish(answer: Completion) -> str:
    return "content_filter" if answer.finish is Finish.REFUSED else str(answer.finish)


def _chat_usage(usage: Usage) -> dict[str, int]:
    counts = {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens}
    return counts | {"total_tokens": usage.total_tokens}


def _chat_whole(answer: Completion) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in answer.calls
        ]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": answer.model,
        "choices": [{"index": 0, "message": message, "finish_reason": _chat_finish(answer)}],
    } | ({"usage": _chat_usage(answer.usage)} if answer.usage.total_tokens else {})


def _chat_deltas(answer: Completion, pieces: Pieces) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    for piece in pieces(answer.text):
        yield {"content": piece}
    for at, call in enumerate(answer.calls):
        start = {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
        yield {"tool_calls": [{"index": at, **start}]}
        for piece in pieces(call.arguments):
            yield {"tool_calls": [{"index": at, "function": {"arguments": piece}}]}


def _chat_events(answer: Completion, pieces: Pieces) -> Iterator[str]:
    def chunk(choices: list[dict[str, Any]], **more: Any) -> str:
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": answer.model}
        return _event(head | {"choices": choices} | more)

    for delta in _chat_deltas(answer, pieces):
        yield chunk([{"index": 0, "delta": delta, "finish_reason": None}])
    yield chunk([{"index": 0, "delta": {}, "finish_reason": _chat_finish(answer)}])
    if answer.usage.total_tokens:
        yield chunk([], usage=_chat_usage(answer.usage))
    yield _event("[DONE]")


_MESSAGES_STOP = {
    Finish.STOP: "end_turn",
    Finish.TOOL_CALLS: "tool_use",
    Finish.LENGTH: "max_tokens",
    Finish.REFUSED: "refusal",
}
_GENERATE_FINISH = {Finish.LENGTH: "MAX_TOKENS", Finish.REFUSED: "SAFETY"}


def _messages_head(answer: Completion) -> dict[str, Any]:
    usage = {"input_tokens": answer.usage.prompt_tokens, "output_tokens": answer.usage.completion_tokens}
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": answer.model, "stop_sequence": None, "usage": usage}


def _messages_whole(answer: Completion) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": answer.text}] if answer.text else []
    content += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)} for call in answer.calls
    ]
    return _messages_head(answer) | {"content": content, "stop_reason": _MESSAGES_STOP[answer.finish]}


def _messages_blocks(answer: Completion, pieces: Pieces) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    if answer.text:
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces(answer.text)]
    for call in answer.calls:
        block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        yield block, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(call.arguments)]


def _messages_events(answer: Completion, pieces: Pieces) -> Iterator[str]:
    def event(kind: str, **more: Any) -> str:
        return _event({"type": kind} | more, kind)

    head = _messages_head(answer)
    yield event(
        "message_start", message=head | {"content": [], "stop_reason": None, "usage": head["usage"] | {"output_tokens": 1}}
    )
    for index, (block, deltas) in enumerate(_messages_blocks(answer, pieces)):
        yield event("content_block_start", index=index, content_block=block)
        for delta in deltas:
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    yield event(
        "message_delta", delta={"stop_reason": _MESSAGES_STOP[answer.finish], "stop_sequence": None}, usage=head["usage"]
    )
    yield event("message_stop")


def _generate(parts: list[dict[str, Any]], answer: Completion, *, ends: bool) -> dict[str, Any]:
    candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": parts}}
    body: dict[str, Any] = {"candidates": [candidate], "modelVersion": answer.model, "responseId": "r1"}
    if ends:
        candidate["finishReason"] = _GENERATE_FINISH.get(answer.finish, "STOP")
        if answer.usage.total_tokens:
            counts = {"promptTokenCount": answer.usage.prompt_tokens, "candidatesTokenCount": answer.usage.completion_tokens}
            body["usageMetadata"] = counts | {"totalTokenCount": answer.usage.total_tokens}
    return body


def _generate_calls(answer: Completion) -> list[dict[str, Any]]:
    return [{"functionCall": {"name": call.name, "args": json.loads(call.arguments)}} for call in answer.calls]


def _generate_whole(answer: Completion) -> dict[str, Any]:
    text = [{"text": answer.text}] if answer.text else []
    return _generate([*text, *_generate_calls(answer)], answer, ends=True)


def _generate_events(answer: Completion, pieces: Pieces) -> Iterator[str]:
    for piece in pieces(answer.text):
        yield _event(_generate([{"text": piece}], answer, ends=False))
    yield _event(_generate(_generate_calls(answer) or [{"text": ""}], answer, ends=True))


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
