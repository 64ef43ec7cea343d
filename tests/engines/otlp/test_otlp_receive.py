"""A standard OpenTelemetry exporter sends to the store and finds its spans there again."""

import gzip
import http.client
import json
import socket
import struct
import zlib

import pytest
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags, set_span_in_context

from comity.core.tracing.otlp import CONTENT_TYPE, encode_request
from comity.core.tracing.span import Span, encode_spans
from comity.engines.otlp import receive as otlp_receive
from comity.engines.otlp.receive import BODY_BYTES_MAX, JSON_TYPE, PATH, SpanServer, ingest
from comity.engines.sqlite.spans.store import SpanStore

SPAN = Span(trace_id="1" * 32, span_id="2" * 16, name="a", attributes={"x": 1})


@pytest.fixture
def store(tmp_path):
    with SpanStore(tmp_path / "spans.db") as opened:
        yield opened


@pytest.fixture
def server(store):
    with SpanServer(store, port=0) as running:
        yield running


def send_with_the_sdk(endpoint, compression):
    """Send a small trace with everything a span can have; return it as the SDK remembers it."""
    remembered = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource.create({"service.name": "sdk", "list": ["a", "b"]}))
    exporter = OTLPSpanExporter(endpoint=f"{endpoint}/v1/traces", compression=compression)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    provider.add_span_processor(SimpleSpanProcessor(remembered))
    tracer = provider.get_tracer("lib", "1.0", attributes={"scope": "yes"})
    elsewhere = SpanContext(7, 8, is_remote=True, trace_flags=TraceFlags(1))
    with tracer.start_as_current_span(
        "root", kind=SpanKind.SERVER, attributes={"b": True, "i": -5, "f": 0.5, "s": "é"}
    ) as root:
        root.set_attribute("many", [1, 2, 3])
        root.add_event("evidence.added", {"evidence.ref": "x"}, timestamp=1_700_000_000_000_000_123)
        root.set_status(Status(StatusCode.ERROR, "went wrong"))
        parent = set_span_in_context(root)
        with tracer.start_as_current_span("child", context=parent, links=[Link(elsewhere, {"link.relationship": "evidence"})]):
            pass
    provider.shutdown()
    return {span.name: span for span in remembered.get_finished_spans()}


@pytest.mark.parametrize("compression", [Compression.NoCompression, Compression.Gzip])
def test_what_a_standard_exporter_sends_is_read_back_the_same(store, server, compression):
    sent = send_with_the_sdk(server.endpoint, compression)
    root, child = sent["root"], sent["child"]
    found = {span.name: span for span in store.trace(f"{root.context.trace_id:032x}")}
    assert found.keys() == sent.keys()
    for name, span in sent.items():
        assert found[name].span_id == f"{span.context.span_id:016x}"
        assert (found[name].start_ns, found[name].end_ns) == (span.start_time, span.end_time)
        assert found[name].attributes == dict(span.attributes)
        assert found[name].resource == dict(span.resource.attributes)
        assert (found[name].scope_name, found[name].scope_version) == ("lib", "1.0")
        assert found[name].scope_attributes == {"scope": "yes"}
    assert found["root"].parent_id is None
    assert found["child"].parent_id == f"{root.context.span_id:016x}"
    assert (found["root"].kind, found["root"].status, found["root"].status_message) == ("server", "error", "went wrong")
    (event,) = found["root"].events
    assert (event.name, event.time_ns, event.attributes) == ("evidence.added", 1_700_000_000_000_000_123, {"evidence.ref": "x"})
    (link,) = found["child"].links
    assert (link.trace_id, link.span_id) == (f"{7:032x}", f"{8:016x}")
    assert link.attributes == dict(child.links[0].attributes)
    assert [t.trace_id for t in store.search('{ name = "root" } > { name = "child" }').traces] == [
        f"{root.context.trace_id:032x}"
    ]


def test_protobuf_and_json_are_both_taken(store):
    assert ingest(store, encode_request([SPAN]), CONTENT_TYPE).status == 200
    other = Span(trace_id="3" * 32, span_id="4" * 16)
    answer = ingest(store, json.dumps(encode_spans([other])).encode(), "application/json; charset=utf-8")
    assert (answer.status, answer.body) == (200, b"{}")
    assert store.count() == 2


def bare_deflate(body):
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


@pytest.mark.parametrize(
    ("body", "content_type", "encoding", "status"),
    [
        (b"\xff\xff", CONTENT_TYPE, "", 400),
        (b"{", JSON_TYPE, "", 400),
        (b'{"resourceSpans": 7}', JSON_TYPE, "", 400),
        (b"[" * 100_000, JSON_TYPE, "", 400),
        (b"not gzip", CONTENT_TYPE, "gzip", 400),
        (b"", CONTENT_TYPE, "br", 400),
        (b"x=1", "application/x-www-form-urlencoded", "", 415),
    ],
)
def test_what_cannot_be_read_is_refused_and_nothing_is_stored(store, body, content_type, encoding, status):
    answer = ingest(store, body, content_type, encoding=encoding)
    assert answer.status == status
    assert answer.body
    assert store.count() == 0


