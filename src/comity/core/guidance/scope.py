"""Which paths a scope covers.

A path is a sequence of names with `/` between them. In a scope, `*` stands for any part of one name, `?` for one character,
`[a-z]` and `[!a-z]` for one of or not of a set, and `{a,b}` for either text. `**` as a whole name stands for any number of
names, none included. So `src/api/**` covers `src/api/x.py`, `src/api/a/b.py` and `src/api` itself, since removing the
folder touches what is in it. A scope without any of these marks covers the path it names and everything below it. No scope
covers everything.

Paths are compared after `.` and `..` have been resolved, so no detour escapes a scope. Where the project lies on the disk is
not known here, so a path that begins outside it (`/…`, `~/…`, `../…`, `C:\\…`, `file://…`) is covered if any of its endings is:
rather too much than too little.

An action concerns a scope if the scope covers what it touches, if it touches a folder the scope lies in, or if it touches a
pattern that shares a path with the scope. A topic, written `topic:payments`, is no path: only a scope that is a topic or that
covers everything concerns it, whatever its case.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from functools import lru_cache

ALTERNATIVES_MAX = 64
TOPIC = "topic:"
_BRACES = re.compile(r"\{([^{}]*)\}")
_MARKS = re.compile(r"[*?\[{]")
_OUTSIDE = re.compile(r"/|~|\.\.(/|$)|[A-Za-z][A-Za-z0-9+.-]*:")
_EVERYTHING = "**"


class GlobError(ValueError):
    """The scope cannot be read."""


def concerns(scope: str, touched: str) -> bool:
    """Return whether an action on a path, a pattern of paths or a topic concerns a scope, or raise `GlobError`."""
    if touched.startswith(TOPIC) or scope.strip().startswith(TOPIC):
        return _concerns_topic(scope.strip(), touched)
    places = _places_of(touched)
    for pattern, head in _with_heads(scope):
        for names in places:
            shared = min(len(head), len(names))
            if head[:shared] != names[:shared]:
                continue  # apart from the beginning on, which most are
            if shared == len(names) or _matches(pattern, names, _is_stars, _name_matches):
                return True  # a folder the scope lies in, or something in the scope
    if not (touched.endswith("/") or _MARKS.search(touched)):
        return False
    try:
        others = [ending for other in compile_scope(touched) for ending in _places(touched, other)]
    except GlobError:
        return False  # brackets in the name of a file, and as a name it is not covered
    return any(_share(one, other) for one in compile_scope(scope) for other in others)


def covers(scope: str, path: str) -> bool:
    """Return whether a scope covers a path, or raise `GlobError`."""
    places = _places_of(path)
    return any(_matches(pattern, names, _is_stars, _name_matches) for pattern in compile_scope(scope) for names in places)


@lru_cache(maxsize=512)
def _places_of(path: str) -> list[tuple[str, ...]]:
    return _places(path, normalize(path))


def _places(path: str, names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return where in the project a path may lie: there, or at any of its endings if it begins outside."""
    is_outside = _OUTSIDE.match(path.replace("\\", "/")) or names[:1] == ("..",)
    return [names[at:] for at in range(max(len(names), 1))] if is_outside else [names]


@lru_cache(maxsize=512)
def _with_heads(scope: str) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return the patterns of a scope, each with the names it begins with, up to the first that has marks."""
    return [
        (pattern, tuple(itertools.takewhile(lambda name: not _MARKS.search(name), pattern))) for pattern in compile_scope(scope)
    ]


def _concerns_topic(scope: str, touched: str) -> bool:
    if scope in ("", _EVERYTHING):
        return True
    if not (scope.startswith(TOPIC) and touched.startswith(TOPIC)):
        return False
    return covers(scope.removeprefix(TOPIC).strip().casefold(), touched.removeprefix(TOPIC).strip().casefold())


def _share(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether some path fits both patterns."""
    return _meet(one, other, _is_stars, lambda a, b: _meet(_marks_of(a), _marks_of(b), _is_star, _parts_meet))


def _parts_meet(one: str, other: str) -> bool:
    # Two sets may or may not share a character; that they do is the side on which nothing is missed.
    return "?" in (one, other) or (len(one) > 1 and len(other) > 1) or _fits(one, other)


def _fits(one: str, other: str) -> bool:
    return _character_matches(one, other) if len(other) == 1 else _character_matches(other, one)


