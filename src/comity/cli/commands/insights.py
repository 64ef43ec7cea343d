"""`comity insights`: what agents found out and still holds."""

from __future__ import annotations

import argparse
import contextlib
from typing import TYPE_CHECKING, Any

from comity.cli.commands.calls import when
from comity.cli.commands.spans import add_range, add_source, open_spans, place
from comity.cli.ui.arguments import a_name, at_least_one
from comity.cli.ui.exits import Exit
from comity.cli.ui.listing import Listing
from comity.cli.ui.output import Output, clean

if TYPE_CHECKING:
    from comity.core.insight.insight import Insight

TYPES = ("decision", "recommendation", "blocker", "discovery", "analysis", "question", "risk", "progress", "lesson", "other")
STYLES = {"blocker": "bold red", "risk": "yellow", "decision": "green"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--project", metavar="ID", type=a_name, default=None, help="only of this project")
    parser.add_argument("--type", metavar="TYPE", action="append", choices=TYPES, help=f"{' · '.join(TYPES)}; may be repeated")
    parser.add_argument("--agent", metavar="ID", type=a_name, default=None, help="only by this agent")
    parser.add_argument("--session", metavar="ID", type=a_name, default=None, help="only of this session")
    parser.add_argument("--audience", metavar="WHO", choices=("agent", "human"), default=None, help="only for agent or human")
    parser.add_argument("--min-confidence", metavar="N", type=_share, default=None, help="minimum confidence, 0 to 1")
    parser.add_argument("--category", metavar="NAME", default=None, help="only of this category")
    parser.add_argument("--applies-to", metavar="NAME", default=None, help="only what applies to this")
    add_range(parser, "7d", "7d")
    parser.add_argument("--limit", metavar="N", type=at_least_one, default=20, help="how many, newest first (20)")
    parser.add_argument("--all", action="store_true", help="also what was superseded or has expired")
    add_source(parser)


def _share(text: str) -> float:
    """Read a confidence for argparse."""
    with contextlib.suppress(ValueError):
        if 0 <= (value := float(text)) <= 1:
            return value
    raise argparse.ArgumentTypeError(f"must be a number from 0 to 1, not {text!r}")


def run(args: argparse.Namespace, out: Output) -> Exit:
    """List them."""
    from comity.contextcore.insights import InsightQuerier

    with open_spans(args) as source, out.busy("reading the spans"):
        querier = InsightQuerier(source)
        found = querier.query(
            project_id=args.project,
            insight_type=args.type,
            agent_id=args.agent,
            session_id=args.session,
            audience=args.audience,
            min_confidence=args.min_confidence,
            category=args.category,
            applies_to=args.applies_to,
            time_range=args.range,
            limit=args.limit,
            is_current=not args.all,
        )
    if out.is_json:
        out.document({"insights": [document(one) for one in found], "unread": list(querier.problems)})
    elif not found:
        out.text(
            f"No insights of the {place(args)} match in the last {args.range}. --range looks further back, --all at old ones."
        )
    else:
        _show(found, out)
    if querier.problems and not out.is_json:
        out.hint(f"{len(querier.problems)} could not be read; the first: {clean(querier.problems[0])}")
    return Exit.OK


def document(insight: Insight) -> dict[str, Any]:
    """Return an insight as plain data."""
    import msgspec

    found: dict[str, Any] = msgspec.to_builtins(insight)
    return found


def _show(found: list[Insight], out: Output) -> None:
    from rich.text import Text

    table = Listing("when", "type", "sure", "agent", "summary", "id", whole={"when", "type", "id"}, right={"sure"})
    for one in found:
        summary = Text(clean(one.summary))
        for evidence in one.evidence:
            summary.append(f"\n{clean(evidence.type)} {clean(evidence.ref)}", "dim")
        kind = Text(clean(one.type_name), STYLES.get(one.type, ""))
        table.add(when(one.created_at), kind, f"{one.confidence:.2f}", one.agent_id, summary, one.id)
    table.show(out)
    out.hint("\n`comity trace ID` with the trace id of --json draws where one was found.")
