"""What a run of a workflow costs: beside the same calls written by hand, over a long loop, a wide map, reopened, and waiting.

    python bench/workflows.py            every table, CPU time per run or step
    python bench/workflows.py --quick    smaller, in half a minute
    python bench/workflows.py --only loop,loop-store --svg docs/workflow_loop.svg    draws what a step of a long loop costs

CPU time is that of the whole process, all threads. Each ratio is to a baseline measured in the same run.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from comity import Agent, Context, Node
from comity.workflow import load

SEQUENCE = """
workflow: sequence
nodes:
  x: {call: A/ADD, input: {n: "{{input.n}}"}}
  y: {call: A/ADD, after: [x], input: {n: "{{x.data.n}}"}}
  z: {call: A/ADD, after: [y], input: {n: "{{y.data.n}}"}}
output: {n: "{{z.data.n}}"}
"""
PARALLEL = """
workflow: parallel
nodes:
  x: {call: A/ADD, input: {n: "{{input.n}}"}}
  y: {call: A/ADD, input: {n: "{{input.n}}"}}
  z: {call: A/ADD, input: {n: "{{input.n}}"}}
  j: {join: all, after: [x, y, z]}
output: {n: "{{x.data.n + y.data.n + z.data.n}}"}
"""
LOOP = """
workflow: loop
limits: {steps_max: 1000000}
nodes:
  w: {call: A/ADD, input: {n: "{{w.data.n ?? 0}}"}}
  stop: {set: 1}
edges:
  - {from: w, to: w, when: 'response.data.n < input.n', max: 1000000}
  - {from: w, to: stop, else: true}
