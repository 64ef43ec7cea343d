"""A node that closes waits for all code it cancelled; code that does not stop keeps neither its place nor the node."""

from __future__ import annotations

import asyncio
import threading

import pytest

from comity import Agent, AsyncHandoffManager, AsyncHandoffReceiver, Context, Node, Status, Tool
from comity.core.journal.records import RUNS_ON
from comity.errors import UnavailableError
from comity.runtime.call.stopping import PRESSED_GRACE_S, SEAT_GRACE_S
from comity.runtime.call.tasks import CLOSE_S

CLEANING_S = 0.2


class Team:
    """TOP calls LEAF or a tool; each takes a while to clean up once it is cancelled, and notes that it has."""

    def __init__(self) -> None:
        self.cleaned: list[str] = []
        self.top = Agent("TOP", tools_allowed=["slow"], on_activate=self.on_activate)
        self.top.on_close = self.on_close
        self.leaf = Agent("LEAF")
        self.tool = Tool(name="slow", function=self.slow)
        self.is_slow_to_wake = False

        @self.leaf.capability("GO")
        async def leaf(ctx: Context) -> None:
            await self.clean("leaf")

        @self.top.capability("CALL")
        async def call(ctx: Context) -> None:
            await ctx.call("LEAF", "GO")

        @self.top.capability("LEAVE")
        async def leave(ctx: Context) -> str:
            self.left = asyncio.ensure_future(ctx.call("LEAF", "GO"))
            await asyncio.sleep(0.05)
            return "left"

        @self.top.capability("TOOL")
        async def use(ctx: Context) -> None:
            await ctx.use_tool("slow")

    async def clean(self, what: str) -> None:
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(CLEANING_S)
            self.cleaned.append(what)

    async def slow(self) -> None:
        await self.clean("tool")

    async def on_activate(self, address: str, state: dict) -> None:
        if self.is_slow_to_wake:
            await self.clean("waking")

    async def on_close(self) -> None:
        self.cleaned.append("on_close")


async def cancelled(node: Node, team: Team) -> None:
    handle = node.start_call("TOP", "CALL", user_id="u", session_id="s")
    await asyncio.sleep(0.05)
    handle.cancel()


async def cancelled_and_read(node: Node, team: Team) -> None:
    handle = node.start_call("TOP", "CALL", user_id="u", session_id="s")
    await asyncio.sleep(0.05)
    handle.cancel()
    assert (await handle.reply()).status is Status.CANCELLED


async def timed_out(node: Node, team: Team) -> None:
    await node.call("TOP", "CALL", user_id="u", timeout_ms=60)  # LEAF times out, and TOP says so


async def waiter_cancelled(node: Node, team: Team) -> None:
    waiting = asyncio.ensure_future(node.call("TOP", "CALL", user_id="u"))
    await asyncio.sleep(0.05)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


async def parent_returned(node: Node, team: Team) -> None:
    assert (await node.call("TOP", "LEAVE", user_id="u")).data == "left"


async def tool_timed_out(node: Node, team: Team) -> None:
    assert (await node.call("TOP", "TOOL", user_id="u", timeout_ms=60)).status is Status.TIMEOUT


async def erased(node: Node, team: Team) -> None:
    node.start_call("TOP", "CALL", user_id="u", session_id="s")
    await asyncio.sleep(0.05)
    await node.erase_session("s")


async def running(node: Node, team: Team) -> None:
    node.start_call("TOP", "CALL", user_id="u")
    await asyncio.sleep(0.05)


async def waking(node: Node, team: Team) -> None:
    team.is_slow_to_wake = True
    node.start_call("TOP", "CALL", user_id="u")
    await asyncio.sleep(0.05)


SCENES = {
    **{act.__name__: (act, "leaf") for act in (cancelled, cancelled_and_read, timed_out, waiter_cancelled, parent_returned)},
    **{act.__name__: (act, what) for act, what in ((tool_timed_out, "tool"), (erased, "leaf"), (running, "leaf"))},
    "waking": (waking, "waking"),
}


@pytest.mark.parametrize("scene", SCENES)
async def test_closing_waits_for_code_however_its_call_ended(make_node, scene, caplog):
    act, what = SCENES[scene]
    team = Team()
    async with make_node([team.top, team.leaf], tools=[team.tool]) as node:
        await act(node, team)
        assert team.cleaned == []
    assert team.cleaned == [what, "on_close"]
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []
    assert "left running" not in caplog.text


