"""A store that grows old: commands on a store of a million calls, and a node under steady load with a retention.

`--calls` fills a store through the journal's own writer and times opening it and the commands on it, each as a process.
`--load` calls a durable node so many times while its retention keeps `--keep` of each kind, and samples memory and disk: both
must level off. Prints both as text plots; `--csv` writes the samples, `--svg` draws them.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from fill import INPUTS, RESULT, fill

from comity import Agent, Context, Keep, Node, Retention

COMMANDS = (["calls"], ["show", "last"], ["sessions", "list"], ["doctor"], ["audit", "verify"])
LANES = 64
SAMPLES = 60
PLOT_ROWS = 10
CURVES = (("rss_mib", "memory", "#d62728"), ("disk_mib", "disk", "#1f77b4"))
# Of the drawing: where the curves are, and how far apart its lines may be.
LEFT, TOP, WIDTH, HEIGHT = 70, 56, 640, 240
STEPS = [digit * 10**power for power in range(7) for digit in (1, 2, 5)]

analyst = Agent("ANL", description="Financial analysis")


@analyst.capability("ANL_NPV", timeout_ms=15_000)
async def npv(ctx: Context, cash_flows: list[float], discount_rate: float, periods: str) -> dict:
    return RESULT


class Sample(NamedTuple):
    calls: int
    rss_mib: float
    disk_mib: float
    seconds: float


def commands(store: Path, calls: int) -> None:
    took = asyncio.run(fill(store, calls))
    size = sum(path.stat().st_size for path in store.parent.glob(f"{store.name}*")) / 2**20
    print(f"{calls:,} calls written in {took:,.0f} s, {size:,.0f} MiB")
    print(f"{'open a node':<16}{asyncio.run(opening(store)):>8.3f} s")
    for command in COMMANDS:
        best = min(timed([sys.executable, "-m", "comity", *command, "--store", str(store)]) for _ in range(5))
        print(f"{' '.join(command):<16}{best:>8.3f} s")


def timed(command: list[str]) -> float:
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


async def opening(store: Path) -> float:
    begin = time.perf_counter()
    async with Node([analyst], store=store):
        return time.perf_counter() - begin


async def load(store: Path, calls: int, keep: int) -> list[Sample]:
    bound = Keep(count=keep)
    retention = Retention(calls=bound, replies=bound, sessions=bound, handoffs=bound, spans=bound, audit=bound)
    samples: list[Sample] = []
    inputs = json.loads(bytes(INPUTS))
    begin = time.perf_counter()
    async with Node([analyst], store=store, retention=retention) as node:
        done = 0
        for until in range(calls // SAMPLES, calls + 1, calls // SAMPLES):

            async def lane(share: int, first: int) -> None:
                for number in range(first, first + share):
                    reply = await node.call("ANL", "ANL_NPV", inputs, user_id="u", session_id=f"s{number // 20}")
                    assert reply.ok

            share = (until - done) // LANES + 1
            await asyncio.gather(*(lane(share, done + share * number) for number in range(LANES)))
            done += share * LANES
            samples.append(Sample(done, rss_mib(), disk_mib(store), time.perf_counter() - begin))
            print(
                f"\r{done:,} calls, {samples[-1].rss_mib:,.0f} MiB memory, {samples[-1].disk_mib:,.0f} MiB disk",
                end="",
                flush=True,
            )
        print()
        assert node.audit.verify().ok
    return samples


def rss_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def disk_mib(store: Path) -> float:
    return sum(path.stat().st_size for path in store.parent.glob(f"{store.name}*")) / 2**20


def plot(title: str, values: list[float]) -> str:
    top = max(values) * 1.1
    rows = (
        "|" + "".join("#" if value / top * PLOT_ROWS >= row - 0.5 else " " for value in values)
        for row in range(PLOT_ROWS, 0, -1)
    )
    return "\n".join([f"{title}, top {top:,.0f} MiB", *rows, "+" + "-" * len(values)])


def halves(samples: list[Sample]) -> str:
    """Say how much there was at most in the first half and in the second: what levels off has no more in the second."""
    middle = len(samples) // 2
    told = []
    for name, title, _ in CURVES:
        first, second = (max(getattr(one, name) for one in half) for half in (samples[:middle], samples[middle:]))
        told.append(f"{title} at most {first:,.0f} MiB in the first half, {second:,.0f} MiB in the second")
    return "\n".join(told)


def svg(samples: list[Sample], keep: int) -> str:
    """Draw memory and disk over the number of calls."""
    last = samples[-1].calls
    highest = max(getattr(one, name) for one in samples for name, *_ in CURVES)
    step = next(one for one in STEPS if one * 5 >= highest)
    top = step * (int(highest / step) + 1)

    def at(calls: float, mib: float) -> tuple[float, float]:
        return LEFT + calls / last * WIDTH, TOP + (1 - mib / top) * HEIGHT

    drawn = [f'<rect width="{LEFT + WIDTH + 30}" height="{TOP + HEIGHT + 40}" fill="#ffffff"/>']
    rate = last / samples[-1].seconds
    title = f"A node that keeps {keep:,} of each kind, called as fast as it answers ({rate:,.0f} calls a second)"
    drawn.append(f'<text x="{LEFT}" y="20" font-weight="bold">{title}</text>')
    for mib in range(0, top + 1, step):
        x, y = at(0, mib)
        drawn.append(f'<line x1="{x:.0f}" y1="{y:.0f}" x2="{x + WIDTH:.0f}" y2="{y:.0f}" stroke="#dddddd"/>')
        drawn.append(f'<text x="{x - 6:.0f}" y="{y + 4:.0f}" text-anchor="end">{mib:,} MiB</text>')
    for part in range(6):
        x, y = at(last * part / 5, 0)
        drawn.append(f'<text x="{x:.0f}" y="{y + 18:.0f}" text-anchor="middle">{last * part / 5:,.0f}</text>')
    drawn.append(f'<text x="{LEFT + WIDTH / 2:.0f}" y="{TOP + HEIGHT + 34}" text-anchor="middle">calls</text>')
    for number, (name, what, color) in enumerate(CURVES):
        places = (at(one.calls, getattr(one, name)) for one in samples)
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        drawn.append(f'<polyline fill="none" stroke="{color}" stroke-width="2" points="{points}"/>')
        label = f"{what}, {getattr(samples[-1], name):,.0f} MiB at the end"
        drawn.append(f'<text x="{LEFT + 200 * number}" y="40" fill="{color}">{label}</text>')
    size = f'viewBox="0 0 {LEFT + WIDTH + 30} {TOP + HEIGHT + 40}" font-family="sans-serif" font-size="12"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n' + "\n".join(drawn) + "\n</svg>\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1_000_000, help="of the store that commands are timed on; 0 for none")
    parser.add_argument("--load", type=int, default=1_000_000, help="of the node under load; 0 for none")
    parser.add_argument("--keep", type=int, default=20_000)
    parser.add_argument("--folder", type=Path, default=None, help="on which disk; the system's temporary folder if not given")
    parser.add_argument("--csv", type=Path, default=None)
    parser.add_argument("--svg", type=Path, default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        if options.calls:
            commands(Path(folder) / "million.db", options.calls)
        if options.load:
            samples = asyncio.run(load(Path(folder) / "load.db", options.load, options.keep))
            print(plot("memory", [one.rss_mib for one in samples]))
            print(plot("disk", [one.disk_mib for one in samples]))
            print(halves(samples))
            print(f"{samples[-1].calls / samples[-1].seconds:,.0f} calls a second")
            if options.csv:
                with options.csv.open("w", newline="") as file:
                    csv.writer(file).writerows([Sample._fields, *samples])
            if options.svg:
                options.svg.write_text(svg(samples, options.keep))


if __name__ == "__main__":
    main()
