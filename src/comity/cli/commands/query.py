"""`comity query`: ask for spans in TraceQL, as a table, a tree or time series."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any, Final

from comity.cli.commands.calls import when
from comity.cli.commands.spans import EMPTY, add_range, add_source, milliseconds, open_spans, place, plain
from comity.cli.ui.arguments import at_least_one
from comity.cli.ui.exits import CliError, Exit
from comity.cli.ui.listing import Listing
from comity.cli.ui.output import Output, counted
from comity.core.document.payload import Problem
from comity.core.units import NS_PER_MS

if TYPE_CHECKING:
    from comity.core.tracing.query import QueryError, Rewritten, SearchResult, Series
    from comity.ports import SpanSource


_SECOND_NS: Final = 10**9
_METRICS_RANGE: Final = "1h"
_STEPS: Final = 60
_COLUMNS_MAX: Final = 6
# So much of a query is shown on either side of what is wrong with it.
_AROUND_CHARS: Final = 60
_TICKS: Final = "▁▂▃▄▅▆▇█"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("query", metavar="QUERY", help="such as '{ span.insight.type = \"decision\" }'; quote it for the shell")
    add_range(parser, "", "everything; metrics: 1h")
    parser.add_argument("--limit", metavar="N", type=at_least_one, default=20, help="how many traces (20)")
    parser.add_argument("--spans", metavar="N", type=at_least_one, default=3, help="how many spans of each spanset (3)")
    parser.add_argument("--step", metavar="TIME", default="", help="of a metrics query, such as 30s (a sixtieth of the range)")
    parser.add_argument("--tree", action="store_true", help="draw each trace, what was found in bold")
    parser.add_argument("--strict", action="store_true", help="refuse what Tempo refuses instead of rewriting it")
    add_source(parser)


def run(args: argparse.Namespace, out: Output) -> Exit:
    """Ask."""
    from comity.core.tracing.query import QueryError

    try:
        rewritten = _read(args.query, strict=args.strict)
        with open_spans(args) as source:
            return _ask(args, rewritten, source, out)
    except QueryError as error:
        raise _pointing(error, args.query) from None


def _read(text: str, *, strict: bool) -> Rewritten:
    from comity.core.tracing.query import Rewritten, prepare, rewrite

    return Rewritten(prepare(text), text, is_changed=False) if strict else rewrite(text)


def _ask(args: argparse.Namespace, rewritten: Rewritten, source: SpanSource, out: Output) -> Exit:
    from comity.core.insight.given import range_ms
    from comity.core.tracing.query.ast import MetricsOperation, MetricsQuery

    is_metrics = isinstance(rewritten.query.root, (MetricsQuery, MetricsOperation))
    now_ns = time.time_ns()
    range_ns = range_ms(args.range or _METRICS_RANGE) * NS_PER_MS
    start_ns = now_ns - range_ns if args.range or is_metrics else None
    head = {"query": args.query, "tempo_query": rewritten.text, "rewritten": rewritten.is_changed}
    if rewritten.is_changed and not out.is_json:
        out.text(f"as Tempo reads it: {rewritten.text}", style="dim", is_copied=True)
    if is_metrics:
        assert start_ns is not None
        step_ns = range_ms(args.step) * NS_PER_MS if args.step else max(range_ns // _STEPS // _SECOND_NS, 1) * _SECOND_NS
        with out.busy("asking"):
            series = source.query_range(rewritten.query, start_ns=start_ns, end_ns=now_ns, step_ns=step_ns)
        return _show_series(args, series, head, out)
    with out.busy("asking"):
        result = source.search(rewritten.query, start_ns=start_ns, limit=args.limit, spss=args.spans)
    if out.is_json:
        out.document(head | {"traces": [_trace_document(trace) for trace in result.traces]})
    elif not result.traces:
        out.hint(_nothing(args, source), style="")
    elif args.tree:
        _show_trees(source, result, out)
    else:
        _show_table(result, out)
    return Exit.OK


def _pointing(error: QueryError, query: str) -> CliError:
    """Return the error with a mark under the place it means."""
    line = (query.splitlines() or [""])[min(error.line, query.count("\n") + 1) - 1]
    first = max(error.column - 1 - _AROUND_CHARS, 0)
    before, after = "…" if first else "", "…" if len(line) > error.column + _AROUND_CHARS else ""
    shown = f"{before}{line[first : error.column + _AROUND_CHARS]}{after}"
    mark = f"  {shown}\n  {' ' * (len(before) + error.column - 1 - first)}^"
    return CliError(
        Exit.USAGE,
        error.message,
        hint=mark,
        problems=(Problem(f"line {error.line}, column {error.column}", error.problem),),
        error_code=error.code,
    )


def _nothing(args: argparse.Namespace, source: SpanSource) -> str:
    if not source.search("{}", limit=1, spss=1).traces:
        return f"The {place(args)} {EMPTY}"
    where = f" in the last {args.range}" if args.range else ""
    return f"No trace of the {place(args)} matches{where}. `comity query '{{}}'` lists the newest."


def _trace_document(trace: Any) -> dict[str, Any]:
    return {
        "trace_id": trace.trace_id,
        "root_name": trace.root_name,
        "root_service": trace.root_service_name,
        "start_ns": trace.start_ns,
        "duration_ms": trace.duration_ns / 1e6,
        "spansets": [
            {
                "matched": spanset.matched,
                "attributes": {key: plain(value) for key, value in spanset.attributes},
                "spans": [
                    {
                        "span_id": match.span.span_id,
                        "name": match.span.name or None,
                        "start_ns": match.span.start_ns,
                        "duration_ms": match.span.duration_ns / 1e6,
                        "attributes": {key: plain(value) for key, value in match.attributes},
                    }
                    for match in spanset.spans
                ],
            }
            for spanset in trace.spansets
        ],
    }


def _show_table(result: SearchResult, out: Output) -> None:
    found = [(trace, spanset, match) for trace in result.traces for spanset in trace.spansets for match in spanset.spans]
    keys = list(dict.fromkeys(key for _, spanset, match in found for key, _ in (*spanset.attributes, *match.attributes)))
    keys = keys[:_COLUMNS_MAX]
    table = Listing("when", "trace", "span", "duration", *keys, whole={"when", "trace", "duration"}, right={"duration"})
    last = ""
    for trace, spanset, match in found:
        values = dict((*spanset.attributes, *match.attributes))
        shown = (str(plain(values[key])) if key in values else "" for key in keys)
        trace_id, last = "" if trace.trace_id == last else trace.trace_id, trace.trace_id
        name = match.span.name or match.span.span_id
        table.add(when(match.span.start_ns / 1e6), trace_id, name, milliseconds(match.span.duration_ns), *shown)
    table.show(out)
    matched = sum(spanset.matched for trace in result.traces for spanset in trace.spansets)
    counts = f"{counted(len(result.traces), 'trace')}, {counted(matched, 'matching span')}"
    out.hint(f"\n{counts}, {len(found)} shown. `comity trace ID` draws a trace.")


def _show_trees(source: SpanSource, result: SearchResult, out: Output) -> None:
    from comity.cli.commands.trace import show

    for trace in result.traces:
        marked = {match.span.span_id for spanset in trace.spansets for match in spanset.spans}
        show(source.trace(trace.trace_id), out, marked)
        out.text("")


def _counts_nothing(one: Series) -> bool:
    return one.labels[0][1] in ("rate", "count_over_time") and not any(value for _, value in one.samples)


def _show_series(args: argparse.Namespace, series: tuple[Series, ...], head: dict[str, Any], out: Output) -> Exit:
    if out.is_json:
        found = [
            {"labels": {key: plain(value) for key, value in one.labels}, "samples": [list(sample) for sample in one.samples]}
            for one in series
        ]
        out.document(head | {"series": found})
        return Exit.OK
    if all(map(_counts_nothing, series)):
        back = args.range or _METRICS_RANGE
        out.text(f"No span of the {place(args)} matches in the last {back}. --range looks further back.")
        return Exit.OK
    numbers = ("last", "least", "most")
    table = Listing("series", *numbers, "over time", whole=numbers, right=numbers)
    for one in series:
        values = [value for _, value in one.samples]
        labels = ", ".join(f"{key} {plain(value)}" for key, value in one.labels)
        table.add(labels, *(f"{value:,.4g}" for value in (values[-1], min(values), max(values))), _line(values))
    table.show(out)
    return Exit.OK


def _line(values: list[float]) -> str:
    """Return the samples as a line of little bars."""
    most = max(values)
    return "".join(_TICKS[int(value / most * (len(_TICKS) - 1)) if most > 0 and value > 0 else 0] for value in values)
