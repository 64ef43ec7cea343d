"""`comity view`: what agents found out, as one of five audiences likes to see it."""

from __future__ import annotations

import argparse
from typing import Any

from comity.cli.commands.guidance import add_project, open_source
from comity.cli.commands.spans import add_range, add_source, open_spans
from comity.cli.ui.exits import CliError, Exit
from comity.cli.ui.output import Output, counted

ELSEWHERE = "--project names another project, --range looks further back."
AUDIENCES = ("executive", "manager", "developer", "operator", "agent")
_DETAIL = ("rationale", "evidence", "links", "refs", "applies_to", "supersedes", "expires_at", "trace")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--audience", metavar="AUDIENCE", choices=AUDIENCES, default="developer", help=" · ".join(AUDIENCES))
    add_range(parser, "24h", "24h")
    add_project(parser)
    add_source(parser)


def run(args: argparse.Namespace, out: Output) -> Exit:
    """Show the view."""
    from comity.contextcore.insights import InsightQuerier
    from comity.contextcore.views import PersonalizedQuerier

    project, where, source = open_source(args)
    with open_spans(args) as spans, out.busy("reading the spans"):
        querier = PersonalizedQuerier(spans, project_id=project, source=source)
        if querier.problems:
            raise CliError(Exit.USAGE, f"the settings in {where} have problems", problems=querier.problems)
        view = querier.get_insights(audience=args.audience, time_range=args.range)
        text = querier.get_agent_text(time_range=args.range) if args.audience == "agent" else ""
        found = InsightQuerier(spans).query(time_range=args.range, limit=0) if _is_empty(view) else []
    if out.is_json:
        out.document({"project": project} | view | ({"text": text} if args.audience == "agent" else {}))
    elif _is_empty(view):
        others = ", ".join(sorted({one.project_id for one in found}))
        there = f"There are some of {others}. " if others else ""
        out.text(f"No insights of {project} in the last {args.range}. {there}{ELSEWHERE}")
    elif text:
        out.text(text.rstrip(), is_copied=True)
    else:
        _draw(project, view, out)
    return Exit.OK


def _is_empty(view: dict[str, Any]) -> bool:
    return not (view.get("total") or view.get("alerts") or view.get("insights"))


def _draw(project: str, view: dict[str, Any], out: Output) -> None:
    head = f"{project} for the {view.pop('audience')}, as of {view.pop('as_of')}: {counted(view.pop('total'), 'insight')}"
    out.text(head, style="bold")
    for name, value in view.items():
        title = name.replace("_", " ")
        if isinstance(value, list):
            if value:
                out.text(f"\n{title}", style="bold")
            for one in value:
                # What is alarming stands in full below, or is not for this audience.
                _draw_one(one, out, is_brief=name == "alerts")
        elif isinstance(value, dict):
            shown = (f"{inner:+d}" if name == "trend" else _plain(inner) for inner in value.values())
            out.text(f"{title}: {'  '.join(map(' '.join, zip(value, shown, strict=True))) or 'none'}")
        else:
            out.text(f"{title}: {_plain(value)}")


def _draw_one(one: Any, out: Output, *, is_brief: bool) -> None:
    if not isinstance(one, dict):
        out.text(f"  {one}")
        return
    rest = {
        name: value for name, value in one.items() if name not in ("type", "summary", "id", "confidence", "agent", *_DETAIL)
    }
    if "summary" not in one:  # a reporting period, or a signal to open
        out.text("  " + "  ".join(f"{name} {_plain(value)}" for name, value in one.items()))
        return
    sure = f"  {one['confidence']:.0%}" if "confidence" in one else ""
    who = f"  by {one['agent']}" if "agent" in one else ""
    out.text(f"  {one['type']:<14} {one['summary']}{sure}{who}  {one['id']}")
    if is_brief:
        return
    for name in _DETAIL:
        if name in one:
            out.text(f"      {name.replace('_', ' ')}: {_plain(one[name])}", style="dim")
    if rest:
        out.text("      " + "  ".join(f"{name.replace('_', ' ')} {_plain(value)}" for name, value in rest.items()), style="dim")


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(inner)}" for name, inner in value.items()) or "none"
    if isinstance(value, list):
        return "; ".join(map(_plain, value)) or "none"
    return "none" if value is None else str(value)
