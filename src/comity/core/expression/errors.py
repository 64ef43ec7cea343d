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


def no_overload(what: str, *values: object) -> EvaluationError:
    """Return the error for an operation that these types do not have."""
    from comity.core.expression.values import type_name  # noqa: PLC0415  values raise these errors

    return EvaluationError(f"{what} does not take {' and '.join(type_name(value) for value in values)}")
