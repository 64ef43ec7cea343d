"""A forked child ends where it comes back to the node of its parent, and does nothing as a node before."""

from __future__ import annotations

import json
import sys

import pytest
import warm

# Agents fork in every place where their code can run. A child that lived on would print its process id a second time.
PROGRAM = """
import asyncio, json, multiprocessing, os, sqlite3, sys
from comity import Agent, Context, Node, Tool

parent = os.getpid()
how = {"exit 3": lambda: sys.exit(3), "exit text": lambda: sys.exit("done"), "exit": sys.exit, "return": lambda: None,
       "raise": lambda: 1 / 0, "_exit": lambda: os._exit(5)}
children = {}

def fork(name, act):
    pid = os.fork()
    if pid == 0:
        how[act]()
        return -1
    children[pid] = (name, act)
    return pid

a = Agent("A", tools_allowed=["forks"])
other = Agent("OTHER")

@a.capability("ASYNC")
async def in_loop(ctx: Context, act: str) -> int:
    ctx.session.learn(f"before {act}", 1)
    return fork("ASYNC", act)

@a.capability("AWAITS")
async def awaits(ctx: Context, act: str) -> int:
    pid = fork("AWAITS", act)
    await asyncio.sleep(0)
    await ctx.call("OTHER", "OK")
    return pid

@a.capability("PLAIN")
def in_thread(act: str) -> int:
    return fork("PLAIN", act)

@a.capability("ASKS")
def asks(ctx, act: str) -> int:
    pid = fork("ASKS", act)
    ctx.call("OTHER", "OK")
    return pid

@a.capability("TOOL")
async def tool(ctx: Context, act: str) -> int:
    return await ctx.use_tool("forks", act=act)

async def forks(act: str) -> int:
    return fork("TOOL", act)

@a.capability("WORK")
async def work(ctx: Context) -> int:  # what forks are for
    process = multiprocessing.get_context("fork").Process(target=print, args=("worked",))
    process.start()
    process.join()
    return process.exitcode

ran = 0
@other.capability("OK")
async def ok(ctx: Context) -> int:
    global ran
    ran += 1
    assert os.getpid() == parent
    await asyncio.sleep(0.001)
    return os.getpid()

async def main():
    tools = [Tool(name="forks", function=forks)]
    async with Node([a, other], store=sys.argv[1], tools=tools, lag_ms=None, privacy=None) as node:
        for name in ("ASYNC", "AWAITS", "PLAIN", "ASKS", "TOOL"):
            for act in how:
                beside = [asyncio.ensure_future(node.call("OTHER", "OK", user_id="u")) for _ in range(3)]
                await asyncio.sleep(0)
                reply = await node.call("A", name, {"act": act}, user_id="u", session_id="s")
                if os.getpid() != parent:
                    print("a child lives on in", name, act, flush=True)
                assert reply.ok, reply
                assert all([reply.data == parent for reply in await asyncio.gather(*beside)])
        assert (await node.call("A", "WORK", user_id="u")).data == 0
        pid = os.fork()
        if pid == 0:
            sys.exit(7)
        children[pid] = ("MAIN", "exit 7")
        pid = os.fork()
        if pid == 0:
            refused = await node.call("OTHER", "OK", user_id="u")
            if refused.status != "refused" or refused.error.code != "NODE_CLOSED":
                print("a child was answered", refused, flush=True)
            await asyncio.sleep(0)
            print("a child came past a wait", flush=True)
        children[pid] = ("MAIN", "call")
        left = dict(children)
        found = {}
        for _ in range(2000):
            for pid in [*left]:
                done, status = os.waitpid(pid, os.WNOHANG)
                if done:
                    found[" ".join(left.pop(pid))] = os.waitstatus_to_exitcode(status)
            if not left:
                break
            await asyncio.sleep(0.01)
        for pid, name in left.items():
            os.kill(pid, 9)
            found[" ".join(name)] = "hangs"
        assert node.audit.verify().ok
        assert (await node.call("OTHER", "OK", user_id="u")).ok
    rows = sqlite3.connect(sys.argv[1]).execute("select count(*) from calls where is_root").fetchone()[0]
    print(json.dumps({"found": found, "roots": rows, "ran": ran}), flush=True)

asyncio.run(main())
"""

STATUS = {"exit 3": 3, "exit text": 1, "exit": 0, "return": 1, "raise": 1, "_exit": 5}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    store = tmp_path_factory.mktemp("forked") / "work.db"
    ran = warm.run([sys.executable, "-c", PROGRAM, store])
    assert ran.returncode == 0, ran.stderr
    return ran


@pytest.mark.parametrize("where", ["ASYNC", "AWAITS", "PLAIN", "ASKS", "TOOL"])
def test_a_child_ends_as_it_asked_for_wherever_its_code_ran(outcome, where):
    found = json.loads(outcome.stdout.splitlines()[-1])["found"]
    assert {act: found[f"{where} {act}"] for act in STATUS} == STATUS


def test_a_child_of_the_program_itself_ends_at_the_loop(outcome):
    found = json.loads(outcome.stdout.splitlines()[-1])["found"]
    assert (found["MAIN exit 7"], found["MAIN call"]) == (7, 1)


def test_no_child_acts_as_a_node_and_the_parent_goes_on(outcome):
    *before, last = outcome.stdout.splitlines()
    assert before == ["worked"]
    told = json.loads(last)
    forks = 5 * len(STATUS)
    assert told["roots"] == forks * 4 + 1 + 1  # with three calls beside each
    assert told["ran"] == forks * 3 + 2 * len(STATUS) + 1
    assert "done" in outcome.stderr
    assert "it is no node" in outcome.stderr
    assert "Traceback" not in outcome.stderr
