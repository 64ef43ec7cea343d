"""The agents of the drain test, as `comity serve drained_app:agents` loads them."""

from __future__ import annotations

import asyncio

from comity import Agent, Context

worker = Agent("WORKER", concurrency=256)
boss = Agent("BOSS", concurrency=256, can_call=("WORKER",))


@worker.capability("WORK")
async def work(number: int) -> dict[str, int]:
    """Take a little time."""
    await asyncio.sleep(number % 7 / 1000)
    return {"number": number}


@worker.capability("NEVER")
async def never() -> dict[str, int]:
    """Wait for ever."""
    await asyncio.Event().wait()
    return {}


@boss.capability("ASK")
async def ask(ctx: Context, number: int) -> dict[str, int]:
    """Have the worker do it."""
    return (await ctx.call("WORKER", "WORK", {"number": number})).unwrap()


agents = [worker, boss]
