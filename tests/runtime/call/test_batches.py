"""Calls that start in one turn of the loop share a task, and nothing else."""

from __future__ import annotations

import asyncio
import contextvars
from typing import Any

import pytest

from comity import Agent, Context, Node
from comity.engines.clock import SystemIds
from comity.errors import UnavailableError

WHO = contextvars.ContextVar("who", default="no caller")


async def together(agent: Agent, *capabilities: str) -> list[Any]:
    """Return the replies to calls that enter in one turn of the loop, in the order in which they were made."""
    async with Node([agent]) as node:
        return list(await asyncio.gather(*(node.call("A", capability, user_id="u") for capability in capabilities)))


def noting(agent: Agent) -> list[asyncio.Task[Any] | None]:
    """Give an agent a capability that waits for nothing and one that suspends; return the tasks they run in."""
    tasks: list[asyncio.Task[Any] | None] = []

    @agent.capability("AT_ONCE")
    async def at_once() -> str:
        tasks.append(asyncio.current_task())
        return tasks[-1].get_name()

    @agent.capability("SUSPENDS")
    async def suspends() -> str:
        tasks.append(asyncio.current_task())
        await asyncio.sleep(0)
        return asyncio.current_task().get_name()

    return tasks


async def test_calls_that_wait_for_nothing_share_a_task_which_bears_the_name_of_each_in_turn() -> None:
    tasks = noting(agent := Agent("A"))
    replies = await together(agent, "AT_ONCE", "AT_ONCE", "AT_ONCE")
    assert len(set(tasks)) == 1
    assert [reply.data for reply in replies] == [reply.request_id for reply in replies]


async def test_a_call_that_suspends_keeps_its_task_and_the_calls_behind_it_get_another() -> None:
    tasks = noting(agent := Agent("A"))
    replies = await together(agent, "AT_ONCE", "SUSPENDS", "SUSPENDS", "AT_ONCE")
    assert [tasks.index(task) for task in tasks] == [0, 0, 2, 3]
    assert [reply.data for reply in replies] == [reply.request_id for reply in replies]


@pytest.mark.parametrize("first", ["SETS", "SETS_AND_SUSPENDS"])
@pytest.mark.parametrize("second", ["READS", "SUSPENDS_AND_READS"])
async def test_a_call_sees_the_context_variables_of_its_caller_and_of_no_other_call(first: str, second: str) -> None:
    agent = Agent("A")

    @agent.capability("SETS")
    async def sets() -> str:
        WHO.set("the first call")
        return WHO.get()

    @agent.capability("SETS_AND_SUSPENDS")
    async def sets_and_suspends() -> str:
        WHO.set("the first call")
        await asyncio.sleep(0)
        return WHO.get()

    @agent.capability("READS")
    async def reads() -> str:
        return WHO.get()

    @agent.capability("SUSPENDS_AND_READS")
    async def suspends_and_reads() -> str:
        await asyncio.sleep(0)
        return WHO.get()

    async def ask(capability: str, who: str) -> Any:
        WHO.set(who)
        return (await node.call("A", capability, user_id="u")).data

    async with Node([agent]) as node:
        told = await asyncio.gather(ask(first, "one caller"), ask(second, "another caller"))
    assert told == ["the first call", "another caller"]


async def test_code_that_cancels_its_own_task_and_returns_does_not_cancel_the_call_behind_it() -> None:
    agent = Agent("A")

    @agent.capability("CANCELS")
    async def cancels() -> str:
        asyncio.current_task().cancel()
        return "done"

    @agent.capability("SUSPENDS")
    async def suspends() -> str:
        await asyncio.sleep(0)
        return "done"

    replies = await together(agent, "CANCELS", "SUSPENDS")
    assert [reply.data for reply in replies] == ["done", "done"]


async def test_a_timeout_inside_suspended_code_raises_there() -> None:
    agent = Agent("A")

    @agent.capability("TIMES_OUT")
    async def times_out() -> str:
        try:
            async with asyncio.timeout(0):
                await asyncio.sleep(5)
        except TimeoutError:
            return "timed out"
        return "not reached"

    replies = await together(agent, "TIMES_OUT", "TIMES_OUT")
    assert [reply.data for reply in replies] == ["timed out", "timed out"]


async def test_code_that_catches_what_is_raised_where_it_waits_has_its_own_context_variables() -> None:
    agent = Agent("A")

    @agent.capability("SETS_AND_TIMES_OUT")
    async def sets_and_times_out() -> str:
        WHO.set("the call")
        try:
            async with asyncio.timeout(0):
                await asyncio.sleep(5)
        except TimeoutError:
            return WHO.get()
        return "not reached"

    replies = await together(agent, "SETS_AND_TIMES_OUT")
    assert replies[0].data == "the call"


async def test_a_call_that_cannot_be_run_ends_at_once_and_the_log_says_why(caplog: pytest.LogCaptureFixture) -> None:
    class NoneLeft(SystemIds):
        def chance(self) -> float:
            raise RuntimeError("no random numbers left")

    agent = Agent("A")

    @agent.capability("FAILS")
    async def fails() -> None:
        raise UnavailableError("not now")  # it would be tried again after a pause of random length

    async with Node([agent], ids=NoneLeft()) as node:
        reply = await node.call("A", "FAILS", user_id="u", timeout_ms=600_000)
    assert reply.error is not None
    assert reply.error.code == "TARGET_CRASHED"
    assert "no random numbers left" in caplog.text
    assert "no random numbers left" not in reply.message


async def test_a_call_cancelled_before_its_code_began_never_runs_and_frees_its_place_at_once() -> None:
    ran: list[str] = []
    agent = Agent("A", concurrency=1)

    @agent.capability("GO")
    async def go(ctx: Context) -> None:
        ran.append(ctx.request.request_id)

    async with Node([agent]) as node:
        first = node.start_call("A", "GO", user_id="u", request_id="first")
        first.cancel()
        second = await node.call("A", "GO", user_id="u", request_id="second")
        assert second.ok
        assert node.strays == []
    assert ran == ["second"]


async def test_calls_go_on_after_the_program_cancelled_a_task_that_had_not_begun() -> None:
    agent = Agent("A")

    @agent.capability("GO")
    async def go() -> None:
        return None

    async with Node([agent]) as node:
        before = asyncio.all_tasks()
        node.start_call("A", "GO", user_id="u", request_id="first")
        for task in asyncio.all_tasks() - before:
            task.cancel()
        await asyncio.sleep(0)
        assert (await node.call("A", "GO", user_id="u")).ok


def test_the_calls_behind_code_that_ends_the_program_are_still_run() -> None:
    agent, behind = Agent("A"), []

    @agent.capability("INTERRUPTS")
    async def interrupts() -> None:
        raise KeyboardInterrupt

    @agent.capability("GO")
    async def go() -> None:
        return None

    async def start_both() -> None:
        node.start_call("A", "INTERRUPTS", user_id="u")
        behind.append(node.start_call("A", "GO", user_id="u"))
        await asyncio.sleep(5)

    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)  # no task awaits the KeyboardInterrupt: the log of a later test would show it
    node = loop.run_until_complete(Node([agent]).__aenter__())
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(starting := loop.create_task(start_both()))
    assert loop.run_until_complete(behind[0].reply()).ok
    starting.cancel()
    loop.run_until_complete(node.__aexit__(None, None, None))
    loop.close()
