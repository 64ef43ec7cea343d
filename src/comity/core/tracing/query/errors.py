"""What a query can get wrong, with the place and what would have been right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import StrEnum
from typing import ClassVar, Final

from comity.errors import CallerError

_LIKENESS: Final = 0.6


class Fault(StrEnum):
    """Which of the three stages refused the query."""

    SYNTAX = "syntax"
    INVALID = "invalid"
    UNSUPPORTED = "unsupported"


class QueryError(CallerError):
    """The query cannot be run as written; `line` and `column` start at 1 and point at the part that is wrong.

    `hint` says what was probably meant, where that can be told; the message has it in place of what was expected.
    """

    default_code: ClassVar[str] = "INPUT_VALIDATION_FAILED"

    def __init__(
        self,
        problem: str,
        *,
        fault: Fault = Fault.SYNTAX,
        line: int = 1,
        column: int = 1,
        expected: str = "",
        hint: str = "",
    ) -> None:
        self.problem = problem
        self.fault = fault
        self.line = line
        self.column = column
        self.expected = expected
        self.hint = hint
        wanted = f"; expected {expected}" if expected else ""
        wanted = f"; {hint}" if hint else wanted
        super().__init__(
            f"line {line}, column {column}: {problem}{wanted}", line=line, column=column, expected=expected, fault=fault
        )


def place(text: str, offset: int) -> tuple[int, int]:
    """Return the line and column, both from 1, of an offset into the query text."""
    line = text.count("\n", 0, offset) + 1
    return line, offset - (text.rfind("\n", 0, offset) + 1) + 1


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known word that `word` is most like, or empty text."""
    folded = {one.casefold(): one for one in sorted(known)}
    found = difflib.get_close_matches(word.casefold(), folded, n=1, cutoff=_LIKENESS)
    return folded[found[0]] if found else ""
