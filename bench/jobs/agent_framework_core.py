"""The benchmark job in agent-framework-core: a workflow of two executors, one asking the other. Prints CPU µs per call."""

import asyncio
import sys
import time
from typing import Any

from agent_framework import Executor, WorkflowBuilder, WorkflowContext, handler


class Caller(Executor):
    @handler
    async def ask(self, message: dict[str, Any], ctx: WorkflowContext[dict[str, Any]]) -> None:
        await ctx.send_message(message)


class Analyst(Executor):
    @handler
    async def answer(self, message: dict[str, Any], ctx: WorkflowContext[Any, dict[str, Any]]) -> None:
        await ctx.yield_output({"npv": 17206.82, "currency": "USD"})


def workflow():
    caller, analyst = Caller(id="caller"), Analyst(id="analyst")
    return WorkflowBuilder(start_executor=caller, output_from=[analyst]).add_edge(caller, analyst).build()


async def main(calls: int, lanes: int) -> None:
    inputs = {"cash_flows": [-100000, 25000, 35000, 45000, 55000], "discount_rate": 0.12, "periods": "annual"}

    async def lane(share: int) -> None:
        mine = workflow()  # one instance refuses concurrent runs
        for _ in range(share):
            assert (await mine.run(inputs)).get_outputs()

    await asyncio.gather(*(lane(10) for _ in range(lanes)))  # warm up
    cpu = time.process_time()
    await asyncio.gather(*(lane(calls // lanes) for _ in range(lanes)))
    print((time.process_time() - cpu) / (calls // lanes * lanes) * 1e6)


asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
