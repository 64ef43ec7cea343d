"""How a call ends: not after its deadline, without what an agent thought, and with everything that it hid."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from types import SimpleNamespace

import pytest

from comity import Agent, Context, Node, Policy, Reply, Status
from comity.runtime.call.settle import ANSWER_MS_MAX, _is_answered, _stop_looking
from comity.runtime.session.privacy import Privacy
from comity.testing import VirtualClock
from comity.testing.contracts.records import request


class Stopped(VirtualClock):
    """A clock that goes on while the process stands still: no timer of the loop fires meanwhile."""

    def __init__(self) -> None:
        self.stood_ns = 0

    def now_ns(self) -> int:
        return super().now_ns() + self.stood_ns


@pytest.mark.parametrize(("stood_ns", "status"), [(10**9, Status.SUCCESS), (10**9 + 1, Status.TIMEOUT)])
async def test_a_result_that_is_found_after_the_deadline_is_late_though_no_timer_fired(make_node, stood_ns, status):
    clock, agent = Stopped(), Agent("A")

    @agent.capability("GO")
    async def go():
        clock.stood_ns += stood_ns
        return 1

    async with make_node([agent], clock=clock) as node:
        reply = await node.call("A", "GO", user_id="u", timeout_ms=1_000)
        kinds = [row.kind for row in node.audit.rows()]
    assert reply.status is status
    assert kinds == ["admitted", "settled", *(["late"] if status is Status.TIMEOUT else [])]


async def test_what_an_agent_thought_reaches_neither_its_caller_nor_the_user(make_node):
    agent, heard = Agent("A"), []

    @agent.capability("THINK")
    async def think():
        return Reply.success(1, message="yes", thought="the user is wrong")

    @agent.capability("ASK")
    async def ask(ctx: Context):
        heard.append(await ctx.call("B", "THINK"))
        return heard[0]

    other = Agent("B")
    other.capability("THINK")(think)
    async with make_node([agent, other]) as node:
        replies = [await node.call("A", code, user_id="u", request_id=f"r-{code}") for code in ("THINK", "ASK", "ASK")]
    assert [reply.thought for reply in (*replies, *heard)] == [""] * (3 + len(heard))
    assert all(reply.ok and reply.message == "yes" for reply in replies)
    assert len(heard) == 1, "asked again under its id, it answers from the store"


def test_what_an_answer_without_words_hides_is_in_the_store_as_soon_as_the_answer_is_told(tmp_path):
    agent = Agent("A")

    @agent.capability("FIND")
    async def find():
        return {"mail": "ann@example.com"}

    async def main() -> None:
        async with Node([agent], store=tmp_path / "s.db", privacy=Privacy(), lag_ms=None) as node:
            reply = await node.call("A", "FIND", user_id="u", session_id="s")
            with contextlib.closing(sqlite3.connect(tmp_path / "s.db")) as store:  # as after a loss of power
                (vaults,) = store.execute("SELECT count(*) FROM documents WHERE kind = 'vault'").fetchone()
        assert (reply.data, vaults) == ({"mail": "ann@example.com"}, 1)

    asyncio.run(main())


def test_a_refusal_is_in_the_store_before_it_is_told(tmp_path):
    async def main() -> None:
        async with Node([Agent("A")], store=tmp_path / "s.db", lag_ms=None) as node:
            reply = await node.call("A", "NONE", user_id="u")
            with contextlib.closing(sqlite3.connect(tmp_path / "s.db")) as store:
                (rows,) = store.execute("SELECT count(*) FROM audit").fetchone()
        assert (reply.status, rows) == (Status.REFUSED, 1)

    asyncio.run(main())


async def test_a_call_that_has_ended_is_not_kept_until_its_deadline(make_node):
    agent = Agent("A")

    @agent.capability("GO")
    async def go():
        return 1

    async with make_node([agent]) as node:
        await node.call("A", "GO", user_id="u", timeout_ms=60_000)
        (slot,) = node._path.settlement.deadlines._slots.values()  # what is kept is seen nowhere else
        assert not slot


@pytest.mark.parametrize(
    ("late_ms", "has_answer", "counts"),
    [(-1, True, True), (ANSWER_MS_MAX, True, True), (ANSWER_MS_MAX + 1, True, False), (0, False, False)],
)
def test_an_answer_that_was_stored_in_time_is_taken_for_a_moment_after_the_deadline(late_ms, has_answer, counts):
    asked = request("r")
    call = SimpleNamespace(request=asked, has_answer=lambda: has_answer)
    assert _is_answered(call, asked.deadline_at + late_ms) is counts
    assert not _is_answered(SimpleNamespace(request=asked, has_answer=None), asked.deadline_at)


async def test_calls_side_by_side_whose_objectives_are_alike_once_personal_data_is_masked_both_end(make_node):
    boss, clerk = Agent("BOSS"), Agent("CLERK")

    @boss.capability("GO")
    async def go(ctx: Context) -> list[str]:
        people = ("ann@example.com", "eve@example.com")
        replies = await ctx.gather(*(ctx.call("CLERK", "MAIL", objective=f"mail {one}") for one in people))
        return [reply.unwrap() for reply in replies]

    @clerk.capability("MAIL")
    async def mail(ctx: Context) -> str:
        await asyncio.sleep(1)
        return ctx.request.objective

    async with make_node([boss, clerk], privacy=Privacy(policy=Policy({"EMAIL": "mask"}))) as node:
        reply = await node.call("BOSS", "GO", user_id="u")
    assert reply.data == ["mail ****@example.com"] * 2


@pytest.mark.parametrize(
    ("sleeps_s", "is_stored", "status", "took_s"),
    [(1.3, True, "success", 1.3), (1.3, False, "timeout", 1.0), (9, True, "timeout", 1.5), (9, False, "timeout", 1.0)],
)
async def test_a_call_whose_answer_is_stored_in_time_waits_for_it_a_moment_longer(
    make_node, sleeps_s, is_stored, status, took_s
):
    agent = Agent("A")

    @agent.capability("GO")
    async def go():
        await asyncio.sleep(sleeps_s)

    async with make_node([agent]) as node:
        loop = asyncio.get_running_loop()
        began = loop.time()
        asked = asyncio.ensure_future(node.call("A", "GO", user_id="u", request_id="r", timeout_ms=1_000))
        await asyncio.sleep(0.1)
        node._path.calls["r"].has_answer = lambda: is_stored
        assert (await asked).status == status
        assert loop.time() - began == pytest.approx(took_s, abs=0.05)
        assert [row.kind for row in node.audit.rows()][:2] == ["admitted", "settled"]


@pytest.mark.parametrize("by_itself", [False, True])
async def test_looking_through_the_request_of_a_call_that_ends_is_stopped_unless_it_ends_the_call(by_itself):
    async def look() -> str:
        if by_itself:
            _stop_looking(call, looking)
        await asyncio.sleep(0.1)
        return "done"

    call = SimpleNamespace(arriving=None, seat=SimpleNamespace(coming=1))
    looking = call.arriving = asyncio.ensure_future(look())
    if not by_itself:
        await asyncio.sleep(0)
        _stop_looking(call, looking)
    (left,) = await asyncio.gather(looking, return_exceptions=True)
    assert (call.arriving, call.seat.coming) == (None, 0)
    assert left == "done" if by_itself else isinstance(left, asyncio.CancelledError)
