"""A small shop: a clerk sells what the stock still has. It has a race; `test_shop.py` finds it."""

from comity import Agent, Context

stock = Agent("STOCK", concurrency=1)
clerk = Agent("CLERK")


@stock.capability("COUNT")
async def count(ctx: Context) -> int:
    return ctx.state.setdefault("left", 3)


@stock.capability("TAKE")
async def take(ctx: Context) -> int:
    ctx.state["left"] = ctx.state.setdefault("left", 3) - 1
    return ctx.state["left"]


@clerk.capability("SELL")
async def sell(ctx: Context) -> bool:
    if (await ctx.call("STOCK", "COUNT")).unwrap() < 1:
        return False
    return (await ctx.call("STOCK", "TAKE")).unwrap() >= 0  # somebody else may have taken the last one meanwhile
