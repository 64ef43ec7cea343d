"""How many tokens a prompt will cost, counted offline. A counter is any function from text to a number.

`estimate` is the declared default: four characters of ASCII are one token, two of another alphabet, and one where a character
is a syllable, a word or a picture, as in Chinese, Japanese and Korean. That is near for prose, low for code, and elsewhere
rather too much than too little. An agent may be given a counter that knows its model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from comity.core.model.exchange import Assistant, Message, Prompt, ToolDefinition, ToolResult

TokenCounter = Callable[[str], int]

CHARS_PER_TOKEN: Final = 4
MESSAGE_TOKENS: Final = 4  # what providers add around each message

_WIDE: Final = re.compile(
    "[\u1100-\u11ff\u2e80-\ua4cf\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00010000-\U0010ffff]+"
)
_FOREIGN: Final = re.compile("[^\x00-\x7f]+")

_encode = msgspec.json.Encoder().encode


def estimate(text: str) -> int:
    """Return the length in tokens, rounded up: by the kind of each character."""
    if text.isascii():
        return -(-len(text) // CHARS_PER_TOKEN)
    narrow = len(_WIDE.sub("", text))
    ascii_only = len(_FOREIGN.sub("", text))
    quarters = ascii_only + 2 * (narrow - ascii_only) + CHARS_PER_TOKEN * (len(text) - narrow)
    return -(-quarters // CHARS_PER_TOKEN)


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
