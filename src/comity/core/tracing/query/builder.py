"""Queries built from values instead of text.

A value never becomes part of a query's text by hand: it becomes a node, and the printer quotes it. So no value, whatever it
holds, can change what is asked.

    spans(where("span.insight.type", "=", "decision"), where("span.insight.confidence", ">=", 0.8)).select("name").build()
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import reduce
from typing import Any

from comity.core.tracing.query import ast
from comity.core.tracing.query.errors import Fault, QueryError
from comity.core.tracing.query.lexer import Lex, tokenize
from comity.core.tracing.query.validate import validate
from comity.core.tracing.query.values import Duration, Type, type_of
from comity.core.tracing.span import INT64_MAX, INT64_MIN

_CHAIN_MAX = 32
_ALTERNATIVES = {"=": "||", "=~": "||", "!=": "&&", "!~": "&&"}


def attribute(name: str, scope: ast.Scope = ast.Scope.SPAN) -> ast.Attribute:
    """Return an attribute by a name that may hold anything."""
    if not name:
        raise _refused("an attribute has a name")
    return ast.Attribute(scope, _text(name))


def field(written: str | ast.Field) -> ast.Field:
    """Return the field a query would write so, such as `span.insight.type` or `duration`."""
    if not isinstance(written, str):
        return written
    tokens = tokenize(written)
    if len(tokens) != 2 or tokens[0].kind is not Lex.FIELD or tokens[0].text != written:
        raise _refused(f"{written!r} is not a field", "an intrinsic, or an attribute with its scope such as span.name")
    found: ast.Field = tokens[0].value
    return replace(found, at=0)


def where(left: str | ast.Field, op: str, value: Any) -> ast.Expression:
    """Return a condition. Several values mean any of them, or for `!=` and `!~` none of them."""
    if op not in ast.COMPARISONS:
        raise _refused(f"{op!r} is not a comparison", "one of " + " ".join(sorted(ast.COMPARISONS)))
    found = field(left)
    if not isinstance(value, list | tuple | set | frozenset):
        return ast.Binary(op, found, _literal(value))
    if op not in _ALTERNATIVES or not value:
        raise _refused(f"{op} takes one value")
    conditions: list[ast.Expression] = [ast.Binary(op, found, _literal(one)) for one in value]
    return _chained(_ALTERNATIVES[op], conditions)


def every(*conditions: ast.Expression) -> ast.Expression:
    """Return the condition that all hold; of none, that is true."""
    return _chained("&&", list(conditions))


def either(*conditions: ast.Expression) -> ast.Expression:
    """Return the condition that one of them holds."""
    if not conditions:
        raise _refused("nothing is left to choose from")
    return _chained("||", list(conditions))


def _chained(op: str, conditions: list[ast.Expression]) -> ast.Expression:
    if not conditions:
        return ast.Literal(True)
    if len(conditions) <= _CHAIN_MAX:
        return reduce(lambda left, right: ast.Binary(op, left, right), conditions)
    # Many are halved instead of chained: a tree as deep as it is long could not be run.
    middle = (len(conditions) + 1) // 2
    return ast.Binary(op, _chained(op, conditions[:middle]), _chained(op, conditions[middle:]))


@dataclass(frozen=True, slots=True)
class Builder:
    """A search being built; every step returns a new one."""

    stages: tuple[ast.Stage, ...]
    hints: tuple[tuple[str, ast.Literal], ...] = ()

    def select(self, *fields: str | ast.Field) -> Builder:
        """Also show these fields of each span."""
        if not fields:
            raise _refused("select() shows at least one field")
        return replace(self, stages=(*self.stages, ast.Select(tuple(field(one) for one in fields))))

    def group_by(self, one: str | ast.Field) -> Builder:
        """Split the spans of each trace by a field."""
        return replace(self, stages=(*self.stages, ast.GroupBy(field(one))))

    def count(self, op: str, number: int) -> Builder:
        """Keep the groups whose number of spans compares to `number` as `op` says."""
        stage = ast.ScalarFilter(op, ast.Aggregate("count", None), _literal(number))
        return replace(self, stages=(*self.stages, stage))

    def most_recent(self) -> Builder:
        """Prefer the newest traces to the first found."""
        return replace(self, hints=(*self.hints, ("most_recent", ast.Literal(True))))

    def build(self) -> ast.Query:
        """Return the query, or raise `QueryError` if its parts do not fit together."""
        query = ast.Query(ast.Pipeline(self.stages), self.hints)
        validate(query)
        return query


def spans(*conditions: ast.Expression) -> Builder:
    """Start a search for spans on which all conditions hold."""
    return Builder((ast.SpansetFilter(every(*conditions)),))


def _literal(value: Any) -> ast.Literal:
    if isinstance(value, timedelta):
        value = Duration(value // timedelta(microseconds=1) * 1000)
    kind = type_of(value)
    if (kind is Type.NIL and value is not None) or kind is Type.ARRAY:
        raise _refused(f"a {type(value).__name__} is not a value of a query")
    if kind is Type.STRING:
        _text(value)
    if kind is Type.FLOAT and not math.isfinite(value):
        raise _refused(f"{value} is not a value of a query", "a finite number")
    if kind in (Type.INT, Type.DURATION) and not INT64_MIN <= value <= INT64_MAX:
        raise _refused(f"{value} is too large", "a 64-bit integer")
    return ast.Literal(value)


def _text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _refused("the text holds half of a surrogate pair", "valid Unicode") from None
    return text


def _refused(problem: str, expected: str = "") -> QueryError:
    return QueryError(problem, fault=Fault.INVALID, expected=expected)
