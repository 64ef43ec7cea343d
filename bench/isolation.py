"""One agent hangs for ever and gets a quarter of the traffic: what do the other agents' callers notice?

Calls arrive at a fixed rate whether or not earlier ones have ended, so that waiting shows as latency and not as fewer calls.
Rounds with and without the hanging agent alternate; ratios are taken between neighbours.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time

from comity import Agent, Node

NAMES = ("A", "B", "C", "D")


def agents(hanging: str | None) -> list[Agent]:
    made = []
    for name in NAMES:
        agent = Agent(name)

        @agent.capability("WORK")
        async def work(n: int, _hangs: bool = name == hanging) -> int:
            if _hangs:
                await asyncio.Event().wait()
            await asyncio.sleep(0.002)
            return n

        made.append(agent)
    return made


async def round_of(hanging: str | None, rate: int, seconds: float) -> tuple[float, float]:
    """Return the p99 in milliseconds and the calls per second of the agents that never hang."""
    latencies: list[float] = []
    waiting: set[asyncio.Task[None]] = set()

    async def one(node: Node, name: str, n: int) -> None:
        begin = time.perf_counter()
        reply = await node.call(name, "WORK", {"n": n}, user_id="u", timeout_ms=10_000)
        if name != "D" and reply.ok:
            latencies.append(time.perf_counter() - begin)

    async with Node(agents(hanging)) as node:
        begin = time.perf_counter()
        for n in range(int(rate * seconds)):
            task = asyncio.create_task(one(node, NAMES[n % 4], n))
            waiting.add(task)
            task.add_done_callback(waiting.discard)
            await asyncio.sleep(max(begin + (n + 1) / rate - time.perf_counter(), 0))
        took = time.perf_counter() - begin
        for task in waiting:
            task.cancel()
    latencies.sort()
    return latencies[int(0.99 * (len(latencies) - 1))] * 1000, len(latencies) / took


async def measure(rounds: int, rate: int, seconds: float) -> None:
    p99, throughput = [], []
    for _ in range(rounds):
        healthy = await round_of(None, rate, seconds)
        poisoned = await round_of("D", rate, seconds)
        p99.append(poisoned[0] / healthy[0])
        throughput.append(poisoned[1] / healthy[1])
        print(
            f"healthy p99 {healthy[0]:6.2f} ms {healthy[1]:6.0f}/s   one hanging p99 {poisoned[0]:6.2f} ms {poisoned[1]:6.0f}/s"
        )
    print(f"others' p99 × {statistics.median(p99):.2f} (at most 1.2)")
    print(f"throughput × {statistics.median(throughput):.3f} (at least 0.95)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rate", type=int, default=2000, help="calls per second over all four agents")
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    asyncio.run(measure(options.rounds, options.rate, options.seconds))


if __name__ == "__main__":
    main()
