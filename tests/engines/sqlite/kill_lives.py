"""Lives of a node on one store, each to be ended by kill -9. Run by `test_kill.py` as `kill_lives.py SOCKET_FD`.

The process imports everything once and then forks a life for each message it is sent: an order and the writing end of a pipe.
A life says what happens, a line each:

    ready         the store is open and what an earlier life left was taken up
    run ID        a capability begins to run for this request
    seen ID OK R  a reply was received; OK is 1 if the call was admitted, 0 if it was refused, R stands for all it says
    same ID 0|1   a request of an earlier life was sent again: whether its reply was the one seen then
    drained       nothing is open any more

An order names the store, the life and the seed of its choices. `again` is None for a life under load; any other sends those
requests again and ends what is open. A life with `stays` goes on until it is killed.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import signal
import socket
import sys
import traceback
from typing import Any

import msgspec

from comity import Agent, Context, Node
from comity.engines.sqlite import engine, spans  # noqa: F401  imported before the forks

IN_FLIGHT = 64
LONGEST_LIFE_S = 120


class Life:
    """One life of the node, under load until it is killed."""

    def __init__(self, order: dict[str, Any], pipe: int) -> None:
        self._order = order
        self._pipe = pipe
        self._random = random.Random(order["seed"])
        self._made = 0

    def say(self, *words: object) -> None:
        os.write(self._pipe, (" ".join(map(str, words)) + "\n").encode())  # a short write to a pipe is whole or not at all

    def agents(self) -> list[Agent]:
        say = self.say
        work, boss, counter = Agent("WORK"), Agent("BOSS"), Agent("COUNT", concurrency=1)

        @work.capability("ECHO")
        async def echo(ctx: Context, n: int) -> dict:
            say("run", ctx.request.request_id)
            for _ in range(4):  # long enough for commits to fall into the middle of a tree
                await asyncio.sleep(0)
            return {"n": n}

        @counter.capability("NEXT")
        async def following(ctx: Context) -> int:
            say("run", ctx.request.request_id)
            ctx.state["n"] = ctx.state.get("n", 0) + 1
            return ctx.state["n"]

        @boss.capability("PLAN")
        async def plan(ctx: Context, n: int) -> dict:
            say("run", ctx.request.request_id)
            nobody = await ctx.call("WORK", "DANCE")
            myself = await ctx.call("BOSS", "PLAN", {"n": n})
            first = await ctx.call("WORK", "ECHO", {"n": n})
            both = await ctx.gather(ctx.call("WORK", "ECHO", {"n": n + 1}), ctx.call("WORK", "ECHO", {"n": n + 2}))
            return {"data": [first.data, *(one.data for one in both)], "refused": [nobody.error.code, myself.error.code]}

        return [work, boss, counter]

    async def run(self) -> None:
        async with Node(self.agents(), store=self._order["store"], privacy=None) as node:
            self.say("ready")
            if self._order["again"] is None:
                await asyncio.gather(*(self._lane(node) for _ in range(IN_FLIGHT)))
            else:
                await asyncio.gather(*(self._again(node, *one) for one in self._order["again"]))
                await self._drain(node)
                self.say("drained")
                if self._order["stays"]:
                    await asyncio.Event().wait()

    async def _lane(self, node: Node) -> None:
        while True:
            self._made += 1
            kind = self._random.choices(["echo", "count", "plan", "refused"], (4, 2, 3, 1))[0]
            await self._call(node, kind, f"{self._order['life']}-{kind}-{self._made}")

    async def _call(self, node: Node, kind: str, request_id: str) -> str:
        n = len(request_id)
        match kind:
            case "echo":
                reply = await node.call("WORK", "ECHO", {"n": n}, user_id="u", request_id=request_id)
            case "count":
                reply = await node.call("COUNT", "NEXT", user_id="u", request_id=request_id)
            case "plan":
                reply = await node.call("BOSS", "PLAN", {"n": n}, user_id="u", request_id=request_id)
            case _:
                reply = await node.call("WORK", "ECHO", {"m": n}, user_id="u", request_id=request_id)
        assert (kind == "refused") == (reply.error is not None and reply.error.code == "INPUT_VALIDATION_FAILED"), reply
        outcome = hashlib.sha256(msgspec.json.encode(reply)).hexdigest()[:16]
        self.say("seen", request_id, int(kind != "refused"), outcome)
        return outcome

    async def _again(self, node: Node, request_id: str, outcome: str | None) -> None:
        found = await self._call(node, request_id.split("-")[1], request_id)
        self.say("same", request_id, int(outcome in {None, found}))

    async def _drain(self, node: Node) -> None:
        """Wait for what was taken up from earlier lives."""
        calls = [call for call in node._path.calls.values() if call.parent is None]
        await asyncio.gather(*(node._path.reply_of(call) for call in calls))


async def warm() -> None:
    """Import and build once, before the forks, what every node builds when it starts."""
    async with Node([Agent("WORK")], privacy=None):
        pass


def begin(order: dict[str, Any], pipe: int) -> int:
    """Fork a life and return its process id."""
    pid = os.fork()
    if pid:
        return pid
    signal.alarm(LONGEST_LIFE_S)  # nothing is left behind where the test itself was killed
    try:
        asyncio.run(Life(order, pipe).run())
    except BaseException:  # noqa: BLE001  the end of the process
        os.write(2, traceback.format_exc().encode())
        os._exit(1)
    os._exit(0)


def serve(channel: socket.socket) -> None:
    while True:
        message, pipes, _, _ = socket.recv_fds(channel, 1 << 20, 1)
        if not message:
            return
        pid = begin(json.loads(message), pipes[0])
        os.close(pipes[0])
        channel.send(b"pid %d" % pid)
        _, status = os.waitpid(pid, 0)
        channel.send(b"ended %d" % os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    asyncio.run(warm())
    serve(socket.socket(fileno=int(sys.argv[1])))
