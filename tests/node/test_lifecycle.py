"""A node that cannot start, or whose parts raise while it closes, leaves no thread, file, lock or task."""

from __future__ import annotations

import asyncio
import functools
import gc
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from comity import Agent, Context, Node
from comity.core.tracing.telemetry import Settings
from comity.engines.clock import SystemClock
from comity.engines.memory.cluster import LeaseService, MemoryLeases
from comity.engines.memory.engine import JournalEngine, MemoryCluster
from comity.engines.sqlite.engine import SqliteEngine
from comity.engines.sqlite.journal import SqliteJournal
from comity.engines.sqlite.transport import socket_path
from comity.errors import UnavailableError

KEPT = ("", "-wal", "-shm", ".key", ".spans", ".spans-wal", ".spans-shm")  # what a closed store may consist of


class Left:
    """How many threads, open files, tasks and files beside the store there are more than before."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._before = self._now()
        gc.freeze()  # what is here now is no work for the collections to come

    def _now(self) -> list[Counter[str]]:
        gc.collect()
        links = (
            str(one.readlink()) for one in tuple(Path("/proc/self/fd").iterdir()) if one.is_symlink()
        )  # the list's is closed
        return [
            Counter(thread.name for thread in threading.enumerate()),
            Counter(links),
            Counter(task.get_name() for task in asyncio.all_tasks()),
            Counter(one.name for one in self._folder.iterdir() if one.name.removeprefix("work.db") not in KEPT),
        ]

    def __call__(self) -> list[Counter[str]]:
        return [after - before for after, before in zip(self._now(), self._before, strict=True)]


def in_a_loop(test):
    """Run a test in real time: the writer of a store is a thread."""

    @functools.wraps(test)
    def run(**fixtures):
        asyncio.run(test(**fixtures))

    return run


NOTHING = [Counter()] * 4


def worker() -> Agent:
    agent = Agent("A")

    @agent.capability("GO")
    async def go(ctx: Context) -> int:
        return 1

    @agent.capability("WAIT")
    async def wait(ctx: Context) -> int:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0.02)  # it cleans up
        return 1

    return agent


async def cannot_close() -> None:
    raise ConnectionError("the provider does not answer")


@in_a_loop
async def test_an_agent_that_cannot_be_closed_leaves_nothing_open(tmp_path):
    left, closed = Left(tmp_path), []
    bad, good = worker(), Agent("B")
    bad.on_close = cannot_close

    async def close() -> None:
        closed.append("B")

    good.on_close = close
    node = Node([bad, good], store=tmp_path / "work.db")
    await node.start()
    assert (await node.call("A", "GO", user_id="u")).data == 1
    with pytest.raises(ConnectionError, match="does not answer"):
        await node.close()
    assert left() == NOTHING
    assert closed == ["B"]
    await node.close()  # a second time is no error
    async with Node([worker()], store=tmp_path / "work.db") as again:
        assert [row.kind for row in again.audit.rows()] == ["admitted", "settled"]


class Unreachable:
    """A transport without a route."""

    async def open(self, node_id, receive, **more):
        raise UnavailableError("no route", code="NODE_UNREACHABLE")

    async def close(self):
        pass

    def send(self, node_id, message):
        raise AssertionError("it was never opened")

    def peers(self):
        return []


@in_a_loop
async def test_a_transport_that_cannot_be_opened_leaves_nothing_open(tmp_path):
    left, clock = Left(tmp_path), SystemClock()
    journal = SqliteJournal(tmp_path / "work.db", "n1")
    engine = JournalEngine(journal, MemoryLeases(LeaseService(clock), journal), Unreachable())
    engine.path = tmp_path / "work.db"
    node = Node([worker()], engine=engine, clock=clock)
    with pytest.raises(UnavailableError, match="no route"):
        await node.start()
    assert left() == NOTHING
    with pytest.raises(UnavailableError, match="not running"):
        await node.call("A", "GO", user_id="u")


@in_a_loop
async def test_spans_that_cannot_be_opened_leave_nothing_open(tmp_path):
    (tmp_path / "work.db.spans").mkdir()
    left = Left(tmp_path)
    with pytest.raises(UnavailableError):
        await Node([worker()], store=tmp_path / "work.db", telemetry=Settings(endpoint="http://127.0.0.1:9")).start()
    assert left() == NOTHING


@pytest.mark.parametrize("is_durable", [True, False])
@in_a_loop
async def test_closing_waits_for_a_call_that_was_just_cancelled(tmp_path, is_durable):
    left = Left(tmp_path)
    node = Node([worker()], store=tmp_path / "work.db" if is_durable else None)
    await node.start()
    handle = node.start_call("A", "WAIT", user_id="u")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert handle.cancel()
    await node.close()
    assert left() == NOTHING
    assert (await handle.reply()).status == "cancelled"


@in_a_loop
async def test_closing_waits_for_a_call_to_another_node_that_was_just_cancelled(tmp_path):
    left, clock = Left(tmp_path), SystemClock()
    node = Node([worker()], engine=MemoryCluster(clock).engine("n1"), clock=clock, lag_ms=None)
    await node.start()
    handle = node.start_call("A", "WAIT", user_id="u")
    assert handle.cancel()  # before it was known where its agent is
    await node.close()
    assert left() == NOTHING
    assert (await handle.reply()).status == "cancelled"


@in_a_loop
async def test_of_two_nodes_on_one_store_the_one_that_cannot_close_its_agent_leaves_nothing_and_the_other_goes_on(tmp_path):
    left, bad = Left(tmp_path), worker()
    bad.on_close = cannot_close
    one, two = Node([bad], store=tmp_path / "work.db"), Node([worker()], store=tmp_path / "work.db")
    await one.start()
    assert (await one.call("A", "GO", user_id="u")).ok
    alone = left()
    await two.start()
    assert (await two.call("A", "GO", user_id="u")).ok  # on the first, which holds the agent
    handle = two.start_call("A", "WAIT", user_id="u")
    assert handle.cancel()
    with pytest.raises(ConnectionError, match="does not answer"):
        await one.close()
    assert (await two.call("A", "GO", user_id="u")).ok
    await two.close()
    assert left() == NOTHING
    assert alone != NOTHING  # which shows that something is counted
    assert (await handle.reply()).status == "cancelled"


@in_a_loop
async def test_a_socket_that_cannot_be_made_beside_the_store_leaves_nothing_open_and_keeps_no_later_node_out(tmp_path):
    in_its_place = socket_path(tmp_path / "work.db", "n1").with_suffix(".sock-new")
    in_its_place.mkdir()
    left = Left(tmp_path)
    for _ in range(2):
        with pytest.raises(UnavailableError, match="cannot listen"):
            await Node([worker()], engine=SqliteEngine(tmp_path / "work.db", "n1")).start()
        assert left() == NOTHING
    in_its_place.rmdir()
    async with Node([worker()], engine=SqliteEngine(tmp_path / "work.db", "n1")) as node:
        assert (await node.call("A", "GO", user_id="u")).ok
    assert left() == NOTHING


COUNTS = """
import asyncio, gc
from comity import Agent, Node

async def main():
    for _ in range(2):
        async with Node([Agent("A")], lag_ms=None):
            print(gc.get_freeze_count())

asyncio.run(main())
"""


def test_what_is_there_before_the_first_node_of_a_process_is_no_work_for_the_garbage_collector():
    """A full collection stops the loop: it walks through every module, class and pattern unless they are set aside."""
    ran = subprocess.run([sys.executable, "-c", COUNTS], capture_output=True, text=True, check=True)
    first, second = map(int, ran.stdout.split())
    assert first > 10_000
    assert second <= first  # once: what later nodes leave behind is collected as ever


def test_a_node_that_hides_personal_data_loads_its_cipher_before_the_first_call():
    program = """
import asyncio, sys
from comity import Agent, Node

async def main():
    for privacy in (False, True):
        async with Node([Agent("A")], **({} if privacy else {"privacy": None})):
            print("Cryptodome.Cipher.AES" in sys.modules)

asyncio.run(main())
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False", "True"]
