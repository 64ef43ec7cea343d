"""Where the spans of a node go: into the file beside its store, to a collector, or into memory."""

from __future__ import annotations

import asyncio
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from comity.core.tracing.telemetry import Recorded, Settings
from comity.engines.sqlite.spans.path import spans_path
from comity.ports import Clock, Ids
from comity.runtime.tracing.recorder import Recorder

if TYPE_CHECKING:
    from comity.engines.memory.spans import MemorySpans


def open_recorder(settings: Settings, clock: Clock, ids: Ids, loop: asyncio.AbstractEventLoop, store: Path | None) -> Recorder:
    """Return the recorder of a node's spans, for a file store or in memory."""
    file = exporter = drain = None
    if store is not None:  # first: nothing runs yet where it cannot be opened
        from comity.engines.sqlite.spans.store import SpanStore  # noqa: PLC0415  a node in memory needs none of this

        file = SpanStore(spans_path(store))
    if settings.endpoint and not settings.is_disabled:
        from comity.engines.otlp.export import OtlpExporter  # noqa: PLC0415  few nodes export

        exporter = OtlpExporter(settings)
    if file is not None:
        from comity.engines.sqlite.spans.drain import SpanDrain  # noqa: PLC0415

        drain = SpanDrain(settings, file, exporter)

    def in_memory(kept: deque[Recorded]) -> MemorySpans:
        from comity.engines.memory.spans import MemorySpans  # noqa: PLC0415  loaded on first use

        return MemorySpans(settings, kept)

    return Recorder(settings, clock, ids, loop, in_memory=in_memory, store=file, drain=drain, exporter=exporter)
