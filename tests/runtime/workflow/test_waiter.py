"""Waiters of calls for code that has no task to wait in."""

import asyncio
import gc

from comity import Agent, Node
from comity.core.call.machine import SETTLED
from comity.runtime.workflow.run import Run
from comity.runtime.workflow.waiter import Waiter

GATED = "workflow: gated\nnodes: {a: {call: A/PASS}}"


def test_a_waiter_is_told_in_the_step_in_which_its_call_is_delivered():
    async def main():
        gate, agent, told = asyncio.Event(), Agent("A"), []

        @agent.capability("PASS")
        async def passed() -> dict:
            await gate.wait()
            return {}

        async with Node([agent]) as node:
            node.workflows.add(GATED)
            handle = await node.workflows.start("gated", user_id="u")
            call = node.workflows._runs[handle.run_id].call
            Waiter(lambda: told.append(call.state)).wait_for(call)
            gone = Waiter(lambda: told.append("a waiter that waits no more"))
            gone.wait_for(call)
            gone.cancel()
            assert told == []
            gate.set()
            await handle.result()  # which wakes no later than the callback of a future would be called
            assert told == [SETTLED]
            Waiter(lambda: told.append("late")).wait_for(call)
            assert told == [SETTLED, "late"]

    asyncio.run(main())


def test_no_waiter_holds_a_run_that_has_ended():
    async def main():
        agent = Agent("A")

        @agent.capability("PASS")
        async def passed() -> dict:
            return {}

        async with Node([agent]) as node:
            node.workflows.add("workflow: both\nnodes: {a: {call: A/PASS}, b: {call: A/PASS}}")
            reply = await node.workflows.run("both", user_id="u")
            assert reply.ok
            gc.collect()
            runs = [one for one in gc.get_objects() if type(one) is Run]
            assert reply.request_id not in {one.run_id for one in runs}

    asyncio.run(main())
