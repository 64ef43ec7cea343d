"""`comity guidance`: what people want of agents: show it, check a path, ask and answer questions, set focus and rules."""

from __future__ import annotations

import argparse
import getpass
import os
import re
from typing import TYPE_CHECKING, Any

from comity.cli.reader import spans_beside
from comity.cli.ui.arguments import a_name
from comity.cli.ui.exits import CliError, Exit
from comity.cli.ui.output import Output, clean
from comity.core.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Callable

    from comity.core.document.payload import Problem
    from comity.core.guidance.guidance import Finding, Guidance, Item, Question
    from comity.ports import GuidanceSource

EMPTY = "says nothing yet. `comity guidance set constraint ID RULE --scope 'src/**'` adds a rule, `guidance ask` a question."
SEVERITIES = ("blocking", "warning", "advisory")
PRIORITIES = ("critical", "high", "normal", "low")
_SLUG_CHARS_MAX = 40


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    _add(verbs, "show", "all guidance of the project, and what is wrong with it")
    check = _add(verbs, "check", "which constraints an action on these paths or topics concerns; exit code 3 if one blocks")
    check.add_argument("paths", metavar="PATH", nargs="+", help="a path, a pattern, or topic:NAME")
    ask = _add(verbs, "ask", "ask agents a question")
    ask.add_argument("question", metavar="QUESTION")
    ask.add_argument("--id", metavar="ID", default="", help="of the question; made from its words if not given")
    ask.add_argument("--priority", metavar="PRIORITY", choices=PRIORITIES, default="normal", help=" · ".join(PRIORITIES))
    ask.add_argument("--context", metavar="TEXT", default="", help="what one should know to answer")
    answer = _add(verbs, "answer", "answer a question; the answer is kept with it and emitted as an insight")
    answer.add_argument("question_id", metavar="QUESTION_ID")
    answer.add_argument("answer", metavar="ANSWER")
    answer.add_argument("--confidence", metavar="N", type=float, default=1.0, help="from 0 to 1 (1)")
    answer.add_argument("--evidence", metavar="TYPE=REF", action="append", default=[], help="what supports it; may be repeated")
    answer.add_argument("--agent", metavar="ID", type=a_name, default=None, help="who answers (you)")
    setting = verbs.add_parser("set", help="change focus, constraints, preferences or context")
    kinds = setting.add_subparsers(dest="kind", metavar="KIND")
    focus = _add(kinds, "focus", "what to work on")
    focus.add_argument("areas", metavar="AREA", nargs="*")
    focus.add_argument("--until", metavar="TIME", default="", help="such as 2030-03-31T00:00:00Z")
    constraint = _add(kinds, "constraint", "a rule for actions on what its scope covers")
    constraint.add_argument("name", metavar="ID")
    constraint.add_argument("text", metavar="RULE", nargs="?", default="")
    constraint.add_argument("--scope", metavar="GLOB", default="", help="paths such as src/api/**, or topic:NAME (everything)")
    constraint.add_argument(
        "--severity", metavar="SEVERITY", choices=SEVERITIES, default="blocking", help=" · ".join(SEVERITIES)
    )
    preference = _add(kinds, "preference", "how people like things done")
    preference.add_argument("name", metavar="ID")
    preference.add_argument("text", metavar="PREFERENCE", nargs="?", default="")
    note = _add(kinds, "context", "what agents should know about a topic")
    note.add_argument("name", metavar="TOPIC")
    note.add_argument("text", metavar="CONTENT", nargs="?", default="")
    note.add_argument("--source", metavar="REF", default="", help="where it is from")
    for one in (focus, constraint, preference):
        one.add_argument("--reason", metavar="TEXT", default="", help="why")
    for one in (focus, constraint, preference, note):
        one.add_argument("--remove", action="store_true", help="remove it")


def _add(verbs: Any, name: str, what: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=what, description=what)
    add_project(parser)
    return parser


def add_project(parser: argparse.ArgumentParser) -> None:
    """Declare the options that say whose guidance is meant."""
    parser.add_argument(
        "--project",
        metavar="ID",
        type=a_name,
        default=None,
        help="the project (COMITY_PROJECT, else the only one in .comity, else default)",
    )
    parser.add_argument(
        "--guidance",
        metavar="FILE",
        type=a_name,
        default=os.environ.get("COMITY_GUIDANCE") or None,
        help="the ProjectContext: a file, or k8s://NAMESPACE/NAME (COMITY_GUIDANCE, else .comity/PROJECT.yaml)",
    )


