"""The other node is killed while calls run on it: no call is lost, and none that has ended runs again.

The suite kills it once; `make remote` kills it COMITY_REMOTE_KILLS times, at moments of chance.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import random
import socket
import sys
from collections import Counter
from pathlib import Path

from comity import Agent, Context, Limits, Node, Reply
from comity.engines.keys import KeyRing, Tokens
from comity.engines.sqlite.audit_rows import read_rows, verify_chain
from comity.engines.sqlite.connecting import connect
from comity.remote import RemoteAgent

KILLS = int(os.environ.get("COMITY_REMOTE_KILLS", "1"))
LANES = 24
HERE = Path(__file__).parent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_no_call_is_lost_or_settled_twice_when_the_callee_is_killed(tmp_path):
    asyncio.run(kill_and_count(tmp_path))


async def kill_and_count(folder: Path) -> None:
    store, runs, port = folder / "far.db", folder / "runs.txt", free_port()
    tokens = Tokens(KeyRing(None, issuer="near", now_ms=0))
    command = [sys.executable, str(HERE / "far_node.py"), str(store), str(port), json.dumps(tokens.ring.jwks()), str(runs)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    async def start() -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, env=environment)
        assert await process.stdout.readline() == b"listening\n"
        return process

    process = await start()
    try:
        far = RemoteAgent(f"http://127.0.0.1:{port}/v1/agents/FAR", keys=tokens, node="far")
        limits = Limits(timeout_ms=120_000 * KILLS, timeout_ms_max=120_000 * KILLS)
        async with Node([far, caller()], limits=limits, lag_ms=None) as near:
            assert near.problems == ()
            numbers, is_over = itertools.count(), False

            async def lane() -> list[Reply]:
                replies = []
                while not replies or (replies[-1].ok and not is_over):
                    replies.append(await near.call("BOSS", "GO", {"number": next(numbers)}, user_id="u"))
                return replies

            lanes = [asyncio.create_task(lane()) for _ in range(LANES)]
            for kill in range(KILLS):
                while not runs.exists() or f" {process.pid} " not in runs.read_text():  # it has begun to work
                    assert not all(one.done() for one in lanes)
                    await asyncio.sleep(0.005)
                await asyncio.sleep(random.random() * 0.1)
                process.kill()
                await process.wait()
                process = await start()
                is_over = kill + 1 == KILLS
            replies = [reply for some in await asyncio.gather(*lanes) for reply in some]
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    assert sorted(reply.unwrap()["number"] for reply in replies) == list(range(len(replies)))
    with contextlib.closing(connect(store, read_only=True)) as connection:
        assert verify_chain(connection).ok
        rows = [row for row in read_rows(connection) if row.target == "FAR"]
    kinds = Counter((row.request_id, row.kind) for row in rows)
    assert max(kinds.values()) == 1
    assert {row.status for row in rows if row.kind == "settled"} == {"success"}
    ended = {row.request_id: row.created_at for row in rows if row.kind == "settled"}
    assert len(ended) == len(replies)
    begun = [line.split() for line in runs.read_text().splitlines()]
    assert {request_id for request_id, _, _ in begun} == set(ended)
    in_life = Counter((request_id, life) for request_id, life, _ in begun)
    assert max(in_life.values()) == 1  # a run that a kill cut off is resumed, once in each life,
    assert all(int(at_ms) <= ended[request_id] for request_id, _, at_ms in begun)  # and no run begins after the end
    if KILLS > 1:
        cut_off = len(begun) - len(ended)
        sys.stdout.write(f"{KILLS} kills: {len(replies):,} calls, none lost, each settled once; {cut_off} runs were resumed\n")


def caller() -> Agent:
    agent = Agent("BOSS")

    @agent.capability("GO")
    async def go(ctx: Context, number: int) -> dict:
        return (await ctx.call("FAR", "WORK", {"number": number})).unwrap()

    return agent
