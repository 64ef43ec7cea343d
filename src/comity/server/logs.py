"""Structured logs: one JSON object a line, with the trace and the request it belongs to; never a body, a query or a token."""

from __future__ import annotations

import logging
import time

import msgspec

from comity.core.tracing.trace_context import read
from comity.server.web import Scope

log = logging.getLogger("comity.server")
_encode = msgspec.json.Encoder().encode


class JsonLines(logging.Formatter):
    """Writes each record as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as a line."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"
        told = {"at": at, "level": record.levelname.lower(), "logger": record.name, "message": record.getMessage()}
        told |= getattr(record, "facts", {})
        if record.exc_info:
            told["traceback"] = self.formatException(record.exc_info)
        return _encode(told).decode()


def note_request(scope: Scope, route: str, status: int, took_ms: float) -> None:
    """Log one answered request."""
    facts = {"method": scope["method"], "route": route, "status": status, "took_ms": round(took_ms, 2)}
    heads = scope.get("comity.heads")
    if heads is not None and (context := read([one.decode("latin-1") for one in heads.traceparent])) is not None:
        facts["trace_id"] = context.trace_id
    if request_id := scope.get("comity.request_id"):
        facts["request_id"] = request_id
    log.info("%s %s %d", scope["method"], route, status, extra={"facts": facts})
