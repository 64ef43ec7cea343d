"""The parts of an expression, as the parser reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct


class Literal(Struct, frozen=True):
    """A value that is written down."""

    value: Any
    at: int


class Name(Struct, frozen=True):
    """A variable."""

    name: str
    at: int


class Select(Struct, frozen=True):
    """`operand.field`, or `operand.?field` where it may be absent."""

    operand: Node
    field: str
    at: int
    is_optional: bool = False


class Index(Struct, frozen=True):
    """`operand[index]`, or `operand[?index]` where it may be absent."""

    operand: Node
    index: Node
    at: int
    is_optional: bool = False


class Has(Struct, frozen=True):
    """`has(operand.field)`."""

    operand: Node
    field: str
    at: int
    is_optional: bool = False


class Call(Struct, frozen=True):
    """A function with its arguments; an operator is a function under its sign. A method has its target first."""

    function: str
    arguments: tuple[Node, ...]
    at: int
    is_method: bool = False


class Items(Struct, frozen=True):
    """A list; `optional` are the places of `?` elements, which are left out where they are absent."""

    items: tuple[Node, ...]
    at: int
    optional: frozenset[int] = frozenset()


class Entries(Struct, frozen=True):
    """A map; `optional` are the places of `?` entries."""

    entries: tuple[tuple[Node, Node], ...]
    at: int
    optional: frozenset[int] = frozenset()


class Macro(Struct, frozen=True):
    """A loop over a list or map: its kind, one or two variables, and what is done with each element."""

    kind: str
    over: Node
    names: tuple[str, ...]
    body: tuple[Node, ...]
    at: int


class Bind(Struct, frozen=True):
    """`cel.bind(name, value, body)`, and what `optMap` and `optFlatMap` do with a value that is there."""

    name: str
    value: Node
    body: Node
    at: int
    kind: str = "bind"


Node = Literal | Name | Select | Index | Has | Call | Items | Entries | Macro | Bind


def children(node: Node) -> tuple[Node, ...]:
    """Return the parts that a part is made of."""
    match node:
        case Literal() | Name():
            return ()
        case Select() | Has():
            return (node.operand,)
        case Index():
            return (node.operand, node.index)
        case Call():
            return node.arguments
        case Items():
            return node.items
        case Entries():
            return tuple(one for entry in node.entries for one in entry)
        case Macro():
            return (node.over, *node.body)
        case Bind():
            return (node.value, node.body)


def walk(node: Node) -> Iterator[Node]:
    """Yield a part and everything it is made of."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += children(one)
