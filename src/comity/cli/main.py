"""The `comity` command: reads the arguments, runs one command, and turns expected failures into a sentence and an exit code."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
import textwrap
from collections.abc import Collection, Sequence
from importlib import import_module
from typing import Any, Final, NoReturn

from comity import __version__
from comity.cli.ui.arguments import a_name, at_least_one
from comity.cli.ui.ending import Ending
from comity.cli.ui.examples import EXAMPLES
from comity.cli.ui.exits import MEANINGS, CliError, Exit
from comity.cli.ui.hints import STORE, USER, given
from comity.cli.ui.output import Output
from comity.core.agent.declaration import DeclarationError
from comity.errors import CallerError, ComityError

log = logging.getLogger("comity")

# Every command and its purpose. `cli.commands.NAME` has `configure(parser)` and `run(args, out) -> Exit`; it is imported when
# its command is given, so that a command does not wait for what the others need.
COMMANDS: Final[dict[str, str]] = {
    "demo": "watch four agents build a business case under every rule",
    "serve": "serve agents over HTTP: an API, a console, metrics",
    "agents": "list the agents, or show what one can do",
    "ask": "ask for something in words; the orchestrator finds the agents that serve it",
    "call": "call a capability of an agent",
    "calls": "list the newest calls in the store",
    "show": "draw the tree of one call",
    "trace": "draw one trace as a waterfall",
    "query": "ask for spans in TraceQL",
    "insights": "list what agents found out",
    "audit": "list the audit rows, or check that none was changed, removed or reordered",
    "sessions": "list the sessions in the store; show, resume, export or erase one",
    "memory": "list of whom something is remembered; show, correct, forget or erase it",
    "approvals": "list what waits for a person's approval; grant or deny it",
    "handoff": "hand work off to agents elsewhere; list, take and end it",
    "guidance": "show people's guidance to agents, check a path against it, ask and answer questions, change it",
    "view": "show a project's insights to an audience: executive, manager, developer, operator or agent",
    "store": "see what the store holds; remove what is old, compact it, back it up",
    "token": "issue, inspect and revoke the tokens that users and agents show to a served node",
    "keys": "list and rotate the keys that sign tokens; trust other nodes",
    "spans": "take spans from OpenTelemetry exporters into the store; push insights and refusals to Loki",
    "convert": "convert a document from one dialect to another and say what is lost",
    "workflow": "check, draw and run workflows; see, answer, cancel, replay, fork and move their runs",
    "schedule": "start runs of a workflow by the clock; list, pause, resume and remove what does",
    "sim": "simulate agents under faults: one seed with its timeline, or many with a report",
    "doctor": "check Python, the store and the agents",
    "completion": "print a completion script for bash, zsh or fish",
}


# The width of help texts, so that they fit the narrowest usual terminal.
HELP_CHARS: Final = 78
_COMMON: Final = textwrap.fill(
    "Every command takes --app, --store, --json, --user, --timeout-ms, --no-color and --verbose: see `comity --help`.",
    HELP_CHARS,
)


class Parser(argparse.ArgumentParser):
    """An argument parser that raises instead of leaving, and knows what was probably meant."""

    def __init__(self, **more: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **more)
        self.has_verbs = False  # whether it is a command by itself only together with one of its verbs
        if self.description:
            self.description = textwrap.fill(self.description, HELP_CHARS)

    def error(self, message: str) -> NoReturn:
        """Wrong usage."""
        raise CliError(Exit.USAGE, message, hint=self._see_help())

    def _print_message(self, message: str, file: Any = None) -> None:
        (file or sys.stderr).write(message)  # argparse would drop the error of a full disk

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            meant = _nearest(str(value), known)
            quoted = " or ".join(f"'{one}'" for one in meant)
            more = f"; did you mean {quoted}?" if meant else f"; choose from {', '.join(known)}"
            raise CliError(
                Exit.USAGE, f"unknown {str(action.metavar or action.dest).lower()} {str(value)!r}{more}", hint=self._see_help()
            )

    def _see_help(self) -> str:
        return f"See `{self.prog} --help`."


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = fold_json(sys.argv[1:] if argv is None else argv)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the parent process
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115  for the rest of the process
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a character the terminal cannot show is no reason to fail
            stream.reconfigure(errors="backslashreplace")
    out = Output(is_json="--json" in arguments, has_color="--no-color" not in arguments)
    with Ending() as ending:
        code = _code_of(arguments, out, ending)
        _flush_streams()
        return int(code)


def _code_of(arguments: list[str], out: Output, ending: Ending) -> Exit:
    """Run one command; say what went wrong, and return how it ended."""
    try:
        code = _run(arguments, out)
        return ending.code if code is Exit.INTERRUPTED else code
    except CliError as error:
        if error.code is Exit.INTERRUPTED:
            error.code = ending.code
        out.error(error)
        return error.code
    except DeclarationError as error:
        hint = ""
        if error.__cause__ is not None:  # the user's own code raised
            log.warning("the agents cannot be loaded", exc_info=error.__cause__)
            hint = "" if "--verbose" in arguments else "--verbose shows the traceback."
        out.error(CliError(Exit.USAGE, str(error), hint=hint, problems=getattr(error, "problems", ())))
        return Exit.USAGE
    except ComityError as error:
        code = Exit.USAGE if isinstance(error, CallerError) else Exit.NO_RESULT
        code = Exit.DAMAGED if error.code == "STORE_UNAVAILABLE" else code
        hint = "`comity doctor` checks the store." if code is Exit.DAMAGED else ""
        if "guidance" in error.facts:
            hint = "--guidance or COMITY_GUIDANCE names other guidance."
        out.error(CliError(code, error.message, hint=hint, error_code=error.code))
        return code
    except KeyboardInterrupt:
        out.error(CliError(ending.code, "interrupted"))
        return ending.code
    except BrokenPipeError:  # the reader of our output has seen enough
        return Exit.OK
    except OSError as error:
        out.error(CliError(Exit.NO_RESULT, str(error)))
        return Exit.NO_RESULT


def _flush_streams() -> None:
    """Flush stdout and stderr. A stream that cannot be written is pointed at nothing, because Python flushes again at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run(arguments: list[str], out: Output) -> Exit:
    named = [word for word in arguments if word in COMMANDS]
    parser = build_parser(named)
    try:
        args, extra = parser.parse_known_args(arguments)
    except SystemExit:  # --help and --version have said everything
        sys.stdout.flush()
        return Exit.OK
    if args.command is not None and args.parser.has_verbs:
        if out.is_json:
            raise CliError(Exit.USAGE, f"`{args.parser.prog}` needs a verb", hint=f"See `{args.parser.prog} --help`.")
        args.parser.print_help()
        return Exit.USAGE
    if isinstance(getattr(args, "inputs", None), list):  # argparse does not take key=value after an option
        args.inputs = [*args.inputs, *(one for one in extra if not one.startswith("-"))]
        extra = [one for one in extra if one.startswith("-")]
    if extra:
        meant = _nearest(extra[0], options(args.parser))
        more = f"; did you mean {' or '.join(meant)}?" if meant else ""
        raise CliError(Exit.USAGE, f"{extra[0]!r} is not expected here{more}", hint=f"See `{args.parser.prog} --help`.")
    if args.command is None:
        parser.print_help()
        sys.stdout.flush()
        return Exit.OK
    out.context = given(args)
    # Agents' tracebacks go to their log; what the caller needs to know is in the reply.
    logging.basicConfig(
        level=logging.WARNING if args.verbose else logging.CRITICAL + 1, format="%(levelname)s %(name)s: %(message)s"
    )
    logging.getLogger("comity.store").setLevel(logging.WARNING)  # that a store was brought to a later version is always said
    with contextlib.redirect_stdout(sys.stderr):  # what agents print is no result; `out` has the stream it began with
        result: Exit = _module(args.command).run(args, out)
    sys.stdout.flush()
    return result