def _meet(one: Sequence[str], other: Sequence[str], is_star: Callable[[str], bool], meets: Callable[[str, str], bool]) -> bool:
    """Return whether some sequence fits both patterns; row by row, so the work is the product of the lengths."""
    row = [all(map(is_star, other[at:])) for at in range(len(other) + 1)]  # of the rest of `other` and nothing
    for part in reversed(one):
        before, row = row, [False] * (len(other) + 1)
        for at in range(len(other), -1, -1):
            if is_star(part):
                row[at] = before[at] or (at < len(other) and row[at + 1])
            elif at < len(other):
                star = is_star(other[at])
                row[at] = (row[at + 1] or before[at]) if star else meets(part, other[at]) and before[at + 1]
    return row[0]


def normalize(path: str) -> tuple[str, ...]:
    """Return the names of a path without `.` and `..`; what leads out of the project keeps its `..`."""
    names: list[str] = []
    for name in path.replace("\\", "/").split("/"):
        if name == ".." and names and names[-1] != "..":
            names.pop()
        elif name not in ("", "."):
            names.append(name)
    return tuple(names)


@lru_cache(maxsize=512)
def compile_scope(scope: str) -> tuple[tuple[str, ...], ...]:
    """Return the patterns a scope stands for, each as its names, or raise `GlobError`."""
    text = scope.strip()
    if not text:
        return ((_EVERYTHING,),)
    if text.endswith("/") or not _MARKS.search(text):
        text += "/**"
    patterns = tuple(normalize(one) for one in _alternatives(text))
    for pattern in patterns:
        for name in pattern:
            _marks_of(name)
    return patterns


def _alternatives(text: str) -> list[str]:
    todo, found = [text], []
    while todo:
        one = todo.pop()
        braces = _BRACES.search(one)
        if braces is None:
            if "{" in one or "}" in one:
                raise GlobError(f"a brace in {text!r} is not closed")
            found.append(one)
        else:
            todo += [one[: braces.start()] + choice + one[braces.end() :] for choice in braces[1].split(",")]
        if len(todo) + len(found) > ALTERNATIVES_MAX:
            raise GlobError(f"{text!r} has more than {ALTERNATIVES_MAX} alternatives")
    return found


def _is_stars(name: str) -> bool:
    return name == _EVERYTHING


def _name_matches(pattern: str, name: str) -> bool:
    return _matches(_marks_of(pattern), name, _is_star, _character_matches)


@lru_cache(maxsize=2048)
def _marks_of(pattern: str) -> tuple[str, ...]:
    """Return a name's pattern as single characters, stars and sets in brackets."""
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        end = at + 1
        if pattern[at] == "[":
            end = pattern.find("]", at + (3 if pattern[at + 1 : at + 2] == "!" else 2)) + 1
            if not end:
                raise GlobError(f"a bracket in {pattern!r} is not closed")
        parts.append(pattern[at:end])
        at = end
    return tuple(parts)


def _is_star(part: str) -> bool:
    return part == "*"


def _character_matches(part: str, character: str) -> bool:
    if len(part) == 1:
        return part in ("?", character)
    inside = part[1:-1]
    negated = inside.startswith("!")
    return _in_set(inside[negated:], character) is not negated


def _in_set(members: str, character: str) -> bool:
    at = 0
    while at < len(members):
        if members[at + 1 : at + 2] == "-" and at + 2 < len(members):
            if members[at] <= character <= members[at + 2]:
                return True
            at += 3
        else:
            if members[at] == character:
                return True
            at += 1
    return False


def _matches(
    pattern: Sequence[str], items: Sequence[str], is_star: Callable[[str], bool], is_one: Callable[[str, str], bool]
) -> bool:
    """Return whether the items are what the pattern says; a star is any number of them.

    Only the last star is ever reconsidered, so the work grows with the product of the lengths and never faster.
    """
    at = item = mark = 0
    star = -1
    while item < len(items):
        if at < len(pattern) and is_star(pattern[at]):
            star, mark = at, item
            at += 1
        elif at < len(pattern) and is_one(pattern[at], items[item]):
            at += 1
            item += 1
        elif star >= 0:
            mark += 1
            at, item = star + 1, mark
        else:
            return False
    return all(is_star(one) for one in pattern[at:])
