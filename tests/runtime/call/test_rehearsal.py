"""A dry run says what admission would say, and leaves no trace."""

from __future__ import annotations

import pytest

from comity import Agent, Limits, Node
from comity.core.call.admission import RULES

ALL = tuple(rule.__name__ for rule in RULES)


def _node(**options) -> Node:
    agent = Agent("ECHO")

    @agent.capability("SAY")
    async def say(text: str) -> str:
        return text

    return Node([agent], **options)


async def test_a_sound_call_passes_every_rule_and_nothing_is_begun():
    async with _node() as node:
        found = node.rehearse("ECHO", "SAY", {"text": "hi"}, user_id="u1", session_id="s-1")
        assert (found.passed, found.rule, found.error) == (ALL, "", None)
        assert node.audit.rows() == []
        assert not node.running()
        other = node.rehearse("ECHO", "SAY", {"text": "hi"}, user_id="u2", session_id="s-1")
        assert other.error is None  # no session was begun for u1


@pytest.mark.parametrize(
    ("target", "inputs", "options", "rule", "code"),
    [
        ("NONE", {}, {}, "known", "ROUTING_UNKNOWN_AGENT"),
        ("ECHO", {"text": 1}, {}, "inputs", "INPUT_VALIDATION_FAILED"),
        ("ECHO", {"text": "x"}, {"timeout_ms": 0}, "deadline", "LIMIT_DEADLINE_PASSED"),
        ("ECHO", {"text": "x"}, {"limits": Limits(calls_max=0)}, "budget", "BUDGET_CALLS_EXHAUSTED"),
    ],
)
async def test_the_rule_that_refuses_is_the_one_that_refuses_the_call(target, inputs, options, rule, code):
    async with _node() as node:
        found = node.rehearse(target, "SAY", inputs, user_id="u1", **options)
        assert (found.rule, found.error.code) == (rule, code)
        assert found.passed == ALL[: ALL.index(rule)]
        assert node.audit.rows() == []
        reply = await node.call(target, "SAY", inputs, user_id="u1", **options)
        assert (reply.error.code, reply.error.message) == (code, found.error.message)


async def test_a_session_of_another_user_is_refused_as_the_call_would_be():
    async with _node() as node:
        await node.call("ECHO", "SAY", {"text": "mine"}, user_id="u1", session_id="s-1")
        found = node.rehearse("ECHO", "SAY", {"text": "x"}, user_id="u2", session_id="s-1")
        reply = await node.call("ECHO", "SAY", {"text": "x"}, user_id="u2", session_id="s-1")
        assert (found.rule, found.error.code) == ("isolation", reply.error.code)
