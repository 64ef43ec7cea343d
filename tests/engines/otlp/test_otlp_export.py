"""Spans leave for a collector, wait for one that is away, and are counted when they are lost."""

import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from msgspec.structs import replace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from comity.core.tracing.otlp import CONTENT_TYPE, encode_partial
from comity.core.tracing.span import Link, Span, decode_spans
from comity.core.tracing.telemetry import Settings
from comity.engines.otlp.export import SPLITS_MAX, OtlpExporter
from comity.engines.otlp.receive import SpanServer
from comity.engines.sqlite.spans.store import SpanStore

WAIT_S = 5


def spans(count, first=0):
    return [Span(trace_id="1" * 32, span_id=f"{number + 1:016x}", name="a") for number in range(first, first + count)]


class Collector:
    """Answers as it is told, one status for each request and the last one for all later ones, and keeps what it took."""

    def __init__(self, *statuses, body=b"", headers=()):
        collector = self
        self.requests = []
        self.came = threading.Condition()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                content = self.rfile.read(int(self.headers["Content-Length"]))
                with collector.came:
                    status = statuses[min(len(collector.requests), len(statuses) - 1)]
                    collector.requests.append((self.path, dict(self.headers), content, status))
                    collector.came.notify_all()
                self.send_response(status)
                self.send_header("Content-Type", CONTENT_TYPE)
                self.send_header("Content-Length", str(len(body)))
                for name, value in headers:
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def settings(self):
        return Settings(endpoint=f"http://127.0.0.1:{self.server.server_port}/v1/traces", timeout_ms=2_000)

    def wait_for(self, count):
        with self.came:
            assert self.came.wait_for(lambda: len(self.requests) >= count, WAIT_S)

    def taken(self):
        """The ids of the spans it answered 200 to, as the official classes read them."""
        found = []
        for _, _, content, status in self.requests:
            if status == 200:
                request = ExportTraceServiceRequest.FromString(content)
                found += [span.span_id.hex() for group in request.resource_spans for s in group.scope_spans for span in s.spans]
        return found

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def collector(request):
    made = []

    def make(*statuses, **more):
        made.append(Collector(*(statuses or (200,)), **more))
        return made[-1]

    yield make
    for one in made:
        one.close()


def ids(some):
    return [span.span_id for span in some]


def test_every_span_reaches_the_collector_in_order_and_in_batches(collector):
    there = collector()
    exporter = OtlpExporter(replace(there.settings, batch_max=10, headers=(("authorization", "Bearer x"),)))
    exporter.offer(spans(25))
    exporter.close()
    assert there.taken() == ids(spans(25))
    assert len(there.requests) == 3
    path, headers, _, _ = there.requests[0]
    assert (path, headers["authorization"], headers["Content-Type"]) == ("/v1/traces", "Bearer x", CONTENT_TYPE)
    assert exporter.stats.exported == 25


@pytest.mark.parametrize("is_gzipped", [False, True])
@pytest.mark.parametrize("protocol", ["http/protobuf", "http/json"])
def test_what_is_exported_to_our_own_store_is_the_same_there(tmp_path, protocol, is_gzipped):
    with SpanStore(tmp_path / "spans.db") as store, SpanServer(store, port=0) as server:
        settings = Settings(endpoint=f"{server.endpoint}/v1/traces", protocol=protocol, is_gzipped=is_gzipped)
        exporter = OtlpExporter(settings)
        exporter.offer(spans(3))
        exporter.close()
        assert store.trace("1" * 32) == spans(3)


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_collector_that_is_busy_gets_the_same_batch_again(collector, status):
    there = collector(status, status, 200)
    exporter = OtlpExporter(there.settings, retry_s=0.01)
    exporter.offer(spans(2))
    there.wait_for(3)
    exporter.close()
    assert there.taken() == ids(spans(2))
    assert (exporter.stats.exported, exporter.stats.dropped, exporter.stats.failures) == (2, 0, 0)


def test_a_collector_that_refuses_is_not_asked_again_and_the_refused_are_counted(collector):
    there = collector(401, 200)
    exporter = OtlpExporter(replace(there.settings, batch_max=2))
    exporter.offer(spans(3))
    exporter.close()
    assert there.taken() == ids(spans(1, first=2))
    assert (exporter.stats.exported, exporter.stats.refused) == (1, 2)
    assert "401" in exporter.stats.last_error
    assert (exporter.take_losses(), exporter.take_losses()) == (2, 0)


