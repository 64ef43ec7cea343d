"""Guidance and the state of the node over HTTP."""

from __future__ import annotations

import asyncio
import json

from tests.server.served import serving

from comity import Agent, Node
from comity.engines.clock import SystemClock
from comity.engines.memory.engine import MemoryCluster

BLOCKS = 'constraints:\n  - {id: frozen, rule: Leave the API alone, scope: "src/api/**", severity: blocking}\n'


def _node(tmp_path, **more):
    coder = Agent("CODER")

    @coder.capability("EDIT", touches=["$.path"])
    async def edit(path: str) -> str:
        return path

    @coder.capability("RELEASE", touches=["src/api/version"])
    async def release() -> str:
        return "done"

    file = tmp_path / "guidance.yaml"
    question = {"id": "q1", "question": "Why?"}
    file.write_text(json.dumps({"kind": "ProjectContext", "spec": {"agentGuidance": {"questions": [question]}}}))
    return Node([coder], guidance=file, **more)


def test_guidance_put_over_http_blocks_the_next_call(tmp_path):
    async def main():
        async with serving(_node(tmp_path)) as served:
            edit = {"target": "CODER", "capability": "EDIT", "inputs": {"path": "src/api/x.py"}, "user_id": "u1"}
            assert (await served.client.post("/v1/calls", json=edit)).status_code == 200
            put = await served.client.put("/v1/guidance", json={"source": BLOCKS})
            assert put.json()["document"]["constraints"][0]["id"] == "frozen"
            refused = await served.client.post("/v1/calls", json=edit)
            assert refused.json()["error"]["code"] == "GUIDANCE_BLOCKED"
            assert "frozen" in (await served.client.get("/v1/guidance")).json()["source"]

    asyncio.run(main())


def test_a_preview_says_what_is_concerned_always_and_what_by_its_inputs_and_changes_nothing(tmp_path):
    async def main():
        async with serving(_node(tmp_path)) as served:
            answer = await served.client.post("/v1/guidance/preview", json={"source": BLOCKS})
            told = {(one["capability"], one["always"]) for one in answer.json()["concerns"]}
            assert told == {("RELEASE", True), ("EDIT", False)}
            assert "constraints" not in (await served.client.get("/v1/guidance")).json()["document"]

    asyncio.run(main())


def test_guidance_with_problems_is_refused_with_their_places_and_stays_as_it_was(tmp_path):
    async def main():
        async with serving(_node(tmp_path)) as served:
            wrong = await served.client.put("/v1/guidance", json={"source": "constraints: [{rule: no id}]"})
            assert wrong.status_code == 422
            assert wrong.json()["errors"][0]["pointer"].startswith("/spec/agentGuidance/constraints/0")
            assert (await served.client.put("/v1/guidance", json={"source": "a: ["})).status_code == 422
            assert (await served.client.get("/v1/guidance")).json()["document"]["questions"][0]["id"] == "q1"

    asyncio.run(main())


def test_a_person_answers_a_question(tmp_path):
    async def main():
        async with serving(_node(tmp_path)) as served:
            answer = await served.client.post("/v1/guidance/questions/q1/answer", json={"answer": "Because."})
            assert answer.json()["document"]["questions"][0]["answers"][0]["answer"] == "Because."
            assert (await served.client.post("/v1/guidance/questions/none/answer", json={"answer": "?"})).status_code == 404

    asyncio.run(main())


def test_a_node_without_guidance_shows_none_and_takes_none():
    async def main():
        async with serving() as served:
            assert (await served.client.get("/v1/guidance")).json() == {
                "document": {},
                "source": "",
                "writable": False,
                "failure": "",
            }
            assert (await served.client.put("/v1/guidance", json={"source": BLOCKS})).status_code == 404

    asyncio.run(main())


def test_the_system_names_the_other_nodes_of_its_store():
    async def main():
        cluster = MemoryCluster(SystemClock())
        async with Node([], engine=cluster.engine("n2")), serving(Node([Agent("A")], engine=cluster.engine("n1"))) as served:
            assert (await served.client.get("/v1/system")).json()["node"]["peers"] == ["n2"]
        async with serving() as served:
            assert (await served.client.get("/v1/system")).json()["node"]["peers"] == []

    asyncio.run(main())


def test_the_system_shows_what_the_store_holds_and_what_was_checked(tmp_path):
    async def main():
        async with serving(_node(tmp_path, store=tmp_path / "work.db")) as served:
            await served.client.post("/v1/calls", json={"target": "CODER", "capability": "RELEASE", "user_id": "u1"})
            told = (await served.client.get("/v1/system")).json()
            assert {one["name"]: one["rows"] for one in told["kinds"]}["calls"] == 1
            assert told["files"][0]["bytes"] > 0
            assert {"store", "guidance", "spans"} <= {one["name"] for one in told["checks"] if one["level"] == "ok"}
        async with serving() as served:
            assert (await served.client.get("/v1/system")).json()["kinds"] == []

    asyncio.run(main())
