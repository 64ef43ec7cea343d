"""A workflow's id is set at any door, inherited down the tree, and found in the audit, in spans and by queries."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from comity import Agent, Context, SyncNode
from comity.core.journal.audit import row, seal

KDAP = {"source_agent": "USER", "target_agent": "ANL", "capability_code": "X", "inputs_json": {}}


def team() -> list[Agent]:
    orc, anl = Agent("ORC"), Agent("ANL")

    @anl.capability("X")
    async def x(ctx: Context) -> str:
        return ctx.request.correlation_id

    @orc.capability("GO")
    async def go(ctx: Context, own: str = "") -> list:
        return [ctx.request.correlation_id, (await ctx.call("ANL", "X", correlation_id=own)).data]

    return [orc, anl]


async def test_it_is_the_same_in_every_request_of_a_workflow_whichever_door_it_came_through(make_node):
    async with make_node(team()) as node:
        for number in (1, 2):
            document = KDAP | {"request_id": f"r{number}", "correlation_id": "wf-7"}
            answer = await node.receive(document, dialect="kdap", user_id="u")
            assert answer["result_json"] == {"value": "wf-7"}
        called = await node.call("ORC", "GO", user_id="u", correlation_id="wf-7")
        started = await node.start_call("ORC", "GO", user_id="u", correlation_id="wf-7").reply()
        assert called.data == started.data == ["wf-7", "wf-7"]
        assert {row.correlation_id for row in node.audit.rows()} == {"wf-7"}
        assert node.audit.verify().ok
        assert len(node.spans.find('{ span.comity.correlation.id = "wf-7" }')) == 6
        assert node.spans.find('{ span.comity.correlation.id = "wf-8" }') == []


async def test_without_one_a_tree_is_a_workflow_of_its_own_and_a_call_below_may_name_another(make_node):
    async with make_node(team()) as node:
        plain = await node.call("ORC", "GO", user_id="u", request_id="r1")
        other = await node.call("ORC", "GO", {"own": "wf-9"}, user_id="u", request_id="r2")
        rows = [(row.request_id, row.correlation_id) for row in node.audit.rows() if row.kind == "settled"]
    assert (plain.data, other.data) == (["r1", "r1"], ["r2", "wf-9"])
    assert rows == [("r1.1", "r1"), ("r1", "r1"), ("r2.1", "wf-9"), ("r2", "r2")]


@pytest.mark.parametrize("bad", [5, "a\x00", "x" * 300, None, "\ud800"], ids=ascii)
async def test_one_that_cannot_be_a_name_is_refused_with_its_path(make_node, bad):
    async with make_node(team()) as node:
        reply = await node.call("ORC", "GO", user_id="u", correlation_id=bad)
        assert [problem.path for problem in reply.error.problems] == ["correlation_id"]
        assert [one.correlation_id for one in node.audit.rows()] == [reply.request_id]


async def test_it_does_not_make_a_repeated_request_another_one(make_node):
    async with make_node(team()) as node:
        first, second = [
            await node.call("ANL", "X", user_id="u", request_id="r", correlation_id=one) for one in ("wf-1", "wf-2")
        ]
    assert first.data == second.data == "wf-1"


async def test_what_could_be_a_persons_stands_in_the_audit_as_a_digest(make_node):
    async with make_node(team()) as node:
        await node.call("ANL", "X", user_id="u", correlation_id="ann@example.org")
        assert all(row.correlation_id.startswith("hmac:") for row in node.audit.rows())


def test_the_sync_twin_and_the_view_of_a_store_know_it(tmp_path):
    with SyncNode(team(), store=tmp_path / "s.db", lag_ms=None) as node:
        assert node.call("ORC", "GO", user_id="u", request_id="r", correlation_id="wf-7").data == ["wf-7", "wf-7"]
        assert node.call("ANL", "X", user_id="u", request_id="q").data == "q"
    with closing(sqlite3.connect(tmp_path / "s.db")) as connection:
        shown = connection.execute("SELECT request_id, correlation_id FROM audit_rows WHERE kind = 'settled' ORDER BY id")
        assert shown.fetchall() == [("r.1", "wf-7"), ("r", "wf-7"), ("q", "q")]


def test_a_row_that_was_written_before_there_was_such_a_field_reads_and_hashes_as_it_did():
    body = b'["settled",7,"r.1","r","r","ORC","ANL","X","default","u","r","","ORC",1,"success",null,1.5,0,""]'
    stored = seal(1, body, "0" * 64)
    assert stored[3] == "e041a7015cdff10b30513d7ecee5692147674f086d29659262a9efd5dcb2dfe1"
    assert (row(stored).request_id, row(stored).correlation_id, row(stored).note) == ("r.1", "r", "")