def fold_json(arguments: Sequence[str]) -> list[str]:
    """Read `--json DOCUMENT` and `--json -` as what they are short for: `--json --inputs DOCUMENT`."""
    if "query" in arguments:  # a query begins as a document does
        return list(arguments)
    folded: list[str] = []
    for argument in arguments:
        if argument.startswith("--json="):
            folded += ["--json", "--inputs", argument.removeprefix("--json=")]
        elif folded and folded[-1] == "--json" and (argument == "-" or argument.lstrip().startswith(("{", "["))):
            folded += ["--inputs", argument]
        else:
            folded.append(argument)
    return folded


def _nearest(name: str, known: list[str]) -> list[str]:
    from comity.core.agent.registry import nearest

    return nearest(name, known)


def _module(command: str) -> Any:
    return import_module(f"comity.cli.commands.{command}")


def build_parser(commands: Collection[str] = tuple(COMMANDS)) -> Parser:
    """Return the parser of the command line; only `commands` get their arguments, the others are names in the help."""
    exits = "\n".join(f"  {int(code):>3}  {meaning}" for code, meaning in MEANINGS.items())
    parser = Parser(
        prog="comity",
        description="Calls between agents: typed, bounded, authorised, recorded.",
        epilog=f"Options may stand before or after the command.\n\nexit codes:\n{exits}\n\nBegin with `comity demo`.",
    )
    parser.add_argument("--version", action="version", version=f"comity {__version__}")
    parser.set_defaults(parser=parser)
    _add_globals(parser, is_top=True)
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, purpose in COMMANDS.items():
        # A parser that only names its command in the list takes no --help: building that option is most of the cost.
        subparser = subparsers.add_parser(name, help=purpose, description=purpose, add_help=name in commands)
        if name in commands:
            module = _module(name)
            module.configure(subparser)
            _finish(subparser)
    return parser


