"""Insights and refusals as log lines in Grafana Loki, so that people find them where they read logs.

Spans stay where they are; what is pushed is one JSON line for each insight and each refused call, with its trace id. A line may
be pushed twice after a crash, never lost while the spans are kept: pushing begins at the caller's `since_ns`.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterable
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from comity.core.tracing.span import Span
from comity.core.tracing.telemetry import tenant_of
from comity.errors import CallerError, UnavailableError

PATH: Final = "/loki/api/v1/push"
QUERY: Final = '{ span.insight.type != nil || span.comity.status = "refused" }'
TIMEOUT_S: Final = 10.0
LINES_MAX: Final = 1_000  # of one request
# A span is stored when it ends, and some come late: so far back is looked again, and known spans are not pushed twice.
LATE_NS: Final = 60 * 10**9
_INSIGHT: Final = "insight."
_REFUSAL: Final = {
    "code": "error.type", "capability": "comity.capability", "source": "comity.source", "request_id": "comity.request.id",
}  # fmt: skip


class Source(Protocol):
    """Spans that can be searched."""

    def find(self, query: str, *, start_ns: int | None = None) -> list[Span]:
        """Return the spans that a query finds."""
        ...


class LokiPush:
    """Pushes what is new in a store of spans to one Loki."""

    def __init__(self, source: Source, url: str, *, tenant: str = "") -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise CallerError(f"{url!r} is not the address of a Loki, such as http://localhost:3100", field="url")
        self._source = source
        self._parts = parts
        scope = {"X-Scope-OrgID": tenant} if tenant else {}
        self._headers = {"Content-Type": "application/json"} | scope
        self._pushed: dict[str, int] = {}

    def push(self, since_ns: int) -> int:
        """Push what began at or after a moment and was not pushed yet; return how many lines. Raises `UnavailableError`."""
        spans = self._source.find(QUERY, start_ns=since_ns)
        new = sorted((one for one in spans if one.start_ns >= since_ns and one.span_id not in self._pushed), key=_start)
        for at in range(0, len(new), LINES_MAX):
            part = new[at : at + LINES_MAX]
            self._send(encode(part))
            self._pushed |= {one.span_id: one.start_ns for one in part}
        self._pushed = {name: start for name, start in self._pushed.items() if start >= since_ns}
        return len(new)

    def _send(self, body: bytes) -> None:
        made = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        connection = made(self._parts.hostname or "", self._parts.port, timeout=TIMEOUT_S)
        try:
            connection.request("POST", f"{self._parts.path.rstrip('/')}{PATH}", body, self._headers)
            answer = connection.getresponse()
            told = answer.read(1_000).decode(errors="replace")
            if answer.status >= 300:
                raise UnavailableError(f"Loki answered {answer.status}: {' '.join(told.split())[:200]}")
        except (OSError, http.client.HTTPException) as error:
            raise UnavailableError(f"Loki at {self._parts.netloc} cannot be reached: {error}") from None
        finally:
            connection.close()


def encode(spans: Iterable[Span]) -> bytes:
    """Return a push request: a stream for each kind, tenant and agent, its lines in order of time."""
    streams: dict[tuple[str, ...], list[Any]] = {}
    for span in spans:
        kind, line = _line(span)
        agent = str(span.attributes.get("gen_ai.agent.id") or span.attributes.get("agent.id") or "")
        labels = (kind, tenant_of(span.attributes), agent)
        entry = [str(span.start_ns), json.dumps(line, ensure_ascii=False), {"trace_id": span.trace_id, "span_id": span.span_id}]
        streams.setdefault(labels, []).append(entry)
    return json.dumps(
        {
            "streams": [
                {"stream": {"service_name": "comity", "kind": kind, "tenant": tenant, "agent": agent}, "values": values}
                for (kind, tenant, agent), values in streams.items()
            ]
        }
    ).encode()


def _line(span: Span) -> tuple[str, dict[str, Any]]:
    """Return the kind of a line, and what it says; of a refusal no words of users or agents."""
    told = span.attributes
    if "insight.type" in told:
        line = {name.removeprefix(_INSIGHT): value for name, value in told.items() if name.startswith(_INSIGHT)}
        return "insight", line | {"project": told.get("project.id", "")}
    names = {
        "code": "error.type",
        "capability": "comity.capability",
        "source": "comity.source",
        "request_id": "comity.request.id",
    }
    return "refusal", {name: told[key] for name, key in names.items() if key in told}


def _start(span: Span) -> int:
    return span.start_ns
