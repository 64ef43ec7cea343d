"""A tolerant JSON reader: one pass, no recursion, bounded in depth and in work, and honest about what it mended.

`parse` reads one object or array that starts at a given place in a text and stops where it closes, so that the text may
go on in prose. It returns a value with the list of repairs, or `Broken` where going on would be inventing. It never
raises. Three rules keep repairs from turning into wrong answers:

- a number, or any bare word, counts only when what follows proves that it ended: a text cut in `45000` after `45` loses
  the number and says `truncated`. A cut string is kept, since a prefix that is marked as a prefix misleads no reader;
- a quote closes its string only where JSON could go on after it; any other quote belongs to the string;
- valid JSON is never changed: each repair starts at something that JSON does not allow.

Work is counted in steps, roughly one a token and one for every 64 characters, because a limit on size alone does not
bound time: a megabyte may be one string or a million brackets.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

from msgspec import Struct

from comity.core.call.limits import NESTING_MAX
from comity.core.model.reply.repair import Repair

# At 1 to 4 µs a step this keeps the worst megabyte within 100 ms, and still mends a dense reply of some 90 KB.
STEPS_MAX: Final = 20_000
_CHARS_PER_STEP: Final = 64
# Python refuses to convert longer runs of digits, and no agent means one as a quantity.
_NUMBER_CHARS_MAX: Final = 400


class Budget:
    """The steps that are left, shared by every attempt at one text, so that starting again costs what it costs."""

    __slots__ = ("left",)

    def __init__(self, steps: int = STEPS_MAX) -> None:
        self.left = steps

    def spend(self, chars: int = 0, *, steps: int = 1) -> bool:
        """Take some steps, and those that go over `chars` characters; return whether any are left."""
        self.left -= steps + chars // _CHARS_PER_STEP
        return self.left > 0


class Parsed(Struct, frozen=True):
    """A value that was read, and where it ends; `cut` is the path of the place where the text broke off, if it did."""

    value: Any
    end: int
    repairs: tuple[Repair, ...] = ()
    cut: tuple[str | int, ...] | None = None


class Broken(Struct, frozen=True):
    """What stands here is not JSON, nor near enough to it: where it failed, and how many brackets were open there.

    `has_members` tells a broken document from a brace in prose.
    """

    at: int
    depth: int
    has_members: bool


def parse(text: str, start: int = 0, *, budget: Budget | None = None, depth_max: int = NESTING_MAX) -> Parsed | Broken:
    """Read the object or array whose opening bracket stands at `start`."""
    reader = _Reader(text, start, budget or Budget(), depth_max)
    try:
        return reader.read()
    except _CutError as cut:
        reader.note(Repair.TRUNCATED)
        return Parsed(reader.root, reader.pos, tuple(reader.repairs), cut.path)
    except _BrokenError:
        return Broken(reader.pos, len(reader.open), reader.has_members)


class _CutError(Exception):
    """The text ended inside the document."""

    def __init__(self, path: tuple[str | int, ...]) -> None:
        self.path = path


class _BrokenError(Exception):
    """No repair applies here, or a limit is reached."""


_B = r"[\s\x00-\x1f\x7f\ufeff\u200b]"  # what is taken for blank between tokens
_BLANK = re.compile(f"{_B}*")
_LINE_REST = re.compile(r"[^\n]*")
_BARE = re.compile(r"[\w$+\-.…%]+")
_BARE_KEY = re.compile(rf"[\w$.\-]++(?={_B}*+(?::|\Z))")
_ELISION = re.compile(r"\.{3,}|…")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
# What most members look like: their own patterns halve the time of reading.
_PLAIN_KEY = re.compile(r'"([^"\\\x00-\x1f]*+)"[ \t\r\n]*+:')
_PLAIN_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,14}+)(\.[0-9]{1,15}+)?(?=\s*+[,}\]])")
_LOOSE_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_HEX4 = re.compile(r"[0-9a-fA-F]{4}")
_CUT_ESCAPE = re.compile(r"(?:\\(?:u[0-9a-fA-F]{0,3})?)?\Z")

_CLOSERS = {'"': '"', "'": "'", "“": '“”"', "”": '“”"', "‘": "‘’'", "’": "‘’'"}
_QUOTES = frozenset(_CLOSERS)
_WHOLE = {quote: re.compile(rf"([^{close}\\\x00-\x1f]*+)[{close}]") for quote, close in _CLOSERS.items()}
_CHUNK = {quote: re.compile(rf"[^{close}\\\x00-\x1f]*") for quote, close in _CLOSERS.items()}
_QUOTE_REPAIR = {'"': None, "'": Repair.SINGLE_QUOTES} | dict.fromkeys("“”‘’", Repair.SMART_QUOTES)

# What may stand after the quote that closes a string. Possessive, so that a refused match is not tried in other ways.
_NEXT_KEY = rf'"(?:[^"\\]++|\\.)*+(?:"{_B}*+(?::|```|\Z)|\\?\Z)|[\'“”‘’]|[\w$.\-]++{_B}*+(?::|\Z)'
_ASIDE = r"//|/\*|\#|```|[/\\]?\Z"
_AFTER_KEY = re.compile("")  # the first quote closes a key: a longer one would run through prose to the next colon
_AFTER_ITEM = re.compile(rf"{_B}*+(?:[,\]}}]|{_ASIDE})|{_B}++[\"'“‘]")
_AFTER_MEMBER = re.compile(
    rf"{_B}*+(?:[}}\]]|,{_B}*+(?:[,}}\]]|{_NEXT_KEY}|\.\.\.|…|{_ASIDE})|{_ASIDE})|{_B}++(?:{_NEXT_KEY})", re.DOTALL
)
_MEMBER_AHEAD = re.compile(rf"(?:{_NEXT_KEY})", re.DOTALL)

_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_LOOSE_ESCAPES = {"'": "'", "`": "`", "\n": "\n", "“": "“", "”": "”", "‘": "‘", "’": "’"}
_LITERALS: dict[str, tuple[Any, Repair]] = {
    "true": (True, Repair.PYTHON_LITERAL),
    "false": (False, Repair.PYTHON_LITERAL),
    "null": (None, Repair.PYTHON_LITERAL),
    "none": (None, Repair.PYTHON_LITERAL),
    "undefined": (None, Repair.PYTHON_LITERAL),
} | {sign + word: (None, Repair.NON_FINITE) for sign in ("", "+", "-") for word in ("nan", "inf", "infinity")}
_EXACT_LITERALS: dict[str, Any] = {"true": True, "false": False, "null": None}


class _Reader:
    """The state of one pass: a place in the text and the containers that are open there."""

    __slots__ = ("budget", "depth_max", "has_members", "keys", "open", "pos", "repairs", "root", "text")

    def __init__(self, text: str, start: int, budget: Budget, depth_max: int) -> None:
        self.text = text
        self.pos = start
        self.budget = budget
        self.depth_max = depth_max
        self.root: Any = None
        self.open: list[Any] = []
        self.keys: list[str] = []  # beside `open`: the member being read, unused for arrays
        self.repairs: dict[Repair, None] = {}  # a set that remembers its order
        self.has_members = False

    def note(self, repair: Repair) -> None:
        self.repairs[repair] = None

    def read(self) -> Parsed:
        """Read until the first bracket closes."""
        if self.text[self.pos : self.pos + 1] not in {"{", "["}:
            raise _BrokenError
        self._open_container()
        before = "["  # what came last: an opening bracket, a comma or a value
        while True:
            char = self._next_char()
            if not char:
                raise _CutError(self._path())
            if char == ",":
                if before != "value":
                    self.note(Repair.EXTRA_COMMA)
                self.pos += 1
                before = ","
                continue
            if char in "}]":
                if before == ",":
                    self.note(Repair.TRAILING_COMMA)
                self._close_container(char)
                if not self.open:
                    return Parsed(self.root, self.pos, tuple(self.repairs))
                before = "value"
                continue
            if before == "value":
                self.note(Repair.MISSING_COMMA)
            if char in ".…" and (elision := _ELISION.match(self.text, self.pos)):
                self.note(Repair.ELISION)
                self.pos = elision.end()
                before = "value"
                continue
            if type(self.open[-1]) is dict:
                char = self._read_key()
            before = self._read_value(char)

    def _read_value(self, char: str) -> str:
        """Read what starts here and return what the main loop has then last seen."""
        if char and char in "{[":
            self._open_container()
            return "["
        if char and char in ",}]":
            self.note(Repair.MISSING_VALUE)
            self._put(None)
        elif char in _QUOTES:
            after = _AFTER_MEMBER if type(self.open[-1]) is dict else _AFTER_ITEM
            value, is_whole = self._read_string(char, after)
            self._put(value)
            if not is_whole:
                raise _CutError(self._path(inside=True))
        else:
            self._read_bare()
        self.has_members = True
        return "value"

    def _next_char(self) -> str:
        """Skip blanks and comments; return the character there, or "" at the end of the text or of its fence."""
        text = self.text
        start = self.pos
        while True:
            char = text[self.pos : self.pos + 1]
            if char <= " " or char > "~":
                blank = _BLANK.match(text, self.pos)
                if blank and blank.end() > self.pos:
                    self.pos = blank.end()
                    if blank.group().strip(" \t\r\n"):
                        self.note(Repair.ODD_BLANK)
                char = text[self.pos : self.pos + 1]
            if not self.budget.spend(self.pos - start):
                raise _BrokenError
            if char == "`" and text.startswith("```", self.pos):
                return ""
            if char == "#" or text.startswith("//", self.pos):
                rest = _LINE_REST.match(text, self.pos)
                self.pos = rest.end() if rest else len(text)
            elif char == "/" and text.startswith("/*", self.pos):
                close = text.find("*/", self.pos + 2)
                self.pos = len(text) if close < 0 else close + 2
            else:
                return char
            self.note(Repair.COMMENT)

    def _open_container(self) -> None:
        if len(self.open) >= self.depth_max:
            raise _BrokenError
        child: Any = {} if self.text[self.pos] == "{" else []
        if self.open:
            self._put(child)
        else:
            self.root = child
        self.open.append(child)
        self.keys.append("")
        self.pos += 1

    def _close_container(self, char: str) -> None:
        """Close the innermost container that `char` can close; a bracket that closes nothing is passed over."""
        kind = dict if char == "}" else list
        if type(self.open[-1]) is not kind:
            self.note(Repair.MISMATCHED_BRACKET)
            if not any(type(container) is kind for container in self.open):
                self.pos += 1
                return
            while type(self.open[-1]) is not kind:
                self.open.pop()
                self.keys.pop()
        self.open.pop()
        self.keys.pop()
        self.pos += 1

    def _put(self, value: Any) -> None:
        container = self.open[-1]
        if type(container) is list:
            container.append(value)
            return
        key = self.keys[-1]
        if key in container:
            self.note(Repair.DUPLICATE_KEY)
        container[key] = value

    def _path(self, *, inside: bool = False) -> tuple[str | int, ...]:
        """Return the path of the innermost open container, or of the member being read in it."""
        steps: list[str | int] = [
            key if type(container) is dict else max(len(container) - 1, 0)
            for container, key in zip(self.open, self.keys, strict=True)
        ]
        return tuple(steps if inside else steps[:-1])

    def _read_key(self) -> str:
        """Read a key and its colon; return the character at which its value starts."""
        if plain := _PLAIN_KEY.match(self.text, self.pos):
            self.has_members = True
            self.keys[-1] = plain[1]
            self.budget.spend(plain.end() - self.pos)
            self.pos = plain.end()
            return self._next_char()
        char = self.text[self.pos]
        if char in _QUOTES:
            key, is_whole = self._read_string(char, _AFTER_KEY)
            if not is_whole:
                raise _CutError(self._path())
            self.has_members = True
        elif bare := _BARE_KEY.match(self.text, self.pos):
            self.note(Repair.UNQUOTED_KEY)
            key = bare.group()
            self.pos = bare.end()
        elif char in "/\\" and self.pos + 1 == len(self.text):  # half of a comment or an escape
            raise _CutError(self._path())
        else:
            raise _BrokenError
        colon = self._next_char()
        if not colon:
            raise _CutError(self._path())
        if colon != ":":
            raise _BrokenError
        self.pos += 1
        self.keys[-1] = key
        return self._next_char()

    def _read_bare(self) -> None:
        """Read a number, a literal or an unquoted word; drop it when the text may have been cut inside it."""
        if plain := _PLAIN_NUMBER.match(self.text, self.pos):
            self.pos = plain.end()
            self._put(float(plain[0]) if plain[1] else int(plain[0]))
            return
        bare = _BARE.match(self.text, self.pos)
        if not bare:
            if self.pos >= len(self.text) or self.text.startswith("```", self.pos):
                raise _CutError(self._path(inside=type(self.open[-1]) is dict))
            raise _BrokenError
        word = bare.group()
        self.pos = bare.end()
        char = self._next_char()
        if not char:
            raise _CutError(self._path(inside=type(self.open[-1]) is dict))
        if char not in ",}]":
            # Only a line break, or a whole next member, shows that a comma is missing: `45 000` is not 45.
            gap = self.text[bare.end() : self.pos]
            is_member = type(self.open[-1]) is dict and gap and _MEMBER_AHEAD.match(self.text, self.pos)
            if "\n" not in gap and not is_member:
                raise _BrokenError
        if word.endswith(("...", "…")):
            self.note(Repair.ELISION)
            return
        self._put(self._bare_value(word))

    def _bare_value(self, word: str) -> Any:
        if word in _EXACT_LITERALS:
            return _EXACT_LITERALS[word]
        is_number = _NUMBER.fullmatch(word) is not None
        if is_number or _LOOSE_NUMBER.fullmatch(word):
            if not is_number:
                self.note(Repair.NUMBER_FORM)
            if len(word) <= _NUMBER_CHARS_MAX:
                if word.lstrip("+-").isdigit():
                    return int(word)
                if math.isfinite(number := float(word)):
                    return number
            self.note(Repair.NON_FINITE)
            return None
        value, repair = _LITERALS.get(word.lower(), (word, Repair.UNQUOTED_VALUE))
        self.note(repair)
        return value

    def _read_string(self, quote: str, after: re.Pattern[str]) -> tuple[str, bool]:
        """Read the string that starts here; the second result is whether it was closed."""
        if repair := _QUOTE_REPAIR[quote]:
            self.note(repair)
        self.pos += 1
        whole = _WHOLE[quote].match(self.text, self.pos)
        if whole and after.match(self.text, whole.end()):
            if not self.budget.spend(whole.end() - self.pos):
                raise _BrokenError
            self.pos = whole.end()
            return whole.group(1), True
        start, noted = self.pos, self.repairs.copy()
        value, is_whole = self._read_marked_string(quote, after)
        if not is_whole and start <= (fence := _closing_fence(self.text)) < len(self.text):
            # The fence that closed around a cut string, and what it did to an escape before it, is no part of it.
            self.text, self.pos, self.repairs = self.text[:fence], start, noted
            value, is_whole = self._read_marked_string(quote, after)
        return value, is_whole

    def _read_marked_string(self, quote: str, after: re.Pattern[str]) -> tuple[str, bool]:
        """Read a string that holds more than plain text: escapes, control characters, quotes."""
        text = self.text
        parts: list[str] = []
        chunk = _CHUNK[quote]
        while run := chunk.match(text, self.pos):
            if not self.budget.spend(run.end() - self.pos):
                raise _BrokenError
            parts.append(run.group())
            self.pos = run.end()
            char = text[self.pos : self.pos + 1]
            if not char:
                break
            if char == "\\":
                parts.append(self._read_escape())
            elif char < " ":
                parts.append(self._keep_control(char))
            elif after.match(text, self.pos + 1):
                self.pos += 1
                return "".join(parts), True
            else:
                self.note(Repair.UNESCAPED_QUOTE)
                parts.append(char)
                self.pos += 1
        return "".join(parts), False

    def _keep_control(self, char: str) -> str:
        self.pos += 1
        if char in "\n\r\t":
            self.note(Repair.UNESCAPED_NEWLINE)
            return char
        self.note(Repair.CONTROL_CHARACTER)
        return ""

    def _read_escape(self) -> str:
        """Read one escape; what is no escape stays as it was written, and a cut escape is dropped."""
        text = self.text
        char = text[self.pos + 1 : self.pos + 2]
        if char in _ESCAPES:
            self.pos += 2
            return _ESCAPES[char]
        if char == "u" or not char:
            self.budget.spend()
            return self._read_unicode_escape()
        self.note(Repair.BAD_ESCAPE)
        self.pos += 2
        return _LOOSE_ESCAPES.get(char, "\\" + char)

    def _read_unicode_escape(self) -> str:
        text = self.text
        start = self.pos
        if _CUT_ESCAPE.match(text, start):
            self.pos = len(text)
            return ""
        high = _HEX4.match(text, start + 2)
        if not high:
            self.note(Repair.BAD_ESCAPE)
            self.pos = start + 2
            return "\\u"
        code = int(high.group(), 16)
        self.pos = start + 6
        if not 0xD800 <= code <= 0xDFFF:
            return chr(code)
        if code <= 0xDBFF:
            if _CUT_ESCAPE.match(text, self.pos):
                self.pos = len(text)
                return ""
            low = _HEX4.match(text, start + 8) if text.startswith("\\u", self.pos) else None
            if low and 0xDC00 <= (tail := int(low.group(), 16)) <= 0xDFFF:
                self.pos = start + 12
                return chr(0x10000 + ((code - 0xD800) << 10) + (tail - 0xDC00))
        self.note(Repair.LONE_SURROGATE)
        return "?"


def _closing_fence(text: str) -> int:
    """Return where the line break before a fence at the end of the text stands, or the end where there is no fence."""
    inner = text.rstrip()
    if not inner.endswith("```"):
        return len(text)
    inner = inner.rstrip("`").rstrip(" \t")
    return len(inner[:-1].removesuffix("\r")) if inner.endswith("\n") else len(text)
