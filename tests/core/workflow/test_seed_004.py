"""The structured reply protocol's own flow, conditions and templates, verbatim, and what its origin could not do."""

from __future__ import annotations

import asyncio

import pytest
from workflow_driver import Run, ok

from comity import Agent, Node, Reply
from comity.core.expression import Expression
from comity.core.workflow.mapping import compiled
from comity.workflow import load

RESEARCH = {
    "thought": "I found the CEO is John Doe, but no direct email. I will guess standard formats.",
    "status": "success",
    "data": {"ceo_name": "John Doe", "domain": "acme.com", "guesses": ["john.doe@acme.com", "jdoe@acme.com"]},
    "message": "I identified the CEO as John Doe.",
}
VALID = {
    "thought": "Pinged servers. jdoe@acme.com is valid.",
    "status": "success",
    "data": {"valid_email": "jdoe@acme.com"},
    "message": "The valid email is jdoe@acme.com",
}
FLOW = """
workflow: find-email
nodes:
  researcher: {call: RESEARCHER/FIND, input: {task: "{{input.task}}"}}
  validator: {call: VALIDATOR/CHECK, input: {emails: "{{researcher.data.guesses}}"}}
  handler: {call: HANDLER/FIX}
edges:
  - {from: researcher, to: validator, when: 'response.status == "success"'}
  - {from: researcher, to: handler, when: 'response.status == "failure"'}
output: {email: "{{validator.data.valid_email ?? null}}"}
"""


def team(given: list) -> list[Agent]:
    researcher, validator, handler = Agent("RESEARCHER"), Agent("VALIDATOR"), Agent("HANDLER")

    @researcher.capability("FIND")
    async def find(task: str) -> Reply:
        if "nobody" in task:
            return Reply.failure("nobody found")
        return Reply.success(RESEARCH["data"], message=RESEARCH["message"], thought=RESEARCH["thought"])

    @validator.capability("CHECK")
    async def check(emails: list[str]) -> Reply:
        given.append(emails)
        return Reply.success(VALID["data"], message=VALID["message"], thought=VALID["thought"])

    @handler.capability("FIX")
    async def fix() -> dict:
        given.append("handled")
        return {}

    return [researcher, validator, handler]


def test_the_example_flow_runs_and_the_second_agent_receives_the_guesses():
    given: list = []

    async def main():
        async with Node(team(given)) as node:
            task = {"task": "Find the email of the CEO of Acme Corp."}
            reply = await node.workflows.run(load(FLOW), task, user_id="u")
            assert reply.data == {"email": "jdoe@acme.com"}
            assert len(given[0]) == 2  # the addresses are hidden from an agent that is not granted them
            failed = await node.workflows.run(load(FLOW), {"task": "nobody"}, user_id="u")
            assert failed.data == {"email": None}
            assert given[1] == "handled"

    asyncio.run(main())


@pytest.mark.parametrize(
    ("condition", "response", "holds"),
    [
        ('response.status == "success"', {"status": "success"}, True),
        ('response.status == "success"', {"status": "failure"}, False),
        ('response.status == "failure"', {"status": "failure"}, True),
        ("response.data.score > 0.8", {"status": "success", "data": {"score": 0.9}}, True),
        ("response.data.score > 0.8", {"status": "success", "data": {"score": 0.8}}, False),
        ("response.data.score > 0.8", {"status": "success", "data": {"score": 1}}, True),
        ("response.data.score > 0.8", {"status": "success", "data": {}}, False),
    ],
)
def test_the_conditions_of_the_document(condition, response, holds):
    assert Expression(condition).holds({"response": response}) is holds


def test_the_templates_of_the_document():
    values = {"node_A": {"data": {"extracted_names": ["Alice", "Bob"]}, "message": "two names"}}
    assert compiled("{{node_A.data.extracted_names}}")(values) == ["Alice", "Bob"]
    assert compiled("{{node_A.message}}")(values) == "two names"


def test_the_three_conditional_edges_of_the_document_lead_to_their_nodes():
    text = """
workflow: edges
nodes: {node_A: {call: A/X}, node_B: {call: B/X}, node_C: {call: C/X}, node_D: {call: D/X}}
edges:
  - {from: node_A, to: node_B, when: 'response.status == "success"'}
  - {from: node_A, to: node_C, when: 'response.status == "failure"'}
  - {from: node_A, to: node_D, when: 'response.data.score > 0.8'}
"""
    assert Run(text, {"node_A": ok({"score": 0.9})}).go().called == ["node_A", "node_B", "node_D"]
    assert Run(text, {"node_A": ok({"score": 0.1})}).go().called == ["node_A", "node_B"]
    failure = {"status": "failure", "outcome": "error", "data": {}, "error": {"code": "TARGET_FAILED", "message": "no"}}
    assert Run(text, {"node_A": failure}).go().called == ["node_A", "node_C"]


def test_equal_numbers_are_equal_whatever_their_type_and_texts_are_no_numbers():
    same = Expression("response.data.n == 1")
    assert same.holds({"response": {"data": {"n": 1.0}}})
    assert not same.holds({"response": {"data": {"n": "1"}}})
    assert not Expression("response.data.on == true").holds({"response": {"data": {"on": "True"}}})
    assert not Expression("response.data.none != 1").holds({"response": {"data": {}}})
