"""Names in the audit: a person's name stands there as a keyed digest, the same one in every process of a store."""

from __future__ import annotations

import asyncio
import hashlib

import pytest

from comity import Agent, Node

PHONE, MAIL = "+4915112345678", "ann@example.com"
agent = Agent("A")


@agent.capability("OK")
async def ok() -> str:
    return "ok"


def test_names_are_keyed_by_the_store_and_rows_of_all_its_processes_agree(tmp_path):
    async def life(name: str) -> list[tuple[str, ...]]:
        async with Node([agent], store=tmp_path / name, lag_ms=None) as node:
            await node.call("A", "OK", user_id=PHONE, tenant_id=MAIL, session_id="Ann Smith", objective="call Ann")
            assert node.audit.verify().ok
            return [(row.user_id, row.tenant_id, row.session_id, row.objective) for row in node.audit.rows()]

    async def rows() -> list[list[tuple[str, ...]]]:
        return [await life("one.db"), await life("one.db"), await life("two.db")]

    first, again, other = asyncio.run(rows())
    assert len(set(again)) == 1  # both lives, admitted and settled
    assert again[:2] == first
    assert not set(again[0]) & set(other[0])
    guesses = {hashlib.sha256(name.encode()).hexdigest()[:16] for name in (PHONE, MAIL, "Ann Smith", "call Ann")}
    assert not any(guess in name for guess in guesses for name in (*again[0], *other[0]))
    assert not any(name in repr(again) for name in (PHONE, MAIL, "Ann"))


async def test_a_node_without_a_store_has_a_key_of_its_own(make_node):
    seen = set()
    for _ in range(2):
        async with make_node([agent]) as node:
            await node.call("A", "OK", user_id=PHONE)
            seen |= {row.user_id for row in node.audit.rows()}
    assert len(seen) == 2


@pytest.mark.parametrize("chosen", [PHONE, MAIL])
async def test_a_person_is_no_id_of_a_call_and_the_refusal_does_not_repeat_them(make_node, chosen):
    """Ids of calls stand in the audit as they were chosen, and stay when a person is erased."""
    async with make_node([agent]) as node:
        document = {"source_agent": "B", "target_agent": "A", "capability_code": "OK", "request_id": chosen, "inputs_json": {}}
        replies = [
            await node.call("A", "OK", user_id="u", request_id=chosen),
            await node.start_call("A", "OK", user_id="u", request_id=chosen).reply(),
        ]
        answered = await node.receive(document, dialect="kdap", user_id="u")
        rows = node.audit.rows()
    assert [reply.error.code for reply in replies] == ["IDENTITY_INVALID"] * 2
    assert answered["status"] == "ERROR"
    assert [(row.kind, row.request_id) for row in rows] == [("refused", "(personal)")] * 3
    assert chosen not in repr((replies, rows))
