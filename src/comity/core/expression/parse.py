"""From tokens to the tree of an expression, by precedence climbing: one function a level of nesting, not one a precedence."""

from __future__ import annotations

from typing import Final

from comity.core.expression.ast import Bind, Call, Entries, Has, Index, Items, Literal, Macro, Name, Node, Select, children
from comity.core.expression.errors import ExpressionError
from comity.core.expression.lexer import Kind, Token, tokens
from comity.core.expression.values import INT_MAX

NESTING_MAX: Final = 64
HEIGHT_MAX: Final = 200
_BINARY: Final = {
    "||": 1, "&&": 2, "==": 3, "!=": 3, "<": 3, "<=": 3, ">": 3, ">=": 3, "in": 3, "+": 4, "-": 4, "*": 5, "/": 5, "%": 5,
}  # fmt: skip
_RESERVED: Final = frozenset(
    "as break const continue else for function if import let loop package namespace return var void while".split()  # noqa: SIM905
)
# How many arguments each macro takes, its variables counted.
_MACROS: Final[dict[str, frozenset[int]]] = {
    "all": frozenset({2, 3}),
    "exists": frozenset({2, 3}),
    "exists_one": frozenset({2, 3}),
    "existsOne": frozenset({2, 3}),
    "filter": frozenset({2}),
    "map": frozenset({2, 3}),
    "transformList": frozenset({3, 4}),
    "transformMap": frozenset({3, 4}),
    "transformMapEntry": frozenset({3, 4}),
}
_ONE_NAME: Final = frozenset({"filter", "map"})


