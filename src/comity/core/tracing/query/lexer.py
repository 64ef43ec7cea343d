"""Query text to tokens.

TraceQL cannot be cut into tokens by one pattern: after `span.` nearly every character belongs to the attribute's name,
quoted parts and what looks like a comment included. So the scanner takes fields whole and leaves only marks, words, numbers,
strings and comments to patterns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from comity.core.call.limits import CITED_CHARS_MAX
from comity.core.tracing.query.ast import (
    AGGREGATES,
    ARITHMETIC,
    COMPARISONS,
    INTRINSICS,
    METRICS,
    NAME_ENDS,
    RANKINGS,
    SPACES,
    SPANSET_OPERATORS,
    Attribute,
    IntrinsicField,
    Scope,
)
from comity.core.tracing.query.errors import QueryError, nearest, place
from comity.core.tracing.query.values import DURATION_PART, parse_duration
from comity.core.tracing.span import INT64_MAX, INT64_MIN, Kind, Status

TEXT_CHARACTERS_MAX = 32_768
TOKENS_MAX = 4_096


class Lex(StrEnum):
    """The kinds of token."""

    MARK = "mark"
    WORD = "word"
    FIELD = "field"
    LITERAL = "literal"
    UNKNOWN = "identifier"
    END = "end of query"


@dataclass(frozen=True, slots=True)
class Token:
    """One token; `value` is the literal's value or the field's node, `text` what was written."""

    kind: Lex
    text: str
    at: int
    value: Any = None


WORDS = AGGREGATES | METRICS | RANKINGS | {"by", "coalesce", "select", "with"}
CONSTANTS: dict[str, Any] = (
    {"true": True, "false": False, "nil": None, "minInt": INT64_MIN, "maxInt": INT64_MAX}
    | {str(status): status for status in Status}
    | {str(kind): kind for kind in Kind}
)
SCOPES = {str(scope): scope for scope in Scope if scope}
# OpenTelemetry keeps these names on resources, so a name without a scope means the resource's.
_RESOURCE_WORDS = frozenset({"service", "deployment", "telemetry", "host", "process", "k8s", "container", "cloud"})
_COLON_SCOPES = frozenset({"span", "trace", "event", "link", "instrumentation"})
_MARKS = SPANSET_OPERATORS | COMPARISONS | ARITHMETIC | frozenset("{}(),|!")
_MARK = re.compile("|".join(re.escape(mark) for mark in sorted(_MARKS, key=len, reverse=True)))
_WORD = re.compile(r"[^\W\d]\w*")
_DIGITS = "0123456789"
_NUMBER = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DURATION = re.compile(rf"(?:{DURATION_PART.pattern})+(?!\w)")
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`([^`]*)`', re.DOTALL)
_QUOTED_NAME = re.compile(r'"((?:[^"\\]|\\["\\])*)"')
_ESCAPE = re.compile(r"\\(?:([abfnrtv\\\"])|x([0-9a-fA-F]{2})|([0-7]{3})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.?))", re.DOTALL)
_SIMPLE_ESCAPES = dict(zip('abfnrtv\\"', '\a\b\f\n\r\t\v\\"', strict=True))
# What stands between tokens: spaces, and comments as Go writes them. A line comment ends before its line does.
_BETWEEN = re.compile(f"(?:[{''.join(sorted(SPACES))}]+|//[^\n]*|/\\*.*?\\*/)*", re.DOTALL)
# What a character that begins no token was probably meant to be.
_MEANT = {
    "'": 'texts stand in double quotes: "…"',
    "“": 'texts stand in straight double quotes: "…"',
    "”": 'texts stand in straight double quotes: "…"',
    "‘": 'texts stand in straight double quotes: "…"',
    "’": 'texts stand in straight double quotes: "…"',
    "&": "write && for and",
    "#": "a comment begins with //, or stands between /* and */",
    ":": "write = to compare; a colon stands only in names such as span:id",
    "≠": "write != for ≠",
    "≥": "write >= for ≥",
    "≤": "write <= for ≤",
}


def tokenize(text: str, *, lenient: bool = False) -> list[Token]:
    """Return the tokens of a query, ending in END.

    `lenient` also takes a dotted name without a scope, such as `insight.type`, which Tempo refuses, as an attribute.
    """
    if len(text) > TEXT_CHARACTERS_MAX:
        raise QueryError(f"the query has {len(text):,} characters", expected=f"at most {TEXT_CHARACTERS_MAX:,} characters")
    scanner = _Scanner(text, lenient=lenient)
    tokens = []
    while True:
        token = scanner.next()
        tokens.append(token)
        if token.kind is Lex.END:
            return tokens
        if len(tokens) > TOKENS_MAX:
            raise scanner.error("the query is too long", token.at, f"at most {TOKENS_MAX:,} tokens")


class _Scanner:
    __slots__ = ("at", "lenient", "text")

    def __init__(self, text: str, *, lenient: bool) -> None:
        self.text = text
        self.lenient = lenient
        self.at = 0

    def error(self, problem: str, at: int, expected: str = "", hint: str = "") -> QueryError:
        line, column = place(self.text, at)
        return QueryError(problem, line=line, column=column, expected=expected, hint=hint)

    def next(self) -> Token:
        self.at = start = _end(_BETWEEN, self.text, self.at)
        if self.text.startswith("/*", start):
            raise self.error("the comment is not closed", start, "a closing */")
        if start == len(self.text):
            return Token(Lex.END, "", start)
        character = self.text[start]
        following = self.text[start + 1 : start + 2]
        if character in _DIGITS or (character == "." and following and following in _DIGITS):
            return self._number(start)
        if character == ".":
            return self._attribute(start, start + 1, Scope.NONE, parent=False)
        if character in '"`':
            return self._string(start)
        if word := _WORD.match(self.text, start):
            return self._word(start, word.group())
        if mark := _MARK.match(self.text, start):
            self.at = mark.end()
            return Token(Lex.MARK, mark.group(), start)
        raise self.error(f"unexpected {character!r}", start, hint=_MEANT.get(character, ""))

    def _number(self, start: int) -> Token:
        if found := _DURATION.match(self.text, start):
            duration = parse_duration(found.group())
            if duration is None:
                raise self.error(f"{found.group()} is too long a duration", start)
            self.at = found.end()
            return Token(Lex.LITERAL, found.group(), start, duration)
        found = _NUMBER.match(self.text, start)
        assert found is not None
        self.at = found.end()
        number = found.group()
        if not number.isdecimal():
            value = float(number)
            if value == float("inf"):
                raise self.error(f"{number} is too large", start, "a 64-bit float")
            return Token(Lex.LITERAL, number, start, value)
        if len(number) > 20 or int(number) > INT64_MAX:
            raise self.error(f"{number[:CITED_CHARS_MAX]} is too large", start, "a 64-bit integer")
        return Token(Lex.LITERAL, number, start, int(number))

    def _string(self, start: int) -> Token:
        found = _STRING.match(self.text, start)
        if found is None:
            raise self.error("the string is not closed", start, f"a closing {self.text[start]}")
        self.at = found.end()
        body, raw = found.groups()
        value = raw.replace("\r", "") if body is None else self._unescape(body, start + 1)
        return Token(Lex.LITERAL, found.group(), start, value)

    def _unescape(self, body: str, start: int) -> str:
        if "\\" not in body:
            return body
        out = bytearray()
        at = 0
        for escape in _ESCAPE.finditer(body):
            out += body[at : escape.start()].encode(errors="surrogatepass")
            at = escape.end()
            simple, hexadecimal, octal, short, long, _wrong = escape.groups()
            code = int(short or long or "0", 16)
            if simple:
                out += _SIMPLE_ESCAPES[simple].encode()
            elif hexadecimal:
                out.append(int(hexadecimal, 16))
            elif octal and int(octal, 8) < 256:
                out.append(int(octal, 8))
            elif (short or long) and code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF:
                out += chr(code).encode()
            else:
                raise self.error(f"{escape.group()} is not an escape", start + escape.start(), "an escape such as \\n")
        out += body[at:].encode(errors="surrogatepass")
        return out.decode(errors="replace")

    def _word(self, start: int, word: str) -> Token:
        end = start + len(word)
        following = self.text[end : end + 1]
        if following == ":" and word in _COLON_SCOPES:
            return self._scoped_intrinsic(start, word)
        if following == ".":
            if word == "parent":
                return self._parent(start, end + 1)
            if word in SCOPES:
                return self._attribute(start, end + 1, SCOPES[word], parent=False)
            if self.lenient:
                scope = Scope.RESOURCE if word in _RESOURCE_WORDS else Scope.SPAN
                return self._attribute(start, start, scope, parent=False)
        self.at = end
        if word in WORDS:
            return Token(Lex.WORD, word, start)
        if word in CONSTANTS:
            return Token(Lex.LITERAL, word, start, CONSTANTS[word])
        if word in INTRINSICS:
            return Token(Lex.FIELD, word, start, IntrinsicField(word, start))
        return Token(Lex.UNKNOWN, word, start)

    def _scoped_intrinsic(self, start: int, scope: str) -> Token:
        name_at = start + len(scope) + 1
        name = _WORD.match(self.text, name_at)
        written = f"{scope}:{name.group() if name else ''}"
        if written not in INTRINSICS:
            known = sorted(key for key in INTRINSICS if key.startswith(f"{scope}:"))
            hint = f"did you mean {close}?" if (close := nearest(written, known)) and name else ""
            raise self.error(f"{written} is not an intrinsic", start, f"one of {', '.join(known)}", hint)
        self.at = start + len(written)
        return Token(Lex.FIELD, written, start, IntrinsicField(written, start))

    def _parent(self, start: int, at: int) -> Token:
        for scope in (Scope.SPAN, Scope.RESOURCE):
            if self.text.startswith(f"{scope}.", at):
                return self._attribute(start, at + len(scope) + 1, scope, parent=True)
        return self._attribute(start, at, Scope.NONE, parent=True)

    def _attribute(self, start: int, at: int, scope: Scope, *, parent: bool) -> Token:
        parts = []
        while at < len(self.text) and (character := self.text[at]) not in NAME_ENDS:
            if character == '"':
                quoted = _QUOTED_NAME.match(self.text, at)
                if quoted is None:
                    raise self.error("the quoted name is not closed", at, 'a closing " (only \\" and \\\\ are escapes)')
                parts.append(re.sub(r"\\(.)", r"\1", quoted.group(1)))
                at = quoted.end()
            else:
                parts.append(character)
                at += 1
        self.at = at
        if not (name := "".join(parts)):
            raise self.error(f"{self.text[start:at]} names no attribute", start, "an attribute name after the dot")
        return Token(Lex.FIELD, self.text[start:at], start, Attribute(scope, name, parent, start))


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    assert found is not None
    return found.end()