async def test_closing_ends_what_receivers_do_and_gives_it_back(make_node):
    cleaned = []

    async def work(handoff):
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(CLEANING_S)
            cleaned.append(handoff.id)

    async with make_node() as node:
        manager = AsyncHandoffManager(project_id="p", agent_id="b", node=node)
        receiver = AsyncHandoffReceiver(agent_id="w", capabilities=["work"], node=node)
        serving = asyncio.ensure_future(receiver.serve(work))
        handed = await manager.create_handoff(capability_id="work", task="t", inputs={})
        behind = await manager.create_handoff(capability_id="work", task="the next", inputs={})
        await asyncio.sleep(0.1)
        queue = node.handoffs.queue
    assert cleaned == [handed]
    for one in (handed, behind):
        handoff = queue.get(one)
        assert (str(handoff.state), handoff.holder) == ("pending", "")
    with pytest.raises(UnavailableError, match="closed") as raised:
        await serving
    assert raised.value.code == "NODE_CLOSED"
    await receiver.close()  # once more does no harm


async def test_a_receiver_that_is_closed_waits_for_its_own_work_alone(make_node):
    cleaned = []

    async def work(handoff):
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(CLEANING_S)
            cleaned.append(handoff.id)

    async with make_node() as node:
        manager = AsyncHandoffManager(project_id="p", agent_id="b", node=node)
        async with AsyncHandoffReceiver(agent_id="w", capabilities=["work"], node=node) as receiver:
            serving = asyncio.ensure_future(receiver.serve(work))
            handed = await manager.create_handoff(capability_id="work", task="t", inputs={})
            await asyncio.sleep(0.1)
        assert cleaned == [handed]
        assert node.handoffs.get(handed).is_free
        await asyncio.gather(serving, return_exceptions=True)


# --- code that does not stop ---


def stubborn(**more) -> tuple[Agent, asyncio.Event]:
    agent, enough = Agent("A", **more), asyncio.Event()

    @agent.capability("STUBBORN")
    async def stay(ctx: Context) -> None:
        while not enough.is_set():
            try:
                await enough.wait()
            except asyncio.CancelledError:
                continue

    @agent.capability("OK")
    async def ok(ctx: Context) -> str:
        return "ok"

    return agent, enough


async def test_closing_names_what_does_not_stop_and_goes(make_node, caplog):
    agent, enough = stubborn()

    async def work(handoff):
        while not enough.is_set():
            try:
                await enough.wait()
            except asyncio.CancelledError:
                continue

    loop = asyncio.get_running_loop()
    async with make_node([agent]) as node:
        manager = AsyncHandoffManager(project_id="p", agent_id="b", node=node)
        serving = asyncio.ensure_future(AsyncHandoffReceiver(agent_id="w", capabilities=["work"], node=node).serve(work))
        handed = await manager.create_handoff(capability_id="work", task="t", inputs={})
        reply = await node.call("A", "STUBBORN", user_id="u", timeout_ms=50)
        assert reply.status is Status.TIMEOUT
        begun_s = loop.time()
    assert loop.time() - begun_s <= 2 * CLOSE_S + 0.1
    assert f"left running, {CLOSE_S:.0f} s after they were cancelled: A STUBBORN (request {reply.request_id})" in caplog.text
    assert f"w (handoff {handed})" in caplog.text
    enough.set()
    await asyncio.gather(serving, return_exceptions=True)


@pytest.mark.parametrize("concurrency", [1, 4])
async def test_places_held_by_code_that_does_not_stop_are_given_back_and_the_agent_is_reported(make_node, caplog, concurrency):
    agent, enough = stubborn(concurrency=concurrency)
    loop = asyncio.get_running_loop()
    async with make_node([agent]) as node:
        calls = [node.call("A", "STUBBORN", user_id="u", timeout_ms=50) for _ in range(concurrency)]
        stuck = {reply.request_id for reply in await asyncio.gather(*calls)}
        begun_s = loop.time()
        assert node.strays == []
        assert (await node.call("A", "OK", user_id="u", timeout_ms=20_000)).data == "ok"
        assert loop.time() - begun_s <= SEAT_GRACE_S + 0.1
        assert {(one.request_id, one.target, one.capability) for one in node.strays} == {
            (one, "A", "STUBBORN") for one in stuck
        }
        assert caplog.text.count("A STUBBORN") == concurrency
        assert "does not heed its cancellation" in caplog.text
        assert {row.request_id for row in node.audit.rows() if row.note == RUNS_ON} == stuck
        assert node.audit.verify().ok
        enough.set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert node.strays == []
        seat = next(iter(node._path.activations._seats.values()))
        assert not seat.holders
        assert (await node.call("A", "OK", user_id="u")).data == "ok"


