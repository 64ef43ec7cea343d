"""Which paths a scope covers.

A path is a sequence of names with `/` between them. In a scope, `*` stands for any part of one name, `?` for one character,
`[a-z]` and `[!a-z]` for one of or not of a set, and `{a,b}` for either text. `**` as a whole name stands for any number of
names, none included. So `src/api/**` covers `src/api/x.py`, `src/api/a/b.py` and `src/api` itself, for whoever removes the
folder touches what is in it. A scope without any of these marks covers the path it names and everything below it. No scope
covers everything.

Paths are compared after `.` and `..` have been resolved, so no detour escapes a scope. Where the project lies on the disk is
not known here, so an absolute path is covered if any of its endings is: rather too much than too little.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

ALTERNATIVES_MAX = 64
_BRACES = re.compile(r"\{([^{}]*)\}")
_MARKS = re.compile(r"[*?\[{]")
_EVERYTHING = "**"


class GlobError(ValueError):
    """The scope cannot be read."""


def covers(scope: str, path: str) -> bool:
    """Return whether a scope covers a path, or raise `GlobError`."""
    names = normalize(path)
    endings = [names[at:] for at in range(max(len(names), 1))] if path.replace("\\", "/").startswith("/") else [names]
    return any(_matches(pattern, ending, _is_stars, _name_matches) for pattern in compile_scope(scope) for ending in endings)


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
