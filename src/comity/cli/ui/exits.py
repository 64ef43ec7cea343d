"""How a command ends: the exit codes, and the error that carries one."""

from __future__ import annotations

from collections.abc import Coroutine
from enum import IntEnum
from typing import Any, Final

from comity.core.document.payload import Problem


class Exit(IntEnum):
    """What the shell sees."""

    OK = 0
    NO_RESULT = 1
    USAGE = 2
    REFUSED = 3
    NOT_FOUND = 4
    DAMAGED = 5
    INTERRUPTED = 130
    TERMINATED = 143


MEANINGS: Final[dict[Exit, str]] = {
    Exit.OK: "done",
    Exit.NO_RESULT: "the call ended as error, timeout, cancelled or needs_input",
    Exit.USAGE: "wrong usage, bad input, or a bad declaration of agents",
    Exit.REFUSED: "a rule refused the call",
    Exit.NOT_FOUND: "not found: the agent, capability, call, store or the like that was named",
    Exit.DAMAGED: "the store cannot be used, or the audit is damaged",
    Exit.INTERRUPTED: "interrupted (SIGINT)",
    Exit.TERMINATED: "terminated (SIGTERM)",
}


class CliError(Exception):
    """A command cannot go on: why, what to do next, and the exit code. Shown without a traceback.

    `error_code` is that of the library's error table, where the reason is one of those.
    """

    def __init__(
        self, code: Exit, message: str, *, hint: str = "", problems: tuple[Problem, ...] = (), error_code: str = ""
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.problems = problems
        self.error_code = error_code


def awaited(verb: Coroutine[Any, Any, Exit]) -> Exit:
    """Run a verb that waits for something and return how it ended."""
    import asyncio  # the other verbs do without it

    return asyncio.run(verb)
