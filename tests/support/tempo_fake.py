"""A Tempo on a real socket, answering from our own engine in the shape and with the checks of the real one."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from comity.core.tracing.query import QueryError, encode_search, encode_series, query_range, search
from comity.core.tracing.query.values import parse_duration
from comity.core.tracing.span import encode_spans, group_by_trace

SECOND_NS = 10**9
# Far beyond any time in seconds: whoever sends milliseconds or nanoseconds is told so.
SECONDS_MAX = 10**11


class FakeTempo:
    """Serves spans. `failures` are statuses to answer with first; `tenant` is the one it demands."""

    def __init__(self, spans, *, failures=(), tenant=""):
        self.traces = group_by_trace(spans)
        self.failures = list(failures)
        self.tenant = tenant
        self.asked = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path, query, tenant):
        """Return status and document."""
        if self.failures:
            return self.failures.pop(0), "busy"
        if tenant != self.tenant:
            return 401, "no org id"
        if path.startswith("/api/traces/"):
            return self.trace(path.rsplit("/", 1)[1])
        start_s, end_s = int(query["start"]), int(query["end"])
        if not 0 <= start_s < end_s < SECONDS_MAX:
            return 400, "invalid start or end: they are unix seconds"
        times = {"start_ns": start_s * SECOND_NS, "end_ns": end_s * SECOND_NS}
        try:
            if path == "/api/metrics/query_range":
                step_ns = int(parse_duration(query["step"]))
                return 200, encode_series(query_range(query["q"], self.traces, step_ns=step_ns, **times))
            if not 0 < int(query["spss"]) <= 100 or int(query["limit"]) <= 0:
                return 400, "invalid limit or spss"
            found = search(query["q"], self.traces, limit=int(query["limit"]), spans_per_spanset=int(query["spss"]), **times)
            return 200, encode_search(found)
        except QueryError as error:
            return 400, f"invalid TraceQL query: parse error at line {error.line}, col {error.column}: {error.problem}"

    def trace(self, trace_id):
        if len(trace_id) != 32:
            return 400, "trace IDs must be 32 characters here"
        spans = [span for trace in self.traces for span in trace if span.trace_id == trace_id]
        return (200, {"batches": encode_spans(spans, base64_ids=True)["resourceSpans"]}) if spans else (404, "")


def handler(tempo):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            address = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(address.query).items()}
            tempo.asked.append((address.path, query))
            status, document = tempo.answer(address.path, query, self.headers.get("X-Scope-OrgID", ""))
            body = document.encode() if isinstance(document, str) else json.dumps(document).encode()
            self.send_response(status)
            if status == 429:
                self.send_header("Retry-After", "3")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    return Handler
