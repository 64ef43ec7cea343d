"""What a call to an agent on another node costs, and what a second process on one store brings.

First table: CPU of a call on a node that is alone, of a call on a node of a cluster whose agent it holds itself, and of one
whose agent another node holds; both nodes are in one process and nothing is stored on disk, so the CPU of both sides is counted
and no I/O. Rounds are interleaved; the ratio of each round is taken within the round, and the median is printed.

Second table: durable calls per second of one process on a store, of two on one store, each calling agents of its own, and of
two with a store each, which is what the cores and the disk of the machine allow; the ratio of each round is taken within the
round. Processes on cores that others use share them: read it on a quiet machine.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from comity import Agent, Context, Node
from comity.engines.memory.engine import MemoryCluster

IN_FLIGHT = 64
INPUTS = {"cash_flows": [-100000, 25000, 35000, 45000, 55000], "discount_rate": 0.12, "periods": "annual"}
RESULT = {"npv": 17206.82, "currency": "USD", "discount_rate": 0.12, "periods": 5}


def analyst(name: str = "ANL") -> Agent:
    agent = Agent(name, description="Financial analysis")

    @agent.capability("ANL_NPV", timeout_ms=15_000)
    async def npv(ctx: Context, cash_flows: list[float], discount_rate: float, periods: str) -> dict:
        return RESULT

    return agent


async def lap(node: Node, calls: int, target: str = "ANL") -> float:
    """Return the CPU microseconds of a call."""

    async def lane() -> None:
        for _ in range(calls // IN_FLIGHT):
            reply = await node.call(target, "ANL_NPV", INPUTS, user_id="u")
            assert reply.ok, reply

    cpu = time.process_time()
    await asyncio.gather(*(lane() for _ in range(IN_FLIGHT)))
    return (time.process_time() - cpu) / calls * 1e6


async def measure_cpu(rounds: int, calls: int) -> None:
    cluster = MemoryCluster()
    async with (
        Node([analyst()]) as alone,
        Node([analyst()], engine=cluster.engine("n1")) as holder,
        Node([], engine=cluster.engine("n2")) as caller,
    ):
        nodes = {"alone": alone, "in a cluster, held here": holder, "held by another node": caller}
        for node in nodes.values():
            await lap(node, IN_FLIGHT * 4)
        laps: dict[str, list[float]] = {name: [] for name in nodes}
        for _ in range(rounds):
            for name, node in nodes.items():
                laps[name].append(await lap(node, calls))
    print(f"CPU of a call, both sides, no I/O, {IN_FLIGHT} in flight, {rounds} rounds of {calls:,}")
    for name, times in laps.items():
        ratios = [one / base for one, base in zip(times, laps["alone"], strict=True)]
        print(
            f"  {name:26} {min(times):6.1f} µs least {statistics.median(times):6.1f} median {statistics.median(ratios):5.2f} x"
        )


async def work(store: str, name: str, seconds: float) -> None:
    """Call agents of this process on a store for some seconds, between two lines of standard input."""
    async with Node([analyst(name)], store=store, lag_ms=None) as node:
        await lap(node, IN_FLIGHT, name)
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        done, end = 0, time.perf_counter() + seconds

        async def lane() -> None:
            nonlocal done
            while time.perf_counter() < end:
                await node.call(name, "ANL_NPV", INPUTS, user_id="u")
                done += 1

        cpu = time.process_time()
        await asyncio.gather(*(lane() for _ in range(IN_FLIGHT)))
        print(done / seconds, (time.process_time() - cpu) / done * 1e6, flush=True)
        await asyncio.to_thread(sys.stdin.readline)


def together(folder: Path, processes: int, stores: int, seconds: float) -> tuple[float, float]:
    """Return the calls per second of so many processes on so many stores, and the CPU of a call."""
    with contextlib.ExitStack() as ended:
        started = []
        for number in range(processes):
            store = str(folder / f"work{number % stores}.db")
            command = [sys.executable, __file__, "--work", store, f"A{number}", "--seconds", str(seconds)]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            ended.callback(process.wait)
            started.append(process)
        for process in started:
            assert process.stdout.readline() == "ready\n"
        for process in started:
            process.stdin.write("go\n")
            process.stdin.flush()
        said = [tuple(map(float, process.stdout.readline().split())) for process in started]
        for process in started:
            process.stdin.close()
    return sum(rate for rate, _ in said), statistics.mean(cpu for _, cpu in said)


def measure_processes(rounds: int, seconds: float) -> None:
    settings = {"one process": (1, 1), "two on one store": (2, 1), "two, a store each": (2, 2)}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in settings}
    for _ in range(rounds):
        for name, (processes, stores) in settings.items():
            with tempfile.TemporaryDirectory() as folder:
                found[name].append(together(Path(folder), processes, stores, seconds))
    print(f"durable calls per second, {IN_FLIGHT} in flight in each process, {rounds} rounds of {seconds:g} s")
    for name, laps in found.items():
        ratios = [rate / base for (rate, _), (base, _) in zip(laps, found["one process"], strict=True)]
        rate, cpu, cores = (statistics.median(one) for one in zip(*((r, c, r * c / 1e6) for r, c in laps), strict=True))
        best, gain = max(one for one, _ in laps), statistics.median(ratios)
        print(f"  {name:26} {best:8,.0f} /s best {rate:8,.0f} median {cpu:6.1f} µs CPU {cores:5.2f} cores {gain:5.2f} x")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--calls", type=int, default=3_200)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--work", nargs=2, metavar=("STORE", "NAME"))
    args = parser.parse_args()
    if args.work:
        store, name = args.work
        asyncio.run(work(store, name, args.seconds))
        return
    asyncio.run(measure_cpu(args.rounds, args.calls))
    measure_processes(max(args.rounds // 2, 1), args.seconds)


if __name__ == "__main__":
    main()