@pytest.mark.parametrize(
    ("pack", "encoding"),
    [(gzip.compress, "gzip"), (gzip.compress, "x-gzip"), (zlib.compress, "deflate"), (bare_deflate, "deflate"), (bytes, "")],
)
def test_a_body_is_unpacked_as_exporters_pack_it(store, pack, encoding):
    assert ingest(store, pack(encode_request([SPAN])), CONTENT_TYPE, encoding=encoding).status == 200
    assert store.count() == 1


@pytest.mark.parametrize(("pack", "encoding"), [(gzip.compress, "gzip"), (zlib.compress, "deflate")])
def test_a_body_that_breaks_off_is_refused(store, pack, encoding):
    assert ingest(store, pack(encode_request([SPAN]))[:-5], CONTENT_TYPE, encoding=encoding).status == 400


def test_a_small_body_that_unpacks_to_a_huge_one_is_refused(store):
    assert ingest(store, gzip.compress(bytes(BODY_BYTES_MAX + 1)), CONTENT_TYPE, encoding="gzip").status == 400


def test_a_store_that_cannot_write_asks_the_sender_to_come_back(store, server):
    store.close()
    status, headers, _ = post(server, encode_request([SPAN]))
    assert (status, headers["Retry-After"]) == (503, str(otlp_receive.RETRY_AFTER_S))


def post(server, body, path=PATH, **headers):
    connection = http.client.HTTPConnection(server.endpoint.removeprefix("http://"), timeout=60)
    connection.request("POST", path, body, {"Content-Type": CONTENT_TYPE} | headers)
    answer = connection.getresponse()
    found = answer.status, answer.headers, answer.read()
    connection.close()
    return found


def test_the_listener_knows_one_path_and_a_bound(server):
    assert post(server, b"", "/v1/metrics")[0] == 404
    assert post(server, b"", **{"Content-Length": str(BODY_BYTES_MAX + 1)})[0] == 413
    assert post(server, b"")[0] == 200


def test_the_listener_is_on_this_machine_only(server):
    assert server.endpoint.startswith("http://127.0.0.1:")


@pytest.mark.parametrize("bad", [{"name": "\ud800"}, {"attributes": {"x": "\ud800"}}], ids=["name", "attribute"])
def test_a_span_that_cannot_be_stored_does_not_take_the_others_along(store, bad):
    body = json.dumps(encode_spans([SPAN, Span(trace_id="1" * 32, span_id="3" * 16, **bad)])).encode()
    answer = ingest(store, body, JSON_TYPE)
    assert (answer.status, json.loads(answer.body)["partialSuccess"]["rejectedSpans"]) == (200, "1")
    assert store.find("{ }") == [SPAN]


def raw(server, head, body=b""):
    """Send bytes as they are and return the status line of the answer."""
    host, _, port = server.endpoint.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(f"POST {PATH} HTTP/1.1\r\nContent-Type: {JSON_TYPE}\r\n{head}\r\n\r\n".encode() + body)
        return connection.makefile("rb").readline().split()[1]


HERE = "Host: 127.0.0.1"


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (f"{HERE}\r\nContent-Length: {'9' * 5000}", b"413"),
        (f"{HERE}\r\nContent-Length: 00000000000000000000002", b"200"),
        (f"{HERE}\r\nContent-Length: -5", b"411"),
        (f"{HERE}\r\nContent-Length: +2", b"411"),
        (f"{HERE}\r\nContent-Length: \xb2", b"411"),
        (f"{HERE}\r\nContent-Length: 2\r\nContent-Length: 3", b"411"),
        (f"{HERE}\r\nContent-Length: 2\r\nTransfer-Encoding: chunked", b"411"),
        (f"{HERE}\r\nTransfer-Encoding: chunked", b"411"),
        (HERE, b"411"),
    ],
)
def test_a_length_that_is_none_is_refused_and_no_length_raises(server, capfd, head, status):
    assert raw(server, head, b"{}") == status
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("Host: localhost:4318", b"200"),
        ("Host: 127.8.9.1", b"200"),
        ("Host: [::1]:4318", b"200"),
        (f"{HERE}\r\nOrigin: http://localhost:3000", b"200"),
        ("Host: evil.example", b"403"),
        ("Host: 127.0.0.1.evil.example", b"403"),
        ("Host: localhost.evil.example:4318", b"403"),
        ("Host: ", b"403"),
        ("X: y", b"403"),
        (f"{HERE}\r\nHost: evil.example", b"403"),
        (f"{HERE}\r\nOrigin: http://evil.example", b"403"),
        (f"{HERE}\r\nOrigin: null", b"403"),
        (f"{HERE}\r\nOrigin: http://[", b"403"),
    ],
)
def test_a_page_of_another_site_cannot_use_the_listener_through_a_browser(server, store, capfd, head, status):
    assert raw(server, f"{head}\r\nContent-Length: 2", b"{}") == status
    assert capfd.readouterr().err == ""


def test_a_sender_that_breaks_off_leaves_no_traceback(server, capfd):
    host, _, port = server.endpoint.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closed by a reset
        connection.sendall(f"POST {PATH} HTTP/1.1\r\n{HERE}\r\nContent-Length: 100\r\n\r\n".encode())
    assert post(server, b"")[0] == 200
    assert capfd.readouterr().err == ""
