"""A plain function runs in a thread: it stops no other agent, and `ctx` works from it."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import subprocess
import sys
import threading

import pytest

from comity import Agent, Context, Node, Reply, SyncContext, SyncNode, Tool
from comity.errors import RefusedError

GIVE_UP_S = 20
LATE_MS = 60


def helper():
    agent = Agent("H")

    @agent.capability("GO")
    async def go(n: int = 0) -> int:
        return n + 1

    return agent


def here() -> int:
    return threading.get_ident()


async def until(condition):
    """Let the loop run until something in another thread has happened."""
    async with asyncio.timeout(GIVE_UP_S):
        while not condition():
            await asyncio.sleep(0.001)


# --- nobody is stopped ---


def test_plain_tools_run_at_the_same_time():
    together = threading.Barrier(4)
    agent = Agent("A", tools_allowed=["wait"])

    def wait() -> int:
        return together.wait(GIVE_UP_S)

    @agent.capability("GO")
    async def go(ctx: Context) -> list[int]:
        return sorted(await asyncio.gather(*(ctx.use_tool("wait") for _ in range(4))))

    async def main():
        async with Node([agent], tools=[Tool(name="wait", function=wait)]) as node:
            return await node.call("A", "GO", user_id="u")

    assert asyncio.run(main()).data == [0, 1, 2, 3]


def test_a_plain_capability_that_blocks_stops_neither_other_agents_nor_its_own_deadline():
    slow, release = Agent("SLOW"), threading.Event()

    @slow.capability("BLOCK")
    def block() -> bool:
        return release.wait(GIVE_UP_S)

    async def main():
        async with Node([slow, helper()]) as node:
            blocked = node.start_call("SLOW", "BLOCK", user_id="u", timeout_ms=LATE_MS)
            other = await node.call("H", "GO", user_id="u")
            reply = await blocked.reply()
            release.set()
            return other, reply

    other, reply = asyncio.run(main())
    assert other.data == 1
    assert reply.status == "timeout"
    assert reply.duration_ms < GIVE_UP_S * 1000 / 2


def test_run_in_says_where_a_function_runs():
    agent, main_thread = Agent("A"), threading.get_ident()
    for code, run_in in (("DEFAULT", None), ("THREAD", "thread"), ("LOOP", "loop")):
        agent.capability(code, run_in=run_in)(here)
    inside = Tool(name="inside", function=here, run_in="loop")
    outside = Tool(name="outside", function=here)

    user = Agent("U", tools_allowed=["*"])

    @user.capability("GO")
    async def go(ctx: Context) -> list[int]:
        return [await ctx.use_tool(name) for name in ("inside", "outside")]

    async def main():
        async with Node([agent, user], tools=[inside, outside]) as node:
            where = [(await node.call("A", code, user_id="u")).data for code in ("DEFAULT", "THREAD", "LOOP")]
            return [*where, *(await node.call("U", "GO", user_id="u")).unwrap()]

    assert [one == main_thread for one in asyncio.run(main())] == [False, False, True, True, False]


# --- ctx in a thread ---

WHO = contextvars.ContextVar("who", default="nobody")


def everything(ctx: SyncContext, n: int) -> dict:
    """Use all of ctx."""
    WHO.get()
    ctx.progress({"at": 1})
    ctx.state["n"] = ctx.state.get("n", 0) + n
    ctx.session.learn("colour", "blue", confidence=0.9)
    text = ctx.write()
    text.feed("hel", "hel")
    text.feed("lo", "lo")
    text.finish()
    with ctx.span("step") as span:
        span.attributes["k"] = "v"
        ctx.call("H", "GO")
    with contextlib.suppress(ZeroDivisionError), ctx.span("broken"):
        raise ZeroDivisionError
    insight = ctx.insight("discovery", summary="it works", confidence=0.9)
    ctx.report_usage(prompt_tokens=3)
    ctx.note("done")
    once = ctx.once("model:m", "complete", lambda: Reply.success({"said": 1}))
    replies = ctx.gather(ctx.start_call("H", "GO", {"n": 1}), ctx.start_call("H", "GO", {"n": 2}), ctx.call("H", "GO"))
    return {
        "call": ctx.call("H", "GO", {"n": 40}).data,
        "gather": [reply.data for reply in replies],
        "tool": ctx.use_tool("double", n=4),
        "state": ctx.state["n"],
        "facts": ctx.session.facts,
        "user": ctx.session.user_id,
        "left": ctx.limits.timeout_ms_max >= ctx.left_ms,  # in this order: time passes between the two
        "request": ctx.request.capability,
        "tokens": ctx.tokens_left,
        "once": once.data,
        "insight": bool(insight),
        "trace": ctx.traceparent != ctx.tracestate,
        "token": bool(ctx.token),
        "guidance": ctx.guidance_text(),
    }


EVERYTHING = {
    "call": 41, "gather": [2, 3, 1], "tool": 8, "state": 2, "facts": {"colour": "blue"}, "user": "u", "left": True,
    "request": "ALL", "tokens": None, "once": {"said": 1}, "insight": True, "trace": True, "token": True, "guidance": "",
}  # fmt: skip


def everything_node(**more):
    agent = Agent("A", tools_allowed=["double"])
    agent.capability("ALL")(everything)
    return Node([agent, helper()], tools=[Tool(name="double", function=lambda n: 2 * n)], **more)


def test_all_of_ctx_works_in_a_thread():
    async def main():
        async with everything_node() as node:
            handle = node.start_call("A", "ALL", {"n": 2}, user_id="u")
            kinds = [(event.kind, event.data) async for event in handle.events() if event.kind in {"progress", "text"}]
            await node.flush_spans()
            return await handle.reply(), kinds, {span.name: span for span in node.spans.find("{ true }")}

    reply, kinds, spans = asyncio.run(main())
    assert reply.unwrap() == EVERYTHING
    assert kinds[0] == ("progress", {"at": 1})
    assert spans["broken"].attributes["error.type"] == "ZeroDivisionError"
    assert "step" in spans
    assert reply.usage.prompt_tokens == 3


async def test_all_of_ctx_works_in_virtual_time(make_node):
    agent = Agent("A", tools_allowed=["double"])
    agent.capability("ALL")(everything)
    async with make_node([agent, helper()], tools=[Tool(name="double", function=lambda n: 2 * n)]) as node:
        assert (await node.call("A", "ALL", {"n": 2}, user_id="u")).unwrap() == EVERYTHING


def test_a_ctx_hinted_as_context_or_not_at_all_works_too():
    agent = Agent("A")

    @agent.capability("HINTED")
    def hinted(ctx: Context) -> int:
        return ctx.call("H", "GO").data

    @agent.capability("BARE")
    def bare(ctx):
        return ctx.call("H", "GO").data

    with SyncNode([agent, helper()]) as node:
        assert [node.call("A", code, user_id="u").data for code in ("HINTED", "BARE")] == [1, 1]


def test_context_variables_reach_the_thread():
    agent = Agent("A")

    @agent.capability("WHO")
    def who() -> str:
        return WHO.get()

    async def main():
        async with Node([agent]) as node:
            WHO.set("ann")
            return await node.call("A", "WHO", user_id="u")

    assert asyncio.run(main()).data == "ann"


def test_a_coroutine_that_a_plain_function_returns_is_awaited_with_a_ctx_that_waits():
    agent = Agent("A")

    async def work(ctx):
        return (await ctx.call("H", "GO")).data

    @agent.capability("GO")
    def go(ctx: Context):
        return work(ctx)

    with SyncNode([agent, helper()]) as node:
        assert node.call("A", "GO", user_id="u").data == 1


def test_what_a_plain_function_raises_reaches_its_caller_as_before():
    agent = Agent("A")
    for code, raised in (("STOP", StopIteration), ("EXIT", SystemExit), ("KEY", KeyError("k")), ("GONE", ConnectionError("x"))):

        def fail(raised=raised):
            raise raised

        agent.capability(code, input_schema={})(fail)

    with SyncNode([agent]) as node:
        codes = {code: node.call("A", code, user_id="u").error.code for code in agent.capabilities}
    assert codes == {
        "STOP": "TARGET_CRASHED", "EXIT": "TARGET_CRASHED", "KEY": "TARGET_CRASHED", "GONE": "TARGET_TEMPORARY_FAILURE",
    }  # fmt: skip


def test_a_tool_of_high_risk_pauses_a_plain_function_until_it_is_approved():
    agent, paid = Agent("A", tools_allowed=["pay"]), []

    def pay() -> str:
        paid.append(1)
        return "paid"

    @agent.capability("GO")
    def go(ctx: SyncContext) -> str:
        return ctx.use_tool("pay")

    with SyncNode([agent], tools=[Tool(name="pay", function=pay, risk="high")]) as node:
        asked = node.call("A", "GO", user_id="u")
        assert (asked.status, paid) == ("needs_input", [])
        assert node.decide(asked.data["approval_id"], granted=True, by="ann").data == "paid"
    assert paid == [1]


# --- ends ---


def test_after_its_deadline_ctx_raises_in_the_thread_and_the_agent_is_busy_until_it_returns():
    agent, other = Agent("A", concurrency=1), helper()
    release, raised, runs = threading.Event(), [], []

    @agent.capability("GO")
    def go(ctx: SyncContext, name: str) -> str:
        runs.append(name)
        if name == "first":
            release.wait(GIVE_UP_S)
            for use in (lambda: ctx.call("H", "GO"), lambda: ctx.state, lambda: ctx.progress(1), lambda: ctx.session.facts):
                try:
                    use()
                except RefusedError as error:
                    raised.append(error.code)
        return name

    async def main():
        async with Node([agent, other], lag_ms=20) as node:
            first = await node.call("A", "GO", {"name": "first"}, user_id="u", timeout_ms=LATE_MS)
            second = node.start_call("A", "GO", {"name": "second"}, user_id="u")
            await until(lambda: node.lags)
            assert runs == ["first"]  # one call at a time is a promise
            release.set()
            return first, await second.reply(), node.lags

    first, second, lags = asyncio.run(main())
    assert (first.status, second.data) == ("timeout", "second")
    assert raised == ["CALL_CANCELLED"] * 4
    assert [(lag.target, lag.capability, lag.where) for lag in lags] == [("A", "GO", "thread")]


def test_a_call_that_a_thread_waits_for_ends_with_its_caller():
    lead, slow, codes = Agent("LEAD"), Agent("SLOW"), []

    @slow.capability("NAP")
    async def nap():
        await asyncio.sleep(3600)

    @lead.capability("GO")
    def go(ctx: SyncContext):
        try:
            ctx.call("SLOW", "NAP")
        except RefusedError as error:
            codes.append(error.code)
            raise

    async def main():
        async with Node([lead, slow]) as node:
            handle = node.start_call("LEAD", "GO", user_id="u")
            async for event in handle.events():
                if event.kind == "started" and event.target == "SLOW":
                    handle.cancel()
            return await handle.reply()

    assert asyncio.run(main()).status == "cancelled"
    assert codes == ["CALL_CANCELLED"]


def test_what_a_tool_did_after_its_call_ended_is_recorded_as_late():
    agent, release = Agent("A", tools_allowed=["slow"]), threading.Event()

    def slow() -> str:
        release.wait(GIVE_UP_S)
        return "done"

    @agent.capability("GO")
    async def go(ctx: Context):
        await ctx.use_tool("slow")

    async def main():
        async with Node([agent], tools=[Tool(name="slow", function=slow)]) as node:
            reply = await node.call("A", "GO", user_id="u", timeout_ms=LATE_MS)
            release.set()
            await until(lambda: any(row.kind == "late" for row in node.audit.rows()))
            return reply

    assert asyncio.run(main()).status == "timeout"


def test_closing_does_not_wait_for_ever_for_a_thread_and_names_it(caplog, monkeypatch):
    monkeypatch.setattr("comity.runtime.call.tasks.CLOSE_S", 0.05)
    agent, begun, release = Agent("A"), threading.Event(), threading.Event()

    @agent.capability("STUCK")
    def stuck() -> bool:
        begun.set()
        return release.wait(GIVE_UP_S)

    async def main():
        async with Node([agent]) as node:
            handle = node.start_call("A", "STUCK", user_id="u")
            await until(begun.is_set)
        return await handle.reply()

    assert asyncio.run(main()).status == "cancelled"
    release.set()
    assert "stuck of A STUCK" in caplog.text
    assert "the node closes without it" in caplog.text


def test_a_program_ends_though_a_thread_never_does():
    program = """
