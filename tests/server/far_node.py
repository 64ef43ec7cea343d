"""The other node of the kill test, in a process of its own: python far_node.py STORE PORT JWKS RUNS."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path

from comity import Agent, Context, Limits, Node
from comity.server.agent_calls import routes
from comity.server.app import Door
from comity.server.auth import Gate
from comity.server.serve import Server
from comity.server.settings import Settings
from comity.server.token_auth import Auth


def make(runs: Path) -> Agent:
    """Return an agent that notes each of its runs and takes its time."""
    agent = Agent("FAR", concurrency=8)

    @agent.capability("WORK", effects=True, timeout_ms=3_600_000)
    async def work(ctx: Context, number: int) -> dict[str, int]:
        with runs.open("a") as file:
            file.write(f"{ctx.request.request_id} {os.getpid()} {time.time_ns() // 1_000_000}\n")
        ctx.progress({"number": number})
        await asyncio.sleep(0.02)
        return {"number": number}

    return agent


async def main(store: str, port: str, jwks: str, runs: str) -> None:
    limits = Limits(timeout_ms=3_600_000, timeout_ms_max=3_600_000)  # it lives shorter than its calls may take
    node = Node([make(Path(runs))], store=store, limits=limits, lag_ms=None, privacy=None)
    auth = Auth.open(f"{store}.keys", name="far", now_ms=0)
    auth.tokens.ring.trust("near", json.loads(jwks), tenants=("default",), now_ms=1)
    server = Server(node, Settings(port=int(port), rate_per_s=10_000), Gate("unused", auth), [Door(routes)])
    async with server.listening():
        sys.stdout.write("listening\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
