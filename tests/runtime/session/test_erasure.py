"""Erasing a session while something runs in it: nothing of it comes back."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

from comity import Agent, Context, Node
from comity.engines.sqlite.journal import SqliteJournal
from comity.errors import CallerError

SECRET = "wintergreen-4711"


def team(gate: asyncio.Event, kept: dict[str, Any]) -> list[Agent]:
    agent, front = Agent("A"), Agent("FRONT")

    @agent.capability("ADD")
    async def add(ctx: Context, key: str, waits: bool = False) -> str:
        ctx.session.learn(key, SECRET)
        if waits:
            kept["waits"] = True
            await gate.wait()
            try:
                ctx.session.learn("late", SECRET)
            except CallerError as error:
                return f"{error.code}, {kept['node'].session('s')}"
        return SECRET

    @front.capability("ASK")
    async def ask(ctx: Context) -> str:
        return (await ctx.call("A", "ADD", {"key": "below", "waits": True})).data

    @front.capability("FORGET")
    async def forget(ctx: Context) -> list:
        ctx.session.learn("more", SECRET)
        gone = await kept["node"].erase_session("s")
        try:
            ctx.session.learn("late", SECRET)
        except CallerError as error:
            return [gone > 0, error.code]
        return [gone > 0]

    return [agent, front]


def left(store: Path) -> list[str]:
    return [file.name for file in store.parent.glob(f"{store.name}*") if SECRET.encode() in file.read_bytes()]


def test_what_runs_in_a_session_ends_with_it_and_nothing_of_it_is_left(tmp_path: Path) -> None:
    store = tmp_path / "s.db"

    async def main() -> None:
        kept: dict[str, Any] = {}
        async with Node(team(asyncio.Event(), kept), store=store) as node:
            await node.call("A", "ADD", {"key": "first"}, user_id="u", session_id="s")
            running = asyncio.create_task(node.call("FRONT", "ASK", user_id="u", session_id="s"))
            other = asyncio.create_task(node.call("FRONT", "ASK", user_id="u", session_id="t", timeout_ms=500))
            while "waits" not in kept:
                await asyncio.sleep(0.001)
            assert await node.erase_session("s") > 2
            reply = await running
            assert (reply.status, reply.error.code) == ("cancelled", "CALL_CANCELLED")
            assert "session was erased" in reply.error.message
            assert node.session("s") is None
            assert (await other).status != "cancelled"  # another session goes on
            await node.erase_session("t")
            assert node.audit.verify().ok
        async with Node(team(asyncio.Event(), kept), store=store) as node:
            assert node.session("s") is None

    asyncio.run(main())
    assert left(store) == []


def test_a_call_may_have_its_own_session_erased_and_then_adds_nothing_to_it(tmp_path: Path) -> None:
    async def main() -> None:
        kept: dict[str, Any] = {}
        async with Node(team(asyncio.Event(), kept), store=tmp_path / "s.db") as node:
            kept["node"] = node
            reply = await node.call("FRONT", "FORGET", user_id="u", session_id="s", message=SECRET)
            assert reply.data == [True, "SESSION_ERASED"]
            assert node.session("s") is None

    asyncio.run(main())
    assert left(tmp_path / "s.db") == []


def test_a_call_in_another_process_can_add_nothing_to_a_session_that_was_erased(tmp_path: Path) -> None:
    async def main() -> None:
        kept: dict[str, Any] = {}
        gate = asyncio.Event()
        store = tmp_path / "s.db"
        async with Node(team(gate, kept), store=store) as one:
            kept["node"] = one
            running = asyncio.create_task(one.call("A", "ADD", {"key": "a", "waits": True}, user_id="u", session_id="s"))
            async with Node(store=store) as two:
                while two.session("s") is None or not two.session("s").facts:
                    await asyncio.sleep(0.001)
                await two.erase_session("s")
            gate.set()
            assert (await running).data == "SESSION_ERASED, None"
            assert (await one.call("A", "ADD", {"key": "anew"}, user_id="v", session_id="s")).ok
            assert list(one.session("s").facts) == ["anew"]

    asyncio.run(main())


class Held(SqliteJournal):
    """A store so long that looking through it takes until the test lets it end."""

    def __init__(self, path):
        super().__init__(path, "node")
        self.ends = threading.Event()

    def erase(self, tenant_id, session_id):
        assert self.ends.wait(30), "nothing else ran meanwhile"
        return super().erase(tenant_id, session_id)

    def verify(self, tell=None):
        assert self.ends.wait(30), "nothing else ran meanwhile"
        return super().verify(tell)


def test_calls_go_on_while_a_session_is_erased_and_the_audit_verified(tmp_path):
    agent = Agent("A")

    @agent.capability("KEEP")
    async def keep(ctx: Context, text: str = "") -> dict:
        ctx.session.learn("said", text)
        return {}

    async def main():
        journal = Held(tmp_path / "s.db")
        async with Node([agent], journal=journal, lag_ms=None) as node:
            await node.call("A", "KEEP", {"text": "first canary"}, user_id="u", session_id="s")
            erasing = asyncio.ensure_future(node.erase_session("s"))
            verifying = asyncio.ensure_future(node.audit.verified())
            await asyncio.sleep(0.05)
            assert (await node.call("A", "KEEP", user_id="other", session_id="t")).ok
            await node.call("A", "KEEP", {"text": "second canary"}, user_id="u", session_id="s")
            journal.ends.set()
            assert await erasing > 0
            assert (await verifying).ok
        assert b"canary" not in b"".join(file.read_bytes() for file in tmp_path.iterdir() if file.is_file())

    asyncio.run(main())


async def test_erasing_a_session_ends_nothing_in_another_session_or_of_another_tenant(make_node):
    agent, gate = Agent("A"), asyncio.Event()

    @agent.capability("WAIT")
    async def wait() -> None:
        await gate.wait()

    async with make_node([agent]) as node:
        asked = [("acme", "s"), ("acme", "t"), ("evil", "s")]
        begun = [node.start_call("A", "WAIT", user_id="u", tenant_id=tenant, session_id=one) for tenant, one in asked]
        await asyncio.sleep(1)
        await node.erase_session("s", tenant_id="acme")
        gate.set()
        assert [(await call.reply()).status for call in begun] == ["cancelled", "success", "success"]


async def test_erasing_a_person_takes_their_sessions_and_no_others_of_their_tenant_or_of_their_name(make_node):
    agent = Agent("A")

    @agent.capability("ADD")
    async def add(ctx: Context) -> None:
        ctx.session.learn("key", SECRET)

    async with make_node([agent]) as node:
        people = [("acme", "ann", "a"), ("acme", "bob", "b"), ("evil", "ann", "c"), ("acme", "ann", "d")]
        for tenant, user, session in people:
            await node.call("A", "ADD", user_id=user, tenant_id=tenant, session_id=session)
        assert await node.erase_person("ann", tenant_id="acme") > 0
        left = [session for tenant, _, session in people if node.session(session, tenant_id=tenant) is not None]
    assert left == ["b", "c"]
