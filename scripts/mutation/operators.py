"""Operators for Cosmic Ray that a hostile reviewer would plant: a dropped condition, guard or statement, swapped arguments."""

from __future__ import annotations

from collections.abc import Iterator

import parso
from cosmic_ray.operators.operator import Operator
from parso.tree import NodeOrLeaf

Position = tuple[tuple[int, int], tuple[int, int]]
_EFFECTS = ("atom_expr", "await_expr", "power")


def _parsed(code: str) -> NodeOrLeaf:
    return parso.parse(code)


class _Named(Operator):
    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


class DropOperand(_Named):
    """`a and b and c` becomes `b and c`, `a and c` or `a and b`; `or` likewise."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[Position]:
        if node.type in ("and_test", "or_test"):
            for operand in node.children[::2]:
                yield operand.start_pos, operand.end_pos

    def mutate(self, node: NodeOrLeaf, index: int) -> NodeOrLeaf:
        word = f" {node.children[1].value} "
        kept = [operand.get_code(include_prefix=False) for n, operand in enumerate(node.children[::2]) if n != index]
        return _parsed(node.get_first_leaf().prefix + word.join(kept))


class DropPair(_Named):
    """`(a, b) == (c, d)` becomes `(b,) == (d,)` or `(a,) == (c,)`, so that one part of a border is not compared."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[Position]:
        if node.type == "comparison" and len(node.children) == 3:
            first, second = _elements(node.children[0]), _elements(node.children[2])
            if first and len(first) == len(second):
                for one, other in zip(first, second, strict=True):
                    yield one.start_pos, other.end_pos

    def mutate(self, node: NodeOrLeaf, index: int) -> NodeOrLeaf:
        kept = [[one.get_code().strip() for one in _elements(node.children[side])] for side in (0, 2)]
        first, second = (f"({', '.join(part[:index] + part[index + 1 :])},)" for part in kept)
        return _parsed(f"{node.get_first_leaf().prefix}{first} {node.children[1].get_code().strip()} {second}")


def _elements(node: NodeOrLeaf) -> list[NodeOrLeaf]:
    """Return the elements of a tuple of two or more, or nothing."""
    if node.type != "atom" or node.children[0] != "(" or node.children[1].type != "testlist_comp":
        return []
    inner = node.children[1].children
    return [] if inner[1] != "," else [one for one in inner if one != ","]


class SkipBranch(_Named):
    """`if a:` becomes `if False and (a):`, so that a guard is never heard."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[Position]:
        if node.type == "if_stmt":
            yield node.children[1].start_pos, node.children[1].end_pos

    def mutate(self, node: NodeOrLeaf, index: int) -> NodeOrLeaf:
        del index
        node.children[1] = _parsed(f" False and ({node.children[1].get_code(include_prefix=False)})")
        return node


class DropStatement(_Named):
    """A call made for its effect, or an assignment to an attribute or item, becomes `pass`."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[Position]:
        if node.type == "simple_stmt" and _has_effect(node.children[0]):
            yield node.start_pos, node.end_pos

    def mutate(self, node: NodeOrLeaf, index: int) -> NodeOrLeaf:
        del index
        first = node.children[0]
        node.children[0] = _parsed(first.get_first_leaf().prefix + "pass")
        return node


def _has_effect(statement: NodeOrLeaf) -> bool:
    if statement.type == "expr_stmt":
        return statement.children[0].type in _EFFECTS or (
            statement.children[1].type == "operator" and statement.children[1].value != "="
        )
    return statement.type in _EFFECTS


class SwapArguments(_Named):
    """`f(a, b, c)` becomes `f(b, a, c)`, but for functions to which the order is all the same."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[Position]:
        if node.type == "arglist" and _called(node) not in ("min", "max"):
            first, second = node.children[0], node.children[2]
            is_positional = "argument" not in (first.type, second.type) and "*" not in first.get_code() + second.get_code()
            if is_positional and first.get_code().strip() != second.get_code().strip():
                yield first.start_pos, second.end_pos

    def mutate(self, node: NodeOrLeaf, index: int) -> NodeOrLeaf:
        del index
        first, second = (node.children[n].get_code(include_prefix=False) for n in (0, 2))
        node.children[0] = _parsed(node.children[0].get_first_leaf().prefix + second)
        node.children[2] = _parsed(node.children[2].get_first_leaf().prefix + first)
        return node


def _called(arguments: NodeOrLeaf) -> str:
    """Return the name before the bracket in which arguments stand."""
    return str(arguments.get_first_leaf().get_previous_leaf().get_previous_leaf().value)


OWN = (DropOperand, DropPair, SkipBranch, DropStatement, SwapArguments)
