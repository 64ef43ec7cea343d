"""What a node accepted and did not settle is taken up by the next node that opens its store."""

from __future__ import annotations

import asyncio
import contextlib
from types import SimpleNamespace

import pytest
from death import die
from msgspec.structs import replace
from opentelemetry import trace

from comity import Agent, Context, Node, Reply, Request, Status
from comity.core.journal.records import Accepted, Paused, Settled
from comity.engines.sqlite.journal import SqliteJournal
from comity.errors import UnavailableError
from comity.ports.ambient import MODULES, OTEL
from comity.runtime.call.resume import go_on, resume
from comity.testing.contracts.records import request


def agents(runs: list[str], gate: asyncio.Event) -> list[Agent]:
    boss, helper, slow = Agent("BOSS"), Agent("HELP"), Agent("SLOW")

    @helper.capability("WORK")
    async def work(n: int) -> int:
        runs.append(f"work {n}")
        return n * 10

    @slow.capability("WAIT")
    async def wait() -> str:
        runs.append("wait")
        await gate.wait()
        return "waited"

    @boss.capability("PLAN")
    async def plan(ctx: Context) -> list:
        runs.append("plan")
        first = (await ctx.call("HELP", "WORK", {"n": 1})).data
        second = (await ctx.call("SLOW", "WAIT")).data
        return [first, second]

    return [boss, helper, slow]


def test_an_accepted_call_is_finished_by_the_next_node_and_finished_children_do_not_run_again(tmp_path):
    store = tmp_path / "work.db"

    async def first_life():
        runs: list[str] = []
        node = Node(agents(runs, asyncio.Event()), store=store)
        await node.start()
        node.start_call("BOSS", "PLAN", user_id="u", request_id="case-1", timeout_ms=300_000)
        while runs != ["plan", "work 1", "wait"]:
            await asyncio.sleep(0)
        await die(node)

    async def second_life():
        runs: list[str] = []
        gate = asyncio.Event()
        gate.set()
        async with Node(agents(runs, gate), store=store) as node:
            reply = await node.call("BOSS", "PLAN", user_id="u", request_id="case-1")
            await node._path.durable()
            return reply, runs, node.audit.rows(), node.audit.verify()

    asyncio.run(first_life())
    reply, runs, rows, verdict = asyncio.run(second_life())
    assert (reply.status, reply.data) == (Status.SUCCESS, [10, "waited"])
    assert runs == ["plan", "wait"]  # the finished child was answered from the store
    assert verdict.ok
    assert sorted((row.request_id, row.kind) for row in rows) == [
        ("case-1", "admitted"), ("case-1", "settled"), ("case-1.1", "admitted"), ("case-1.1", "settled"),
        ("case-1.2", "admitted"), ("case-1.2", "settled"),
    ]  # fmt: skip


def test_what_cannot_be_taken_up_is_ended_with_everything_below_it(tmp_path):
    store = tmp_path / "work.db"

    async def first_life():
        runs: list[str] = []
        node = Node(agents(runs, asyncio.Event()), store=store)
        await node.start()
        node.start_call("BOSS", "PLAN", user_id="u", request_id="case-1")
        while "wait" not in runs:
            await asyncio.sleep(0)
        await die(node)

    async def second_life():
        stranger = Agent("OTHER")
        async with Node([stranger], store=store) as node:
            await node._path.durable()
            return {row.request_id: (row.status, row.error_code) for row in node.audit.rows() if row.kind == "settled"}

    asyncio.run(first_life())
    ended = asyncio.run(second_life())
    assert ended["case-1"] == ended["case-1.2"] == ("error", "CALL_INTERRUPTED")
    assert ended["case-1.1"] == ("success", None)


def test_state_survives_a_restart_and_is_saved_with_the_reply(tmp_path):
    def counter() -> Agent:
        agent = Agent("COUNT")

        @agent.capability("NEXT")
        async def following(ctx: Context) -> int:
            ctx.state["n"] = ctx.state.get("n", 0) + 1
            return ctx.state["n"]

        return agent

    async def life(calls: int):
        async with Node([counter()], store=tmp_path / "s.db") as node:
            return [(await node.call("COUNT/a", "NEXT", user_id="u")).data for _ in range(calls)]

    assert asyncio.run(life(3)) == [1, 2, 3]
    assert asyncio.run(life(2)) == [4, 5]


