"""One process of a tree of calls: it hosts one agent on a store, and says what the agent does.

    python tree_process.py STORE NAME BELOW

Lines on standard output: `ready`, `went on`, `paid`, `hangs`, `stopped`. It ends in good order when its standard input ends.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from comity import Agent, Context, Node, Tool
from comity.core.agent.tool import Risk
from comity.errors import UnavailableError


def say(words: str) -> None:
    os.write(1, f"{words}\n".encode())


def pay(amount: int) -> int:
    say("paid")
    return amount


def agent(name: str, below: str) -> Agent:
    made = Agent(name, tools_allowed=["pay"])

    @made.capability("DO", timeout_ms=120_000)
    async def do(ctx: Context, what: str) -> Any:
        ctx.progress(f"{name} does {what}")
        if below:
            reply = await ctx.call(below, "DO", {"what": what})
            say("went on")
            return reply.unwrap()
        if what == "pay":
            return await ctx.use_tool("pay", amount=7)
        if what == "hang":
            say("hangs")
            try:
                await asyncio.sleep(3_600)
            finally:
                say("stopped")
        return os.getpid()

    @made.capability("HAND", timeout_ms=120_000)
    async def hand(ctx: Context) -> Any:
        return (await ctx.hand_off("C", "DO", {"what": "work"}, timeout_ms=100_000)).unwrap()

    return made


async def started(store: str, *agents: Agent) -> Node:
    """Return a node that runs; on a machine under load the processes that have the store may take long to answer."""
    for left in reversed(range(20)):
        tool = Tool(name="pay", function=pay, risk=Risk.HIGH)
        node = Node(agents, store=store, tools=[tool], lag_ms=None, privacy=None)
        try:
            await node.start()
        except UnavailableError:
            if not left:
                raise
        else:
            break
    return node


async def main(store: str, name: str, below: str = "") -> None:
    loop, is_over = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(0, lambda: None if os.read(0, 1) else (loop.remove_reader(0), is_over.set()))
    node = await started(store, agent(name, below))
    say("ready")
    await is_over.wait()
    await node.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
