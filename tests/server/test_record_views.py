"""Calls, the map and sessions as people are shown them, with every count and every time."""

from __future__ import annotations

import asyncio

import pytest
from tests.server.served import serving

from comity import Agent, Context, Node
from comity.core.journal.audit import Row
from comity.core.reading import CallRow
from comity.core.session.conversation import Turn
from comity.core.session.session import Session
from comity.errors import CODES, TargetError
from comity.server.records import Wait, _view, _waits
from comity.server.sessions import SessionRow, _row


def busy_agents() -> tuple[list[Agent], asyncio.Event]:
    """Return agents of which one has room for one call at a time, which waits for the event."""
    busy, idle, go = (
        Agent("BUSY", description="Works", concurrency=1, pending_max=7),
        Agent("IDLE", concurrency=3),
        asyncio.Event(),
    )

    @busy.capability("WORK")
    async def work(ctx: Context) -> str:
        await go.wait()
        return "done"

    @idle.capability("FAIL")
    async def fail() -> None:
        raise TargetError("no", code="TARGET_FAILED")

    return [busy, idle], go


async def _get(served, path, **params):
    answer = await served.client.get(path, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_map_tells_what_runs_and_what_waits_at_each_agent_and_how_its_calls_ended():
    async def main():
        agents, go = busy_agents()
        node = Node(agents, lag_ms=None)
        async with serving(node) as served:
            calls = [asyncio.create_task(node.call("BUSY", "WORK", user_id="ann")) for _ in range(3)]
            while node.running().get("BUSY") != 3:
                await asyncio.sleep(0.001)
            for _ in range(2):
                await node.call("IDLE", "FAIL", user_id="ann")
            await node.call("IDLE", "FAIL", {"no": 1}, user_id="ann")
            shown = {one["id"]: one for one in (await _get(served, "/v1/map"))["agents"]}
            later = await _get(served, "/v1/map", since=2**50)
            go.set()
            await asyncio.gather(*calls)
        assert list(shown) == ["BUSY", "IDLE"]
        assert shown["BUSY"] == {
            "id": "BUSY",
            "description": "Works",
            "running": 1,
            "queued": 2,
            "concurrency": 1,
            "pending_max": 7,
            "status": "active",
            "breakers": {},
            "calls": 3,
            "failed": 0,
            "refused": 0,
        }
        idle = shown["IDLE"]
        assert (idle["running"], idle["queued"], idle["concurrency"], idle["calls"], idle["failed"], idle["refused"]) == (
            *(0, 0, 3),
            *(3, 2, 1),
        )
        assert ({one["calls"] for one in later["agents"]}, later["edges"]) == ({0}, [])

    asyncio.run(main())


def test_calls_are_found_by_everything_that_a_query_can_name():
    async def main():
        agents, go = busy_agents()
        go.set()
        async with serving(Node(agents, lag_ms=None)) as served:
            node = served.server.node
            await node.call("BUSY", "WORK", user_id="ann", session_id="s", request_id="r1")
            await node.call("IDLE", "FAIL", user_id="bob", request_id="r2")
            at = {one["request_id"]: one["created_at"] for one in (await _get(served, "/v1/calls"))["items"]}
            wanted = {
                ("status", "success"): ["r1"],
                ("agent", "IDLE"): ["r2"],
                ("capability", "WORK"): ["r1"],
                ("user", "bob"): ["r2"],
                ("session", "s"): ["r1"],
                ("code", "TARGET_*"): ["r2"],
                ("since", at["r2"] + 1): [],
                ("until", at["r1"] - 1): [],
                ("min_ms", 1e9): [],
                ("min_tokens", 1): [],
                ("min_cost", 1): [],
                ("limit", 1): ["r2"],
            }
            found = {}
            for name, value in wanted:
                found[name, value] = [one["request_id"] for one in (await _get(served, "/v1/calls", **{name: value}))["items"]]
            assert found == wanted
            first = await _get(served, "/v1/calls", limit=1)
            rest = await _get(served, "/v1/calls", limit=1, cursor=first["next"])
            assert [one["request_id"] for one in rest["items"]] == ["r1"]

    asyncio.run(main())


def test_a_range_that_ends_where_it_begins_is_a_millisecond_long():
    async def main():
        async with serving() as served:
            for since, until in ((5_000, 5_000), (5_000, 5_001), (5_000, 7_000)):
                told = await _get(served, "/v1/calls/histogram", buckets=1, since=since, until=until)
                assert (told["since"], told["until"], told["is_whole"]) == (since, max(until, since + 1), True)

    asyncio.run(main())


def row(request_id: str = "r", **more) -> CallRow:
    told = {"root_id": "r", "target": "A", "capability": "DO", "tenant_id": "t", "user_id": "u", "session_id": "s"}
    return CallRow(seq=1, request_id=request_id, status="success", created_at=100, **told | more)


def audit_row(kind: str, note: str = "", chain: str = "", request_id: str = "r", created_at: int = 200) -> Row:
    empty = dict.fromkeys(Row._fields)
    return Row(**empty | {"kind": kind, "note": note, "chain": chain, "request_id": request_id, "created_at": created_at})


def test_the_notes_of_a_call_stand_in_the_order_of_the_audit_and_a_refusal_is_no_note():
    newest_first = [audit_row("refused", "no"), audit_row("settled", "c; ; d"), audit_row("admitted", "a; b", chain="X Y")]
    shown = _view(row(error_code="ROUTING_CYCLE_DETECTED"), None, newest_first)
    assert (shown.notes, shown.chain) == (["a", "b", "c", "d"], ["X", "Y"])
    assert shown.advice == CODES["ROUTING_CYCLE_DETECTED"].advice
    assert (shown.reply, shown.request, shown.deadline_at) == (None, None, None)
    assert (_view(row(), None, []).chain, _view(row(), None, []).advice) == ([], "")


@pytest.mark.parametrize(
    ("end", "until"),
    [
        (row(), None),  # it waits still
        (row(settled_at=900, duration_ms=300.5), 599),
        (row(settled_at=900, duration_ms=800.0), 200),  # never before the pause
        (row("other", settled_at=900, duration_ms=300), None),
    ],
)
def test_a_pause_ends_when_its_call_was_run_again(end, until):
    assert _waits([end], [audit_row("paused")]) == [Wait("r", 200, until)]


@pytest.mark.parametrize(
    ("turns", "title"),
    [
        ((), "asked for"),
        (
            (Turn("A", "I am here", 1), Turn("user", "", 2), Turn("user", " hello \n you ", 3), Turn("user", "more", 4)),
            "hello you",
        ),
        ((Turn("user", "x" * 200, 1),), "x" * 120),
    ],
)
def test_a_session_is_listed_under_the_first_words_of_its_user(turns, title):
    session = Session(id="s", tenant_id="t", user_id="u", created_at=1, used_at=2, original_request="asked for", turns=turns)
    assert _row(session) == SessionRow("s", "t", "u", title, len(turns), 1, 2)


def test_a_session_is_shown_with_all_that_is_known_in_it():
    agent = Agent("A")

    @agent.capability("NOTE")
    async def note(ctx: Context) -> str:
        ctx.session.learn("color", "red")
        ctx.session.decide("paint it")
        ctx.session.assume("it is dry")
        return "noted"

    async def main():
        async with serving(Node([agent], lag_ms=None)) as served:
            node = served.server.node
            for session_id, user_id in (("s1", "ann"), ("s2", "bob")):
                await node.call("A", "NOTE", user_id=user_id, session_id=session_id, message="do it")
            shown = await _get(served, "/v1/sessions/s1")
            stored = node.session("s1")
            assert (shown["id"], shown["tenant_id"], shown["user_id"]) == ("s1", "default", "ann")
            assert (shown["created_at"], shown["used_at"]) == (stored.created_at, stored.used_at)
            assert (shown["facts"], shown["decisions"], shown["assumptions"]) == (["color: red"], ["paint it"], ["it is dry"])
            assert (shown["agents"], shown["turns_dropped"], shown["hidden"]) == (["A"], 0, {})
            assert shown["turns"][0]["text"] == "do it"
            page = await _get(served, "/v1/sessions", limit=1)
            rest = await _get(served, "/v1/sessions", limit=1, cursor=page["next"])
            assert {one["id"] for one in page["items"] + rest["items"]} == {"s1", "s2"}
            assert [one["id"] for one in (await _get(served, "/v1/sessions", user="bob"))["items"]] == ["s2"]
            assert (await _get(served, "/v1/sessions/s1/export"))["user_id"] == "ann"
            erased = (await served.client.delete("/v1/sessions/s1")).json()
            assert (erased["id"], erased["records"] > 0) == ("s1", True)
            assert [one["id"] for one in (await _get(served, "/v1/sessions"))["items"]] == ["s2"]

    asyncio.run(main())
