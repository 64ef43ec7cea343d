"""Workflows and runs over HTTP."""

from __future__ import annotations

import asyncio

from tests.server.served import serving

from comity import Agent, Node

ASKS = """
workflow: asks
nodes:
  x: {call: A/ADD, input: {n: "{{input.n}}"}}
  q: {ask: "Go on with {{x.data.n}}?", options: ["yes", "no"], after: [x]}
  y: {call: A/ADD, after: [q], input: {n: "{{x.data.n}}"}}
"""


def _node():
    adder = Agent("A")

    @adder.capability("ADD")
    async def add(n: int) -> dict:
        return {"n": n + 1}

    return Node([adder])


async def _until(served, run_id, status):
    for _ in range(500):
        found = (await served.client.get(f"/v1/runs/{run_id}")).json()
        if found["run"]["status"] == status:
            return found
        await asyncio.sleep(0.01)
    raise AssertionError(found)


def test_a_run_is_started_answered_and_forked_from_an_event():
    async def main():
        async with serving(_node()) as served:
            served.server.node.workflows.add(ASKS)
            (known,) = (await served.client.get("/v1/workflows")).json()["items"]
            assert [(one["source"], one["target"]) for one in known["edges"]] == [("x", "q"), ("q", "y")]
            started = await served.client.post("/v1/workflows/asks/runs", json={"input": {"n": 1}, "user_id": "ann"})
            run_id = started.json()["run_id"]
            paused = await _until(served, run_id, "waiting")
            (question,) = paused["run"]["questions"]
            wrong = {"question_id": question["question_id"], "answer": "maybe"}
            assert (await served.client.post(f"/v1/runs/{run_id}/answer", json=wrong)).status_code == 422
            right = wrong | {"answer": "yes"}
            assert (await served.client.post(f"/v1/runs/{run_id}/answer", json=right)).status_code == 200
            done = await _until(served, run_id, "completed")
            assert [one["node"] for one in done["history"] if one["kind"] == "settled"] == ["x", "y"]
            fork = await served.client.post(f"/v1/runs/{run_id}/fork", json={"at": 1, "input": {"n": 5}})
            assert fork.status_code == 200, fork.text
            again = await _until(served, fork.json()["run_id"], "waiting")
            assert again["run"]["questions"][0]["text"] == "Go on with 6?"
            assert again["run"]["forked_from"] == run_id
            other = await served.client.post("/v1/workflows/asks/runs", json={"input": {"n": 1}, "user_id": "ann"})
            await served.client.post(f"/v1/runs/{other.json()['run_id']}/cancel")
            await _until(served, other.json()["run_id"], "cancelled")
            assert len((await served.client.get("/v1/runs")).json()["items"]) == 3
            assert (await served.client.get("/v1/runs/none")).status_code == 404
            assert (await served.client.post("/v1/workflows/none/runs", json={})).status_code == 404
            checked = await served.client.post(
                "/v1/workflows/check", json={"source": "workflow: x\nnodes:\n  a: {call: B/C}\n"}
            )
            assert checked.json()["mistakes"][0]["line"] == 3

    asyncio.run(main())
