"""From the text of an expression to tokens: literals with their values, names, and signs."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any, Final, NamedTuple

from comity.core.expression.errors import ExpressionError
from comity.core.expression.values import INT_MAX, UINT_MAX, Uint

TEXT_CHARS_MAX: Final = 4_096


class Kind(StrEnum):
    """What a token is."""

    LITERAL = "literal"
    NAME = "name"
    QUOTED = "quoted name"
    SIGN = "sign"
    END = "end"


class Token(NamedTuple):
    """One token, what it means, and where it begins."""

    kind: Kind
    value: Any
    at: int


_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r\n\f]+|//[^\n]*)
    |(?P<double>(?:\d+\.\d+(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+))
    |(?P<hex>0[xX][0-9a-fA-F]+)(?P<hexu>[uU]?)
    |(?P<int>\d+)(?P<intu>[uU]?)
    |(?P<prefix>[rRbB]{0,2})(?P<quote>\"\"\"|'''|\"|')
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |`(?P<quoted>[A-Za-z0-9_.\-/\x20]+)`
    |(?P<sign>&&|\|\||==|!=|<=|>=|[-+*/%!<>?:.,()\[\]{}])""",
    re.VERBOSE,
)
_PREFIXES: Final = {"", "r", "b", "rb", "br"}
_ESCAPE: Final = re.compile(
    r"\\(?:(?P<plain>[abfnrtv\\?\"'`])|[xX](?P<hex>[0-9a-fA-F]{2})|u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8})"
    r"|(?P<octal>[0-3][0-7]{2}))|(?P<bad>\\)",
    re.DOTALL,
)
_PLAIN: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_WORDS: Final[dict[str, Any]] = {"true": True, "false": False, "null": None}


def tokens(text: str) -> list[Token]:
    """Return the tokens of an expression. Raises `ExpressionError`."""
    if len(text) > TEXT_CHARS_MAX:
        raise ExpressionError(f"an expression may have {TEXT_CHARS_MAX} characters; this has {len(text)}", TEXT_CHARS_MAX)
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ExpressionError(f"unexpected {text[at]!r}", at)
        if match["quote"] is not None:
            value, end = _string(text, match)
            found.append(Token(Kind.LITERAL, value, at))
            at = end
            continue
        if match["space"] is None:
            found.append(_token(match, at))
        at = match.end()
    found.append(Token(Kind.END, "the end", len(text)))
    return found


def _token(match: re.Match[str], at: int) -> Token:
    if match["double"] is not None:
        return Token(Kind.LITERAL, float(match["double"]), at)
    for digits, mark, base in (("hex", "hexu", 16), ("int", "intu", 10)):
        if match[digits] is not None:
            number = int(match[digits], base)
            if match[mark]:
                if number > UINT_MAX:
                    raise ExpressionError(f"{match.group()} is too large for an unsigned number", at)
                return Token(Kind.LITERAL, Uint(number), at)
            if number > INT_MAX + 1:  # the smallest number is written with a minus before it
                raise ExpressionError(f"{match.group()} is too large for a whole number", at)
            return Token(Kind.LITERAL, number, at)
    if match["name"] is not None:
        word = match["name"]
        return Token(Kind.LITERAL, _WORDS[word], at) if word in _WORDS else Token(Kind.NAME, word, at)
    if match["quoted"] is not None:
        return Token(Kind.QUOTED, match["quoted"], at)
    return Token(Kind.SIGN, match["sign"], at)


def _string(text: str, match: re.Match[str]) -> tuple[str | bytes, int]:
    prefix, quote = match["prefix"].lower(), match["quote"]
    if prefix not in _PREFIXES:
        raise ExpressionError(f"unexpected {match['prefix']!r} before a text", match.start())
    is_raw, is_bytes, start = "r" in prefix, "b" in prefix, match.end()
    end = start
    while True:
        if end >= len(text) or (len(quote) == 1 and text[end] in "\r\n"):
            raise ExpressionError("the text has no end", match.start())
        if text.startswith(quote, end):
            break
        end += 2 if text[end] == "\\" and not is_raw else 1
    body = text[start:end]
    if len(quote) == 3:
        body = body.replace("\r\n", "\n").replace("\r", "\n")
    after = end + len(quote)
    if is_raw:
        return (body.encode() if is_bytes else body), after
    return (_bytes(body, start) if is_bytes else _ESCAPE.sub(lambda one: _character(one, start), body)), after


def _character(escape: re.Match[str], start: int) -> str:
    if escape["bad"]:
        raise ExpressionError(f"unknown escape {escape.string[escape.start() : escape.start() + 2]!r}", start + escape.start())
    if escape["plain"]:
        return _PLAIN.get(escape["plain"], escape["plain"])
    code = int(escape["octal"], 8) if escape["octal"] else int(escape["hex"] or escape["short"] or escape["long"], 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise ExpressionError(f"{escape.group()} is no character", start + escape.start())
    return chr(code)


def _bytes(body: str, start: int) -> bytes:
    pieces: list[bytes] = []
    end = 0
    for escape in _ESCAPE.finditer(body):
        pieces.append(body[end : escape.start()].encode())
        end = escape.end()
        if escape["short"] or escape["long"]:
            raise ExpressionError(f"{escape.group()} is no byte", start + escape.start())
        character = _character(escape, start)
        pieces.append(bytes([ord(character)]))
    pieces.append(body[end:].encode())
    return b"".join(pieces)
