"""The structured reply protocol's chain over HTTP: run, asked, answered and failed, in the fields of its replies."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from tests.server.served import serving

from comity import Agent, Node, Reply
from comity.testing import ScriptedModel

VECTORS = Path(__file__).parents[1] / "dialects" / "vectors" / "sacp"
RESEARCHER, VALIDATOR = (json.loads((VECTORS / f"reply_{one}.json").read_text()) for one in ("researcher", "validator"))
CHAIN = """
workflow: find-email
nodes:
  researcher: {call: RESEARCHER/message, message: "{{input.task}}"}
  validator: {call: VALIDATOR/message, message: "{{researcher.data.guesses}}"}
edges:
  - {from: researcher, to: validator, when: 'response.status == "success"'}
"""
ASKS = """
workflow: tax
nodes:
  clerk: {call: CLERK/TAX, input: {text: "{{input.text}}"}}
"""
SLOW = "workflow: slow\nnodes:\n  w: {wait: 1h}\n"


def _node() -> Node:
    researcher = Agent("RESEARCHER", model=ScriptedModel([RESEARCHER]), can_call=[], use_standard_protocol=True)
    validator = Agent("VALIDATOR", model=ScriptedModel([VALIDATOR]), can_call=[], use_standard_protocol=True)
    clerk = Agent("CLERK")

    @clerk.capability("TAX")
    async def tax(text: str, answer: str = "") -> Reply:
        if text == "broken":
            return Reply.failure("the register is closed", data={"raw": 1})
        if not answer:
            return Reply.needs_input("Which year do you mean?")
        return Reply.success({"year": answer}, message=f"Tax of {answer}.", next_step_hint="file it")

    return Node([researcher, validator, clerk])


def test_the_example_chain_of_the_protocol_is_answered_with_its_last_reply():
    async def main():
        async with serving(_node()) as served:
            served.server.node.workflows.add(CHAIN)
            asked = {"input": {"task": "Find the email of the CEO of Acme Corp."}, "user_id": "ann"}
            answer = await served.client.post("/v1/sacp/chains/find-email", json=asked)
            # A thought is for whoever checks the work, not for the user (ADR 27); the field is there, as the schema requires.
            assert (answer.status_code, answer.json()) == (200, VALIDATOR | {"thought": ""})

    asyncio.run(main())


def test_a_chain_that_needs_its_user_asks_and_goes_on_with_the_answer():
    async def main():
        async with serving(_node()) as served:
            served.server.node.workflows.add(ASKS)
            asked = (await served.client.post("/v1/sacp/chains/tax", json={"input": {"text": "tax"}, "user_id": "ann"})).json()
            assert (asked["status"], asked["message"]) == ("clarification_needed", "Which year do you mean?")
            run_id = asked["data"]["run_id"]
            still = (await served.client.post(f"/v1/sacp/runs/{run_id}")).json()
            assert still == asked
            done = (await served.client.post(f"/v1/sacp/runs/{run_id}", json={"answer": "2024"})).json()
            assert (done["status"], done["data"], done["message"]) == ("success", {"year": "2024"}, "Tax of 2024.")
            again = await served.client.post(f"/v1/sacp/runs/{run_id}", json={"answer": "2025"})
            assert (again.status_code, again.json()["code"]) == (422, "INPUT_VALIDATION_FAILED")

    asyncio.run(main())


def test_a_failed_chain_is_a_failure_with_its_message():
    async def main():
        async with serving(_node()) as served:
            served.server.node.workflows.add(ASKS)
            failed = await served.client.post("/v1/sacp/chains/tax", json={"input": {"text": "broken"}, "user_id": "ann"})
            assert failed.status_code == 200
            assert (failed.json()["status"], failed.json()["message"]) == ("failure", "the register is closed")

    asyncio.run(main())


def test_a_chain_that_goes_on_says_how_to_wait_for_it_and_an_unknown_one_is_named():
    async def main():
        async with serving(_node()) as served:
            served.server.node.workflows.add(SLOW)
            asked = {"run_id": "slow-1", "user_id": "ann", "wait_ms": 0}
            waiting = await served.client.post("/v1/sacp/chains/slow", json=asked)
            assert (waiting.status_code, waiting.json()["code"]) == (504, "CALL_TIMEOUT")
            assert "/v1/sacp/runs/slow-1" in waiting.json()["detail"]
            missing = await served.client.post("/v1/sacp/chains/none", json={})
            assert (missing.status_code, missing.json()["code"]) == (404, "HTTP_RESOURCE_UNKNOWN")

    asyncio.run(main())
