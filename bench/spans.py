"""What the span store costs: ingest, indexed insight queries and a full scan, against the number of spans.

    python bench/spans.py [SPANS …]        default: 10,000 30,000 100,000 300,000 1,000,000

Wanted at 1,000,000: ingest of 20,000 spans/s in batches, indexed insight queries p99 under 20 ms, a filter on an attribute
without an index under 3 s. Ingest is printed beside a bare SQLite insert of rows of the same size in the same run. With several
sizes, a plot of cost against size follows.
"""

from __future__ import annotations

import math
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from comity.core.tracing.query.builder import spans as spans_where
from comity.core.tracing.query.builder import where
from comity.core.tracing.span import Event, Kind, Span, Status
from comity.engines.sqlite.spans.store import SpanStore

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
BATCH = 5_000
QUERIES = 300
BODY_BYTES = 400
SECOND_NS = 10**9
TICKS = "▁▂▃▄▅▆▇█"
TYPES = ("decision", "recommendation", "blocker", "discovery", "analysis", "question", "risk", "progress", "lesson")
SERVICES = [
    {"service.name": f"service-{number}", "service.version": "1.4.2", "host.name": f"h{number}"} for number in range(20)
]


def make(count: int, chance: random.Random) -> Iterator[Span]:
    """Traces of eight spans: a call tree of agents, models and tools, and one insight."""
    for number in range(count):
        trace, place = divmod(number, 8)
        if place == 0:
            trace_id = f"{chance.getrandbits(128) | 1:032x}"
            resource, agent, session = chance.choice(SERVICES), f"agent-{chance.randrange(40)}", f"session-{trace % 5000}"
        start_ns = (1_700_000_000 + trace) * SECOND_NS + place * 10**6
        common = {"gen_ai.agent.id": agent, "gen_ai.conversation.id": session}
        if place == 7:
            kind = chance.choice(TYPES)
            name, attributes = f"insight.{kind}", {
                **common, "insight.type": kind, "insight.id": f"insight-{number}", "insight.summary": "what was found " * 4,
                "insight.confidence": round(chance.random(), 2), "insight.audience": chance.choice(("agent", "human", "both")),
                "project.id": f"project-{chance.randrange(50)}", "agent.id": agent, "agent.session_id": session,
            }  # fmt: skip
            events = (
                Event(name="evidence.added", time_ns=start_ns, attributes={"evidence.type": "trace", "evidence.ref": trace_id}),
            )
        else:
            name = ("invoke_agent", "chat", "execute_tool")[place % 3]
            attributes = {
                **common, "gen_ai.operation.name": name, "gen_ai.provider.name": "anthropic", "tenant": f"t{trace % 97}",
                "gen_ai.usage.input_tokens": chance.randrange(9000), "gen_ai.usage.output_tokens": chance.randrange(2000),
                "http.status_code": 500 if chance.random() < 0.0005 else 200,
            }  # fmt: skip
            events = ()
        yield Span(
            trace_id=trace_id, span_id=f"{number + 1:016x}", name=name,
            parent_id=None if place == 0 else f"{number - place + 1:016x}",
            kind=Kind.INTERNAL, start_ns=start_ns, end_ns=start_ns + chance.randrange(1, 10**9), status=Status.UNSET,
            attributes=attributes, resource=resource, events=events,
        )  # fmt: skip


def batches(count: int, chance: random.Random) -> Iterator[list[Span]]:
    batch: list[Span] = []
    for span in make(count, chance):
        batch.append(span)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def bare_inserts_per_s(folder: Path) -> float:
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, body BLOB)")
    started = time.perf_counter()
    for first in range(0, 50_000, BATCH):
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO t VALUES (?, ?)", ((first + at, bytes(BODY_BYTES)) for at in range(BATCH)))
        connection.execute("COMMIT")
    rate = 50_000 / (time.perf_counter() - started)
    connection.close()
    return rate


