"""The other node is killed while calls run on it: no call is lost, and none that has ended runs again.

The suite kills it once; COMITY_KILLS says otherwise.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import socket
import sys
from collections import Counter
from pathlib import Path

from comity import Agent, Context, Limits, Node
from comity.engines.keys import KeyRing, Tokens
from comity.engines.sqlite.audit_rows import read_rows, verify_chain
from comity.engines.sqlite.tables import connect
from comity.remote import RemoteAgent

KILLS = int(os.environ.get("COMITY_KILLS", "1"))
CALLS = 24 * KILLS
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
            calls = [asyncio.create_task(near.call("BOSS", "GO", {"number": number}, user_id="u")) for number in range(CALLS)]
            for _ in range(KILLS):
                if all(call.done() for call in calls):
                    break
                while not runs.exists():
                    await asyncio.sleep(0.005)
                await asyncio.sleep(random.random() * 0.1)
                process.kill()
                await process.wait()
                process = await start()
            replies = await asyncio.gather(*calls)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    assert [reply.unwrap() for reply in replies] == [{"number": number} for number in range(CALLS)]
    with contextlib.closing(connect(store, read_only=True)) as connection:
        assert verify_chain(connection).ok
        rows = [row for row in read_rows(connection) if row.target == "FAR"]
    kinds = Counter((row.request_id, row.kind) for row in rows)
    assert max(kinds.values()) == 1
    assert {row.status for row in rows if row.kind == "settled"} == {"success"}
    assert len({row.request_id for row in rows if row.kind == "settled"}) == CALLS
    again = Counter(runs.read_text().split())
    assert set(again) == {row.request_id for row in rows}
    assert max(again.values()) <= 1 + KILLS  # a run that a kill cut off is taken up, once for each life


def caller() -> Agent:
    agent = Agent("BOSS")

    @agent.capability("GO")
    async def go(ctx: Context, number: int) -> dict:
        return (await ctx.call("FAR", "WORK", {"number": number})).unwrap()

    return agent