def test_what_a_collector_takes_only_in_part_is_counted(collector):
    there = collector(200, body=encode_partial(2, "too old"))
    exporter = OtlpExporter(there.settings)
    exporter.offer(spans(5))
    exporter.close()
    assert (exporter.stats.exported, exporter.stats.refused) == (3, 2)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_up_to_the_queue_nothing_is_lost_while_the_collector_is_away(tmp_path):
    port = free_port()
    settings = Settings(endpoint=f"http://127.0.0.1:{port}/v1/traces", queue_max=100, batch_max=10)
    exporter = OtlpExporter(settings, retry_s=0.01)
    for first in range(0, 100, 25):
        exporter.offer(spans(25, first))
    assert (exporter.stats.waiting, exporter.stats.dropped) == (100, 0)
    with SpanStore(tmp_path / "spans.db") as store, SpanServer(store, port=port):
        exporter.close()
        assert ids(store.trace("1" * 32)) == ids(spans(100))
    assert (exporter.stats.exported, exporter.stats.dropped) == (100, 0)


def test_beyond_the_queue_the_newest_are_dropped_and_counted():
    exporter = OtlpExporter(Settings(endpoint=f"http://127.0.0.1:{free_port()}", queue_max=10, timeout_ms=1), retry_s=30)
    exporter.offer(spans(8))
    exporter.offer(spans(5, first=8))
    assert (exporter.stats.waiting, exporter.stats.dropped) == (10, 3)
    exporter.close()
    assert (exporter.stats.waiting, exporter.stats.dropped) == (0, 13)
    assert exporter.take_losses() == 13


def test_a_span_that_cannot_be_encoded_is_counted_and_the_next_batch_goes_on(collector):
    there = collector()
    exporter = OtlpExporter(replace(there.settings, batch_max=1))
    exporter.offer([Span(trace_id="1" * 32, span_id="1" * 16, name="half \ud800"), *spans(1)])
    exporter.close()
    assert there.taken() == ids(spans(1))
    assert exporter.stats.refused == 1


@pytest.mark.parametrize("protocol", ["http/protobuf", "http/json"])
@pytest.mark.parametrize(
    "bad",
    [
        {"links": (Link(trace_id="trace-xyz", span_id="1"),)},
        {"links": (Link(trace_id="ab", span_id="cd"),)},
        {"parent_id": "12"},
        {"trace_id": "0" * 32},
        {"name": "half \ud800"},
        {"attributes": {"n": 2**70}, "start_ns": -1},
    ],
)
def test_one_bad_span_costs_no_other_and_the_log_says_what_is_wrong_with_it(collector, caplog, protocol, bad):
    there = collector()
    exporter = OtlpExporter(replace(there.settings, protocol=protocol))
    good = spans(5)
    exporter.offer([*good[:2], Span(**{"trace_id": "1" * 32, "span_id": "9" * 16} | bad), *good[2:]])
    exporter.close()
    stats = exporter.stats
    assert (stats.exported, stats.refused, stats.unsound) == (5, 1, 1)
    (told,) = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert "cannot be encoded" in told
    assert "refused by" not in told


def test_a_batch_that_a_collector_cannot_read_is_sent_in_halves_so_that_one_span_is_lost(collector):
    there = collector(400, 200, 400, 400, 200)
    exporter = OtlpExporter(there.settings)
    exporter.offer(spans(4))
    exporter.close()
    assert there.taken() == ids([*spans(2), *spans(1, first=3)])
    assert (exporter.stats.exported, exporter.stats.refused, exporter.take_losses()) == (3, 1, 1)


def test_a_collector_that_refuses_everything_is_not_flooded(collector):
    there = collector(400)
    exporter = OtlpExporter(there.settings)
    exporter.offer(spans(400))
    exporter.close()
    assert (exporter.stats.exported, exporter.stats.refused) == (0, 400)
    assert len(there.requests) <= 2 * SPLITS_MAX + 1


def test_flushing_waits_for_the_collector_and_says_whether_it_came(collector):
    there = collector(503, 200)
    exporter = OtlpExporter(there.settings, retry_s=0.01)
    exporter.offer(spans(2))
    assert exporter.flush(WAIT_S)
    assert there.taken() == ids(spans(2))
    exporter.close()
    away = OtlpExporter(Settings(endpoint=f"http://127.0.0.1:{free_port()}", timeout_ms=1), retry_s=30)
    away.offer(spans(1))
    assert not away.flush(0.01)
    away.close()


def test_json_is_what_the_json_decoder_reads(collector):
    import json

    there = collector()
    exporter = OtlpExporter(replace(there.settings, protocol="http/json"))
    exporter.offer(spans(2))
    exporter.close()
    (_, headers, content, _) = there.requests[0]
    assert headers["Content-Type"] == "application/json"
    assert decode_spans(json.loads(content)) == spans(2)
