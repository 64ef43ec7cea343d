"""Fill a store with calls as nodes would have left them: through the journal's own writer, with sessions, handoffs and spans.

`python bench/fill.py STORE --calls 1000000`. Every fourth root has a call below it, every twentieth is the first of a session,
every hundredth was refused. The calls lie `--spacing-ms` apart, the last of them now.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import Raw

from comity.core.call.limits import Limits
from comity.core.envelope.envelope import Error, Reply, Request, Status
from comity.core.journal.records import Accepted, Document, Record, Refused, Saved, Settled
from comity.core.session.parts import Parts
from comity.core.session.session import Session
from comity.core.tracing.call_spans import summarize
from comity.core.tracing.telemetry import CallEnd, Ended, Origin
from comity.engines.cipher import key_for
from comity.engines.clock import SystemIds
from comity.engines.sqlite.journal import SqliteJournal
from comity.engines.sqlite.spans.path import spans_path
from comity.engines.sqlite.spans.store import SpanStore

CALLS_A_BATCH = 500
LIMITS = Limits()
INPUTS = Raw(b'{"cash_flows":[-100000,25000,35000,45000,55000],"discount_rate":0.12,"periods":"annual"}')
RESULT = {"npv": 17206.82, "currency": "USD", "discount_rate": 0.12, "periods": 5}
NODE = "fill"


class Made:
    """Calls one after the other, `spacing_ms` apart and the last of them now."""

    def __init__(self, calls: int, spacing_ms: float) -> None:
        self._ids = SystemIds()
        self._spacing_ms = spacing_ms
        self._begin_ms = time.time() * 1000 - calls * spacing_ms
        self.calls = self.roots = 0
        self._session = ""

    def _request(self, above: Request | None = None) -> Request:
        at_ms = int(self._begin_ms + self.calls * self._spacing_ms)
        self.calls += 1
        request_id, trace_id = self._ids.new_request(at_ms)
        if above is not None:
            request_id, trace_id = f"{above.request_id}.1", above.trace_id
        return Request(
            request_id,
            "ANL" if above is None else "DOC",
            "ANL_NPV" if above is None else "DOC_WRITE",
            "user-1",
            LIMITS,
            at_ms + 30_000,
            at_ms,
            source=None if above is None else "ANL",
            chain=() if above is None else ("ANL",),
            body=INPUTS,
            root_id=request_id if above is None else above.root_id,
            parent_id=None if above is None else above.request_id,
            session_id=self._session if self.roots % 20 < 10 else request_id,
            trace_id=trace_id,
            span_id=self._ids.span_id(),
            parent_span_id="" if above is None else above.span_id,
        )

    def root(self) -> Iterator[tuple[Record, CallEnd | None]]:
        """Yield the records of a further root and what is below it, each with the end of a call if it is one."""
        request = self._request()
        self.roots += 1
        if self.roots % 20 == 1:
            self._session = f"session-{request.request_id}"
            session = Session(
                id=self._session,
                tenant_id="default",
                user_id="user-1",
                created_at=request.created_at,
                used_at=request.created_at,
                original_request="What is it worth?",
            )
            yield (
                Saved(Document.SESSION, f"default\x1f{self._session}", 1, Parts().save(session)[0], used_at=session.used_at),
                None,
            )
        if self.roots % 100 == 0:
            error = Error.of("ROUTING_CYCLE_DETECTED", "no")
            reply = Reply(status=Status.REFUSED, error=error, request_id=request.request_id)
            yield Refused(request, reply, request.created_at), _end(request, reply)
            return
        yield Accepted(request, request.created_at, NODE), None
        if self.roots % 4 == 0:
            below = self._request(request)
            yield Accepted(below, below.created_at, NODE), None
            yield self._settled(below)
        yield self._settled(request)

    def _settled(self, request: Request) -> tuple[Record, CallEnd]:
        reply = Reply(status=Status.SUCCESS, data=RESULT, confidence=1.0, request_id=request.request_id, duration_ms=1.5)
        return Settled(request, reply, request.created_at + 2), _end(request, reply)


def _end(request: Request, reply: Reply) -> CallEnd:
    return CallEnd(request, reply, request.created_at * 1_000_000, request.created_at * 1_000_000 + 1_500_000)


async def fill(store: Path, calls: int, *, spacing_ms: float = 1.0, has_spans: bool = True) -> float:
    """Write so many calls and return how many seconds that took."""
    began = time.perf_counter()
    key_for(store)
    journal = SqliteJournal(store, NODE)
    journal.open()
    spans = SpanStore(spans_path(store)) if has_spans else None
    made = Made(calls, spacing_ms)
    origin = Origin(resource={"service.name": "fill"}) if spans is not None else None
    while made.calls < calls:
        records: list[Record] = []
        ended: list[Ended] = []
        until = min(made.calls + CALLS_A_BATCH, calls)
        while made.calls < until:
            for record, end in made.root():
                records.append(record)
                if end is not None:
                    ended.append(summarize(end))
        done = asyncio.Event()
        journal.append(records, lambda _, done=done: done.set())
        await done.wait()
        if journal.failure is not None:
            raise journal.failure
        if spans is not None and origin is not None:
            spans.post(origin, ended)
    if spans is not None:
        while spans.sort_in():
            pass
        spans.close()
    await journal.close()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--spacing-ms", type=float, default=1.0)
    parser.add_argument("--no-spans", action="store_true")
    options = parser.parse_args()
    took = asyncio.run(fill(options.store, options.calls, spacing_ms=options.spacing_ms, has_spans=not options.no_spans))
    size = sum(path.stat().st_size for path in options.store.parent.glob(f"{options.store.name}*"))
    print(f"{options.calls:,} calls in {took:,.1f} s, {options.calls / took:,.0f} a second, {size / 2**20:,.0f} MiB")


if __name__ == "__main__":
    main()
