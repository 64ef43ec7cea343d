"""Tables inside of a text: CSV, TSV, Markdown, aligned columns, and the values of an SQL insert; heads name cells.

A table is a line of heads, all of them words, with at least one line of as many cells right under it. A cell in quotes may hold
the sign that parts cells; it may not hold a line break.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from comity.core.redaction.shapes import plain_words
from comity.core.redaction.siblings import words_beside
from comity.core.redaction.users import is_login, named_user

LINE_CHARS_MAX: Final = 2_000  # a longer line is no line of a table
_CELLS_MAX = 64
_WORDS_MAX = 4
_HEAD = r"[\"']?[^\W\d_](?:[^\d\n\"|;,\t\[\]{}=<>!?]|(?<=[A-Za-z_])[0-9]{1,2}(?![0-9])){0,36}[\"']?"  # also "box14"
_PLAIN_HEAD = r"[^\W\d_][^\d\n\"|;,\t\[\]{}=<>!? ]{0,24}(?:[ ][^\d\n\"|;,\t\[\]{}=<>!? ]{1,24}){0,3}"
_PARTED_BY: Final = {"|": r"[ ]*\|[ ]*", "\t": r"[ ]*\t[ ]*", ";": "[ ]*;[ ]*", ",": "[ ]*,[ ]*"}
_HEADS = re.compile(
    r"[ \t]{0,8}(?:\|[ ]*)?(?:"
    + "|".join(
        rf"(?P<by{number}>{'[ ]*' if sign != ',' else ''}{_ANY}(?:{joint}{_ANY}){{1,63}})"
        for number, (sign, joint) in enumerate(_PARTED_BY.items())
        for _ANY in (rf"(?:{_HEAD}|[#№])",)
    )
    + rf"|(?P<by4>{_PLAIN_HEAD}(?:[ ]{{2,40}}{_PLAIN_HEAD}){{1,63}}))(?:[ ]*[|;,])?[ \t]*\r?"
)
_SIGNS = (*_PARTED_BY, "  ")
_RULE = re.compile(r"[ \t]*\|?(?:[ ]*[:=+-]+[ ]*[|+\t ]?)+[ \t]*\r?")
_DIGIT = re.compile("(?<![A-Za-z_])(?<![A-Za-z_][0-9])[0-9]|[0-9]{3}")  # that no head has: "box14" may be one
_SPACES = re.compile("[ ]{2,}")
_QUOTED = {
    sign: re.compile(rf"[ ]*(?:\"(?P<quoted>(?:[^\"\n]|\"\"){{0,400}})\"[ ]*|'(?P<single>[^'\n]{{0,400}})'[ ]*"
    rf"|(?P<plain>[^{sign}\n]*))(?:{sign}|$)")
    for sign in ",;"
}  # fmt: skip
_INSERT = re.compile(r"\((?P<heads>[\w \"`,\[\]]{3,600})\)\s{0,8}VALUES\s{0,8}(?=\()", re.IGNORECASE)
_TUPLE = re.compile(r"\s{0,8},?\s{0,8}\((?P<cells>(?:[^()'\n]|'[^'\n]{0,400}'){1,2000})\)")


class Cell(NamedTuple):
    """One cell: where it stands, and the words of its column's head."""

    start: int
    end: int
    head: str


IsNamed = Callable[[str], bool]  # whether words name a kind of personal data


def cells_of(text: str, is_named: IsNamed, start: int = 0) -> Iterator[Cell | None]:
    """Yield the cells of the columns that are named, in order; None after each line, for a pause."""
    place = start
    for line, line_end, next_line in _lines(text, start):
        if line < place or line_end - line > LINE_CHARS_MAX or _DIGIT.search(text, line, line_end):
            continue
        found = _HEADS.fullmatch(text, line, line_end)
        yield None
        if found is None:
            continue
        place = next_line
        sign = _SIGNS[int((found.lastgroup or "by0")[2:])]
        heads = [_head(text[first:last]) for first, last in split(text, found.start(), found.end(), sign)]
        if len(heads) > _CELLS_MAX or any(head.count(" ") >= _WORDS_MAX for head in heads):
            continue
        named = _named(heads, is_named)
        if not named:
            continue
        for first, last, after in _lines(text, place):
            yield None
            if last - first > LINE_CHARS_MAX:
                break
            if first == next_line and _RULE.fullmatch(text, first, last):
                place = after
                continue
            cells = split(text, first, last, sign)
            if len(cells) != len(heads):
                break
            place = after
            for number, head in named.items():
                yield Cell(*cells[number], head)
    yield from _inserted(text, is_named, start)


