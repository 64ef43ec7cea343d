"""What recording costs on the call path, and what a dead collector changes.

    python bench/tracing.py [--rounds N] [--calls N]

Wanted: at most 6 µs of CPU on the call path per span; with a dead collector a call's latency within 5 % of that without one,
and nothing lost below the queue. Nodes differ in telemetry alone and take turns; the ratio of each round is taken within the
round, and the median of the ratios is printed. Stores are in files in memory where there are some, so that no disk is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import socket
import statistics
import tempfile
import threading
import time
from pathlib import Path

from governed import INPUTS, RESULT, Lap, analyst
from msgspec import Raw

from comity import Limits, Node, Reply, Request
from comity.core.tracing.telemetry import CallEnd, Settings
from comity.engines.clock import SystemClock, SystemIds
from comity.node.tracing import open_recorder

SPANS = 20_000


async def recording_us(folder: Path) -> dict[str, tuple[float, float]]:
    """CPU of the calling thread, and of the whole process, per span recorded."""
    request = Request(
        "0193a1e1-be86-7bb9-8e9f-e93a565daf8d", "ANL", "ANL_NPV", "user-456", Limits(), 1, source="CST", chain=("CST",),
        root_id="0193a1e1-be86-7bb9-8e9f-e93a565daf8d", session_id="sess-789", trace_id="0193a1e1be867bb98e9fe93a565daf8d",
        span_id="8e9fe93a565daf8d", parent_span_id="9e9fe93a565daf8d", body=Raw(json.dumps(INPUTS).encode()),
    )  # fmt: skip
    reply = Reply.success(RESULT)
    found = {}
    for name, store in (("in memory", None), ("with a store", folder / "recording.db")):
        recorder = open_recorder(Settings(), SystemClock(), SystemIds(), asyncio.get_running_loop(), store)
        gc.collect()
        thread, process = time.thread_time(), time.process_time()
        for _ in range(SPANS):
            recorder.ended(CallEnd(request, reply, 1_794_788_722_249_372_360, 1_794_788_722_249_472_360, None))
        await recorder.flush()
        found[name] = ((time.thread_time() - thread) / SPANS * 1e6, (time.process_time() - process) / SPANS * 1e6)
        await recorder.close()
    return found


@contextlib.contextmanager
def black_hole():
    """A collector that accepts connections and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(64)
        taken, is_over = [], threading.Event()

        def accept() -> None:
            server.settimeout(0.2)
            while not is_over.is_set():
                with contextlib.suppress(OSError):
                    taken.append(server.accept()[0])

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/v1/traces"
        is_over.set()
        thread.join()
        for connection in taken:
            connection.close()


async def measure(rounds: int, calls: int, folder: Path | None) -> dict[str, list[tuple[Lap, Lap]]]:
    """Take turns between nodes that record into stores in the folder, or in memory if there is none."""
    laps: dict[str, list[tuple[Lap, Lap]]] = {}
    with black_hole() as hole:
        room = (rounds + 1) * calls * 2  # for every span: none may be lost
        kinds = {
            "no recording": Settings(is_disabled=True),
            "recorded": Settings(),
            "collector refuses connections": Settings(endpoint="http://127.0.0.1:9/v1/traces", timeout_ms=100, queue_max=room),
            "collector never answers": Settings(endpoint=hole, timeout_ms=1_000, queue_max=room),
        }
        async with contextlib.AsyncExitStack() as stack:
            nodes = {
                name: await stack.enter_async_context(
                    Node([analyst], store=folder and folder / f"{number}.db", telemetry=settings, lag_ms=None)
                )
                for number, (name, settings) in enumerate(kinds.items())
            }

            def governed(node: Node):
                async def call() -> None:
                    reply = await node.call("ANL", "ANL_NPV", INPUTS, user_id="user-456", session_id="sess-789")
                    assert reply.ok

                return call

            for node in nodes.values():
                await Lap().run(governed(node), 640, 64)
            for _ in range(rounds):
                for name, node in nodes.items():
                    alone = await Lap().run(governed(node), calls, 1)
                    laps.setdefault(name, []).append((alone, await Lap().run(governed(node), calls, 64)))
            for name, node in nodes.items():
                if (stats := node.export).waiting:
                    print(f"{name}: {stats.waiting:,} spans waiting in a queue of {room:,}, {stats.dropped:,} dropped")
    return laps


def report(laps: dict[str, list[tuple[Lap, Lap]]]) -> None:
    print(
        f"{'':<32}{'p50 µs, 1':>10}{'× recorded':>12}{'p50 µs, 64':>12}{'× recorded':>12}{'CPU µs, 64':>12}{'× recorded':>12}"
    )
    base = laps["recorded"]
    for name, runs in laps.items():
        cells = []
        for which, read in (
            (0, lambda lap: lap.percentile_us(0.5)),
            (1, lambda lap: lap.percentile_us(0.5)),
            (1, lambda lap: lap.cpu_us),
        ):
            values = [read(run[which]) for run in runs]
            ratios = [value / read(one[which]) for value, one in zip(values, base, strict=True)]
            cells.append(f"{statistics.median(values):>10,.1f}{statistics.median(ratios):>12.3f}")
        print(f"{name:<32}{'  '.join(cells)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--calls", type=int, default=1280)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:  # noqa: S108
        for where, (thread_us, process_us) in asyncio.run(recording_us(Path(name))).items():
            print(f"one span {where}: {thread_us:.2f} µs of CPU on the call path, {process_us:.2f} µs in all threads")
        for where, folder in (("with a store", Path(name)), ("in memory", None)):
            print(f"\nnodes {where}")
            report(asyncio.run(measure(options.rounds, options.calls, folder)))


if __name__ == "__main__":
    main()
