"""How many tokens a prompt will cost, counted offline. A counter is any function from text to a number.

`estimate` is the declared default: four characters are one token, which is near for English prose and low for code and for
languages that are not written in Latin letters. An agent may be given a counter that knows its model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from comity.core.model import Assistant, Message, Prompt, ToolDefinition, ToolResult

TokenCounter = Callable[[str], int]

CHARS_PER_TOKEN: Final = 4
MESSAGE_TOKENS: Final = 4  # what providers add around each message

_encode = msgspec.json.Encoder().encode


def estimate(text: str) -> int:
    """Return the length in tokens, at four characters each, rounded up."""
    return -(-len(text) // CHARS_PER_TOKEN)


def count_prompt(prompt: Prompt, count: TokenCounter = estimate) -> int:
    """Return what a whole prompt costs: messages, tools, and the schema of the answer."""
    schema = 0 if prompt.response_schema is None else count(_encode(prompt.response_schema).decode())
    return count_messages(prompt.messages, count) + count_tools(prompt.tools, count) + schema


def count_messages(messages: Iterable[Message], count: TokenCounter = estimate) -> int:
    """Return what messages cost."""
    total = 0
    for message in messages:
        total += MESSAGE_TOKENS + count(message.text)
        if type(message) is Assistant:
            total += sum(MESSAGE_TOKENS + count(call.name) + count(call.arguments) for call in message.calls)
        elif type(message) is ToolResult:
            total += count(message.name)
    return total


def count_tools(tools: Iterable[ToolDefinition], count: TokenCounter = estimate) -> int:
    """Return what offering tools costs."""
    return sum(MESSAGE_TOKENS + count(_encode(tool).decode()) for tool in tools)
