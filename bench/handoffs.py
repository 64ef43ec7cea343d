"""Handoffs with 64 in flight, against a bare SQLite group-commit loop measured in the same run.

Baseline: what any durable queue on SQLite must do, and no more. A row is inserted with the request as JSON, and the creator
waits until that is committed; a worker in the same process, told of it, reads the request and updates the row with the result;
the creator, told once that is committed, reads the result. So one commit to create and one to complete, in WAL mode with
`synchronous=FULL`, and whatever waits shares a commit. There is no third one to accept, since a worker that lives and dies with
its creator need not say what it has: that much less the baseline does than a handoff, whose acceptance others can see.

Handoffs: create → accept → complete → result through the one call path, with admission, redaction, leases, two audit rows,
spans and rings; create and complete are acknowledged after a sync, as above. The receiver is in the same process, then in one
of its own. Rounds are interleaved, the ratio is taken within each round, and the median of the ratios is printed. Disk speed
decides much here: the slower a sync, the less of the processor's work shows. So its cost is printed beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from queue import SimpleQueue

from comity import Node
from comity.contextcore.handoffs.manager import AsyncHandoffManager
from comity.contextcore.handoffs.receiver import AsyncHandoffReceiver

IN_FLIGHT = 64
INPUTS = {"cash_flows": [-100000, 25000, 35000, 45000, 55000], "discount_rate": 0.12, "periods": "annual"}
RESULT = {"npv": 17206.82, "currency": "USD", "discount_rate": 0.12, "periods": 5}
REQUEST = {"id": "x" * 36, "from": "CST", "to": "ANL", "capability": "ANL_NPV", "inputs": INPUTS, "pad": "y" * 150}
WARM_UP = 200


class Bare:
    """One table, one writer thread, group commit."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = FULL")
        self.connection.execute("CREATE TABLE work (id INTEGER PRIMARY KEY, request TEXT, result TEXT)")
        self.reader = sqlite3.connect(path, isolation_level=None)
        self.loop = asyncio.get_running_loop()
        self.batches: SimpleQueue = SimpleQueue()
        self.waiting: list = []
        self.is_busy = False  # a batch is being written, or is about to be handed over
        threading.Thread(target=self._write, daemon=True).start()

    def read(self, column: str, number: int) -> dict:
        (found,) = self.reader.execute(f"SELECT {column} FROM work WHERE id = ?", (number,)).fetchone()  # noqa: S608
        return json.loads(found)

    def do(self, sql: str, values: tuple) -> asyncio.Future:
        done = self.loop.create_future()
        self.waiting.append((sql, values, done))
        self._hand_over_soon()
        return done

    def _hand_over_soon(self) -> None:
        """What is asked for in one turn of the event loop shares a commit: more than twice as fast where a sync takes 4 ms."""
        if not self.is_busy:
            self.is_busy = True
            self.loop.call_later(0, self._hand_over)

    def _hand_over(self) -> None:
        self.batches.put(self.waiting)
        self.waiting = []

    def _write(self) -> None:
        while (batch := self.batches.get()) is not None:
            self.connection.execute("BEGIN IMMEDIATE")
            for sql, values, _ in batch:
                self.connection.execute(sql, values)
            self.connection.execute("COMMIT")
            self.loop.call_soon_threadsafe(self._written, batch)

    def _written(self, batch: list) -> None:
        self.is_busy = False
        for _, _, done in batch:
            done.set_result(None)
        if self.waiting:
            self._hand_over_soon()


async def bare(folder: Path, count: int) -> float:
    """Return handoffs per second of the bare loop."""
    store = Bare(folder / "bare.db")
    jobs: asyncio.Queue = asyncio.Queue()
    numbers = iter(range(count))

    async def work() -> None:
        while True:
            number, told = await jobs.get()
            assert store.read("request", number)["inputs"] == INPUTS
            await store.do("UPDATE work SET result = ? WHERE id = ?", (json.dumps(RESULT), number))
            told.set_result(None)

    async def lane() -> None:
        for number in numbers:
            await store.do("INSERT INTO work VALUES (?, ?, NULL)", (number, json.dumps(REQUEST)))
            told = asyncio.get_running_loop().create_future()
            jobs.put_nowait((number, told))
            await told
            assert store.read("result", number) == RESULT

    workers = [asyncio.create_task(work()) for _ in range(IN_FLIGHT)]
    began = time.perf_counter()
    await asyncio.gather(*(lane() for _ in range(IN_FLIGHT)))
    rate = count / (time.perf_counter() - began)
    for worker in workers:
        worker.cancel()
    store.batches.put(None)
    return rate