def _inserted(text: str, is_named: IsNamed, start: int) -> Iterator[Cell | None]:
    for found in _INSERT.finditer(text, start):
        heads = [_head(text[first:last]) for first, last in split(text, *found.span("heads"), ",")]
        named = _named(heads, is_named)
        place = found.end()
        while named and (row := _TUPLE.match(text, place)):
            yield None
            place = row.end()
            cells = split(text, *row.span("cells"), ",")
            if len(cells) == len(heads):
                for number, head in named.items():
                    yield Cell(*cells[number], head)


def _named(heads: list[str], is_named: IsNamed) -> dict[int, str]:
    """Return the heads of the columns that are named, by their number."""
    heads = [named_user(head) for head in heads] if is_login(heads) else heads
    meant = words_beside(tuple(heads))
    heads = [meant.get(head, head) for head in heads]
    return {number: head for number, head in enumerate(heads) if head and is_named(head)}


def open_table(text: str) -> int:
    """Return where a table begins that further text may go on with, or a line that may become its heads.

    Without either, return the text's end.
    """
    line = text.rfind("\n") + 1
    begin = len(text)
    if len(text) - line <= LINE_CHARS_MAX and (_HEADS.fullmatch(text, line) or _HEADS.fullmatch(text + "x", line)):
        begin = line
    while line:
        previous = text.rfind("\n", 0, line - 1) + 1
        if line - previous > LINE_CHARS_MAX or not any(sign in text[previous:line] for sign in _SIGNS):
            break
        line = previous
        if _HEADS.fullmatch(text, line, text.find("\n", line)):
            begin = line
    return begin


def split(text: str, start: int, end: int, sign: str) -> list[tuple[int, int]]:
    """Return where the cells of a line stand, without the spaces and quotes around them."""
    if sign == "|":
        while start < end and text[start] in " \t":
            start += 1
        start += text.startswith("|", start, end)
        end -= text[start:end].rstrip().endswith("|") and len(text[start:end]) - len(text[start:end].rstrip()) + 1
    cells: list[tuple[int, int]] = []
    if sign in _QUOTED and ('"' in text[start:end] or "'" in text[start:end]):
        place = start
        while place <= end and (cell := _QUOTED[sign].match(text, place, end)):
            cells.append(cell.span(cell.lastgroup or 0))
            if cell.end() == place or (cell.end() == end and text[end - 1 : end] != sign):
                break
            place = cell.end()
    elif sign == "  ":
        place = start
        for gap in _SPACES.finditer(text, start, end):
            if gap.start() > place:
                cells.append((place, gap.start()))
            place = gap.end()
        cells.append((place, end))
    else:
        place = start
        while (at := text.find(sign, place, end)) >= 0:
            cells.append((place, at))
            place = at + 1
        cells.append((place, end))
    return [_stripped(text, *cell) for cell in cells]


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[end - 1] in " \t\r\"'`*":
        end -= 1
    while start < end and text[start] in " \t\"'`*":
        start += 1
    return start, end


def _head(text: str) -> str:
    return plain_words(text.strip(" \t\r\"'`*[]"))


def _lines(text: str, start: int) -> Iterator[tuple[int, int, int]]:
    """Yield where each line begins and ends, and where the next begins; in a text of one line a break may be escaped."""
    by = "\n" if "\n" in text else "\\n"
    while start < len(text):
        end = text.find(by, start)
        end = len(text) if end < 0 else end
        yield start, end, end + len(by)
        start = end + len(by)
