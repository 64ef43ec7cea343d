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


def svg(samples: list[Sample]) -> str:
    """Draw both curves over the number of calls."""
    width, height, last = 640, 240, samples[-1].calls
    drawn = []
    for name, color in (("disk_mib", "#1f77b4"), ("rss_mib", "#d62728")):
        values = [getattr(one, name) for one in samples]
        top = max(getattr(one, which) for one in samples for which in ("disk_mib", "rss_mib")) * 1.1
        places = zip((one.calls for one in samples), values, strict=True)
        points = " ".join(f"{calls / last * width:.0f},{height - value / top * height:.0f}" for calls, value in places)
        drawn.append(f'<polyline fill="none" stroke="{color}" stroke-width="2" points="{points}"/>')
        label = f"{'disk' if name == 'disk_mib' else 'memory'}: {values[-1]:,.0f} MiB at {last:,} calls"
        drawn.append(f'<text x="8" y="{16 * (len(drawn) // 2 + 1)}" fill="{color}" font-size="12">{label}</text>')
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">\n' + "\n".join(drawn) + "\n</svg>\n"


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
            print(f"{samples[-1].calls / samples[-1].seconds:,.0f} calls a second")
            if options.csv:
                with options.csv.open("w", newline="") as file:
                    csv.writer(file).writerows([Sample._fields, *samples])
            if options.svg:
                options.svg.write_text(svg(samples))


if __name__ == "__main__":
    main()
