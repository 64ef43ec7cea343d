"""The exporters of a process outside its nodes: one for each collector, made when needed, flushed when the program ends."""

from __future__ import annotations

import atexit
import logging
import os
import threading
from typing import TYPE_CHECKING, Final

from comity.core.tracing.telemetry import Settings

if TYPE_CHECKING:
    from comity.engines.otlp.export import OtlpExporter

log = logging.getLogger("comity")

FLUSH_S: Final = 10.0

_lock = threading.Lock()
_exporters: dict[tuple[object, ...], OtlpExporter] = {}


def exporter_for(settings: Settings) -> OtlpExporter | None:
    """Return the exporter that settings ask for, shared by all who ask for the same; None if nothing is to be sent."""
    if not settings.endpoint or settings.is_disabled:
        return None
    from comity.engines.otlp.export import OtlpExporter  # noqa: PLC0415  few programs export

    # Its thread is not in a forked process, so that one has its own.
    how = (os.getpid(), settings.endpoint, settings.protocol, settings.headers, settings.timeout_ms, settings.is_gzipped)
    with _lock:
        if how not in _exporters:
            for problem in settings.problems:
                log.warning("telemetry: %s", problem)
            _exporters[how] = OtlpExporter(settings)
            atexit.register(_exporters[how].close)
        return _exporters[how]