async def make(manager: AsyncHandoffManager, count: int) -> float:
    """Hand off and await, many at once; return handoffs per second."""
    numbers = iter(range(count))

    async def lane() -> None:
        for _ in numbers:
            made = await manager.create_handoff("ANL", "ANL_NPV", inputs=INPUTS)
            ended = await manager.await_result(made)
            assert ended.result == RESULT, ended

    began = time.perf_counter()
    await asyncio.gather(*(lane() for _ in range(IN_FLIGHT)))
    return count / (time.perf_counter() - began)


async def one_process(folder: Path, count: int) -> float:
    """Return handoffs per second with creator and receiver on one node."""
    async with Node(store=folder / "one.db", lag_ms=None) as node:
        manager, receiver = AsyncHandoffManager(agent_id="CST", node=node), AsyncHandoffReceiver("ANL", node=node)
        serving = asyncio.create_task(receiver.serve(lambda _: RESULT, concurrency=IN_FLIGHT))
        await make(manager, WARM_UP)
        rate = await make(manager, count)
        serving.cancel()
        assert node.audit.verify().rows == 2 * (WARM_UP + count)
    return rate


async def two_processes(folder: Path, count: int) -> float:
    """Return handoffs per second with the receiver in a process of its own."""
    store = folder / "two.db"
    child = subprocess.Popen([sys.executable, __file__, "--receive", str(store)], stdout=subprocess.PIPE)  # noqa: ASYNC220
    try:
        child.stdout.readline()
        async with AsyncHandoffManager(agent_id="CST", store=store) as manager:
            await make(manager, WARM_UP)
            return await make(manager, count)
    finally:
        child.kill()
        child.communicate()


async def receive(store: str) -> None:
    async with AsyncHandoffReceiver("ANL", store=store) as receiver:
        print("ready", flush=True)
        await receiver.serve(lambda _: RESULT, concurrency=IN_FLIGHT)


def sync_ms(folder: Path) -> float:
    """Return what it costs to make 4 KB durable, in ms."""
    file = os.open(folder / "sync", os.O_WRONLY | os.O_CREAT)
    took = []
    for _ in range(50):
        os.write(file, b"x" * 4096)
        began = time.perf_counter()
        os.fdatasync(file)
        took.append(time.perf_counter() - began)
    os.close(file)
    return statistics.median(took) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=4_000)
    parser.add_argument("--receive", metavar="STORE", help="be the other process")
    args = parser.parse_args()
    if args.receive:
        asyncio.run(receive(args.receive))
        return
    rates: dict[str, list[float]] = {"bare group commit": [], "handoffs, one process": [], "handoffs, two processes": []}
    syncs = []
    for _ in range(args.rounds):
        for name, job in zip(rates, (bare, one_process, two_processes), strict=True):
            with tempfile.TemporaryDirectory() as folder:
                syncs.append(sync_ms(Path(folder)))
                rates[name].append(asyncio.run(job(Path(folder), args.count)))
    print(
        f"{IN_FLIGHT} in flight, create → accept → complete → result; a sync of 4 KB takes {statistics.median(syncs):.2f} ms\n"
    )
    print(f"{'':<26}{'median/s':>10}{'best/s':>10}{'× bare':>10}")
    for name, found in rates.items():
        ratio = statistics.median(one / base for one, base in zip(found, rates["bare group commit"], strict=True))
        print(f"{name:<26}{statistics.median(found):>10,.0f}{max(found):>10,.0f}{ratio:>10.2f}")


if __name__ == "__main__":
    main()