def open_source(args: argparse.Namespace) -> tuple[str, str, GuidanceSource]:
    """Return the project, where its guidance is, and the source of it."""
    from comity.engines.files.guidance import GuidanceFile, project_of
    from comity.engines.guidance import source_at

    project = args.project or project_of(os.environ, args.guidance or "") or "default"
    if args.guidance:
        return project, args.guidance, source_at(args.guidance)
    file = GuidanceFile.of_project(project)
    return project, str(file.path), file


def run(args: argparse.Namespace, out: Output) -> Exit:
    """Run one verb."""
    project, where, source = open_source(args)
    if args.verb in ("show", "check"):
        is_named = bool(args.guidance or args.project or os.environ.get("COMITY_PROJECT"))
        if is_named and not source.read()[0]:  # a gate that was told which rules to hold must not pass for want of them
            hint = "--guidance or --project names another; `comity guidance set` and `comity guidance ask` make it."
            raise CliError(Exit.NOT_FOUND, f"there is no guidance in {where}", hint=hint)
        return _show(project, where, source, out) if args.verb == "show" else _check(args.paths, where, source, out)
    if args.verb == "answer":
        return _answer(args, project, source, out)
    how, told = _asked(args) if args.verb == "ask" else _set(args)
    source.change(how)
    if out.is_json:
        out.document({"project": project, "guidance": where, "changed": told})
    else:
        out.text(f"{told} ({where})")
    return Exit.OK


# --- reading ---


def _read(source: GuidanceSource) -> tuple[Guidance, tuple[Problem, ...]]:
    return source.read()[1:]


def _show(project: str, where: str, source: GuidanceSource, out: Output) -> Exit:
    from comity.core.guidance.guidance import Guidance, to_document

    guidance, problems = _read(source)
    if out.is_json:
        document = to_document(guidance)["spec"]["agentGuidance"]
        told = [{"path": problem.path, "message": problem.message} for problem in problems]
        out.document({"project": project, "guidance": where, "agentGuidance": document, "problems": told})
    elif guidance == Guidance() and not problems:
        out.hint(f"The guidance of {project} in {where} {EMPTY}", style="")
    else:
        out.text(f"Guidance of {project} ({where})", style="bold")
        for title, lines in _parts(guidance):
            if lines:
                out.text(f"\n{title}", style="bold")
                for line in lines:
                    out.text(f"  {line}")
        for problem in problems:
            out.text(f"problem: {problem.path} {problem.message}", style="red")
    return Exit.USAGE if problems else Exit.OK


def _parts(guidance: Guidance) -> list[tuple[str, list[str]]]:
    from comity.core.guidance import guidance as rules
    from comity.core.insight.insight import time_text
    from comity.engines.clock import SystemClock

    focus, now_ms = guidance.focus, SystemClock().now_ns() // NS_PER_MS
    about: list[str] = []
    if focus is not None and focus.areas:
        until = "" if focus.until is None else f"  until {time_text(focus.until)}"
        is_over = "" if rules.focus(guidance, now_ms=now_ms) else "  (over: ignored)"
        about = [f"{', '.join(focus.areas)}{_because(focus.reason)}{until}{is_over}"]
    return [
        ("focus", about),
        (
            "constraints",
            [f"{c.severity:<9} {c.id}  {c.scope or 'everything'}  {c.rule}{_because(c.reason)}" for c in guidance.constraints],
        ),
        ("preferences", [f"{one.id}  {one.preference}{_because(one.reason)}" for one in guidance.preferences]),
        ("questions", [line for one in guidance.questions for line in _question_lines(one)]),
        ("context", [f"{one.topic}: {one.content}{_because(one.source)}" for one in guidance.context]),
    ]


def _question_lines(question: Question) -> list[str]:
    first = f"{question.status:<9} {question.priority:<9}{question.id}  {question.question}{_because(question.context)}"
    return [first, *(f"  {one.agent_id} ({one.confidence:g}): {one.answer}" for one in question.answers)]


def _because(why: str) -> str:
    return f" ({why})" if why else ""


def _check(paths: list[str], where: str, source: GuidanceSource, out: Output) -> Exit:
    from comity.core.guidance.guidance import findings

    document, guidance, problems = source.read()
    if problems:
        raise CliError(Exit.USAGE, f"{where} has problems", hint="`comity guidance show` names them.", problems=problems)
    found = findings(guidance, paths)
    is_blocked = any(one.is_blocking for one in found)
    if out.is_json:
        out.document(
            {"guidance": where, "paths": paths, "blocked": is_blocked, "constraints": [_finding(one) for one in found]}
        )
    elif not found:
        out.text(f"No constraint in {where} concerns {', '.join(paths)}." if document else f"There is no guidance in {where}.")
    for one in () if out.is_json else found:
        out.text(f"{one.constraint.severity:<9} {one}", style="red" if one.is_blocking else "")
    return Exit.REFUSED if is_blocked else Exit.OK