def test_a_reply_is_returned_again_after_a_restart_and_nothing_runs_twice(tmp_path):
    ran: list[int] = []
    agent = Agent("A")

    @agent.capability("GO")
    async def go(n: int) -> int:
        ran.append(n)
        return n + 1

    async def life(**more):
        async with Node([agent], store=tmp_path / "s.db") as node:
            return await node.call("A", "GO", {"n": 1}, user_id="u", **more)

    first = asyncio.run(life())
    again = asyncio.run(life(request_id=first.request_id))
    assert again == first
    assert ran == [1]


def test_the_store_of_a_living_node_is_left_alone(tmp_path):
    store = tmp_path / "work.db"
    gate_open = asyncio.Event

    async def both():
        gate = gate_open()
        runs: list[str] = []
        async with Node(agents(runs, gate), store=store) as first:
            handle = first.start_call("SLOW", "WAIT", user_id="u", request_id="r")
            await first._path.durable()
            async with Node(agents(runs, gate), store=store) as second:
                elsewhere = asyncio.ensure_future(second.call("SLOW", "WAIT", user_id="u", request_id="r"))
                await asyncio.sleep(0.02)
                gate.set()
                reply = await handle.reply()
                await first._path.durable()
                repeated = await second.call("SLOW", "WAIT", user_id="u", request_id="r")
            return runs, await elsewhere, reply, repeated

    runs, elsewhere, reply, repeated = asyncio.run(both())
    assert runs == ["wait"]
    assert elsewhere.data == reply.data == repeated.data == "waited"


def test_a_node_leaves_no_lock_file_behind(tmp_path):
    async def life():
        async with Node([], store=tmp_path / "s.db"):
            assert list(tmp_path.glob("*.lock"))

    asyncio.run(life())
    assert not list(tmp_path.glob("*.lock"))
    with contextlib.suppress(FileNotFoundError):
        assert SqliteJournal(tmp_path / "s.db", "x").path.exists()


def test_a_node_whose_store_has_failed_runs_nothing_and_says_so(tmp_path):
    ran: list[int] = []
    agent = Agent("A")

    @agent.capability("GO")
    async def go() -> None:
        ran.append(1)

    async def life():
        async with Node([agent], store=tmp_path / "s.db") as node:
            node._journal.failure = UnavailableError("the disk is full", code="STORE_UNAVAILABLE")
            refused = await node.call("A", "GO", user_id="u")
            unknown = await node.call("NOBODY", "GO", user_id="u")
            node._journal.failure = None
            return refused, unknown

    refused, unknown = asyncio.run(life())
    assert (refused.status, refused.error.code, refused.error.retryable) == (Status.REFUSED, "STORE_UNAVAILABLE", False)
    assert refused.error.message == "the disk is full"
    assert "until it is restarted" in refused.error.advice
    assert unknown.status is Status.REFUSED
    assert ran == []


def test_what_a_user_said_stands_once_in_the_conversation_though_the_call_is_run_again(tmp_path):
    store = tmp_path / "work.db"

    async def life(gate: asyncio.Event, *, dies: bool):
        runs: list[str] = []
        node = Node(agents(runs, gate), store=store)
        await node.start()
        asked = {"user_id": "u", "session_id": "s", "message": "mail ann@example.com", "request_id": "r"}
        handle = node.start_call("SLOW", "WAIT", **asked)
        while not runs:
            await asyncio.sleep(0)
        if dies:
            return await die(node)
        assert (await handle.reply()).ok
        roles = [turn.role for turn in node.session("s").turns]
        await node.close()
        return roles

    asyncio.run(life(asyncio.Event(), dies=True))
    gate = asyncio.Event()
    gate.set()
    assert asyncio.run(life(gate, dies=False)) == ["user", "SLOW"]


@pytest.mark.parametrize(("left_ms", "runs"), [(1_000, ["r"]), (0, []), (-1, [])])
async def test_a_root_goes_on_after_a_restart_while_there_is_time_left_and_ends_else(make_node, left_ms, runs):
    assert (
        MODULES[OTEL] is trace
    )  # code finds the span of its call as the current one, also where the stored request names none
    agent, ran = Agent("ANL"), []

    @agent.capability("ANL_NPV")
    async def value(ctx: Context) -> None:
        ran.append(ctx.request.request_id)

    async with make_node([agent]) as node:
        path, journal = node._path, node._path._journal
        asked = replace(request("r"), deadline_at=path.now_ms() + left_ms)
        child = request("r.1", parent_id="r")
        journal.append((Accepted(asked, path.now_ms(), "gone"), Accepted(child, path.now_ms(), "gone")))
        resume(path, journal, asked, {"r.1": child})
        await asyncio.sleep(2)
        ended = [journal.call(one).settled_at is not None for one in ("r", "r.1")]
    assert (ran, ended) == (runs, [True, True])


