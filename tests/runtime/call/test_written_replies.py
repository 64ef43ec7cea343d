"""The data of a reply is written as JSON once: the store and a door that only writes it get these bytes, and none other."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import Raw, json

from comity import Agent, Node, Privacy, Reply
from comity.core.call.guardrail import Allow, Guardrail
from comity.runtime.call.run import WRITTEN_BYTES_LEAST

LONG = "x" * WRITTEN_BYTES_LEAST


def told(data: Any, store: Any, capability: str = "GO", **options: Any) -> tuple[Reply, Any, Any]:
    """Return the reply as a door gets it, as the store has it, and the data that any other caller gets."""
    agent = Agent("TELL")

    @agent.capability("GO")
    async def go() -> dict[str, Any]:
        return data

    @agent.capability("REPLY")
    async def reply():
        return Reply.success(data)

    async def ask() -> tuple[Reply, Any, Any]:
        async with Node([agent], store=store, **options) as node:
            written = await node.call_written("TELL", capability, {}, user_id="ann")
            kept = node._journal.call(written.request_id)
            return written, kept.reply, (await node.call("TELL", capability, {}, user_id="ann")).data

    return asyncio.run(ask())


@pytest.mark.parametrize("capability", ["GO", "REPLY"])
@pytest.mark.parametrize("store", ["work.db", None])
def test_a_door_gets_data_as_its_json_and_any_other_caller_as_values(tmp_path, capability, store):
    data = {"text": LONG, "numbers": [1, 2.5, None]}
    written, kept, other = told(data, store and tmp_path / store, capability)
    assert type(written.data) is Raw
    assert json.decode(json.encode(written))["data"] == kept.data == other == data


def test_what_a_guardrail_does_to_the_data_itself_is_what_is_stored_and_told(tmp_path):
    def blot(request, reply):
        reply.data["text"] = "blotted"
        return Allow()

    guardrail = Guardrail(name="blot", outbound=blot)
    written, kept, _ = told({"text": LONG}, tmp_path / "work.db", guardrails=[guardrail])
    assert json.decode(json.encode(written))["data"] == kept.data == {"text": "blotted"}


def test_a_user_reads_their_own_personal_data_and_the_store_has_none(tmp_path):
    data = {"text": LONG, "mail": "ann.smith@example.com"}
    written, kept, _ = told(data, tmp_path / "work.db", privacy=Privacy())
    assert json.decode(json.encode(written))["data"] == data
    assert kept.data["text"] == LONG
    assert "ann.smith" not in json.encode(kept).decode()
