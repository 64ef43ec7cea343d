"""KDAP's text blocks: a heading, then `key: value` lines whose values are written like JSON without quotes.

    REQUEST

    target_agent: ANL
    inputs_json: {
      cash_flows: [-100000, 25000],
      periods: annual
    }

A value is an object, an array, a quoted string, or a bare word that runs to the end of its line; inside brackets a comma, a
bracket or the end of the line ends it, too; in a list of sentences only the bracket and the line's end do. A bare word is a
number, `true`, `false` or `null` if it looks like one, and text otherwise. Members are parted by a comma or a line end. Lines
of dashes may stand around a block. Reading goes once over the text, is bounded in nesting and in the number of values, and
raises `CallerError` only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, NoReturn

import msgspec

from comity.core.call.limits import CITED_CHARS_MAX, ITEMS_MAX, NESTING_MAX, REQUEST_BYTES_MAX
from comity.core.document.payload import Problem
from comity.dialects.reading.document import malformed
from comity.errors import CallerError

_RULE = re.compile(r"-{3,}")
_FIELD = re.compile(r"[ \t]*([A-Za-z_]\w*)[ \t]*:[ \t]*")
_KEY = re.compile(r"([^\s:,{}\[\]\"][^:,{}\[\]\n]*):[ \t]*")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_BARE = re.compile(r"[^,{}\[\]\n]*")
_SENTENCE = re.compile(r"[^\]\n]*")
_SPACES = re.compile(r"[ \t]*")
_BLANKS = re.compile(r"\s*")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_NUMBER_CHARS_MAX: Final = 400
_CONSTANTS: Final = {"true": True, "false": False, "null": None}


class Texts(NamedTuple):
    """Which fields of a block are text, so that an id made of digits stays one."""

    lines: frozenset[str]  # one text, whatever stands on the line
    lists: frozenset[str]  # an array of texts
    sentences: frozenset[str] = frozenset()  # an array of texts that may hold commas: the end of a line parts them


class Block(NamedTuple):
    """A heading and the fields below it, as plain data."""

    heading: str
    fields: dict[str, Any]


def parse(text: str, headings: Mapping[str, Texts]) -> Block:
    """Return the one block in a text, or raise `CallerError` that names the line."""
    if len(text) > REQUEST_BYTES_MAX:
        what = f"{len(text):,} characters exceed the {REQUEST_BYTES_MAX:,} a document may have"
        raise CallerError(what, code="ENVELOPE_TOO_LARGE")
    reader = _Reader(text.replace("\r\n", "\n"))
    heading = reader.line()
    while heading is not None and (not heading or _RULE.fullmatch(heading)):
        heading = reader.line()
    if heading is None or heading not in headings:
        raise malformed([Problem("$", f"is neither a JSON object nor a block headed {', '.join(headings)}")])
    return Block(heading, reader.fields(headings[heading]))


class _Reader:
    """A place in a text, and how many values may still be read."""

    __slots__ = ("at", "items_left", "keeps_commas", "keeps_text", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.items_left = ITEMS_MAX
        self.keeps_text = False  # whether bare words are text, whatever they look like
        self.keeps_commas = False  # whether a comma inside a line is part of a bare word

    def line(self) -> str | None:
        """Take the rest of a line; None at the end of the text."""
        if self.at >= len(self.text):
            return None
        end = self.text.find("\n", self.at)
        end = len(self.text) if end < 0 else end
        line = self.text[self.at : end].strip()
        self.at = end + 1
        return line

    def fields(self, texts: Texts) -> dict[str, Any]:
        """Take all fields down to the rule that ends the block; nothing may follow that."""
        fields: dict[str, Any] = {}
        is_over = False
        while True:
            start = self.at
            line = self.line()
            if line is None:
                return fields
            if not line:
                continue
            if _RULE.fullmatch(line):
                is_over = True
                continue
            self.at = start
            if is_over:
                self._fail("stands outside the block")
            name = self._take(_FIELD, "must start with `key:`")[1]
            if name in fields:
                self._fail(f"says {name} a second time")
            fields[name] = self._field_value(name, texts)

    def _field_value(self, name: str, texts: Texts) -> Any:
        start = self.at
        line = self.line() or ""
        is_quoted = _STRING.fullmatch(line) is not None
        self.keeps_text = name in texts.lines
        if not is_quoted and (self.keeps_text or not line.startswith(("{", "["))):
            return self._word(line)
        self.at = start
        self.keeps_commas = name in texts.sentences
        self.keeps_text = name in texts.lists or self.keeps_commas
        value = self._value(1)
        if self.line():
            self.at -= 1
            self._fail("goes on after its value has ended")
        return value

    def _value(self, depth: int) -> Any:
        self.items_left -= 1
        if self.items_left < 0:
            self._fail(f"is where the text exceeds {ITEMS_MAX:,} values")
        if depth > NESTING_MAX:
            self._fail(f"is nested deeper than {NESTING_MAX} levels")
        match self.text[self.at : self.at + 1]:
            case "{":
                return self._object(depth)
            case "[":
                return self._array(depth)
            case '"':
                return self._string()
        bare = self._take(_SENTENCE if self.keeps_commas else _BARE, "")[0].strip()
        if self.keeps_commas:
            bare = bare.removesuffix(",").rstrip()
        if not bare:
            self._fail("lacks a value")
        return self._word(bare)

    def _object(self, depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        self._open()
        while not self._closes("}"):
            if self.text.startswith('"', self.at):
                key = self._string()
                self._take(_SPACES, "")
                if not self.text.startswith(":", self.at):
                    self._fail("must have `:` after a key")
                self.at += 1
                self._take(_SPACES, "")
            else:
                key = self._take(_KEY, "must have `key: value` inside braces")[1].rstrip()
            if key in members:
                self._fail(f"says {key[:CITED_CHARS_MAX]} a second time")
            members[key] = self._value(depth + 1)
            self._part("}")
        return members

    def _array(self, depth: int) -> list[Any]:
        items: list[Any] = []
        self._open()
        while not self._closes("]"):
            items.append(self._value(depth + 1))
            self._part("]")
        return items

    def _open(self) -> None:
        self.at += 1
        self._take(_BLANKS, "")

    def _closes(self, bracket: str) -> bool:
        """Take the closing bracket if it stands here."""
        if self.at >= len(self.text):
            self._fail(f"ends before its `{bracket}`")
        if not self.text.startswith(bracket, self.at):
            return False
        self.at += 1
        return True

    def _part(self, bracket: str) -> None:
        """Take what parts two members: a comma, a line end, or nothing before the closing bracket."""
        blanks = self._take(_BLANKS, "")[0]
        if self.text.startswith(",", self.at):
            self._open()
        elif "\n" not in blanks and self.at < len(self.text) and not self.text.startswith(bracket, self.at):
            self._fail("must have a comma or a line end between values")

    def _string(self) -> str:
        quoted = self._take(_STRING, "opens a quote that does not close")[0]
        try:
            return msgspec.json.decode(quoted, type=str)
        except (msgspec.MsgspecError, UnicodeError):
            self._fail("holds a string that is not valid JSON")

    def _word(self, bare: str) -> Any:
        if bare == "null":
            return None
        if self.keeps_text:
            return bare
        if bare in _CONSTANTS:
            return _CONSTANTS[bare]
        number = _NUMBER.fullmatch(bare) if len(bare) <= _NUMBER_CHARS_MAX else None
        if number is None:
            return bare
        if number[1] is None and number[2] is None:
            return int(bare)
        value = float(bare)
        return value if math.isfinite(value) else bare

    def _take(self, pattern: re.Pattern[str], complaint: str) -> re.Match[str]:
        found = pattern.match(self.text, self.at)
        if found is None:
            self._fail(complaint)
        self.at = found.end()
        return found

    def _fail(self, complaint: str) -> NoReturn:
        line = self.text.count("\n", 0, self.at) + 1
        raise malformed([Problem(f"line {line}", complaint)])
