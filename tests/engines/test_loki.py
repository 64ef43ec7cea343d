"""Insights and refusals as log lines: each is pushed once, in order, with its trace id and no words of a refused call."""

from __future__ import annotations

import http.server
import json
import threading

import pytest

from comity.contextcore.insights import InsightEmitter
from comity.core.tracing.span import Span, Status
from comity.engines.loki import LokiPush
from comity.engines.sqlite.spans.store import SpanStore
from comity.errors import CallerError, UnavailableError


@pytest.fixture
def loki():
    """A server that takes what is pushed, and refuses while `loki.refuses`."""
    taken = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if server.refuses:
                self.send_response(429)
            else:
                taken.append((self.path, self.headers.get("X-Scope-OrgID"), json.loads(body)))
                self.send_response(204)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.refuses, server.taken = False, taken
    server.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def refused(start_ns: int) -> Span:
    told = {
        "comity.status": "refused",
        "error.type": "LIMIT_DEPTH_EXCEEDED",
        "comity.capability": "NPV",
        "agent.id": "ANL",
        "secret": "no",
    }
    return Span(
        trace_id="ab" * 16, span_id=f"{start_ns:016x}", name="invoke_agent ANL", start_ns=start_ns, end_ns=start_ns, attributes=told,
        status=Status.ERROR, resource={},
    )  # fmt: skip


def test_each_insight_and_refusal_is_one_line_and_is_pushed_once(tmp_path, loki):
    with SpanStore(tmp_path / "s.spans") as store:
        InsightEmitter(store, project_id="shop", agent_id="BOSS", tenant_id="acme").emit_blocker(summary="stuck")
        store.ingest([refused(5)])
        push = LokiPush(store, loki.url, tenant="ops")
        assert (push.push(0), push.push(0)) == (2, 0)
        store.ingest([refused(6)])
        assert push.push(0) == 1
    path, tenant, document = loki.taken[0]
    assert (path, tenant) == ("/loki/api/v1/push", "ops")
    streams = {one["stream"]["kind"]: one for one in document["streams"]}
    assert streams["insight"]["stream"] == {"service_name": "comity", "kind": "insight", "tenant": "acme", "agent": "BOSS"}
    ((at, line, linked),) = streams["refusal"]["values"]
    assert (at, linked["trace_id"]) == ("5", "ab" * 16)
    assert json.loads(line) == {"code": "LIMIT_DEPTH_EXCEEDED", "capability": "NPV"}
    assert json.loads(streams["insight"]["values"][0][1])["summary"] == "stuck"


def test_what_could_not_be_pushed_is_pushed_with_the_next(tmp_path, loki):
    with SpanStore(tmp_path / "s.spans") as store:
        store.ingest([refused(5)])
        push = LokiPush(store, loki.url)
        loki.refuses = True
        with pytest.raises(UnavailableError, match="429"):
            push.push(0)
        loki.refuses = False
        assert push.push(0) == 1


def test_the_command_pushes_what_the_store_holds(tmp_path, loki, monkeypatch, capsys):
    from comity.cli.main import main

    monkeypatch.chdir(tmp_path)
    with SpanStore(tmp_path / "comity.db.spans") as store:
        InsightEmitter(store, project_id="shop", agent_id="BOSS").emit_blocker(summary="stuck")
    assert main(["spans", "loki", loki.url, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["lines"] == 1


def test_an_address_that_is_none_is_refused():
    with pytest.raises(CallerError):
        LokiPush(None, "loki:3100")
