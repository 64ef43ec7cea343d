"""`comity trace`: one trace drawn as a waterfall."""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from comity.cli.commands.calls import when
from comity.cli.commands.spans import EMPTY, add_source, milliseconds, open_spans, place, plain
from comity.cli.ui import ids
from comity.cli.ui.exits import CliError, Exit
from comity.cli.ui.output import Output, clean, counted

if TYPE_CHECKING:
    from rich.text import Text

    from comity.core.tracing.span import Span
    from comity.ports import SpanSource


_INDENT: Final = 2
_NAME_CHARS_MAX: Final = 60
_BAR_CHARS_LEAST, _BAR_CHARS_MOST = 12, 60
# What stands beside the bar: the duration, and room for an error code.
_BESIDE_CHARS: Final = 34
# The attributes that say most about a span, in the order they are shown.
_TELLING: Final = ("comity.capability", "gen_ai.request.model", "insight.summary", "error.type")


class Row(NamedTuple):
    """A span and how deep it stands."""

    depth: int
    span: Span
    children: list[Row]


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("trace_id", metavar="ID", help="a trace id, or a request id of a call in it; `last` is the newest")
    add_source(parser)


def _whole(args: argparse.Namespace) -> str:
    """Return the request id that the given part of one means, or the part itself."""
    from comity.cli.reader import Store

    part = str(args.trace_id)
    if not Path(args.store).is_file():  # the spans are elsewhere
        return part
    with Store(Path(args.store)) as store:
        return ids.find(part, store.recent_ids(), what="call") or part


def run(args: argparse.Namespace, out: Output) -> Exit:
    """Draw the trace."""
    with open_spans(args) as source, out.busy("reading the spans"):
        spans = find(source, args.trace_id) or find(source, _whole(args))
    if not spans:
        if args.trace_id == "last":
            raise CliError(Exit.NOT_FOUND, f"the {place(args)} {EMPTY}")
        hint = "`comity query '{}'` lists the newest traces."
        raise CliError(Exit.NOT_FOUND, f"the {place(args)} has no trace {args.trace_id!r}", hint=hint)
    if out.is_json:
        out.document({"trace_id": spans[0].trace_id, "spans": [_document(row) for row in rows_of(spans)]})
    else:
        show(spans, out)
    return Exit.OK


def find(source: SpanSource, given: str) -> list[Span]:
    """Return the trace with this id, or of the call with this request id."""
    from comity.core.tracing.query.builder import spans, where

    if given == "last":
        newest = source.search("{}", limit=1, spss=1).traces
        return source.trace(newest[0].trace_id) if newest else []
    # The id of a request made here holds the id of its trace.
    digits = re.split(r"[.#]", given)[0].replace("-", "")
    if re.fullmatch("[0-9a-fA-F]{1,32}", digits) and (found := source.trace(digits.lower())):
        return found
    named = source.search(spans(where("span.comity.request.id", "=", given)).build(), limit=1, spss=1).traces
    return source.trace(named[0].trace_id) if named else []


def rows_of(spans: Sequence[Span]) -> list[Row]:
    """Return the spans as trees, earliest first; one whose parent is not here stands at the top."""
    known = {span.span_id for span in spans}
    below: dict[str | None, list[Span]] = {}
    for span in sorted(spans, key=lambda one: (one.start_ns, one.span_id)):
        is_root = span.parent_id not in known or span.parent_id == span.span_id
        below.setdefault(None if is_root else span.parent_id, []).append(span)
    placed: set[int] = set()

    def grow(parent_id: str | None, depth: int) -> list[Row]:
        rows = []
        for span in below.get(parent_id, ()):
            if id(span) not in placed:  # two halves of a remote call may share an id
                placed.add(id(span))
                rows.append(Row(depth, span, grow(span.span_id, depth + 1)))
        return rows

    rows = grow(None, 0)
    # Spans that are each other's ancestors hang under nothing.
    rows += [Row(0, span, []) for span in spans if id(span) not in placed]
    return rows


def flat(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield all rows in the order in which they are drawn."""
    for row in rows:
        yield row
        yield from flat(row.children)


def show(spans: Sequence[Span], out: Output, marked: Collection[str] = ()) -> None:
    """Draw a trace; the spans whose ids are marked stand out."""
    rows = list(flat(rows_of(spans)))
    begin = min(span.start_ns for span in spans)
    total = max(max(span.end_ns, span.start_ns) for span in spans) - begin
    names = max(min(len(_name(row)), _NAME_CHARS_MAX) for row in rows)
    bars = max(min(out.out.width - names - _BESIDE_CHARS, _BAR_CHARS_MOST), _BAR_CHARS_LEAST)
    services = sorted({str(span.resource.get("service.name", "")) for span in spans} - {""})
    count = counted(len(spans), "span")
    head = f"{when(begin / 1e6)}  {spans[0].trace_id}  {count}, {milliseconds(total)}  {', '.join(services)}"
    out.text(head, style="dim", is_copied=True)
    for row in rows:
        out.text(_line(row, names, bars, begin, max(total, 1), is_marked=row.span.span_id in marked), is_copied=True)


def _name(row: Row) -> str:
    return clean(" " * _INDENT * row.depth + (row.span.name or row.span.span_id))


def _line(row: Row, names: int, bars: int, begin: int, total: int, *, is_marked: bool) -> Text:
    from rich.text import Text

    span = row.span
    name = _name(row)
    if len(name) > names:
        name = f"{name[: names - 1]}…"
    style = "red" if span.status == "error" else "cyan"
    offset = min((span.start_ns - begin) * bars // total, bars - 1)
    length = min(max(span.duration_ns * bars // total, 1), bars - offset)
    bar = "◆" if span.duration_ns == 0 else "━" * length
    text = Text(name.ljust(names), "bold" if is_marked else "")
    text.append(f"  {' ' * offset}")
    text.append(bar, style)
    text.append(" " * (bars - offset - len(bar)))
    text.append(f" {milliseconds(span.duration_ns):>10}", "dim")
    for telling in _TELLING:
        if telling in span.attributes:
            text.append(f"  {clean(str(span.attributes[telling]))}", "red" if telling == "error.type" else "")
    return text


def _document(row: Row) -> dict[str, Any]:
    span = row.span
    return {
        "span_id": span.span_id,
        "parent_id": span.parent_id,
        "name": span.name,
        "kind": str(span.kind),
        "status": str(span.status),
        "status_message": span.status_message or None,
        "start_ns": span.start_ns,
        "duration_ms": span.duration_ns / 1e6,
        "attributes": plain(dict(span.attributes)),
        "resource": plain(dict(span.resource)),
        "events": [{"name": e.name, "time_ns": e.time_ns, "attributes": plain(dict(e.attributes))} for e in span.events],
        "links": [{"trace_id": k.trace_id, "span_id": k.span_id, "attributes": plain(dict(k.attributes))} for k in span.links],
        "children": [_document(child) for child in row.children],
    }
