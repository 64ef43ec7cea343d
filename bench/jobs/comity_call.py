"""The benchmark job in Comity, fully governed; with `durable` as third word, on the store. Prints CPU µs per call."""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from comity import Agent, Context, Node

INPUTS = {"cash_flows": [-100000, 25000, 35000, 45000, 55000], "discount_rate": 0.12, "periods": "annual"}
analyst = Agent("ANL")


@analyst.capability("ANL_NPV", timeout_ms=15_000)
async def npv(ctx: Context, cash_flows: list[float], discount_rate: float, periods: str) -> dict:
    return {"npv": 17206.82, "currency": "USD", "discount_rate": 0.12, "periods": 5}


async def main(calls: int, lanes: int, folder: str | None) -> None:
    async with Node([analyst], store=Path(folder) / "bench.db" if folder else None) as node:

        async def lane(share: int) -> None:
            for _ in range(share):
                assert (await node.call("ANL", "ANL_NPV", INPUTS, user_id="user-456", session_id="sess-789")).ok

        await asyncio.gather(*(lane(10) for _ in range(lanes)))  # warm up
        cpu = time.process_time()
        await asyncio.gather(*(lane(calls // lanes) for _ in range(lanes)))
        print((time.process_time() - cpu) / (calls // lanes * lanes) * 1e6)


if sys.argv[3:] == ["durable"]:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), folder))
else:
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), None))
