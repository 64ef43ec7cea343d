"""A server on a loopback port, for the length of a test, and clients that ask it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Iterable
from typing import Any

import httpx

from comity import Agent, Context, Node
from comity.server.app import Door
from comity.server.auth import Gate
from comity.server.serve import Server
from comity.server.settings import Settings
from comity.server.token_auth import Auth

TOKEN = "a-token-of-the-tests"


def echo_agent() -> Agent:
    """Return an agent that answers, waits, fails and tells its progress."""
    agent = Agent("ECHO", description="Says it back")

    @agent.capability("SAY")
    async def say(text: str) -> dict[str, str]:
        return {"text": text}

    @agent.capability("STEPS")
    async def steps(ctx: Context, count: int) -> dict[str, int]:
        for number in range(count):
            ctx.progress({"step": number})
        return {"count": count}

    @agent.capability("WAIT")
    async def wait(ctx: Context) -> dict[str, str]:
        import asyncio

        await asyncio.Event().wait()
        return {}

    @agent.capability("FAIL")
    async def fail() -> dict[str, str]:
        raise ValueError("no")

    return agent


class Served:
    """A server that runs, and a client with its token."""

    def __init__(self, server: Server, client: httpx.AsyncClient) -> None:
        self.server, self.client = server, client
        self.url = server.url

    async def call(self, capability: str = "SAY", inputs: Any = None, **more: Any) -> httpx.Response:
        """Make a call."""
        body = {
            "target": "ECHO",
            "capability": capability,
            "inputs": {"text": "hi"} if inputs is None else inputs,
            "user_id": "u1",
        }
        query = {"params": more.pop("params")} if "params" in more else {}
        headers = more.pop("headers", {})
        return await self.client.post("/v1/calls", json=body | more, headers=headers, **query)


@contextlib.asynccontextmanager
async def serving(
    node: Node | None = None, *, doors: Iterable[Door] = (), auth: Any = None, **settings: Any
) -> AsyncIterator[Served]:
    """Serve a node on a port that the system chooses."""
    node = node or Node([echo_agent()])
    server = Server(
        node, Settings(port=0, **settings), auth or Gate(TOKEN, Auth.open(None, now_ms=time.time_ns() // 1_000_000)), doors
    )
    async with server.listening():
        headers = {"authorization": f"Bearer {TOKEN}"}
        async with httpx.AsyncClient(base_url=server.url, headers=headers, timeout=30) as client:
            yield Served(server, client)
