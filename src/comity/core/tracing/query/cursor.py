"""Where a parser is in its tokens, how deep it has gone, and how it complains."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from comity.core.tracing.query.errors import QueryError, place
from comity.core.tracing.query.hints import token_hint
from comity.core.tracing.query.lexer import Lex, Token

NESTING_MAX = 50
DEPTH_MAX = 200

_Node = TypeVar("_Node")


class Cursor:
    """A position in a list of tokens that ends in END."""

    __slots__ = ("at", "depths", "nesting", "text", "tokens")

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.at = 0
        self.nesting = 0
        self.depths: dict[int, tuple[int, object]] = {}  # the node is kept with its depth, so that its id stays its own

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def take(self) -> Token:
        token = self.tokens[self.at]
        self.at += 1
        return token

    def sees(self, *marks: str) -> bool:
        return self.token.kind is Lex.MARK and self.token.text in marks

    def sees_word(self, *words: str) -> bool:
        return self.token.kind is Lex.WORD and self.token.text in words

    def expect(self, mark: str) -> Token:
        if not self.sees(mark):
            raise self.unexpected(mark)
        return self.take()

    def separated(self, parse_one: Callable[[], _Node]) -> list[_Node]:
        """Parse one or more things with commas between them."""
        found = [parse_one()]
        while self.sees(","):
            self.take()
            found.append(parse_one())
        return found

    def unexpected(self, expected: str) -> QueryError:
        token = self.token
        hint = token_hint(self.tokens, self.at, self.text)
        if token.kind is Lex.UNKNOWN:
            wanted = "an intrinsic, or an attribute with its scope such as span."
            return self.error(f"unknown identifier: {token.text}", token.at, wanted, hint)
        return self.error(f"unexpected {token.text or token.kind}", token.at, expected, hint)

    def error(self, problem: str, at: int, expected: str = "", hint: str = "") -> QueryError:
        line, column = place(self.text, at)
        return QueryError(problem, line=line, column=column, expected=expected, hint=hint)

    def nested(self, parse_inside: Callable[[], _Node]) -> _Node:
        """Parse one level further in; the levels are bounded, so no query can exhaust the stack."""
        self.nesting += 1
        if self.nesting > NESTING_MAX:
            raise self.error("the query nests too deeply", self.token.at, f"at most {NESTING_MAX} levels")
        found = parse_inside()
        self.nesting -= 1
        return found

    def grown(self, node: _Node, at: int, *children: object) -> _Node:
        """Return the node, having counted how deep its tree is: a long chain of operators is a deep tree too."""
        depth = 1 + max((self.depths.get(id(child), (0, None))[0] for child in children), default=0)
        if depth > DEPTH_MAX:
            raise self.error("the expression is too long", at, f"at most {DEPTH_MAX} operators in a row")
        self.depths[id(node)] = depth, node
        return node
