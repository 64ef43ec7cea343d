"""What goes wrong with an expression: its text cannot be read, or it has no value for what it was given."""

from __future__ import annotations


class ExpressionError(ValueError):
    """The text of an expression is no expression. `at` is the offset of the first character that does not fit."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.message = message
        self.at = at


class EvaluationError(Exception):
    """An expression has no value for these variables: a wrong type, an overflow, a division by zero."""


class MissingError(EvaluationError):
    """A variable, a key or an index that an expression names is not there."""


class CostError(EvaluationError):
    """An expression would take more steps than it may. `&&`, `||` and macros do not absorb this."""
