"""What the author of a query probably meant where it cannot be read: a sentence for the error, or nothing.

Most mistakes come from other languages (`==`, `and`, `in`, single quotes) or are a letter away from a word of this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from comity.core.tracing.query import ast
from comity.core.tracing.query.errors import nearest
from comity.core.tracing.query.lexer import CONSTANTS, SCOPES, WORDS, Lex, Token
from comity.core.tracing.query.values import Type
from comity.core.tracing.span import Kind, Status

_REGEX: Final = 'use a regular expression, as in .name =~ ".*text.*"'
_LIST: Final = 'use a regular expression or alternatives: .name =~ "a|b", or .name = "a" || .name = "b"'
_FOREIGN: Final = {
    "and": "write && for and",
    "or": "write || for or",
    "not": "write ! for not, or != where two things are compared",
    "in": _LIST,
    "like": _REGEX,
    "ilike": _REGEX,
    "contains": _REGEX,
    "matches": _REGEX,
    "is": "write = for is, and != nil to ask whether an attribute is there",
    "exists": "write != nil to ask whether an attribute is there",
    "null": "write nil for null",
    "none": "write nil for none",
    "undefined": "write nil for undefined",
    "where": "the condition stands in braces: { … }",
    "group": "write by(…) for group by",
    "limit": "how many traces are returned is said beside the query, not in it",
    "p50": "write quantile_over_time(duration, 0.5)",
    "p90": "write quantile_over_time(duration, 0.9)",
    "p95": "write quantile_over_time(duration, 0.95)",
    "p99": "write quantile_over_time(duration, 0.99)",
}
# Written against the token before them, without a space between.
_PAIRS: Final = {
    "==": "write = for ==",
    "!==": "write != for !==",
    "<>": "write != for <>",
    "=>": "write >= for =>",
    "=<": "write <= for =<",
    "~=": "write =~ for ~=",
    "|=": "write =~ for |=; the attribute stands on its left",
}
_UNITS: Final = frozenset({"sec", "secs", "second", "seconds", "min", "mins", "minute", "minutes", "hour", "hours", "msec"})
_STATUS_NAMES, _KIND_NAMES = frozenset({"status", "span:status"}), frozenset({"kind", "span:kind"})


def token_hint(tokens: Sequence[Token], at: int, text: str) -> str:
    """Return what the token at `at`, which cannot stand there, was probably meant to be."""
    token = tokens[at]
    before = tokens[at - 1] if at else None
    if before is not None and before.at + len(before.text) == token.at and (hint := _pair(before, token, text)):
        return hint
    following = tokens[at + 1] if token.kind is not Lex.END else token
    if token.kind is Lex.MARK and following.at == token.at + 1 and token.text + following.text in _PAIRS:
        return _PAIRS[token.text + following.text]
    if token.kind is Lex.UNKNOWN:
        return _unknown(token, before, text)
    if before is not None and before.kind is Lex.WORD and token.text != "(" and before.text not in ("by", "select", "with"):
        return f"write {before.text}(…): a function has parentheses"
    if token.kind is Lex.FIELD and before is not None and before.text in ("by", "select"):
        return f"write {before.text}({token.text}): the fields stand in parentheses"
    if token.kind is Lex.FIELD and before is None:
        return "the condition stands in braces, as in { status = error }"
    if token.text == "by":
        return "write by(…) before the aggregate: | by(…) | count() > 1"
    if token.text == "/":
        return 'a regular expression stands in double quotes: =~ "…"'
    if _is_inside(tokens, at) and token.text in ("|", ","):
        return "write || for or, && for and"
    return ""


def _pair(before: Token, token: Token, text: str) -> str:
    pair = text[before.at : token.at + len(token.text)]
    if before.kind is token.kind is Lex.MARK:
        return _PAIRS.get(pair, "")
    if before.kind is Lex.LITERAL and type(before.value) in (int, float) and token.text.casefold() in _UNITS:
        return f"a duration has one of the units ns, us, ms, s, m, h, d, as in {before.text}{token.text[0]}"
    return ""


def _unknown(token: Token, before: Token | None, text: str) -> str:
    word = token.text
    if foreign := _FOREIGN.get(word.casefold()):
        return foreign
    end = token.at + len(word)
    if text[end : end + 1] == ".":
        rest = text[token.at :].split(maxsplit=1)[0].partition("=")[0]
        close = nearest(word, SCOPES)
        return f"did you mean {close}.?" if close else f"an attribute has a scope: span.{rest}, resource.{rest} or .{rest}"
    if before is not None and before.text in ast.COMPARISONS:
        return _value(word, text[: before.at])
    if before is not None and before.text == "|":
        return _did_you_mean(nearest(word, WORDS))
    if close := nearest(word, {name for name in ast.INTRINSICS if ":" not in name}):
        return _did_you_mean(close)
    if before is None or before.text in ("{", "(", "&&", "||", "!"):
        return f"an attribute has a scope: span.{word}, resource.{word} or .{word}"
    return _did_you_mean(nearest(word, WORDS | CONSTANTS.keys()))


def _value(word: str, left: str) -> str:
    """Return what was meant by a bare word that something is compared with."""
    words = left.split()
    compared = words[-1].lstrip("{(!") if words else ""
    for names, values in ((_STATUS_NAMES, Status), (_KIND_NAMES, Kind)):
        if compared in names:
            known = [str(one) for one in values]
            return _did_you_mean(nearest(word, known)) or f"{compared} is one of {', '.join(known)}"
    if close := nearest(word, ("true", "false", "nil")):
        return _did_you_mean(close)
    return f'a text stands in double quotes: "{word}"'


def _did_you_mean(word: str) -> str:
    return f"did you mean {word}?" if word else ""


def _is_inside(tokens: Sequence[Token], at: int) -> bool:
    """Return whether the token stands between braces."""
    marks = [token.text for token in tokens[:at] if token.kind is Lex.MARK]
    return marks.count("{") > marks.count("}")


def type_hint(node: ast.Binary) -> str:
    """Return what was meant by a comparison of two types, where it is a keyword or a duration in quotes."""
    for field, other in ((node.left, node.right), (node.right, node.left)):
        if not isinstance(other, ast.Literal):
            continue
        if isinstance(field, ast.Literal) and isinstance(field.value, Status) and isinstance(other.value, bool):
            return f"did you mean status {'=' if other.value else '!='} {field}?"
        if isinstance(field, ast.IntrinsicField) and isinstance(other.value, str):
            known = {ast.Intrinsic.STATUS: Status, ast.Intrinsic.KIND: Kind}.get(field.intrinsic)
            if known is not None:
                close = nearest(other.value, map(str, known))
                values = ", ".join(map(str, known))
                return f"write {field} {node.op} {close}, without quotes" if close else f"{field} is one of {values}"
            if ast.INTRINSIC_TYPES[field.intrinsic] is Type.DURATION:
                return f"write the duration without quotes: {field} {node.op} {other.value}"
    return ""