def insight_queries(chance: random.Random) -> Iterator[object]:
    for _ in range(QUERIES // 3):
        kind, project = chance.choice(TYPES), f"project-{chance.randrange(50)}"
        agent = f"agent-{chance.randrange(40)}"
        yield spans_where(where("span.insight.type", "=", kind), where("span.project.id", "=", project)).build()
        yield spans_where(
            where("span.insight.type", "=", kind),
            where("span.gen_ai.agent.id", "=", agent),
            where("span.insight.confidence", ">=", 0.8),
        ).build()
        yield spans_where(
            where("span.gen_ai.conversation.id", "=", f"session-{chance.randrange(5000)}"),
            where("span.insight.type", "=", kind),
        ).build()


def seconds(work) -> tuple[float, object]:
    started = time.perf_counter()
    found = work()
    return time.perf_counter() - started, found


def measure(count: int, folder: Path) -> dict[str, float]:
    chance = random.Random(7)
    with SpanStore(folder / f"{count}.db") as store:
        spent_s = cpu_s = 0.0
        for batch in batches(count, chance):
            cpu_s -= time.process_time()
            spent_s += seconds(lambda batch=batch: store.ingest(batch))[0]
            cpu_s += time.process_time()
        times_ms, cpu_ms = [], []
        for query in insight_queries(chance):
            begin = time.thread_time()
            times_ms.append(seconds(lambda query=query: store.search(query, limit=20))[0] * 1000)
            cpu_ms.append((time.thread_time() - begin) * 1000)
        times_ms.sort()
        cpu_ms.sort()
        scans = {
            "equality": "{ span.http.status_code = 500 }",
            "nothing": "{ span.http.status_code = 404 }",
            "range": "{ span.gen_ai.usage.input_tokens > 8999 && span.gen_ai.usage.output_tokens > 1999 }",
        }
        scanned = {name: seconds(lambda query=query: store.search(query, limit=0))[0] for name, query in scans.items()}
        metric_s, _ = seconds(
            lambda: store.query_range(
                '{ span.insight.type = "blocker" } | count_over_time() by (span.project.id)',
                start_ns=1_700_000_000 * SECOND_NS, end_ns=(1_700_000_000 + count // 8) * SECOND_NS, step_ns=3600 * SECOND_NS,
            )
        )  # fmt: skip
        size_mb = sum(path.stat().st_size for path in folder.glob(f"{count}.db*")) / 1e6
    bare = bare_inserts_per_s(folder)
    (folder / "bare.db").unlink()
    rate, cpu_rate = count / spent_s, count / cpu_s
    p50, p99, cpu_p99 = times_ms[len(times_ms) // 2], times_ms[int(len(times_ms) * 0.99)], cpu_ms[int(len(cpu_ms) * 0.99)]
    print(
        f"{count:>9,} spans  ingest {rate:>7,.0f}/s ({rate / bare:.2f} of bare rows; {cpu_rate:,.0f} per CPU s)  "
        f"insight query p50 {p50:6.2f} p99 {p99:6.2f} ms (CPU p99 {cpu_p99:.2f})  "
        f"scan equality {scanned['equality']:5.2f} nothing {scanned['nothing']:5.2f} range {scanned['range']:5.2f} s  "
        f"metric {metric_s:5.2f} s  {size_mb:,.0f} MB",
        flush=True,
    )
    return {
        "ingest, µs a span": 1e6 / rate,
        "insight query p50, ms": p50,
        "insight query p99, ms": p99,
        "insight query p99, CPU ms": cpu_p99,
        "scan for equality, ms": scanned["equality"] * 1000,
        "scan for a range, ms": scanned["range"] * 1000,
        "metric over all time, ms": metric_s * 1000,
        "file, MB": size_mb,
    }


def plot(found: dict[int, dict[str, float]]) -> None:
    """Print each cost against the size, a bar for every doubling above the least."""
    sizes = list(found)
    print(
        f"\n{'cost against size':<26}" + "".join(f"{size:>12,}" for size in sizes) + f"   × {sizes[-1] / sizes[0]:,.0f} spans"
    )
    for name in found[sizes[0]]:
        values = [found[size][name] for size in sizes]
        numbers = "".join(f"{value:>12,.2f}" for value in values)
        bars = " ".join(TICKS[min(int(math.log2(max(value / min(values), 1))), len(TICKS) - 1)] for value in values)
        print(f"{name:<26}{numbers}   × {values[-1] / values[0]:>6,.1f}  {bars}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        sizes = [int(text.replace(",", "")) for text in sys.argv[1:]] or SIZES
        measured = {size: measure(size, Path(name)) for size in sizes}
        if len(measured) > 1:
            plot(measured)
