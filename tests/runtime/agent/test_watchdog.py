"""Code that blocks the loop is noticed while it blocks, and named."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import types

import pytest

from comity import Agent, Node
from comity.runtime.agent.watchdog import LIBRARIES, OWN, is_own_work

GIVE_UP_S = 20


def test_a_call_that_blocks_the_loop_is_named_while_it_blocks(caplog):
    agent, noticed = Agent("SLOW"), []

    @agent.capability("BLOCK")
    async def block():
        give_up = time.monotonic() + GIVE_UP_S
        while not node.lags and time.monotonic() < give_up:
            pass  # holds the loop until the watchdog's thread has seen it
        noticed.extend(node.lags)

    async def go():
        global node
        async with Node([agent], lag_ms=20) as node:
            await node.call("SLOW", "BLOCK", user_id="u")

    asyncio.run(go())
    assert [(lag.target, lag.capability) for lag in noticed] == [("SLOW", "BLOCK")]
    assert noticed[0].blocked_ms > 20
    assert 'run_in="process"' in caplog.text


def stack(*calls: tuple[str, str]) -> types.FrameType:
    """Return the innermost frame of functions that call each other, the first the last, each by its file and its name."""
    found: list[types.FrameType] = []
    inner = lambda: found.append(sys._getframe())  # noqa: E731
    functions = [inner]
    for file, name in calls:
        scope = {"inner": functions[-1]}
        exec(compile(f"def {name}():\n    inner()", file, "exec"), scope)  # noqa: S102
        functions.append(scope[name])
    functions[-1]()
    return found[0].f_back


LOOP = ("/usr/lib/asyncio/base_events.py", "_run_once")
STEP = (f"{OWN}runtime/call/run.py", "_work")


@pytest.mark.parametrize(
    ("calls", "is_own"),
    [
        ([(f"{OWN}core/redaction/scan.py", "find"), (f"{OWN}runtime/call/path.py", "enter"), STEP, LOOP], True),
        ([(f"{LIBRARIES[0]}/re.py", "compile"), (f"{OWN}core/redaction/scan.py", "find"), STEP, LOOP], True),
        ([(f"{OWN}core/session/parts.py", "save"), LOOP], True),  # by a timer of the node
        ([(f"{OWN}node/hosting.py", "lags"), ("/home/ann/agent.py", "block"), STEP, LOOP], False),
        ([(f"{LIBRARIES[1]}/their_agents/slow.py", "block"), STEP, LOOP], False),
        ([("/home/ann/agent.py", "block"), STEP, LOOP], False),
        ([(f"{LIBRARIES[0]}/selectors.py", "select"), LOOP], False),
    ],
)
def test_only_a_stack_without_code_of_agents_is_comitys_own(calls, is_own):
    assert is_own_work(stack(*calls)) is is_own


def test_with_no_call_under_way_the_watchdog_is_parked():
    agent = Agent("A")

    @agent.capability("GO")
    async def go_on():
        return 1

    async def go():
        async with Node([agent], lag_ms=4) as node:
            await node.call("A", "GO", user_id="u")
            watchdog = node._path.watchdog
            async with asyncio.timeout(GIVE_UP_S):
                while not watchdog.is_parked:
                    await asyncio.sleep(0)
            return watchdog._timer.when() < asyncio.get_running_loop().time() or watchdog._timer.cancelled()

    assert asyncio.run(go())


def test_a_node_that_closes_does_not_wait_for_the_watchdogs_next_look():
    agent = Agent("A")

    @agent.capability("GO")
    async def go_on():
        for _ in range(20):  # other threads have a turn, and the watchdog begins to look
            await asyncio.to_thread(time.monotonic)

    async def go():
        async with Node([agent], lag_ms=4_000 * GIVE_UP_S) as node:
            await node.call("A", "GO", user_id="u")

    thread = threading.Thread(target=asyncio.run, args=(go(),), daemon=True)
    thread.start()
    thread.join(GIVE_UP_S)
    assert not thread.is_alive()


class Warnings(logging.Handler):
    """The watchdog's warnings so far. To ask for them is one step, so a busy loop that asks is itself the newest line of code."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(record.getMessage())


@pytest.fixture
def warnings():
    handler = Warnings()
    logging.getLogger("comity").addHandler(handler)
    yield handler.told
    logging.getLogger("comity").removeHandler(handler)


def hold_the_loop(told: list[str], name: str, times: int) -> list[str]:
    """Block the loop until the watchdog's thread has named the culprit this often; return those warnings."""
    give_up, found = time.monotonic() + GIVE_UP_S, []
    while len(found) < times and time.monotonic() < give_up:
        found = [line for line in told if line.startswith(f"{name} has blocked the event loop")]
    return found


def test_code_that_blocks_on_is_named_again_with_the_line_it_is_at(warnings):
    agent, found = Agent("SLOW"), []

    @agent.capability("BLOCK")
    async def block():
        found.extend(hold_the_loop(warnings, "SLOW BLOCK", 2))

    async def go():
        async with Node([agent], lag_ms=20) as node:
            await node.call("SLOW", "BLOCK", user_id="u")
            assert len(node.lags) == 1

    asyncio.run(go())
    assert len(found) == 2
    assert all("test_watchdog.py:" in line and "in hold_the_loop" in line for line in found)


def test_a_task_that_an_agent_began_itself_is_named_by_its_code(warnings):
    agent, found = Agent("SLOW"), []

    async def hold():
        found.extend(hold_the_loop(warnings, "own task", 1))

    @agent.capability("BLOCK")
    async def block():
        await asyncio.create_task(hold(), name="own task")

    async def go():
        async with Node([agent], lag_ms=20) as node:
            await node.call("SLOW", "BLOCK", user_id="u")

    asyncio.run(go())
    assert len(found) == 1
    assert "in hold_the_loop" in found[0]
