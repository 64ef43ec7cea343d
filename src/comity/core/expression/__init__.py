"""Expressions in CEL: the conditions of edges and the values of mappings. Compiled once, pure, bounded in cost.

`Expression(text).value(variables)` is the CEL value and raises `EvaluationError`. `.holds(variables)` is what an edge asks: a
path that is missing makes it false, where CEL has an error.
"""

from __future__ import annotations

from typing import Any

from comity.core.expression.ast import Bind, Call, Macro, Name, Node, children, walk
from comity.core.expression.compile import compiled, known_function, unknown_function
from comity.core.expression.errors import CostError, EvaluationError, ExpressionError, MissingError
from comity.core.expression.functions import TYPE_NAMES
from comity.core.expression.macros import STEPS_MAX, Variables, bounded
from comity.core.expression.parse import parse
from comity.core.expression.values import no_overload

__all__ = [
    "STEPS_MAX",
    "CostError",
    "EvaluationError",
    "Expression",
    "ExpressionError",
    "MissingError",
    "Variables",
    "bounded",
    "parse",
]


class Expression:
    """One expression, read and compiled. Raises `ExpressionError` if its text is none."""

    __slots__ = ("_evaluate", "_is_bounded", "text", "tree")

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = parse(text)
        self._evaluate = compiled(self.tree)
        self._is_bounded = not _can_be_costly(self.tree)

    def value(self, variables: Variables) -> Any:
        """Return the value for these variables. Raises `EvaluationError` if there is none."""
        if self._is_bounded:
            return self._evaluate(variables)
        return self._evaluate(bounded(variables))

    def problems(self) -> list[ExpressionError]:
        """Return the functions it names that do not exist, each with its place: they fail when they are evaluated."""
        calls = (
            node
            for node in walk(self.tree)
            if isinstance(node, Call) and node.function.isidentifier() and node.function != "in"
        )
        return [ExpressionError(unknown_function(one), one.at) for one in calls if known_function(one) is None]

    @property
    def names(self) -> frozenset[str]:
        """The variables it reads; those that its own macros and bindings name are not among them."""
        return frozenset(_free(self.tree))

    def holds(self, variables: Variables) -> bool:
        """Return whether a condition is true; a path that is missing makes it false. Raises `EvaluationError`."""
        try:
            found = self._evaluate(variables) if self._is_bounded else self.value(variables)
        except MissingError:
            return False
        if found is True or found is False:
            return bool(found)
        raise no_overload("a condition", found)


def _can_be_costly(tree: Node) -> bool:
    """Return whether what an expression costs may grow with the variables: it has a loop, or a function besides operators."""
    return any(isinstance(node, Macro) or (isinstance(node, Call) and node.function.isidentifier()) for node in walk(tree))


def _free(tree: Node) -> set[str]:
    """Return the variables that a part reads and does not bind itself."""
    match tree:
        case Name():
            return {tree.name} - TYPE_NAMES.keys()
        case Macro():
            return _free(tree.over) | {name for part in tree.body for name in _free(part)} - {*tree.names}
        case Bind():
            return _free(tree.value) | (_free(tree.body) - {tree.name})
    return {name for part in children(tree) for name in _free(part)}