output: {n: "{{w.data.n}}"}
"""
MAP = """
workflow: map
limits: {steps_max: 100000}
nodes: {m: {call: A/ADD, map: {over: "{{input.items}}", concurrency: 100}, input: {n: "{{item}}"}}}
output: {count: "{{size(m.data)}}"}
"""
ASK = 'workflow: ask\nnodes: {q: {ask: "?"}}'


def team() -> list[Agent]:
    """Return an agent with one small capability, and one that makes the same calls by hand."""
    worker, boss = Agent("A", concurrency=10_000), Agent("BOSS", concurrency=10_000)

    @worker.capability("ADD")
    async def add(n: int = 0) -> dict:
        return {"n": n + 1}

    @boss.capability("SEQUENCE")
    async def sequence(ctx: Context, n: int) -> dict:
        for _ in range(3):
            n = (await ctx.call("A", "ADD", {"n": n})).unwrap()["n"]
        return {"n": n}

    @boss.capability("PARALLEL")
    async def parallel(ctx: Context, n: int) -> dict:
        replies = await ctx.gather(*(ctx.call("A", "ADD", {"n": n}) for _ in range(3)))
        return {"n": sum(one.unwrap()["n"] for one in replies)}

    return [worker, boss]


async def measured(work: Callable[[], Awaitable[Any]], count: int, in_flight: int) -> float:
    """Return the CPU microseconds of one of `count` pieces of work, so many at a time."""
    left = count

    async def worker() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            await work()

    gc.collect()
    begun = time.process_time()
    await asyncio.gather(*(worker() for _ in range(in_flight)))
    return (time.process_time() - begun) / count * 1e6


async def beside_hand_written(store: Path | None, count: int) -> None:
    """Print a run beside the same calls made by an agent."""
    for in_flight in (1, 64):
        async with Node(team(), store=store, lag_ms=None) as node:
            flows = node.workflows
            flows.add(SEQUENCE, PARALLEL)

            async def flow(name: str) -> None:
                reply = await flows.run(name, {"n": 1}, user_id="u")  # noqa: B023
                assert reply.ok

            async def hand(name: str) -> None:
                reply = await node.call("BOSS", name, {"n": 1}, user_id="u")
                assert reply.ok

            for name in ("sequence", "parallel"):
                works = {"by hand": lambda name=name: hand(name.upper()), "workflow": lambda name=name: flow(name)}
                for work in works.values():
                    await measured(work, count // 4, in_flight)
                rounds = [[await measured(work, count, in_flight) for work in works.values()] for _ in range(3)]
                by_hand, run = (min(one) for one in zip(*rounds, strict=True))
                where = "store" if store else "memory"
                ratio = f"{run / by_hand:.2f}×"
                print(
                    f"{name:9} {where:6} {in_flight:3} in flight   by hand {by_hand:6.0f} µs   workflow {run:6.0f} µs   {ratio}"
                )


async def long_loop(store: Path | None, sizes: tuple[int, ...]) -> list[tuple[int, float]]:
    """Print what one step of a long loop costs, and what the store grows by; return the former by the number of steps."""
    found = []
    for size in sizes:
        async with Node(team(), store=store, lag_ms=None) as node:
            flows = node.workflows
            flows.add(LOOP)
            await flows.run("loop", {"n": 200}, user_id="u")
            before = 0 if store is None else _bytes(store)
            gc.collect()
            begun = time.process_time()
            reply = await flows.run("loop", {"n": size}, user_id="u")
            spent = (time.process_time() - begun) / size * 1e6
            assert reply.data == {"n": size}
            grown = 0 if store is None else (_bytes(store) - before) / size
        where = "store" if store else "memory"
        more = f"   store grows by {grown:5.0f} bytes a step" if store else ""
        rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"loop of {size:6} steps in {where:6}: {spent:6.1f} µs a step{more}   (peak memory {rss:.0f} MB)")
        found.append((size, spent))
    return found


def drawn(curves: dict[str, list[tuple[int, float]]]) -> str:
    """Return what a step costs, over the number of steps, as a picture."""
    left, top, width, height = 70, 60, 560, 240
    most = max(size for curve in curves.values() for size, _ in curve)
    highest = 50 * (int(max(spent for curve in curves.values() for _, spent in curve) / 50) + 1)
    parts = [f'<rect width="{left + width + 30}" height="{top + height + 50}" fill="#ffffff"/>']
    parts.append(f'<text x="{left}" y="20" font-weight="bold">CPU time of one step of a loop, by the length of the loop</text>')
    for spent in range(0, highest + 1, 50):
        y = top + height * (1 - spent / highest)
        parts.append(f'<line x1="{left}" y1="{y:.0f}" x2="{left + width}" y2="{y:.0f}" stroke="#dddddd"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.0f}" text-anchor="end">{spent} µs</text>')
    for number, (name, curve) in enumerate(curves.items()):
        color = ("#1f6feb", "#b35900")[number % 2]
        places = [(left + width * size / most, top + height * (1 - spent / highest)) for size, spent in curve]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline fill="none" stroke="{color}" stroke-width="2" points="{points}"/>')
        label = f"{name}, {curve[-1][1]:.0f} µs a step at the end"
        parts.append(f'<text x="{left + 260 * number}" y="42" fill="{color}">{label}</text>')
    for size, _ in next(iter(curves.values())):
        x = left + width * size / most
        parts.append(f'<text x="{x:.0f}" y="{top + height + 18}" text-anchor="middle">{size:,}</text>')
    parts.append(f'<text x="{left + width / 2:.0f}" y="{top + height + 38}" text-anchor="middle">steps</text>')
    size = f'viewBox="0 0 {left + width + 30} {top + height + 50}" font-family="sans-serif" font-size="12"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n' + "\n".join(parts) + "\n</svg>\n"


async def wide_map(store: Path | None, sizes: tuple[int, ...]) -> None:
    """Print what one item of a wide map costs."""
    for size in sizes:
        async with Node(team(), store=store, lag_ms=None) as node:
            flows = node.workflows
            flows.add(MAP)
            await flows.run("map", {"items": [1] * 50}, user_id="u")
            gc.collect()
            begun = time.process_time()
            reply = await flows.run("map", {"items": list(range(size))}, user_id="u")
            spent = (time.process_time() - begun) / size * 1e6
            assert reply.data == {"count": size}, reply
        print(f"map of {size:6} items in {'store' if store else 'memory':6}: {spent:6.1f} µs an item")


async def reopened(folder: Path, size: int) -> None:
    """Print how long a node takes to go on with a run of many steps."""
    store = folder / "reopened.db"
    text = LOOP.replace("stop: {set: 1}", 'stop: {ask: "go on?"}')
    async with Node(team(), store=store, lag_ms=None) as node:
        node.workflows.add(text)
        handle = await node.workflows.start("loop", {"n": size}, user_id="u")
        while node.workflows.get(handle.run_id).status != "waiting":  # noqa: ASYNC110  leaving memory is no event
            await asyncio.sleep(0.05)
    async with Node(team(), store=store, lag_ms=None) as node:
        record = node.workflows.get(handle.run_id)
        begun, wall = time.process_time(), time.perf_counter()
        await node.workflows.answer(handle.run_id, record.questions[0].question_id, "yes")
        reply = await node.workflows.result(handle.run_id)
        spent, passed = time.process_time() - begun, time.perf_counter() - wall
        assert reply.data == {"n": size}
    print(f"run of {size} steps reopened and ended: {spent:.2f} s CPU, {passed:.2f} s")


async def waiting(folder: Path, count: int) -> None:
    """Print what runs that wait for a person cost: rows, memory, and the opening of a store that is full of them."""
    store = folder / "waiting.db"
    async with Node(team(), store=store, lag_ms=None) as node:
        node.workflows.add(ASK)
        await node.workflows.start("ask", user_id="u")
        await asyncio.sleep(0.05)
        before, memory = _bytes(store), _rss()
        for begin in range(0, count, 100):
            await asyncio.gather(*(node.workflows.start("ask", user_id="u") for _ in range(min(100, count - begin))))
        await asyncio.sleep(0.1)
        live = len(node.workflows._runs)  # noqa: SLF001
        print(
            f"{count} waiting runs: {(_bytes(store) - before) / count:.0f} bytes each in the store, "
            f"{(_rss() - memory) / count:.0f} bytes each of memory, {live} in memory"
        )
    begun = time.process_time()
    async with Node(team(), store=store, lag_ms=None) as node:
        print(f"store with {count} waiting runs opened: {time.process_time() - begun:.2f} s CPU")
        assert len(node.workflows._parked) == count + 1  # noqa: SLF001


def _rss() -> int:
    with Path("/proc/self/statm").open() as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _bytes(store: Path) -> int:
    return sum(one.stat().st_size for one in store.parent.glob(f"{store.name}*") if "spans" not in one.name)


async def main() -> None:
    """Print every table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--svg", type=Path, default=None)
    options = parser.parse_args()
    count = 200 if options.quick else 1_000
    steps = (1_000,) if options.quick else (1_000, 10_000)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sizes = (1_000, 2_500, 5_000, 7_500, 10_000) if options.svg else steps
        curves: dict[str, list[tuple[int, float]]] = {}

        async def loop(name: str, store: Path | None) -> None:
            curves[name] = await long_loop(store, sizes)

        tables: dict[str, Callable[[], Awaitable[None]]] = {
            "hand": lambda: beside_hand_written(None, count),
            "hand-store": lambda: beside_hand_written(folder / "hand.db", count),
            "loop": lambda: loop("in memory", None),
            "loop-store": lambda: loop("with the store", folder / "loop.db"),
            "map": lambda: wide_map(None, steps),
            "reopen": lambda: reopened(folder, steps[-1]),
            "waiting": lambda: waiting(folder, steps[-1]),
        }
        for title, table in tables.items():
            if not options.only or title in options.only.split(","):
                await table()
        if options.svg:
            options.svg.write_text(drawn(curves))


if __name__ == "__main__":
    assert load(SEQUENCE)
    sys.exit(asyncio.run(main()))
