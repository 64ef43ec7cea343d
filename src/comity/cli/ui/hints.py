"""Suggested commands as they can be pasted: the program as this shell finds it, and the options that this command was given."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Final

from comity.cli.ui.ids import short

# The store of a command that names none.
STORE: Final = "comity.db"
USER: Final = "local"  # without --user
NO_APP: Final = (
    "Name them with --app module:attribute or --app registry.yaml, or set COMITY_APP. To try: --app comity.demo:agents"
)
_NO_STORE: Final = ("agents", "completion", "convert", "guidance", "sim")
# The commands that use the agents, by their first words; the others only read the store.
_APP: Final = ("agents", "approvals deny", "approvals grant", "call", "doctor", "handoff", "sim")
_USER: Final = ("call", "handoff")
_COMMAND: Final = re.compile(
    r"`comity (?P<quoted>[a-z-][^`]*)`"  # in a sentence
    r"|^(?P<before>\s*)comity (?P<line>[a-z].*?)(?P<comment>\s+#.*)?$",  # or alone on a line
    re.MULTILINE,
)


def given(args: argparse.Namespace) -> dict[str, str]:
    """Return the options that a suggested command must repeat to mean the same agents, store and user."""
    meant = {"--app": os.environ.get("COMITY_APP"), "--store": os.environ.get("COMITY_STORE") or STORE, "--user": USER}
    asked = {"--app": args.app, "--store": args.store, "--user": args.user}
    return {option: value for option, value in asked.items() if value and value != meant[option]}


def runnable(text: str, options: dict[str, str]) -> str:
    """Return a text in which every suggested command can be pasted: `options` are added where the command uses them."""

    def complete(found: re.Match[str]) -> str:
        command = found["quoted"] or found["line"]
        more = "".join(
            f" {option} {shlex.quote(value)}"
            for option, value in options.items()
            if _uses(command, option) and f"{option} " not in command
        )
        whole = f"{program(sys.argv[0])} {command}{more}"
        return f"`{whole}`" if found["quoted"] else f"{found['before']}{whole}{found['comment'] or ''}"

    return _COMMAND.sub(complete, text)


def ask_for(approval_id: str) -> str:
    """Return the commands with which a person answers a question that a call waits for."""
    quoted = shlex.quote(short(approval_id))
    return f"comity approvals grant {quoted}  # go on with the call\ncomity approvals deny {quoted}  # go on without the tool"


def _uses(command: str, option: str) -> bool:
    name, verb = (*command.split(maxsplit=2), "", "")[:2]
    if name.startswith("-"):
        return False
    if option == "--store":
        return name not in _NO_STORE
    users = _APP if option == "--app" else _USER
    return name in users or f"{name} {verb}" in users


def program(started: str) -> str:
    """Return how to start this program again, where it was started as `started`."""
    if shutil.which("comity"):
        return "comity"
    path = Path(started)
    if (path.parent.name, path.name) == ("comity", "__main__.py"):
        return f"{shlex.quote(sys.executable)} -m comity"
    return shlex.quote(started) if path.name == "comity" else "comity"
