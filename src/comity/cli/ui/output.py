"""Where a command's output goes: text for people, or one JSON document for programs; progress always beside the result."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TextIO

from comity.cli.ui.exits import CliError, Exit
from comity.cli.ui.hints import runnable

if TYPE_CHECKING:
    from rich.console import Console


# The width of what goes to a file or another program.
PIPE_CHARS: Final = 200
# So much is shown of one value among others.
SHOWN_CHARS_MAX: Final = 2_000


class Output:
    """The two streams of a command. Results go to stdout; progress and errors go to stderr."""

    def __init__(self, *, is_json: bool, has_color: bool) -> None:
        self.is_json = is_json
        self.context: dict[str, str] = {}  # the options that suggested commands repeat
        self.is_by_line = False  # whether this command writes many documents, each on a line of its own
        self._has_told = False  # whether the one document is written
        self._stdout = sys.stdout  # not to be looked up later: what agents print is sent elsewhere meanwhile
        self._has_color = has_color and not os.environ.get("NO_COLOR")
        self._out: Console | None = None
        self._err: Console | None = None

    @property
    def out(self) -> Console:
        """The console of results."""
        if self._out is None:
            self._out = self._console(self._stdout)
        return self._out

    @property
    def err(self) -> Console:
        """The console of progress and errors."""
        if self._err is None:
            self._err = self._console(sys.stderr)
        return self._err

    def document(self, value: Any) -> None:
        """Write the one JSON document of this command; or one of many, at once."""
        if self.is_by_line:
            self._stdout.write(json.dumps(value) + "\n")
            self._stdout.flush()
            return
        is_utf8 = (self._stdout.encoding or "").lower().replace("-", "") == "utf8"
        self._stdout.write(json.dumps(value, indent=2, ensure_ascii=not is_utf8) + "\n")
        self._has_told = True

    def text(self, *parts: Any, style: str = "", is_copied: bool = False) -> None:
        """Write lines for people, broken between words on a terminal; what is to be copied is not broken."""
        shown = (clean(part) if isinstance(part, str) else part for part in parts)
        self.out.print(*shown, style=style, soft_wrap=is_copied or not self.out.is_terminal)

    def hint(self, text: str, *, style: str = "dim", is_copied: bool = False) -> None:
        """Write what one may do next, with commands as they can be given here."""
        self.text(runnable(text, self.context), style=style, is_copied=is_copied)

    def error(self, error: CliError) -> None:
        """Write why the command failed and what to do next: as the document, or to stderr if there is one or stdout is full."""
        hint = runnable(error.hint, self.context)
        if self.is_json and not self._has_told:
            problems = [{"path": problem.path, "message": problem.message} for problem in error.problems]
            code = error.error_code or None
            told = {"code": code, "message": error.message, "hint": hint or None, "problems": problems}
            with suppress(OSError):
                self.document({"error": told, "exit_code": int(error.code)})
                self._stdout.flush()
                return
        from rich.text import Text

        # Why a rule refused is looked up by its code; wrong usage and a bad store are told in words.
        is_told = error.error_code and error.code not in {Exit.USAGE, Exit.DAMAGED}
        message = f"{error.error_code}: {error.message}" if is_told else error.message
        with suppress(OSError):  # the exit code is all that is left to tell by
            self.err.print(Text("error: ", "bold red") + Text(clean(message)), soft_wrap=not self.err.is_terminal)
            if hint:
                self.err.print(clean(hint), soft_wrap=not self.err.is_terminal)

    @contextmanager
    def busy(self, what: str) -> Iterator[None]:
        """Show that something is going on, on a terminal, until it is done."""
        with self.progress(what):
            yield

    @contextmanager
    def progress(self, what: str) -> Iterator[Callable[[str], object]]:
        """Show that something is going on, on a terminal, and how far it is: what is yielded takes the words for it."""
        if not self.err.is_terminal:
            yield lambda _: None
            return
        with self.err.status(what) as status:
            yield lambda words: status.update(clean(words))

    def _console(self, file: TextIO) -> Console:
        from rich.console import Console

        class Plain(Console):
            def on_broken_pipe(self) -> None:
                raise  # noqa: PLE0704  called while it is handled; `main` knows what it means, rich would end with 1

        # No markup: brackets in an agent's text are text. `no_color` keeps bold and dim, which carry meaning on a terminal.
        console = Plain(file=file, markup=False, highlight=False, emoji=False, no_color=not self._has_color)
        if not console.is_terminal:
            console.width = PIPE_CHARS  # a file has no edge that tables must keep to
        return console


def counted(number: int, what: str) -> str:
    """Return a number with its noun, in the plural where the number is not 1."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def cut(text: str) -> str:
    """Return a text, or the beginning of a long one and how long it is."""
    return text if len(text) <= SHOWN_CHARS_MAX else f"{text[:SHOWN_CHARS_MAX]}… ({len(text):,} characters)"


def clean(text: str) -> str:
    """Return text that cannot steer the terminal: what is not printable is shown as a replacement character."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() or character == "\n" else "\ufffd" for character in text)
