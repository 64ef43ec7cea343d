"""What a query can get wrong, with the place and what would have been right."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from comity.errors import CallerError


class Fault(StrEnum):
    """Which of the three stages refused the query."""

    SYNTAX = "syntax"
    INVALID = "invalid"
    UNSUPPORTED = "unsupported"


class QueryError(CallerError):
    """The query cannot be run as written; `line` and `column` start at 1 and point at the part that is wrong."""

    default_code: ClassVar[str] = "INPUT_VALIDATION_FAILED"

    def __init__(
        self, problem: str, *, fault: Fault = Fault.SYNTAX, line: int = 1, column: int = 1, expected: str = ""
    ) -> None:
        self.problem = problem
        self.fault = fault
        self.line = line
        self.column = column
        self.expected = expected
        wanted = f"; expected {expected}" if expected else ""
        super().__init__(
            f"line {line}, column {column}: {problem}{wanted}", line=line, column=column, expected=expected, fault=fault
        )


def place(text: str, offset: int) -> tuple[int, int]:
    """Return the line and column, both from 1, of an offset into the query text."""
    line = text.count("\n", 0, offset) + 1
    return line, offset - (text.rfind("\n", 0, offset) + 1) + 1