def _finding(found: Finding) -> dict[str, str]:
    one = found.constraint
    fields = {"id": one.id, "severity": str(one.severity), "rule": one.rule, "scope": one.scope, "reason": one.reason}
    return fields | {"touched": found.touched}


# --- changing ---


def _asked(args: argparse.Namespace) -> tuple[Callable[[Guidance], Guidance], str]:
    from comity.core.guidance.guidance import Priority, Question, put

    words = re.sub(r"[^a-z0-9]+", "-", args.question.lower()).strip("-")
    name = args.id or f"q-{words[:_SLUG_CHARS_MAX].strip('-')}"
    asked = Question(id=name, question=args.question, priority=Priority(args.priority), context=args.context)

    def ask(guidance: Guidance) -> Guidance:
        if any(one.id == name for one in guidance.questions):
            raise CliError(Exit.USAGE, f"there is a question {name!r} already", hint="--id gives this one another id.")
        return put(guidance, asked)

    return ask, f"asked {name}"


def _answer(args: argparse.Namespace, project: str, source: GuidanceSource, out: Output) -> Exit:
    from comity.engines.files.guidance import GuidanceResponder
    from comity.engines.sqlite.spans.store import SpanStore

    evidence = []
    for given in args.evidence:
        kind, has_ref, ref = given.partition("=")
        if not (kind and has_ref and ref):
            raise CliError(Exit.USAGE, f"{given!r} is no evidence", hint="Write --evidence trace=TRACE_ID, or file=PATH.")
        evidence.append({"type": kind, "ref": ref})
    if args.question_id not in {one.id for one in _read(source)[0].questions}:  # before anything is made
        raise CliError(Exit.NOT_FOUND, f"there is no question {args.question_id!r}", hint="`comity guidance show` lists them.")
    with SpanStore(spans_beside(args.store)) as store:
        responder = GuidanceResponder(store, project_id=project, agent_id=args.agent or getpass.getuser(), source=source)
        insight = responder.answer_question(args.question_id, answer=args.answer, confidence=args.confidence, evidence=evidence)
    if out.is_json:
        out.document(
            {"project": project, "question_id": args.question_id, "insight_id": insight.id, "trace_id": insight.trace_id}
        )
    else:
        out.text(clean(f"answered {args.question_id}; emitted {insight.id}"))
    return Exit.OK


def _set(args: argparse.Namespace) -> tuple[Callable[[Guidance], Guidance], str]:
    from msgspec.structs import replace

    from comity.core.guidance.guidance import Constraint, Focus, Note, Preference, Severity, put, remove
    from comity.core.insight.insight import parse_time

    if args.kind == "focus":
        until = parse_time(args.until) if args.until else None
        if args.until and until is None:
            raise CliError(Exit.USAGE, f"{args.until!r} is no time", hint="Write it as 2030-03-31T00:00:00Z.")
        if bool(args.areas) == args.remove:  # what is left out never removes anything
            raise CliError(Exit.USAGE, "name the areas of the focus, or --remove it", hint=f"See `{args.parser.prog} --help`.")
        focus = Focus(areas=tuple(args.areas), reason=args.reason, until=until) if args.areas else None
        return lambda now: replace(now, focus=focus), "set focus" if focus else "removed focus"
    kinds: dict[str, type[Item]] = {"constraint": Constraint, "preference": Preference, "context": Note}
    if args.remove:
        return lambda now: remove(now, kinds[args.kind], args.name), f"removed {args.kind} {args.name}"
    if not args.text:
        raise CliError(Exit.USAGE, f"what is {args.kind} {args.name} to say?", hint=f"`{args.parser.prog} --help`")
    items: dict[str, Callable[[], Item]] = {
        "constraint": lambda: Constraint(
            id=args.name, rule=args.text, scope=args.scope, severity=Severity(args.severity), reason=args.reason
        ),
        "preference": lambda: Preference(id=args.name, preference=args.text, reason=args.reason),
        "context": lambda: Note(topic=args.name, content=args.text, source=args.source),
    }
    item = items[args.kind]()
    return lambda now: put(now, item), f"set {args.kind} {args.name}"
