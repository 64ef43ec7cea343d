"""Taking spans from any OpenTelemetry exporter: OTLP over HTTP, protobuf or JSON, into a store.

`ingest` is the whole protocol but the socket. `SpanServer` is a small listener for one machine, on loopback, without a login:
what keeps a page of another site from using it through a browser of this machine are the names in `Host` and `Origin`.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import re
import threading
import zlib
from collections.abc import Sequence
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit

from msgspec import Struct

from comity.core.tracing.otlp import CONTENT_TYPE, decode_request, encode_partial, encode_status
from comity.core.tracing.span import Span, SpanError, decode_spans
from comity.core.tracing.telemetry import Origin
from comity.engines.sqlite.spans import inbox as span_inbox
from comity.errors import UnavailableError
from comity.ports import SpanSink

log = logging.getLogger("comity")

PATH: Final = "/v1/traces"
PORT: Final = 4318
BODY_BYTES_MAX: Final = 32 * 1024 * 1024
JSON_TYPE: Final = "application/json"
RETRY_AFTER_S: Final = 5
_DIGITS: Final = re.compile(r"0*([0-9]{1,18})|[0-9]+")
_FORMATS: Final = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


class Answer(Struct, frozen=True):
    """What is sent back."""

    status: int
    content_type: str
    body: bytes = b""


def ingest(store: SpanSink, body: bytes, content_type: str, *, encoding: str = "") -> Answer:
    """Take one export request and return the answer to it; when it is 200, the spans are stored.

    Spans that cannot be stored, or not be read again, do not take the others along: the answer says how many were rejected.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind not in (CONTENT_TYPE, JSON_TYPE):
        return Answer(415, "text/plain", f"send {CONTENT_TYPE} or {JSON_TYPE}".encode())
    try:
        plain = _plain(body, encoding.strip().lower())
        rejected, why = _store(store, decode_request(plain) if kind == CONTENT_TYPE else decode_spans(json.loads(plain)))
    except (SpanError, ValueError, RecursionError, zlib.error) as error:
        return _refused(400, kind, str(error))
    except UnavailableError as error:
        return _refused(503, kind, error.message)
    if rejected:
        return Answer(200, kind, encode_partial(rejected, why) if kind == CONTENT_TYPE else _partial(rejected, why))
    return Answer(200, kind, b"" if kind == CONTENT_TYPE else b"{}")


def _store(store: SpanSink, spans: Sequence[Span]) -> tuple[int, str]:
    """Store spans; return how many were rejected, and why the first of them."""
    try:
        store.ingest(spans)
    except SpanError:
        _, good, bad = span_inbox.sound(Origin(), (), spans)
        store.ingest(good)
        return len(bad), str(bad[0]) if bad else ""
    return 0, ""


def _partial(rejected: int, why: str) -> bytes:
    return json.dumps({"partialSuccess": {"rejectedSpans": str(rejected), "errorMessage": why}}).encode()


def _plain(body: bytes, encoding: str) -> bytes:
    if encoding in ("", "identity"):
        return body
    if encoding not in _FORMATS:
        raise SpanError("body", f"encoding {encoding!r} is not known; send {', '.join(_FORMATS)} or none")
    is_bare = encoding == "deflate" and not _is_zlib(body)  # as some senders understand the word
    unzip = zlib.decompressobj(wbits=-zlib.MAX_WBITS if is_bare else _FORMATS[encoding])
    plain = unzip.decompress(body, BODY_BYTES_MAX)
    if unzip.unconsumed_tail:
        raise SpanError("body", f"is more than {BODY_BYTES_MAX:,} bytes")
    if not unzip.eof:
        raise SpanError("body", f"breaks off before the end of its {encoding} stream")
    return plain


def _is_zlib(body: bytes) -> bool:
    """Return whether compressed bytes begin as zlib's do (RFC 1950), and not at once with the compressed data."""
    return len(body) > 1 and body[0] & 0x0F == zlib.DEFLATED and (body[0] << 8 | body[1]) % 31 == 0


def _refused(status: int, kind: str, why: str) -> Answer:
    body = encode_status(why) if kind == CONTENT_TYPE else json.dumps({"code": 3, "message": why}).encode()
    return Answer(status, kind, body)


class SpanServer:
    """A listener that puts what exporters send into a store, until it is closed."""

    def __init__(self, store: SpanSink, *, host: str = "127.0.0.1", port: int = PORT) -> None:
        self._server = _Listener((host, port), _handler(store, is_local=_is_loopback(host)))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="comity-otlp", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def endpoint(self) -> str:
        """What `OTEL_EXPORTER_OTLP_ENDPOINT` must say to send here."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"


class _Listener(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002  the names are the base class's
        """Say that a connection broke off, without a traceback: its sender sends again."""
        log.info("a sender of spans at %s broke off", client_address[0], exc_info=True)


def _is_loopback(host: str | None) -> bool:
    """Return whether a name or address is this machine's own, which no name server can give to another site."""
    if host is None or host.lower() == "localhost":
        return host is not None
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _host_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _length(headers: Message) -> int | None:
    """Return how long the body is; None if that is not said, or in two ways."""
    said = headers.get_all("Content-Length", ())
    if len(said) != 1 or "Transfer-Encoding" in headers or (digits := _DIGITS.fullmatch(said[0])) is None:
        return None
    return int(digits[1]) if digits[1] else BODY_BYTES_MAX + 1  # more digits than the length of any body has


def _handler(store: SpanSink, *, is_local: bool) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30

        def do_POST(self) -> None:
            length = _length(self.headers)
            if self.path.partition("?")[0] != PATH:
                self._answer(Answer(404, "text/plain", f"traces go to {PATH}".encode()))
            elif not self._is_from_here():
                self._answer(Answer(403, "text/plain", b"this listener is for programs of this machine"))
            elif length is None:
                self._answer(Answer(411, "text/plain", b"say once, in digits, how long the body is"))
            elif length > BODY_BYTES_MAX:
                self._answer(Answer(413, "text/plain", f"at most {BODY_BYTES_MAX:,} bytes".encode()))
            else:
                body = self.rfile.read(length)
                encoding = self.headers.get("Content-Encoding", "")
                self._answer(ingest(store, body, self.headers.get("Content-Type", ""), encoding=encoding), has_read=True)

        def _is_from_here(self) -> bool:
            """Return whether no page of another site sent this: its origin, or a name that was made to lead here, shows it."""
            hosts = [_host_of(f"//{host}") for host in self.headers.get_all("Host", [""])] if is_local else []
            return all(map(_is_loopback, [*hosts, *map(_host_of, self.headers.get_all("Origin", []))]))

        def _answer(self, answer: Answer, *, has_read: bool = False) -> None:
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.content_type)
            self.send_header("Content-Length", str(len(answer.body)))
            if answer.status == 503:
                self.send_header("Retry-After", str(RETRY_AFTER_S))
            if not has_read:  # what was not read would be taken for the next request
                self.send_header("Connection", "close")
                self.close_connection = True
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name is the base class's
            """Say nothing: the store shows what came."""

    return Handler
