"""What a model agent may be declared with, and what of it is refused to its author."""

from __future__ import annotations

import asyncio

import pytest
from team import prompts, said, talk, thinker

from comity import Agent, Node, Tool
from comity.core.agent.agent import DeclarationError
from comity.core.guidance.guidance import Constraint, Guidance
from comity.core.model.exchange import System, User
from comity.testing import ScriptedModel, tool_call

MODEL = ScriptedModel([])


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ({"instructions": "x"}, "no model is given"),
        ({"can_transfer_to": ["b"]}, "no model is given"),
        ({"model": MODEL, "success_criteria": "all of it"}, "list of sentences"),
        ({"model": MODEL, "can_transfer_to": "byte"}, "list of names"),
        ({"model": MODEL, "can_call": ["a"], "can_transfer_to": ["b"]}, "can_call does not allow"),
        ({"model": MODEL, "response_format": "xml"}, "json_standard"),
        ({"model": MODEL, "output_type": dict, "use_standard_protocol": False}, "switched off"),
        ({"model": MODEL, "output_type": dict, "response_format": "text"}, "switched off"),
        ({"model": 5}, "model must be a name such as openai:gpt-4o, or a Model, not 5"),
        ({"tools": ["ledger", "ledger"]}, "two tools"),
        ({"tools": ["no spaces"]}, "tool's name"),
        ({"tools": "ledger"}, "list of names"),
        ({"tools": [lambda: None]}, "tool's name"),
    ],
)
def test_what_cannot_be_meant_is_refused_when_it_is_declared(declared, told):
    with pytest.raises(DeclarationError, match=told):
        Agent("x", **declared)


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ({}, False),
        ({"use_standard_protocol": True}, True),
        ({"response_format": "json_standard"}, True),
        ({"response_format": "text"}, False),
        ({"output_type": dict}, True),
        ({"success_criteria": ["it is done"]}, True),
        ({"failure_criteria": ["it is not"]}, True),
    ],
)
def test_the_protocol_is_used_where_it_is_asked_for_or_needed(declared, expected):
    assert Agent("x", model=MODEL, **declared).mind.has_protocol is expected


def test_an_agent_without_a_model_has_no_message_capability_and_one_with_it_has():
    assert "message" not in Agent("x").capabilities
    assert "message" in Agent("x", model=MODEL).capabilities


def test_own_tools_are_rights_and_two_different_ones_cannot_share_a_name():
    def look():
        """Look."""

    assert Agent("x", tools=[look, "ledger"], tools_allowed=["more"]).tools_allowed == {"look", "ledger", "more"}
    other = Tool(name="look", function=print)
    talk([thinker("a", "ok", tools=[look]), thinker("b", tools=[look])])
    with pytest.raises(DeclarationError, match="two different tools"):
        talk([thinker("a", tools=[look]), thinker("b", tools=[other])])


def test_an_agent_added_later_brings_its_tools():
    async def main():
        def look() -> str:
            return "seen"

        agent = thinker("late", lambda prompt: str([tool.name for tool in prompt.tools]), tools=[look])
        async with Node(lag_ms=None) as node:
            node.add(agent)
            return await node.call("late", "message", message="x", user_id="u")

    assert asyncio.run(main()).message == "['look']"


def test_a_tool_that_wants_a_context_is_refused_with_a_reason():
    def wants(ctx, a: int) -> int:
        return a

    reply = talk([thinker("a", "x", tools=[wants])])
    assert "no ctx" in reply.error.message


def test_a_tool_with_a_key_is_given_one_that_the_model_does_not_write():
    keys = []

    def book(amount: int, idempotency_key: str) -> str:
        keys.append(idempotency_key)
        return "booked"

    agent = thinker("a", tool_call("book", amount=3), "ok", tools=[Tool.of(book, takes_key=True)])
    assert talk([agent]).ok
    assert list(prompts(agent)[0].tools[0].parameters["properties"]) == ["amount"]
    assert keys[0].endswith("#2")


def test_what_people_want_of_the_agents_stands_in_the_prompt():
    rule = Constraint(id="c1", rule="never name a price")
    agent = thinker("a", "ok", instructions="Sell.")
    talk([agent], node={"guidance": Guidance(constraints=(rule,))})
    own, guidance, message = prompts(agent)[0].messages
    assert own == System("Sell.")
    assert isinstance(guidance, System)
    assert "never name a price" in guidance.text
    assert message == User("hello")


def test_criteria_and_schema_are_told_to_the_model():
    agent = thinker(
        "a",
        said(total=1),
        output_type=dict[str, int],
        success_criteria=["all is added up"],
        failure_criteria=["a page is missing"],
    )
    assert talk([agent]).ok
    text = prompts(agent)[0].messages[0].text
    assert "Reply `success` only if all of this holds:\n- all is added up" in text
    assert "Reply `failure` if any of this holds:\n- a page is missing" in text