def _finish(parser: Parser) -> None:
    """Give every command below its common options, or show its verbs where none is given."""
    below = _below(parser)
    parser.has_verbs = bool(below)
    parser.set_defaults(parser=parser)
    if not below:
        _add_globals(parser, is_top=False)
        parser.epilog = f"example:\n  {EXAMPLES[parser.prog.removeprefix('comity ')]}\n\n{_COMMON}"
    for one in below:
        _finish(one)


def leaves(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """Return the parsers of the commands below, or the parser itself if it has none."""
    below = _below(parser)
    return [leaf for one in below for leaf in leaves(one)] if below else [parser]


def _below(parser: argparse.ArgumentParser) -> list[Any]:
    for action in parser._actions:  # noqa: SLF001  argparse has no other way to ask
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            return list(action.choices.values())
    return []


def options(parser: argparse.ArgumentParser) -> list[str]:
    """Return the options a parser takes."""
    return sorted(name for action in parser._actions for name in action.option_strings)  # noqa: SLF001


def _add_globals(parser: argparse.ArgumentParser, *, is_top: bool) -> None:
    """Add the options that every command takes. Below the top they have no default, which would undo what stood before."""

    def default(value: Any) -> Any:
        return value if is_top else argparse.SUPPRESS

    def about(text: str) -> str:
        return text if is_top else argparse.SUPPRESS  # the epilog names them; `comity --help` explains them

    group = parser.add_argument_group("options of every command")
    app, store = os.environ.get("COMITY_APP") or None, os.environ.get("COMITY_STORE")
    group.add_argument(
        "--app",
        metavar="APP",
        type=a_name,
        default=default(app),
        help=about("agents: module:attribute or a .yaml/.json file (COMITY_APP)"),
    )
    group.add_argument(
        "--store",
        metavar="FILE",
        type=a_name,
        default=default(store or STORE),
        help=about(f"the store (COMITY_STORE, else ./{STORE})"),
    )
    group.add_argument("--json", action="store_true", default=default(False), help=about("one JSON document on stdout"))
    group.add_argument("--user", metavar="ID", default=default(USER), help=about(f"the user on whose behalf to call ({USER})"))
    group.add_argument(
        "--timeout-ms", metavar="N", type=at_least_one, default=default(None), help=about("how long a call may take")
    )
    group.add_argument(
        "--no-color", action="store_true", default=default(False), help=about("no colours; NO_COLOR does the same")
    )
    group.add_argument("--verbose", action="store_true", default=default(False), help=about("show agents' logs and tracebacks"))


if __name__ == "__main__":
    sys.exit(main())
