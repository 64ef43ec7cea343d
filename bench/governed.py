"""What a fully governed call costs, against a bare queue hop measured in the same run.

Baseline: a msgspec-encoded message through an `asyncio.Queue` to another task and back, decoded on both sides. Governed: the
same message as a call with every rule on, inputs checked, two audit rows and a span recorded; with and without the durable
store. Rounds are interleaved; the ratio of each round is taken within the round, and the median of the ratios is printed.

The second table is the same with a request of 1 KB without personal data and a guardrail on every hop. The third has a new
text in every request: the quick test for personal data remembers short documents that it found clean.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from comity import Agent, Context, Guardrail, Node
from comity.core.call.guardrail import Allow

INPUTS = {"cash_flows": [-100000, 25000, 35000, 45000, 55000], "discount_rate": 0.12, "periods": "annual"}
RESULT = {"npv": 17206.82, "currency": "USD", "discount_rate": 0.12, "periods": 5}
MESSAGE = {
    "request_id": "0193-sess-789-20250118-143022-000000",
    "source": "CST",
    "target": "ANL",
    "capability": "ANL_NPV",
    "timeout_ms": 15000,
    "inputs": INPUTS,
    "context": {"session_id": "sess-789", "user_id": "user-456", "engagement_type": "business_case"},
}


class Message(msgspec.Struct):
    request_id: str
    source: str
    target: str
    capability: str
    timeout_ms: int
    inputs: dict[str, Any]
    context: dict[str, Any]


analyst = Agent("ANL", description="Financial analysis")


@analyst.capability("ANL_NPV", timeout_ms=15_000)
async def npv(ctx: Context, cash_flows: list[float], discount_rate: float, periods: str) -> dict:
    return RESULT


class Lap:
    """CPU and wall time of a number of calls, and the latency of each."""

    def __init__(self) -> None:
        self.latencies: list[float] = []
        self.cpu = self.wall = 0.0

    async def run(self, call, calls: int, lanes: int) -> Lap:
        async def lane(share: int) -> None:
            clock = time.perf_counter
            for _ in range(share):
                begin = clock()
                await call()
                self.latencies.append(clock() - begin)

        cpu, wall = time.process_time(), time.perf_counter()
        await asyncio.gather(*(lane(calls // lanes) for _ in range(lanes)))
        self.cpu, self.wall = time.process_time() - cpu, time.perf_counter() - wall
        return self

    @property
    def cpu_us(self) -> float:
        return self.cpu / len(self.latencies) * 1e6

    @property
    def rate(self) -> float:
        return len(self.latencies) / self.wall

    def percentile_us(self, share: float) -> float:
        return sorted(self.latencies)[int(share * (len(self.latencies) - 1))] * 1e6


# About 1 KB as agents write it: a brief in prose, figures, dates and ids; nothing personal.
BRIEF: dict[str, Any] = {
    "brief": (
        "Review the second phase of the market entry. The branch booked 1249.50 on 2026-03-14 under ord-20417 for pallets that "
        "arrived two weeks late, and the annual licence, version 10.4.1, was renewed at 9950.00 before the new price list came "
        "out. Compare both with the plan of last autumn, say which scenario still holds, and name what would have "
        "to be true for the aggressive one. Assume that the exchange rate stays within four percent and that no further store "
        "opens before the summer. Keep the answer to one page: first the decision, then the figures it rests on, then what is "
        "not known. Where two sources disagree, take the later one and say so. Numbers in thousands, one decimal."
    ),
    "cash_flows": [-100000, 25000, 35000, 45000, 55000],
    "discount_rate": 0.12,
    "reference": "ord-20417",
    "due": "2026-04-02",
}


SENTENCES = [
    *BRIEF["brief"].split(". "),
    "The supplier in the north delivers on Tuesdays and bills at the end of the month",
    "Two of the machines ran at 71 percent, the third stood still for maintenance",
    "Ask the warehouse whether the racks in hall 4 can carry another 1200 kg",
    "Last year we lost 3.5 points of margin to freight, so compare both carriers",
    "The report should name the three largest risks and what each would cost",
    "Our competitor opened a shop in the old harbour and cut prices by a tenth",
    "Explain the change in words that a new colleague understands without the slides",
    "If the forecast for week 32 is too high, tell me by how many units and why",
    "Group the answers by region and leave out everything below 500 pieces",
    "We agreed on a pilot with 40 users, then a decision in the steering committee",
]


def new_brief(chance: Random) -> dict[str, Any]:
    """Return a request as long as `BRIEF` that was probably not made before."""
    text = ". ".join(f"{sentence} ({chance.randrange(100, 1000)})" for sentence in chance.sample(SENTENCES, 6))
    return {**BRIEF, "brief": text, "reference": f"ord-{chance.randrange(10_000, 100_000)}"}


@analyst.capability("ANL_REVIEW", timeout_ms=15_000)
async def review(ctx: Context, brief: str, cash_flows: list[float], discount_rate: float, reference: str, due: str) -> dict:
    return RESULT


async def queue_hop(inputs):
    queue: asyncio.Queue = asyncio.Queue()
    message = {**MESSAGE, "inputs": inputs}
    encode = msgspec.json.Encoder().encode
    decode, decode_reply = msgspec.json.Decoder(Message).decode, msgspec.json.Decoder().decode
    loop = asyncio.get_running_loop()

    async def work() -> None:
        while True:
            raw, reply = await queue.get()
            decode(raw)
            reply.set_result(encode(RESULT))

    async def call() -> None:
        reply = loop.create_future()
        await queue.put((encode(message), reply))
        decode_reply(await reply)

    return call, asyncio.create_task(work())


async def measure(
    rounds: int,
    calls: int,
    capability: str,
    inputs: Callable[[], dict[str, Any]],
    guardrails: tuple[Guardrail, ...],
) -> dict[str, list[Lap]]:
    laps: dict[str, list[Lap]] = {}
    hop, worker = await queue_hop(inputs())
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "bench.db"
        async with (
            Node([analyst], guardrails=guardrails) as memory,
            Node([analyst], store=store, guardrails=guardrails) as durable,
        ):

            def governed(node: Node):
                async def call() -> None:
                    reply = await node.call("ANL", capability, inputs(), user_id="user-456", session_id="sess-789")
                    assert reply.ok

                return call

            jobs = (
                ("queue hop, 1 in flight", hop, calls, 1),
                ("queue hop, 64 in flight", hop, calls, 64),
                ("governed, 1 in flight", governed(memory), calls, 1),
                ("governed, 64 in flight", governed(memory), calls, 64),
                ("governed and durable, 1 in flight", governed(durable), calls // 20, 1),
                ("governed and durable, 64 in flight", governed(durable), calls, 64),
            )
            for _, call, _, lanes in jobs:
                await Lap().run(call, 640, lanes)  # warm up
            for _ in range(rounds):
                for name, call, count, lanes in jobs:
                    laps.setdefault(name, []).append(await Lap().run(call, count, lanes))
            assert durable.audit.verify().ok
    worker.cancel()
    return laps


def report(laps: dict[str, list[Lap]]) -> list[dict[str, Any]]:
    base = laps["queue hop, 1 in flight"]
    rows = []
    for name, runs in laps.items():
        rows.append(
            {
                "job": name,
                "cpu_us": round(statistics.median(run.cpu_us for run in runs), 1),
                "cpu_us_min": round(min(run.cpu_us for run in runs), 1),
                "x_queue_hop": round(statistics.median(run.cpu_us / b.cpu_us for run, b in zip(runs, base, strict=True)), 2),
                "calls_per_s": round(statistics.median(run.rate for run in runs)),
                "p50_us": round(statistics.median(run.percentile_us(0.50) for run in runs)),
                "p99_us": round(statistics.median(run.percentile_us(0.99) for run in runs)),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--calls", type=int, default=1280)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    passing = Guardrail(name="pass", inbound=lambda request: Allow(), outbound=lambda request, reply: Allow())
    chance = Random(1)
    texts = cycle([new_brief(chance) for _ in range(2000)])  # four times as many as are remembered
    jobs = {
        f"{len(msgspec.json.encode(INPUTS))} B of inputs": ("ANL_NPV", lambda: INPUTS, ()),
        f"{len(msgspec.json.encode(BRIEF))} B of inputs, a guardrail on every hop": ("ANL_REVIEW", lambda: BRIEF, (passing,)),
        "as long, a new text in every call": ("ANL_REVIEW", lambda: next(texts), (passing,)),
    }
    tables = {title: report(asyncio.run(measure(options.rounds, options.calls, *job))) for title, job in jobs.items()}
    if options.json:
        print(json.dumps(tables, indent=1))
        return
    for title, rows in tables.items():
        show(title, rows)


def show(title: str, rows: list[dict[str, Any]]) -> None:
    print(f"\n{title}")
    print(f"{'job':<36} {'CPU µs':>8} {'(min)':>8} {'× hop':>7} {'calls/s':>9} {'p50 µs':>8} {'p99 µs':>8}")
    for r in rows:
        print(
            f"{r['job']:<36} {r['cpu_us']:>8} {r['cpu_us_min']:>8} {r['x_queue_hop']:>7} {r['calls_per_s']:>9,}"
            f" {r['p50_us']:>8,} {r['p99_us']:>8,}"
        )


if __name__ == "__main__":
    main()
