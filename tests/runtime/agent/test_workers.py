"""Code that blocks can run in a process of its own, which dies with its call."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from comity import Agent, Context, Node, Reply, Status, Tool
from comity.core.call.limits import INPUTS_BYTES_MAX
from comity.errors import CallerError, RefusedError, UnavailableError

GIVE_UP_S = 5


def square(n: int) -> dict[str, int]:
    return {"square": n * n, "pid": os.getpid()}


def echo(text: str) -> tuple[int, str]:
    return os.getpid(), text


def fail(kind: str) -> None:
    if kind == "caller":
        raise CallerError("no such year", code="DATA_MISSING_REQUIRED_INPUT")
    if kind == "die":
        os._exit(3)
    if kind == "leave":
        sys.exit(3)
    raise ValueError("broken")


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


def fail_oddly(kind: str) -> int:
    if kind == "mute":
        raise Mute
    if kind == "gone":
        raise GeneratorExit
    if kind == "busy":
        raise UnavailableError("later", code="MY_LIMIT", retryable=True, retry_after_ms=7)
    if kind == "refused":
        raise RefusedError("no", code="GUIDANCE_BLOCKED")
    if kind == "after":
        raise UnavailableError("later", retry_after_ms=1.5)
    if kind == "problems":
        raise CallerError("no", problems=(lambda: 5,))
    return os.getpid()


def spin_for_ever(pipe: str) -> None:
    with open(pipe, "wb") as out:  # noqa: PTH123  a named pipe
        out.write(str(os.getpid()).encode())
    while True:
        time.sleep(0)


def agent_with(function, name: str = "A") -> Agent:
    agent = Agent(name)
    agent.capability("GO", run_in="process")(function)
    return agent


ODDLY = ("none", "mute", "gone", "busy", "refused", "none", "after", "problems", "none")


@pytest.fixture(scope="module")
def replies() -> dict[str, list[Reply]]:
    """What the functions and the tool of one node replied, which all run in processes."""
    user = Agent("USER", tools_allowed=["echo"])

    @user.capability("GO")
    async def use(ctx: Context) -> list:
        return await ctx.use_tool("echo", text="hi")

    async def go():
        agents = [agent_with(square, "SQUARE"), agent_with(fail_oddly, "ODD"), user]
        async with Node(agents, tools=[Tool(name="echo", function=echo, run_in="process")]) as node:
            asked = {"SQUARE": [{"n": 3}, {"n": 4}], "ODD": [{"kind": kind} for kind in ODDLY], "USER": [{}]}
            return {
                name: [await node.call(name, "GO", inputs, user_id="u") for inputs in several]
                for name, several in asked.items()
            }

    return asyncio.run(go())


def test_a_process_function_answers_from_another_process_which_is_kept_for_the_next_call(replies):
    first, second = (reply.data for reply in replies["SQUARE"])
    assert (first["square"], second["square"]) == (9, 16)
    assert first["pid"] == second["pid"] != os.getpid()


def test_failures_in_a_process_are_typed_and_a_dead_process_is_replaced(caplog):
    async def go():
        async with Node([agent_with(fail)], lag_ms=None) as node:
            kinds = ("caller", "die", "crash", "leave")
            return [(await node.call("A", "GO", {"kind": kind}, user_id="u")).error for kind in kinds]

    errors = asyncio.run(go())
    codes = ["DATA_MISSING_REQUIRED_INPUT", "TARGET_TEMPORARY_FAILURE", "TARGET_CRASHED", "TARGET_CRASHED"]
    assert [error.code for error in errors] == codes
    assert "sys.exit(3)" in errors[3].message
    assert [line.count("in fail\n") for line in caplog.messages] == [1, 1]  # the traceback of each crash, and of nothing else


def test_an_odd_failure_in_a_process_is_told_whole_and_does_not_kill_it(replies):
    first, mute, gone, busy, refused, _, after, problems, last = replies["ODD"]
    assert first.data == last.data  # one process for all of them
    assert [one.error.code for one in (mute, gone)] == ["TARGET_CRASHED", "TARGET_CRASHED"]
    assert "Mute, which cannot be shown as text" in mute.error.message
    assert (busy.error.code, busy.error.retryable, busy.error.retry_after_ms) == ("MY_LIMIT", True, 7)
    assert refused.error.code == "OUTPUT_RESERVED"
    assert [one.error.code for one in (after, problems)] == ["OUTPUT_VALIDATION_FAILED"] * 2
    assert after.error.problems[0].path == "error.retry_after_ms"


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


def test_a_process_that_does_not_read_its_inputs_holds_up_nobody_else():
    text = "x" * (INPUTS_BYTES_MAX - 100)  # more than a pipe takes in
    held: list[str] = []

    async def go():
        async with Node([agent_with(echo)]) as node:
            pid, _ = (await node.call("A", "GO", {"text": ""}, user_id="u")).data
            os.kill(pid, signal.SIGSTOP)
            give_up = threading.Timer(GIVE_UP_S, lambda: (held.append("the loop"), os.kill(pid, signal.SIGCONT)))
            give_up.start()
            try:
                handle = node.start_call("A", "GO", {"text": text}, user_id="u")
                for _ in range(100):
                    await asyncio.sleep(0)
            finally:
                give_up.cancel()
                os.kill(pid, signal.SIGCONT)
            return pid, (await handle.reply()).data

    pid, answer = asyncio.run(go())
    assert held == []
    assert answer == [pid, text]


def test_a_tool_can_run_in_a_process(replies):
    (reply,) = replies["USER"]
    pid, text = reply.data
    assert (pid != os.getpid(), text) == (True, "hi")


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


PROGRAM = """
import asyncio
from comity import Agent, Node, SyncNode

agent = Agent("A")
{declares}

def run_sync():
    with SyncNode([agent], privacy=None) as node:
        print(node.call("A", "GO", user_id="u").error)

async def run():
    async with Node([agent], privacy=None) as node:
        print((await node.call("A", "GO", user_id="u")).error)

print("a run", flush=True)
{runs}
"""
DECLARES = """
@agent.capability("GO", run_in="process")
def one() -> int:
    return 1
"""
GUARD = 'if __name__ == "__main__":'


@pytest.mark.parametrize(
    ("declares", "runs", "says"),
    [
        (DECLARES, "asyncio.run(run())", GUARD),
        (DECLARES, "run_sync()", GUARD),
        (DECLARES, f"{GUARD} run_sync()", ""),
        (f"{GUARD}{DECLARES.replace(chr(10), chr(10) + '    ')}", f"{GUARD} asyncio.run(run())", "cannot import the function"),
    ],
)
def test_a_program_that_a_worker_process_cannot_import_says_what_to_do_and_makes_no_call_there(tmp_path, declares, runs, says):
    (tmp_path / "program.py").write_text(PROGRAM.format(declares=declares, runs=runs))
    ran = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    *begun, error = ran.stdout.splitlines()
    assert begun == ["a run"] * 2  # the second time it is imported, and nothing is printed after that
    assert says in error
    assert ("TARGET_MISCONFIGURED" in error) is bool(says)
