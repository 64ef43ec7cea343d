"""Workflows and runs over HTTP."""

from __future__ import annotations

import asyncio

from tests.server.served import serving

from comity import Agent, Node
from comity.core.access import Role

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


def test_a_run_is_forked_by_its_own_user_alone_and_the_audit_says_who_did_what():
    async def main():
        async with serving(_node()) as served:
            node, state = served.server.node, served.server.app.state
            node.workflows.add(ASKS)

            def person(name: str) -> dict[str, str]:
                token = state.auth.signed.tokens.for_user(name, roles=(Role.OPERATOR,), tenant_id="acme", now_ms=state.now_ms())
                return {"authorization": f"Bearer {token}"}

            async def post(path: str, who: dict[str, str] | None, **body: object):
                return await served.client.post(f"/v1/{path}", headers=who, json=body)

            ann, carl = person("ann"), person("carl")
            await post("workflows/asks/runs", ann, input={"n": 1}, run_id="anns")
            (question,) = (await _until(served, "anns", "waiting"))["run"]["questions"]
            as_ann = await post("workflows/asks/runs", carl, input={"n": 1}, user_id="ann")
            refused = await post("runs/anns/fork", carl, at=1, input={"n": 9})
            assert (as_ann.status_code, as_ann.json()["code"]) == (403, "IDENTITY_MISMATCH")
            assert (refused.status_code, refused.json()["code"]) == (403, "IDENTITY_MISMATCH")
            assert len(node.workflows.list()) == 1
            mine, operators = await post("runs/anns/fork", ann, at=1), await post("runs/anns/fork", None, at=1)
            assert [one.json()["user_id"] for one in (mine, operators)] == ["ann", "ann"]
            # Answering and cancelling are rights of a role.
            answered = await post("runs/anns/answer", carl, question_id=question["question_id"], answer="yes")
            await _until(served, mine.json()["run_id"], "waiting")
            cancelled = await post(f"runs/{mine.json()['run_id']}/cancel", carl, reason="ann@acme.com wants it")
            assert (answered.status_code, cancelled.status_code) == (200, 200)
            await _until(served, mine.json()["run_id"], "cancelled")
            notes = [(row.request_id, row.note) for row in node.audit.rows() if row.kind == "noted"]
            assert notes == [
                (mine.json()["run_id"], "forked from anns by ann"),
                (operators.json()["run_id"], "forked from anns by operator"),
                ("anns", "question answered by carl"),
                (mine.json()["run_id"], "cancelled by carl"),
            ]

    asyncio.run(main())
