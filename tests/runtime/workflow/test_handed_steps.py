"""The code of a step runs in the task of its run until it suspends: then the step keeps the task, and the run gets another."""

from __future__ import annotations

import asyncio
import contextvars
from typing import Any

import pytest

from comity import Agent, Context, Node
from comity.runtime.workflow import run

WHO = contextvars.ContextVar("who", default="no step")
CHAIN = """
workflow: chain
nodes:
  x: {call: A/%s}
  y: {call: A/%s, after: [x]}
  z: {call: A/%s, after: [y]}
output: ["{{x.data}}", "{{y.data}}", "{{z.data}}"]
"""


@pytest.fixture(autouse=True)
def _no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let only the number of steps decide when others get a turn."""
    monkeypatch.setattr(run, "ALONG_MS", 1_000_000)


def worker(tasks: list[Any]) -> Agent:
    """Return an agent whose capabilities note the tasks they run in."""
    agent = Agent("A")

    @agent.capability("AT_ONCE")
    async def at_once(ctx: Context) -> dict[str, Any]:
        tasks.append(asyncio.current_task())
        was, _ = WHO.get(), WHO.set(ctx.request.request_id)
        return {"was": was, "is_named": asyncio.current_task().get_name() == ctx.request.request_id}

    @agent.capability("SUSPENDS")
    async def suspends(ctx: Context) -> dict[str, Any]:
        tasks.append(asyncio.current_task())
        was, _ = WHO.get(), WHO.set(ctx.request.request_id)
        async with asyncio.timeout(60):
            await asyncio.sleep(0)
        is_same = asyncio.current_task() is tasks[-1] and WHO.get() == ctx.request.request_id
        return {"was": was, "is_named": is_same and asyncio.current_task().get_name() == ctx.request.request_id}

    @agent.capability("CANCELS")
    async def cancels() -> dict[str, Any]:
        tasks.append(asyncio.current_task())
        asyncio.current_task().cancel()
        return {"was": "no step", "is_named": True}

    return agent


async def ran(*capabilities: str) -> list[int]:
    """Run a chain of three steps, and return for each step the first one that ran in the same task."""
    tasks: list[Any] = []
    async with Node([worker(tasks)], lag_ms=None) as node:
        node.workflows.add(CHAIN % capabilities)
        reply = await node.workflows.run("chain", user_id="u")
        assert node.strays == []
    assert reply.data == [{"was": "no step", "is_named": True}] * 3, reply
    return [tasks.index(task) for task in tasks]


@pytest.mark.parametrize(
    ("capabilities", "places"),
    [
        (("AT_ONCE", "AT_ONCE", "AT_ONCE"), [0, 0, 0]),
        (("SUSPENDS", "AT_ONCE", "AT_ONCE"), [0, 1, 1]),
        (("AT_ONCE", "SUSPENDS", "SUSPENDS"), [0, 0, 2]),
        (("CANCELS", "SUSPENDS", "AT_ONCE"), [0, 1, 2]),
    ],
)
async def test_a_step_has_one_task_and_one_context_and_leaves_neither_to_the_next(capabilities: Any, places: list[int]) -> None:
    assert await ran(*capabilities) == places


@pytest.mark.parametrize("capability", ["AT_ONCE", "SUSPENDS"])
async def test_the_task_of_a_run_bears_its_name_again_once_a_step_has_ended(
    capability: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = []
    async with Node([worker([])], lag_ms=None) as node:
        node.workflows.add(CHAIN % ((capability,) * 3))
        with monkeypatch.context() as patched:
            patched.setitem(node.workflows.watchers.readers, "r", [])
            patched.setattr(node.workflows.watchers, "tell", lambda *_: names.append(asyncio.current_task().get_name()))
            await node.workflows.run("chain", user_id="u", run_id="r")
    assert names == ["r"] * 4  # for what began it, and for the end of each step


async def test_a_run_whose_task_is_cancelled_before_it_has_begun_ends() -> None:
    agent, ended = Agent("A"), []

    @agent.capability("GO")
    async def go(ctx: Context) -> None:
        def cancel() -> None:
            next(one for one in asyncio.all_tasks() if one.get_name() == ctx.request.root_id).cancel()

        asyncio.get_running_loop().call_soon(cancel)  # before the task of the run, which is made when this code suspends
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(ctx.request.request_id)

    async with Node([agent], lag_ms=None) as node:
        node.workflows.add("workflow: one\nnodes: {x: {call: A/GO}}")
        reply = await node.workflows.run("one", user_id="u")
        assert reply.status == "cancelled"
    assert ended == [f"{reply.request_id}.2"]


async def test_a_run_that_a_step_ends_before_it_suspends_makes_no_further_step() -> None:
    agent, ran_ = Agent("A"), []

    @agent.capability("ENDS")
    async def ends(ctx: Context) -> None:
        ran_.append("ends")
        root = node.workflows.path.calls[ctx.request.root_id]
        node.workflows.path.settlement.cancel(root, "by a step")

    @agent.capability("GO")
    async def go() -> None:
        ran_.append("go")

    async with Node([agent], lag_ms=None) as node:
        node.workflows.add("workflow: two\nnodes: {x: {call: A/ENDS}, y: {call: A/GO, after: [x]}}")
        reply = await node.workflows.run("two", user_id="u")
        assert reply.status == "cancelled"
        assert node.workflows.get(reply.request_id).status == "cancelled"
        assert [type(one).__name__ for one in node.workflows.store.events(reply.request_id)] == ["Started"]
    assert ran_ == ["ends"]


async def test_others_have_a_turn_of_the_loop_within_a_bounded_number_of_steps() -> None:
    agent, turns, before = Agent("A"), 0, []

    @agent.capability("ADD")
    async def add(n: int = 0) -> dict[str, int]:
        before.append(turns)
        return {"n": n + 1}

    def turn() -> None:
        nonlocal turns
        turns += 1
        asyncio.get_running_loop().call_soon(turn)

    async with Node([agent], lag_ms=None) as node:
        node.workflows.add(
            "workflow: loop\nnodes: {w: {call: A/ADD, input: {n: '{{w.data.n ?? 0}}'}}, stop: {set: 1}}\n"
            "edges:\n  - {from: w, to: w, when: 'response.data.n < 100', max: 100}\n  - {from: w, to: stop, else: true}\n"
        )
        turn()
        await node.workflows.run("loop", user_id="u")
    assert max(before.count(one) for one in set(before)) <= run.ALONG_MAX + 1
    assert len(before) == 100
