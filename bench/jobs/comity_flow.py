"""The workflow job in Comity: three governed steps, one after the other or side by side. Prints CPU µs per run.

Further words: `parallel` for three steps side by side, `durable` for a node on the store, `hand` for the same calls made by an
agent.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from comity import Agent, Context, Node

SEQUENCE = """
workflow: sequence
nodes:
  x: {call: A/ADD, input: {n: "{{input.n}}"}}
  y: {call: A/ADD, after: [x], input: {n: "{{x.data.n}}"}}
  z: {call: A/ADD, after: [y], input: {n: "{{y.data.n}}"}}
output: {n: "{{z.data.n}}"}
"""
PARALLEL = """
workflow: parallel
nodes:
  x: {call: A/ADD, input: {n: "{{input.n}}"}}
  y: {call: A/ADD, input: {n: "{{input.n}}"}}
  z: {call: A/ADD, input: {n: "{{input.n}}"}}
  j: {join: all, after: [x, y, z]}
output: {n: "{{x.data.n + y.data.n + z.data.n}}"}
"""
adder, boss = Agent("A", concurrency=1_000), Agent("BOSS", concurrency=1_000)


@adder.capability("ADD")
async def add(n: int = 0) -> dict:
    return {"n": n + 1}


@boss.capability("SEQUENCE")
async def in_sequence(ctx: Context, n: int) -> dict:
    for _ in range(3):
        n = (await ctx.call("A", "ADD", {"n": n})).unwrap()["n"]
    return {"n": n}


@boss.capability("PARALLEL")
async def in_parallel(ctx: Context, n: int) -> dict:
    replies = await ctx.gather(*(ctx.call("A", "ADD", {"n": n}) for _ in range(3)))
    return {"n": sum(one.unwrap()["n"] for one in replies)}


async def main(runs: int, lanes: int, folder: str | None, words: list[str]) -> None:
    name = "parallel" if "parallel" in words else "sequence"
    expected = 6 if name == "parallel" else 4
    async with Node([adder, boss], store=Path(folder) / "bench.db" if folder else None, lag_ms=None) as node:
        node.workflows.add(SEQUENCE, PARALLEL)

        async def lane(share: int) -> None:
            for _ in range(share):
                if "hand" in words:
                    reply = await node.call("BOSS", name.upper(), {"n": 1}, user_id="u")
                else:
                    reply = await node.workflows.run(name, {"n": 1}, user_id="u")
                assert reply.unwrap() == {"n": expected}

        await asyncio.gather(*(lane(5) for _ in range(lanes)))  # warm up
        cpu = time.process_time()
        await asyncio.gather(*(lane(runs // lanes) for _ in range(lanes)))
        print((time.process_time() - cpu) / (runs // lanes * lanes) * 1e6)


with tempfile.TemporaryDirectory() as place:
    said = sys.argv[3:]
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), place if "durable" in said else None, said))
