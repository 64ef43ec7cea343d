"""Where the call path leaves what it did for tracing. Recording is one append; the rest happens in another thread.

Other parts of a node record through `record` and `span`; insights through `keep`, since they are never dropped.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from comity.core.call.limits import SPANS_KEPT_MAX
from comity.core.envelope.envelope import Request
from comity.core.tracing.call_spans import summarize
from comity.core.tracing.links import read_link
from comity.core.tracing.span import Attributes, Event, Kind, Link, Span, Status
from comity.core.tracing.telemetry import (
    PROVIDER,
    CallEnd,
    ExportStats,
    Recorded,
    Settings,
    belonging,
    named,
    plain_attributes,
    storable,
)
from comity.core.tracing.trace_context import SAMPLED, TRACEPARENT, TRACESTATE, TraceContext
from comity.errors import CallerError, UnavailableError
from comity.ports import Clock, Ids, KeptSpans, SpanDrain, SpanExporter, SpanFile
from comity.ports.ambient import parent_span, standing_at

log = logging.getLogger("comity")

# How long spans are gathered before they are handed over, and how many at most.
GATHER_S: Final = 0.2
GATHERED_MAX: Final = 1_024
_FAILED, _UNSET = Status.ERROR, Status.UNSET


_P = TypeVar("_P", Event, Link)


class OpenSpan:
    """A span under way; what is set before it ends is recorded with it."""

    __slots__ = ("attributes", "context", "error_type", "events", "links", "start_ns")

    def __init__(self, context: TraceContext, start_ns: int, attributes: dict[str, Any]) -> None:
        self.context = context
        self.start_ns = start_ns
        self.attributes = attributes
        self.error_type = ""
        self.events: list[Event] = []
        self.links: list[Link] = []

    def add_link(self, target: Any, attributes: Attributes | None = None) -> None:
        """Link to another span: an OpenTelemetry `SpanContext` or `Link`, or a mapping with `trace_id` and `span_id`.

        Raises `CallerError` for what names no span.
        """
        link = read_link(target)
        self.links.append(replace(link, attributes={**link.attributes, **plain_attributes(attributes)}))

    @property
    def headers(self) -> dict[str, str]:
        """The W3C headers for a request to another process, which then hangs its spans under this one."""
        state = {TRACESTATE: self.context.state} if self.context.state else {}
        return {TRACEPARENT: self.context.traceparent} | state


class _Told(msgspec.Struct, frozen=True):
    """What an agent says in a span of its own."""

    name: str
    attributes: dict[str, Any]
    events: tuple[Event, ...]


def _hidden(told: _Told, hide: Callable[[bytes], bytes] | None) -> _Told:
    if hide is None:
        return told
    raw = msgspec.json.encode(told)
    hidden = hide(raw)
    return told if hidden == raw else msgspec.json.decode(hidden, type=_Told)


class Recorder:
    """Takes spans from one node."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        ids: Ids,
        loop: asyncio.AbstractEventLoop,
        *,
        in_memory: Callable[[deque[Recorded]], KeptSpans],
        store: SpanFile | None = None,
        drain: SpanDrain | None = None,
        exporter: SpanExporter | None = None,
    ) -> None:
        """Record into a file through its drain, or keep the newest spans and let `in_memory` ask for them."""
        for problem in settings.problems:
            log.warning("telemetry: %s", problem)
        self.settings = settings
        self._takes_all = settings.ratio >= 1.0
        self._captures_content = settings.captures_content
        # What the call path calls with every call that has ended; None if no listener is set.
        self.ended: Callable[[CallEnd], None] | None = None
        self.new_span_id = ids.span_id
        self._clock = clock
        self._loop = loop
        self._kept: deque[Recorded] = deque(maxlen=SPANS_KEPT_MAX)  # of a node without a store
        self._gathered: list[Any] = []  # as the next in line takes them: ends summarized for a store, whole for an exporter
        self._timer: asyncio.TimerHandle | None = None
        self._in_memory, self._store, self._drain, self._exporter = in_memory, store, drain, exporter
        self._told = 0  # of the spans that are lost, by `flush`
        if not settings.is_disabled:
            self.ended = self._kept.append if self._hands_over_nothing else self._take_end

    @property
    def _hands_over_nothing(self) -> bool:
        return self._drain is None and self._exporter is None

    @property
    def has_store(self) -> bool:
        """Whether spans are in a file."""
        return self._store is not None

    @property
    def spans(self) -> KeptSpans:
        """Where spans can be asked for."""
        return self._in_memory(self._kept) if self._store is None else self._store

    def record(
        self,
        name: str,
        *,
        trace_id: str,
        parent_id: str | None,
        start_ns: int,
        end_ns: int,
        span_id: str = "",
        kind: Kind = Kind.INTERNAL,
        attributes: Attributes | None = None,
        error_type: str = "",
        events: tuple[Event, ...] = (),
        links: tuple[Link, ...] = (),
        remote: TraceContext | None = None,
    ) -> None:
        """Record a span of any other kind, its attributes under their current names."""
        if self.settings.is_disabled or not self.settings.samples(trace_id, remote):
            return
        origin = self.settings.origin
        given = plain_attributes(attributes)
        if error_type:
            given["error.type"] = storable(error_type)
        self.keep(
            Span(
                trace_id=trace_id,
                span_id=span_id or self.new_span_id(),
                parent_id=parent_id,
                name=name,
                kind=kind,
                start_ns=start_ns,
                end_ns=end_ns,
                status=_FAILED if error_type else _UNSET,
                attributes=named(given, origin.mode),
                resource=origin.resource,
                scope_name=PROVIDER,
                scope_version=origin.version,
                events=events,
                links=links,
                trace_state="" if remote is None else remote.state,
            )
        )

    @contextmanager
    def span(
        self,
        name: str,
        request: Request,
        *,
        kind: Kind = Kind.INTERNAL,
        attributes: Attributes | None = None,
        remote: TraceContext | None = None,
        hide: Callable[[bytes], bytes] | None = None,
    ) -> Iterator[OpenSpan]:
        """Record what happens inside as a span under a call's own, which is current meanwhile.

        An exception marks it failed and goes on. `hide` takes personal data out of JSON.
        """
        opened = OpenSpan(self.context(request, remote, self.new_span_id()), self._clock.now_ns(), plain_attributes(attributes))
        parent_id = parent_span(request)
        try:
            with standing_at(opened.context):
                yield opened
        except BaseException as raised:
            opened.error_type = opened.error_type or str(getattr(raised, "code", "") or type(raised).__name__)
            raise
        finally:
            told = _hidden(_Told(name, plain_attributes(opened.attributes), _sound(opened.events, Event)), hide)
            self.record(
                told.name,
                trace_id=request.trace_id,
                parent_id=parent_id,
                span_id=opened.context.span_id,
                start_ns=opened.start_ns,
                end_ns=self._clock.now_ns(),
                kind=kind,
                attributes=told.attributes | belonging(request),
                error_type=str(opened.error_type),
                events=told.events,
                links=_sound(opened.links, Link),
                remote=remote,
            )

    def ingest(self, spans: Iterable[Span]) -> int:
        """Record insights, as `keep` does; this is how an emitter sees a recorder."""
        count = 0
        for span in spans:
            self.keep(span)
            count += 1
        return count

    def keep(self, span: Span) -> None:
        """Record an insight: it is kept whatever the load and the sampling."""
        (self._kept.append if self._hands_over_nothing else self._take)(span)

    def context(self, request: Request, remote: TraceContext | None, span_id: str = "") -> TraceContext:
        """Return where a call stands in its trace, as others are told."""
        flags = SAMPLED if self.settings.samples(request.trace_id, remote) else 0
        known = 0 if remote is None else remote.flags & ~SAMPLED
        return TraceContext(request.trace_id, span_id or request.span_id, flags | known, "" if remote is None else remote.state)

    @property
    def stats(self) -> ExportStats:
        """How the export goes, and how many spans the store could not take."""
        stats = ExportStats() if self._exporter is None else self._exporter.stats
        return stats if self._drain is None else replace(stats, unstored=self._drain.dropped)

    async def flush(self) -> None:
        """Wait until everything recorded so far can be found in `spans`.

        Raises if some of it was lost since this was asked, or if the file it is in was removed or replaced.
        """
        await self.drained()
        lost = self.stats.unstored
        if lost > self._told:
            what = f"{lost - self._told:,} spans are lost: {self._drain.last_error if self._drain else ''}"
            self._told = lost
            raise UnavailableError(what.rstrip(": "), code="STORE_UNAVAILABLE", retryable=False)
        if self._store is not None:
            self._store.check()

    async def drained(self) -> None:
        """Wait until everything recorded so far is in the store, or lost."""
        self._hand_over()
        if self._drain is not None:
            done = asyncio.Event()
            self._drain.when_done(partial(self._loop.call_soon_threadsafe, done.set))
            await done.wait()

    async def close(self) -> None:
        """Store what is left and let go; what the collector has not taken within its timeout is counted as lost."""
        self._hand_over()
        if self._drain is not None:
            closed = asyncio.Event()
            self._drain.close(then=partial(self._loop.call_soon_threadsafe, closed.set))
            await closed.wait()
            self._drain.close()  # waits for the thread itself, which has nothing left to do
        elif self._exporter is not None:
            await asyncio.to_thread(self._exporter.close)
        if self._store is not None:
            self._store.close()

    def _take_end(self, end: CallEnd) -> None:
        if (end.remote is None and self._takes_all) or self.settings.samples(end.request.trace_id, end.remote):
            # What a store will need is read off at once: later, all of it would have left the processor's caches. Without
            # one the end is kept as it is anyway, and a collector that is away may never ask for more.
            self._take(end if self._store is None else summarize(end, self._captures_content))

    def _take(self, one: Recorded) -> None:
        gathered = self._gathered
        gathered.append(one)
        if len(gathered) == 1:
            self._timer = self._loop.call_later(GATHER_S, self._hand_over)
        elif len(gathered) >= GATHERED_MAX:
            self._hand_over()

    def _hand_over(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        batch, self._gathered = self._gathered, []
        if self._drain is None:
            self._kept.extend(batch)
        if batch and (then := self._drain or self._exporter) is not None:
            then.offer(batch)


def _sound(given: Iterable[Any], kind: type[_P]) -> tuple[_P, ...]:
    """Return the events or links that can be stored; an agent may have put anything there."""
    found = []
    for one in given:
        try:
            plain = replace(one, attributes=plain_attributes(one.attributes))
            fields = {name: getattr(plain, name) for name in kind.__struct_fields__}
            msgspec.msgpack.encode(fields)  # as the store will
            sound = msgspec.convert(fields, kind)
            if isinstance(sound, Link):
                read_link(sound)
            found.append(sound)
        except (msgspec.ValidationError, TypeError, ValueError, OverflowError, AttributeError, CallerError):
            log.warning("a span's %s is left out: it is none", kind.__name__.lower())
    return tuple(found)
