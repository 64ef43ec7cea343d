"""The benchmark job in Comity, fully governed. Prints CPU µs per call.

Further words: `durable` for a node on the store; `between` for calls by an agent to another, otherwise they are a user's.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from comity import Agent, Context, Node

INPUTS = {"cash_flows": [-100000, 25000, 35000, 45000, 55000], "discount_rate": 0.12, "periods": "annual"}
analyst = Agent("ANL")
consultant = Agent("CST", concurrency=64)


@analyst.capability("ANL_NPV", timeout_ms=15_000)
async def npv(ctx: Context, cash_flows: list[float], discount_rate: float, periods: str) -> dict:
    return {"npv": 17206.82, "currency": "USD", "discount_rate": 0.12, "periods": 5}


@consultant.capability("CST_ASK")
async def ask(ctx: Context, times: int) -> None:
    for _ in range(times):
        assert (await ctx.call("ANL", "ANL_NPV", INPUTS)).ok


async def ask_by_user(node: Node, share: int) -> None:
    for _ in range(share):
        assert (await node.call("ANL", "ANL_NPV", INPUTS, user_id="user-456", session_id="sess-789")).ok


async def ask_by_agent(node: Node, share: int) -> None:
    for start in range(0, share, 50):
        times = min(share - start, 50)
        # The reply is there when everything below it is on disk too, so nothing is left out of the measurement.
        assert (await node.call("CST", "CST_ASK", {"times": times}, user_id="user-456", session_id="sess-789")).ok


async def main(calls: int, lanes: int, folder: str | None, *, between: bool) -> None:
    lane = ask_by_agent if between else ask_by_user
    async with Node([analyst, consultant], store=Path(folder) / "bench.db" if folder else None) as node:
        await asyncio.gather(*(lane(node, 10) for _ in range(lanes)))  # warm up
        cpu = time.process_time()
        await asyncio.gather(*(lane(node, calls // lanes) for _ in range(lanes)))
        print((time.process_time() - cpu) / (calls // lanes * lanes) * 1e6)


with tempfile.TemporaryDirectory() as folder:
    words = sys.argv[3:]
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), folder if "durable" in words else None, between="between" in words))