import asyncio, threading
from comity import Agent, Node
import comity.runtime.call.tasks as tasks
tasks.CLOSE_S = 0.05
agent = Agent("A")

@agent.capability("STUCK")
def stuck():
    threading.Event().wait()

async def main():
    async with Node([agent], privacy=None) as node:
        print((await node.call("A", "STUCK", user_id="u", timeout_ms=30)).status)

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=GIVE_UP_S, check=True)
    assert done.stdout.strip() == "timeout"


# --- places ---


def test_no_more_functions_run_at_a_time_than_there_are_places():
    agent, lock = Agent("A"), threading.Lock()
    running, most, seen = 0, 0, threading.Event()

    @agent.capability("GO")
    def go() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        seen.wait(0.002)
        with lock:
            running -= 1

    async def main():
        async with Node([agent], threads_max=2) as node:
            return await asyncio.gather(*(node.call("A", "GO", user_id="u") for _ in range(12)))

    assert all(reply.ok for reply in asyncio.run(main()))
    assert most == 2


def test_plain_functions_that_call_each_other_do_not_wait_for_each_others_places():
    chain = [Agent(name) for name in "ABCD"]
    for agent, below in zip(chain, [*chain[1:], None], strict=True):

        def go(ctx: SyncContext, below=below) -> int:
            return 1 if below is None else ctx.call(below.id, "GO").unwrap() + 1

        agent.capability("GO", input_schema={})(go)

    async def main():
        async with Node(chain, threads_max=1) as node:
            return await asyncio.gather(*(node.call("A", "GO", user_id="u") for _ in range(5)))

    assert [reply.data for reply in asyncio.run(main())] == [4] * 5


def test_when_all_places_are_held_by_ended_calls_the_log_names_them(caplog):
    agent, release = Agent("A"), threading.Event()

    @agent.capability("STUCK")
    def stuck() -> bool:
        return release.wait(GIVE_UP_S)

    @agent.capability("GO")
    def go() -> int:
        return 1

    async def main():
        async with Node([agent], threads_max=1) as node:
            await node.call("A", "STUCK", user_id="u", timeout_ms=LATE_MS)
            waiting = await node.call("A", "GO", user_id="u", timeout_ms=LATE_MS)
            release.set()
            return waiting, await node.call("A", "GO", user_id="u")

    waiting, after = asyncio.run(main())
    assert (waiting.status, after.data) == ("timeout", 1)
    assert "all threads are busy" in caplog.text
    assert "stuck of A STUCK" in caplog.text


@pytest.mark.parametrize("wrong", [0, True, "many"])
def test_a_number_of_threads_that_is_none_is_refused(wrong):
    async def main():
        async with Node(threads_max=wrong):
            pass

    with pytest.raises(ValueError, match="threads_max must be a whole number of at least 1"):
        asyncio.run(main())