@pytest.mark.parametrize(("n", "completed", "calls"), [(1, [10], 1), (2, [], 0)], ids=["same", "another"])
async def test_a_call_that_runs_again_counts_and_keeps_the_calls_that_had_ended_and_no_refusal(make_node, n, completed, calls):
    """Dies where a replayed reply is not kept for a partial answer, or where a refusal is charged as a call that ran."""
    boss, helper = Agent("BOSS"), Agent("HELP")
    seen: dict[str, Request] = {}

    @helper.capability("WORK")
    async def work(ctx: Context, n: int) -> int:
        seen["r.1"] = ctx.request
        return n * 10

    @boss.capability("PLAN")
    async def plan(ctx: Context) -> None:
        again = "r" in seen
        seen["r"] = ctx.request
        await ctx.call("HELP", "WORK", {"n": n if again else 1})
        if again:
            await asyncio.Event().wait()

    async with make_node([boss, helper]) as node:
        await node.call("BOSS", "PLAN", user_id="u", request_id="r", timeout_ms=1_000)
    async with make_node([boss, helper]) as node:
        journal, root, child = node._journal, seen["r"], seen["r.1"]
        before = [Accepted(root, 0, "gone"), Accepted(child, 0, "gone"), Settled(child, Reply.success(10, request_id="r.1"), 0)]
        journal.append(before)
        resume(node._path, journal, root, {})
        await asyncio.sleep(2)
        reply = journal.call("r").reply
    assert (reply.status, reply.usage.calls) == ("timeout", calls)
    assert [one["data"] for one in (reply.data or {}).get("completed", ())] == completed


class Waiting:
    """A path, and its journal, on which a tree was just put aside whose question has an answer or not."""

    is_closed = False

    def __init__(self, granted: bool | None = True, *, resumes_here: bool = False, unreadable: int = 0) -> None:
        self.done: list[object] = []
        self.reads = 0
        self.unreadable = unreadable
        self.node_id = "n1"
        self.calls: dict[str, object] = {}
        self.granted = granted
        self.toolbox = self.placement = self.sessions = self
        self.resumes_here = resumes_here

    def approval(self, approval_id: str) -> object:
        self.reads += 1
        if self.reads <= self.unreadable:
            raise UnavailableError("the store cannot be read")
        return None if approval_id != "q" else SimpleNamespace(id="q", root_id="r", granted=self.granted)

    def spawn(self, work: object) -> None:
        work.close()  # type: ignore[attr-defined]
        self.done.append("spawned")

    def take_paused(self, root_id: str) -> list[object]:
        reply = replace(Reply.needs_input("Allow?"), request_id=root_id)
        self.done.append(f"taken {root_id}")
        return [SimpleNamespace(request=one, reply=reply) for one in (request(root_id), None)] + [
            SimpleNamespace(request=request("r.1", parent_id="r"), reply=None)
        ]

    def now_ms(self) -> int:
        return 5_000

    def find(self, tenant_id: str, session_id: str) -> None:
        raise UnavailableError("the store cannot be read")

    def append(self, records: list[Paused]) -> None:
        self.done += [(type(one), one.request.request_id, one.at_ms) for one in records]


@pytest.mark.parametrize(
    ("waiting", "approval_id", "reads", "done"),
    [
        (Waiting(), "q", 1, ["spawned"]),
        (Waiting(False), "q", 1, ["spawned"]),
        (Waiting(None), "q", 1, []),
        (Waiting(), "gone", 1, []),
        (Waiting(unreadable=9), "q", 10, ["spawned"]),
        (Waiting(unreadable=10), "q", 10, []),
    ],
)
async def test_a_tree_goes_on_whose_question_was_answered_while_it_was_put_aside(waiting, approval_id, reads, done):
    go_on(waiting, waiting, approval_id)
    await asyncio.sleep(1)
    assert (waiting.reads, waiting.done) == (reads, done)


async def test_a_closed_node_goes_on_with_nothing():
    waiting = Waiting()
    waiting.is_closed = True
    go_on(waiting, waiting, "q")
    assert (waiting.reads, waiting.done) == (0, [])


async def test_a_tree_that_was_taken_and_cannot_go_on_waits_as_before_for_the_same_answer():
    waiting = Waiting(resumes_here=True)
    go_on(waiting, waiting, "q", 1)
    await asyncio.sleep(1)
    assert waiting.done == ["taken r", (Paused, "r", 5_000)]
