"""One of several processes on a store: it hosts counters, calls them as fast as it can, and says what it was answered.

Lines that it writes: `ready`; `ack KIND REQUEST_ID KEY OPERATION NUMBER` for each reply that was a success, `not CODE` for each
other one. It ends in good order when its input ends.
"""

from __future__ import annotations

import asyncio
import os
import random
from multiprocessing.connection import Connection

from comity import Agent, Context, Node, Reply

KEYS = 10
LANES = 6
SESSIONS = 3


def say(to: int, *words: object) -> None:
    os.write(to, (" ".join(map(str, words)) + "\n").encode())  # whole, and at once


def team() -> list[Agent]:
    count, front, clerk = Agent("COUNT", concurrency=1), Agent("FRONT"), Agent("CLERK")

    @count.capability("ADD", timeout_ms=20_000)
    async def add(ctx: Context, operation: str) -> int:
        done = ctx.state.setdefault("done", [])
        number = len(done)
        await asyncio.sleep(0)
        done.append(operation)
        return number + 1

    @front.capability("VIA", timeout_ms=25_000)
    async def via(ctx: Context, key: int, operation: str) -> int:
        return (await ctx.call(f"COUNT/{key}", "ADD", {"operation": operation})).unwrap()

    @clerk.capability("message", timeout_ms=20_000)
    async def message(ctx: Context) -> Reply:
        return Reply.success(message=f"heard {ctx.request.message}")

    return [count, front, clerk]


async def lane(node: Node, name: str, number: int, chance: random.Random, to: int, is_over: asyncio.Event) -> None:
    made = 0
    while not is_over.is_set():
        made += 1
        request_id = f"{name}-{number}-{made}"
        key: int | str
        key, kind = chance.randrange(KEYS), chance.choice(("direct", "direct", "via", "said"))
        named = {"user_id": "u", "request_id": request_id}
        if kind == "direct":
            reply = await node.call(f"COUNT/{key}", "ADD", {"operation": request_id}, **named)
        elif kind == "via":
            reply = await node.call("FRONT", "VIA", {"key": key, "operation": request_id}, **named)
        else:
            # Of all processes that live at a time, and not longer than a session may be: 6 lanes of 9 lives, 80 calls of each.
            key = f"s{key % SESSIONS}-{int(name[1:]) // 8}-{made // 80}"
            reply = await node.call(f"CLERK/{number}", "message", session_id=key, message=request_id, **named)
        if reply.ok:
            say(to, "ack", kind, request_id, key, request_id, reply.data if isinstance(reply.data, int) else 0)
        else:
            say(to, "not", reply.error.code, request_id)


async def main(store: str, name: str, until: int, to: int) -> None:
    loop, is_over = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(until, lambda: None if os.read(until, 1) else (loop.remove_reader(until), is_over.set()))
    async with Node(team(), store=store, lag_ms=None) as node:
        say(to, "ready")
        chance = random.Random(name)
        await asyncio.gather(*(lane(node, name, number, chance, to, is_over) for number in range(LANES)))
    say(to, "over")


def live(store: str, name: str, until: Connection, to: Connection) -> None:
    asyncio.run(main(store, name, until.fileno(), to.fileno()))
