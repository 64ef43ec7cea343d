"""What several tests of the call path stand on: a chain of three agents, and the time of the loop."""

from __future__ import annotations

import asyncio

from comity import Agent, Context


def now() -> float:
    return asyncio.get_running_loop().time()


def chain_to(leaf) -> list[Agent]:
    """TOP → MIDDLE → LEAF, where the leaf runs `leaf`."""
    top, middle, bottom = Agent("TOP"), Agent("MIDDLE"), Agent("LEAF")

    @top.capability("GO")
    async def go_top(ctx: Context):
        return (await ctx.call("MIDDLE", "GO")).data

    @middle.capability("GO")
    async def go_middle(ctx: Context):
        return (await ctx.call("LEAF", "GO")).data

    bottom.capability("GO")(leaf)
    return [top, middle, bottom]
