"""Code that blocks can run in a process of its own, which dies with its call."""

from __future__ import annotations

import asyncio
import os
import sys
import time

from comity import Agent, Context, Node, Status
from comity.errors import CallerError


def square(n: int) -> dict[str, int]:
    return {"square": n * n, "pid": os.getpid()}


def fail(kind: str) -> None:
    if kind == "caller":
        raise CallerError("no such year", code="DATA_MISSING_REQUIRED_INPUT")
    if kind == "die":
        os._exit(3)
    if kind == "leave":
        sys.exit(3)
    raise ValueError("broken")


def spin_for_ever(pipe: str) -> None:
    with open(pipe, "wb") as out:  # noqa: PTH123  a named pipe
        out.write(str(os.getpid()).encode())
    while True:
        time.sleep(0)


def agent_with(function) -> Agent:
    agent = Agent("A")
    agent.capability("GO", run_in="process")(function)
    return agent


def test_a_process_function_answers_from_another_process_which_is_kept_for_the_next_call():
    async def go():
        async with Node([agent_with(square)]) as node:
            return [(await node.call("A", "GO", {"n": n}, user_id="u")).data for n in (3, 4)]

    first, second = asyncio.run(go())
    assert (first["square"], second["square"]) == (9, 16)
    assert first["pid"] == second["pid"] != os.getpid()


def test_failures_in_a_process_are_typed_and_a_dead_process_is_replaced(caplog):
    async def go():
        async with Node([agent_with(fail)]) as node:
            kinds = ("caller", "die", "crash", "leave")
            return [(await node.call("A", "GO", {"kind": kind}, user_id="u")).error for kind in kinds]

    errors = asyncio.run(go())
    codes = ["DATA_MISSING_REQUIRED_INPUT", "TARGET_TEMPORARY_FAILURE", "TARGET_CRASHED", "TARGET_CRASHED"]
    assert [error.code for error in errors] == codes
    assert "sys.exit(3)" in errors[3].message
    assert [line.count("in fail\n") for line in caplog.messages] == [1, 1]  # the traceback of each crash, and of nothing else


def test_cancelling_a_call_kills_its_process(tmp_path):
    pipe = tmp_path / "pid"
    os.mkfifo(pipe)

    async def go():
        async with Node([agent_with(spin_for_ever)]) as node:
            handle = node.start_call("A", "GO", {"pipe": str(pipe)}, user_id="u")
            pid = int(await asyncio.to_thread(pipe.read_bytes))
            handle.cancel()
            reply = await handle.reply()
        return pid, reply

    pid, reply = asyncio.run(go())
    assert reply.status is Status.CANCELLED
    assert not os.path.exists(f"/proc/{pid}")  # noqa: PTH110


def test_a_function_that_cannot_be_sent_to_a_process_says_so():
    agent = Agent("A")

    @agent.capability("LOCAL", run_in="process")
    def local() -> int:
        return 1

    @agent.capability("WITH_CONTEXT", run_in="process")
    def with_context(ctx: Context) -> int:
        return 1

    async def go():
        async with Node([agent]) as node:
            return [(await node.call("A", code, user_id="u")).error for code in ("LOCAL", "WITH_CONTEXT")]

    local_error, context_error = asyncio.run(go())
    assert local_error.code == context_error.code == "TARGET_MISCONFIGURED"
    assert "top of a module" in local_error.message
    assert "ctx" in context_error.message
