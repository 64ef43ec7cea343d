"""Calls by function as type checkers see them: each line that is wrong says so, all others are right.

A line that ends with `reveals` and a type has that type; one that ends with `wrong` has an error in every checker.
"""

from typing import Any, reveal_type

from pydantic import BaseModel

from comity import Agent, Context, Node, Reply, SyncContext, SyncNode, bind

agent = Agent("A", tools_allowed=["*"])


class Quote(BaseModel):
    total: float


@agent.capability
async def npv(ctx: Context, cash_flows: list[float], rate: float = 0.1) -> dict[str, float]:
    return {"npv": sum(cash_flows) * rate}


@agent.capability("COUNT", timeout_ms=5)
async def count(item: str) -> int:
    return len(item)


@agent.capability()
def plain(ctx: SyncContext, n: int) -> str:
    return "x" * n


@agent.fallback(plain)
def simple(n: int) -> Quote:
    return Quote(total=n)


@agent.capability
async def answers(ctx: Context, n: int) -> Reply[int]:
    return Reply.success(n)


@agent.capability
async def untyped(ctx: Context, n: int) -> Reply:
    return Reply.success(n)


@agent.capability
async def nothing(ctx: Context) -> None: ...


async def in_an_agent(ctx: Context) -> None:
    reveal_type(await ctx.call("A", "COUNT", {"item": "pen"}, timeout_ms=5))  # reveals Reply[Any]
    reveal_type(await ctx.call(npv, cash_flows=[1.0]))  # reveals Reply[dict[str, float]]
    reveal_type((await ctx.call(npv, [1.0], rate=0.2)).unwrap())  # reveals dict[str, float]
    reveal_type((await ctx.call(count, item="pen")).unwrap())  # reveals int
    reveal_type((await ctx.call(plain, n=1)).data)  # reveals str
    reveal_type((await ctx.call(simple, n=1)).unwrap().total)  # reveals float
    reveal_type((await ctx.call(answers, n=1)).unwrap())  # reveals int
    reveal_type((await ctx.call(untyped, n=1)).unwrap())  # reveals Any
    reveal_type(await ctx.call(nothing))  # reveals Reply[None]
    reveal_type(await ctx.call(bind(count, item="pen"), timeout_ms=5))  # reveals Reply[int]
    reveal_type(bind(npv, cash_flows=[1.0]).at("key"))  # reveals Bound[dict[str, float]]
    reveal_type(await ctx.gather(ctx.call(count, item="a"), ctx.call(answers, n=1)))  # reveals list[Reply[int]]
    await ctx.call(npv, cash_flows="text")  # wrong
    await ctx.call(npv)  # wrong
    await ctx.call(npv, cash_flows=[1.0], nope=1)  # wrong
    await ctx.call(count, item=1)  # wrong
    await ctx.call(plain, n="x")  # wrong
    await ctx.call(bind(count, item=1))  # wrong
    await ctx.call(bind(count, item="pen"), timeout=5)  # wrong
    await ctx.call("A", "COUNT", timeout="soon")  # wrong
    (await ctx.call(count, item="pen")).unwrap().upper()  # wrong


def in_a_thread(ctx: SyncContext) -> None:
    reveal_type(ctx.call(count, item="pen").unwrap())  # reveals int
    reveal_type(ctx.call(npv, cash_flows=[1.0]))  # reveals Reply[dict[str, float]]
    reveal_type(ctx.start_call(count, item="pen").reply())  # reveals Reply[int]
    reveal_type(ctx.gather(ctx.start_call(count, item="pen")))  # reveals list[Reply[int]]
    reveal_type(ctx.left_ms)  # reveals int
    ctx.call(count, item=1)  # wrong
    ctx.progress()  # wrong


async def outside(node: Node) -> None:
    reveal_type(await node.call("A", "COUNT", {"item": "pen"}, user_id="u"))  # reveals Reply[Any]
    reveal_type(await node.call(npv, cash_flows=[1.0], user_id="u"))  # reveals Reply[dict[str, float]]
    reveal_type((await node.call(answers, n=1, user_id="u")).unwrap())  # reveals int
    reveal_type((await node.call(plain, n=1, user_id="u")).unwrap())  # reveals str
    reveal_type(await node.call(bind(count, item="pen"), user_id="u", session_id="s"))  # reveals Reply[int]
    reveal_type(await node.start_call(count, item="pen", user_id="u").reply())  # reveals Reply[int]
    await node.call(npv, cash_flows=[1.0])  # wrong
    await node.call(bind(npv, cash_flows="text"), user_id="u")  # wrong
    await node.call("A", "COUNT", user_id="u", session=1)  # wrong


def in_a_script(node: SyncNode) -> None:
    reveal_type(node.call(count, item="pen", user_id="u").unwrap())  # reveals int
    reveal_type(node.call(bind(count, item="pen"), user_id="u").data)  # reveals int
    reveal_type(node.call("A", "COUNT", user_id="u").data)  # reveals Any
    node.call(bind(count, item=1), user_id="u")  # wrong


def as_it_is(reply: Reply) -> dict[str, Any]:
    reveal_type(plain)  # reveals (ctx: SyncContext, n: int) -> str
    reveal_type(reply.data)  # reveals Any
    reveal_type(Reply.success(1).unwrap())  # reveals int
    simple(n="x")  # wrong
    return {}
