"""Tokens are counted by whoever is asked to count."""

from __future__ import annotations

from comity.core.model.exchange import Assistant, Prompt, ToolCall, ToolDefinition, ToolResult, User
from comity.core.model.tokens import MESSAGE_TOKENS, count_messages, count_prompt, count_tools, estimate


def test_four_characters_are_a_token_and_a_rest_is_one_too():
    assert [estimate("a" * chars) for chars in (0, 1, 4, 5, 8)] == [0, 1, 1, 2, 2]


def test_other_alphabets_cost_more_and_a_chinese_character_is_a_token():
    assert estimate("项目的首要目标是降低结账延迟") == 14
    assert estimate("abcd项目") == 3
    assert estimate("Привет") == 3
    assert estimate("한국어 日本語") == 7
    assert estimate("naïve café") == 3
    assert estimate("🙂🙂") == 2


def test_everything_in_a_prompt_is_counted():
    messages = (User("abcd"), Assistant("", (ToolCall(id="1", name="ab", arguments="{}"),)), ToolResult("1", "ab", "xyz"))
    tool = ToolDefinition(name="ab", description="", parameters={})
    seen = []

    def count(text):
        seen.append(text)
        return 100

    total = count_prompt(Prompt(messages=messages, tools=(tool,), response_schema={"type": "object"}), count)
    assert {"abcd", "", "ab", "{}", "xyz", '{"type":"object"}'} <= set(seen)
    assert total == 100 * len(seen) + MESSAGE_TOKENS * 5
    assert total == count_messages(messages, count) + count_tools((tool,), count) + 100
