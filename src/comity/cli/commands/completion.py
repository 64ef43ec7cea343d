"""`comity completion`: a script that teaches a shell the commands, verbs and options, drawn from the parser itself."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from typing import Final, NamedTuple

from comity.cli.ui.exits import Exit
from comity.cli.ui.output import Output

SHELLS: Final = ("bash", "zsh", "fish")
# Both find the longest command among the words before the cursor, then offer what may follow it.
_BASH: Final = """\
_comity() {{
  local command="" word index
  for ((index = 1; index < COMP_CWORD; index++)); do
    word=${{COMP_WORDS[index]}}
    case "$command $word" in
      {commands}) command="$command $word" ;;
    esac
  done
  local offered=""
  case "$command" in
{places}
  esac
  COMPREPLY=($(compgen -W "$offered" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _comity comity
"""
_ZSH: Final = """\
#compdef comity
_comity() {{
  local command="" word
  for word in ${{words[2,CURRENT-1]}}; do
    case "$command $word" in
      {commands}) command="$command $word" ;;
    esac
  done
  local offered=""
  case "$command" in
{places}
  esac
  compadd -- ${{=offered}} || _files
}}
compdef _comity comity
"""


class Place(NamedTuple):
    """What may follow the words of a command: verbs with what each is for, and options with theirs."""

    path: tuple[str, ...]
    verbs: dict[str, str]
    options: dict[str, str]


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=" · ".join(SHELLS))


def run(args: argparse.Namespace, out: Output) -> Exit:
    """Write the script."""
    from comity.cli.main import build_parser

    places = list(_places(build_parser(), ()))
    text = _fish(places) if args.shell == "fish" else _cases(places, _BASH if args.shell == "bash" else _ZSH)
    if out.is_json:
        out.document({"shell": args.shell, "script": text})
    else:
        out.text(text.rstrip(), is_copied=True)
    return Exit.OK


def _places(parser: argparse.ArgumentParser, path: tuple[str, ...]) -> Iterator[Place]:
    verbs: dict[str, str] = {}
    options: dict[str, str] = {}
    for action in parser._actions:  # noqa: SLF001  argparse has no other way to ask
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            verbs = {one.dest: one.help or "" for one in action._choices_actions}  # noqa: SLF001
            for name, below in action.choices.items():
                yield from _places(below, (*path, name))
        for option in action.option_strings:
            if option.startswith("--"):
                options[option] = "" if action.help in (None, argparse.SUPPRESS) else str(action.help)
        if action.choices and not action.option_strings and not verbs:
            verbs = dict.fromkeys(map(str, action.choices), "")
    yield Place(path, verbs, options)


def _cases(places: list[Place], script: str) -> str:
    commands = {f'" {" ".join(place.path)}"' if place.path else '""': place for place in places}
    lines = [f'    {command}) offered="{" ".join((*place.verbs, *place.options))}" ;;' for command, place in commands.items()]
    return script.format(commands="|".join(one for one in commands if one != '""'), places="\n".join(lines))


def _fish(places: list[Place]) -> str:
    lines = ["complete -c comity -f"]
    for place in places:
        if place.path:
            here = " && ".join(f"__fish_seen_subcommand_from {word}" for word in place.path)
        else:
            here = "__fish_use_subcommand"
        if place.verbs and place.path:
            here += f" && not __fish_seen_subcommand_from {' '.join(place.verbs)}"
        for verb, purpose in place.verbs.items():
            lines.append(f"complete -c comity -n {shlex.quote(here)} -a {verb} -d {shlex.quote(purpose)}")
        for option, purpose in place.options.items():
            about = f" -d {shlex.quote(purpose)}" if purpose else ""
            lines.append(f"complete -c comity -n {shlex.quote(here)} -l {option[2:]}{about}")
    return "\n".join(lines) + "\n"