def parse(text: str) -> Node:
    """Return the tree of an expression. Raises `ExpressionError` with the place of what does not fit."""
    return _Parser(text).whole()


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = tokens(text)
        self._next = 0
        self._depth = 0

    def whole(self) -> Node:
        node = self._expression()
        if self._token.kind is not Kind.END:
            raise self._unexpected()
        _check_height(node)
        return node

    # --- tokens ---

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._tokens[self._next]
        self._next += 1
        return token

    def _is(self, sign: str) -> bool:
        token = self._token
        return token.kind is Kind.SIGN and token.value == sign

    def _skip(self, sign: str) -> bool:
        if self._is(sign):
            self._next += 1
            return True
        return False

    def _expect(self, sign: str) -> None:
        if not self._skip(sign):
            raise ExpressionError(f"expected {sign!r}, found {_shown(self._token)}", self._token.at)

    def _unexpected(self) -> ExpressionError:
        return ExpressionError(f"unexpected {_shown(self._token)}", self._token.at)

    # --- expressions ---

    def _expression(self) -> Node:
        """Read a whole expression, with its ternary."""
        self._depth += 1
        if self._depth > NESTING_MAX:
            raise ExpressionError(f"an expression may be nested {NESTING_MAX} levels deep", self._token.at)
        choices: list[tuple[Node, Node, int]] = []
        node = self._binary(1)
        while self._is("?"):  # a chain of ternaries is as deep as one
            at = self._take().at
            then = self._binary(1)
            self._expect(":")
            choices.append((node, then, at))
            node = self._binary(1)
        for condition, then, at in reversed(choices):
            node = Call("?:", (condition, then, node), at)
        self._depth -= 1
        return node

    def _binary(self, least: int) -> Node:
        left = self._unary()
        while True:
            token = self._token
            sign = str(token.value) if token.kind is Kind.SIGN or (token.kind is Kind.NAME and token.value == "in") else ""
            precedence = _BINARY.get(sign, 0)
            if precedence < least:
                return left
            self._next += 1
            left = Call(sign, (left, self._binary(precedence + 1)), token.at)

    def _unary(self) -> Node:
        token = self._token
        for sign in ("!", "-"):
            if not self._is(sign):
                continue
            count = 0
            while self._skip(sign):
                count += 1
            is_negative = sign == "-" and self._is_number()  # the minus belongs to the literal: -2**63 has no positive
            node = self._member(minus=is_negative)
            count -= is_negative
            for _ in range(count):
                node = Call("!" if sign == "!" else "neg", (node,), token.at)
            return node
        return self._member()

    def _is_number(self) -> bool:
        return self._token.kind is Kind.LITERAL and type(self._token.value) in (int, float)

    # --- members ---

    def _member(self, *, minus: bool = False) -> Node:
        node = self._primary(minus=minus)
        while True:
            at = self._token.at
            if self._skip("."):
                is_optional = self._skip("?")
                field = self._field()
                if self._is("(") and not is_optional:
                    node = self._method(node, field, at)
                else:
                    node = Select(node, field, at, is_optional)
            elif self._skip("["):
                is_optional = self._skip("?")
                index = self._expression()
                self._expect("]")
                node = Index(node, index, at, is_optional)
            elif self._is("{") and isinstance(node, Name | Select):
                raise ExpressionError("messages are not supported; write a map with quoted keys", at)
            else:
                return node

    def _field(self) -> str:
        token = self._take()
        if token.kind is Kind.NAME and token.value != "in":
            return str(token.value)
        if token.kind is Kind.QUOTED:
            return str(token.value)
        raise ExpressionError(f"expected the name of a field, found {_shown(token)}", token.at)

    def _arguments(self) -> tuple[Node, ...]:
        self._expect("(")
        found: list[Node] = []
        while not self._is(")"):
            found.append(self._expression())
            if not self._skip(","):
                break
        self._expect(")")
        return tuple(found)

    def _method(self, target: Node, name: str, at: int) -> Node:
        arguments = self._arguments()
        path = _path(target)
        if name in _MACROS and len(arguments) in _MACROS[name]:
            names = 1 if name in _ONE_NAME or (len(arguments) == 2 and not name.startswith("transform")) else 2
            variables = [_variable(one) for one in arguments[:names]]
            if len(set(variables)) != names:
                raise ExpressionError(f"the variables of {name} must differ", at)
            return Macro(name, target, tuple(variables), arguments[names:], at)
        if name in {"optMap", "optFlatMap"} and len(arguments) == 2:
            return Bind(_variable(arguments[0]), target, arguments[1], at, name)
        if path == "cel" and name == "bind" and len(arguments) == 3:
            return Bind(_variable(arguments[0]), arguments[1], arguments[2], at)
        if path in {"math", "strings", "base64", "optional"}:
            return Call(f"{path}.{name}", arguments, at)
        return Call(name, (target, *arguments), at, is_method=True)

    def _primary(self, *, minus: bool) -> Node:
        token = self._take()
        if token.kind is Kind.LITERAL:
            return Literal(_number(token, minus=minus), token.at)
        if token.kind is Kind.SIGN:
            if token.value == "(":
                node = self._expression()
                self._expect(")")
                return node
            if token.value == "[":
                return self._items(token.at)
            if token.value == "{":
                return self._entries(token.at)
            if token.value == "." and self._token.kind is Kind.NAME:  # the name from the root
                return self._named(self._take())
        if token.kind is Kind.NAME:
            return self._named(token)
        self._next -= 1
        raise self._unexpected()

    def _named(self, token: Token) -> Node:
        name = str(token.value)
        if name in _RESERVED or name == "in":
            raise ExpressionError(f"{name!r} is a reserved word", token.at)
        if not self._is("("):
            return Name(name, token.at)
        arguments = self._arguments()
        if name != "has":
            return Call(name, arguments, token.at)
        select = arguments[0] if len(arguments) == 1 else None
        if not isinstance(select, Select):
            raise ExpressionError("has() takes one path, such as has(response.data)", token.at)
        return Has(select.operand, select.field, token.at, select.is_optional)

    def _items(self, at: int) -> Node:
        items: list[Node] = []
        optional: set[int] = set()
        while not self._is("]"):
            if self._skip("?"):
                optional.add(len(items))
            items.append(self._expression())
            if not self._skip(","):
                break
        self._expect("]")
        return Items(tuple(items), at, frozenset(optional))

    def _entries(self, at: int) -> Node:
        entries: list[tuple[Node, Node]] = []
        optional: set[int] = set()
        while not self._is("}"):
            if self._skip("?"):
                optional.add(len(entries))
            key = self._expression()
            self._expect(":")
            entries.append((key, self._expression()))
            if not self._skip(","):
                break
        self._expect("}")
        return Entries(tuple(entries), at, frozenset(optional))


def _check_height(root: Node) -> None:
    """Refuse a tree that is too high to walk by recursion, such as a sum of a thousand terms."""
    level: list[Node] = [root]
    for _ in range(HEIGHT_MAX):
        level = [below for node in level for below in children(node)]
        if not level:
            return
    raise ExpressionError(f"the expression has more than {HEIGHT_MAX} operations inside of each other", level[0].at)


def _number(token: Token, *, minus: bool) -> object:
    value = -token.value if minus else token.value
    if type(value) is int and value > INT_MAX:
        raise ExpressionError(f"{value} is too large for a whole number", token.at)
    return value


def _variable(node: Node) -> str:
    if isinstance(node, Name):
        return node.name
    raise ExpressionError("expected the name of a variable", node.at)


def _path(node: Node) -> str:
    return node.name if isinstance(node, Name) else ""


def _shown(token: Token) -> str:
    return "the end" if token.kind is Kind.END else repr(token.value)
