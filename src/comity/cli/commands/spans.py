"""`comity spans`: take spans from exporters, push insights to Loki. And where every command that asks for spans finds them."""

from __future__ import annotations

import argparse
import contextlib
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from comity.cli.reader import spans_beside
from comity.cli.ui.arguments import a_name
from comity.cli.ui.exits import CliError, Exit
from comity.cli.ui.output import Output
from comity.core.units import MS_PER_S, NS_PER_MS
from comity.errors import UnavailableError

if TYPE_CHECKING:
    from comity.ports import SpanSource

PUSH_S = 2.0  # between two looks for what is new
EMPTY = "has no spans yet. `comity demo` and `comity call` make some; `comity spans serve` takes them from exporters."


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    what = "listen for OTLP over HTTP on this machine until interrupted"
    serve = verbs.add_parser("serve", help=what, description=what)
    serve.add_argument("--port", metavar="N", type=int, default=4318, help="where to listen; 0 chooses a free one (4318)")
    what = "push insights and refusals as log lines to a Grafana Loki"
    loki = verbs.add_parser("loki", help=what, description=what)
    loki.add_argument("url", metavar="URL", help="of the Loki, such as http://localhost:3100")
    loki.add_argument("--loki-tenant", metavar="ID", default="", help="the tenant at that Loki")
    loki.add_argument("--follow", action="store_true", help="go on with what is new until interrupted")
    add_range(loki, "24h", "24h")


def run(args: argparse.Namespace, out: Output) -> Exit:
    """Listen for spans, or push what they say."""
    return _push(args, out) if args.verb == "loki" else _serve(args, out)


def _push(args: argparse.Namespace, out: Output) -> Exit:
    from comity.core.insight.given import range_ms
    from comity.engines.loki import LATE_NS, LokiPush

    args.tempo = ""
    with open_spans(args) as store:
        push = LokiPush(store, args.url, tenant=args.loki_tenant)
        begun_ns = time.time_ns()
        lines = push.push(begun_ns - range_ms(args.range) * NS_PER_MS)
        if out.is_json:
            out.document({"url": args.url, "lines": lines})
        else:
            out.text(f"{lines:,} insights and refusals of the {place(args)} are in Loki.")
        if not args.follow:
            return Exit.OK
        out.out.file.flush()
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                threading.Event().wait(PUSH_S)
                with contextlib.suppress(UnavailableError):  # what could not be pushed is pushed with the next
                    push.push(max(begun_ns, time.time_ns() - LATE_NS))
    return Exit.INTERRUPTED


def _serve(args: argparse.Namespace, out: Output) -> Exit:
    from comity.engines.otlp.receive import SpanServer
    from comity.engines.sqlite.spans.store import SpanStore

    path = spans_beside(args.store)
    with SpanStore(path) as store:
        try:
            server = SpanServer(store, port=args.port)
        except (OSError, OverflowError) as error:
            raise CliError(Exit.USAGE, f"cannot listen on port {args.port}: {error}", hint="--port names another.") from None
        with contextlib.suppress(KeyboardInterrupt), server:
            if out.is_json:
                out.document({"endpoint": server.endpoint, "spans": str(path)})
            else:
                out.text(f"OTEL_EXPORTER_OTLP_ENDPOINT={server.endpoint} sends here; spans go to {path}.", is_copied=True)
            out.out.file.flush()
            threading.Event().wait()
    return Exit.INTERRUPTED


def add_source(parser: argparse.ArgumentParser) -> None:
    """Declare the options that say which spans are meant."""
    parser.add_argument("--tempo", metavar="URL", type=a_name, default=None, help="ask a Grafana Tempo instead of the store")
    parser.add_argument("--tempo-tenant", metavar="ID", default="", help="the tenant at that Tempo")


def add_range(parser: argparse.ArgumentParser, default: str, shown: str) -> None:
    """Declare how far back is looked."""
    parser.add_argument("--range", metavar="TIME", default=default, help=f"how far back, such as 2h, 24h or 7d ({shown})")


@contextlib.contextmanager
def open_spans(args: argparse.Namespace) -> Iterator[SpanSource]:
    """Open the spans beside the store, or the Tempo that --tempo names."""
    if args.tempo:
        from comity.engines.tempo import TempoStore

        yield TempoStore(args.tempo, tenant=args.tempo_tenant)
        return
    from comity.engines.sqlite.spans.store import SpanStore

    path = spans_beside(args.store)
    if not path.is_file():
        hint = "`comity demo` and `comity call` make one; --store or COMITY_STORE names another."
        raise CliError(Exit.NOT_FOUND, f"the store {args.store} has no spans: {path} does not exist", hint=hint)
    try:
        opened = SpanStore(path)
    except UnavailableError:  # on a file system that is mounted to be read, say; what is wrong otherwise is wrong again
        opened = SpanStore(path, is_archived=True)
    with opened as store:
        yield store


def place(args: argparse.Namespace) -> str:
    """Return the name of where spans were looked for."""
    return f"Tempo {args.tempo}" if args.tempo else f"store {args.store}"


def plain(value: Any) -> Any:
    """Return a value of a span as JSON can hold it."""
    from comity.core.tracing.query.values import Duration

    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (Duration, str)):
        return str(value)
    if isinstance(value, (tuple, list)):
        return [plain(one) for one in value]
    return {key: plain(one) for key, one in value.items()} if isinstance(value, dict) else value


def milliseconds(nanos: int) -> str:
    """Return a duration for people."""
    ms = nanos / NS_PER_MS
    return f"{ms:,.1f} ms" if ms < 1_000 else f"{ms / MS_PER_S:,.2f} s"