async def test_a_place_is_given_back_when_its_own_grace_is_over_whichever_were_given_back_before(make_node):
    agent, enough = stubborn(concurrency=2)
    loop = asyncio.get_running_loop()
    async with make_node([agent]) as node:
        last = 50 + int(PRESSED_GRACE_S * 1_750)
        calls = [node.call("A", "STUBBORN", user_id="u", timeout_ms=timeout_ms) for timeout_ms in (50, last)]
        await asyncio.gather(*calls)
        begun_s = loop.time()
        while len(node.strays) < 2:
            await asyncio.sleep(0.01)
        assert loop.time() - begun_s <= SEAT_GRACE_S + 0.02
        enough.set()
        await asyncio.sleep(0)


async def test_a_waiting_call_that_would_run_out_of_time_gets_a_place_sooner(make_node):
    agent, enough = stubborn(concurrency=2)
    async with make_node([agent]) as node:
        await asyncio.gather(*(node.call("A", "STUBBORN", user_id="u", timeout_ms=50) for _ in range(2)))
        timeout_ms = int((PRESSED_GRACE_S + SEAT_GRACE_S) / 2 * 1000)
        assert (await node.call("A", "OK", user_id="u", timeout_ms=timeout_ms)).data == "ok"
        assert len(node.strays) == 2
        enough.set()
        await asyncio.sleep(0)


async def test_code_that_stops_within_its_grace_keeps_its_place_until_then(make_node, caplog):
    agent = Agent("A", concurrency=1)
    log = []

    @agent.capability("CLEANS")
    async def cleans(ctx: Context) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(SEAT_GRACE_S - 0.5)
            log.append("cleaned")

    @agent.capability("OK")
    async def ok(ctx: Context) -> None:
        log.append("next")

    async with make_node([agent]) as node:
        assert (await node.call("A", "CLEANS", user_id="u", timeout_ms=50)).status is Status.TIMEOUT
        assert (await node.call("A", "OK", user_id="u", timeout_ms=20_000)).ok
        assert log == ["cleaned", "next"]
        assert node.strays == []
    assert "still runs" not in caplog.text


def test_a_function_that_does_not_return_from_its_thread_keeps_its_place_and_is_in_the_audit(monkeypatch, caplog):
    monkeypatch.setattr("comity.runtime.call.stopping.SEAT_GRACE_S", 0.02)
    agent, enough = Agent("A", concurrency=1), threading.Event()

    @agent.capability("HANG")
    def hang() -> None:
        enough.wait(60)

    @agent.capability("OK")
    async def ok(ctx: Context) -> str:
        return "ok"

    async def main() -> None:
        async with Node([agent], lag_ms=10) as node:
            hung = await node.call("A", "HANG", user_id="u", timeout_ms=50)
            assert (await node.call("A", "OK", user_id="u", timeout_ms=200)).status is Status.TIMEOUT
            assert node.strays == []
            assert [row.request_id for row in node.audit.rows() if row.note == RUNS_ON] == [hung.request_id]
            enough.set()
            assert (await node.call("A", "OK", user_id="u")).data == "ok"

    asyncio.run(main())
    assert "A HANG" in caplog.text  # by the watchdog


async def test_what_a_stray_does_to_its_state_counts_for_nothing(make_node):
    agent, enough = Agent("A", concurrency=1), asyncio.Event()

    @agent.capability("STUBBORN")
    async def stay(ctx: Context) -> None:
        state = ctx.state
        while not enough.is_set():
            try:
                await enough.wait()
            except asyncio.CancelledError:
                continue
        state["n"] = 99

    @agent.capability("COUNT")
    async def count(ctx: Context) -> int:
        ctx.state["n"] = ctx.state.get("n", 0) + 1
        await asyncio.sleep(1)
        return ctx.state["n"]

    async with make_node([agent]) as node:
        await node.call("A", "STUBBORN", user_id="u", timeout_ms=50)
        counting = asyncio.ensure_future(node.call("A", "COUNT", user_id="u", timeout_ms=20_000))
        await asyncio.sleep(SEAT_GRACE_S + 0.5)
        enough.set()
        assert (await counting).data == 1
        assert (await node.call("A", "COUNT", user_id="u")).data == 2
