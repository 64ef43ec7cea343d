"""Names in the audit: a person's name stands there as a keyed digest, the same one in every process of a store."""

from __future__ import annotations

import asyncio
import hashlib

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
