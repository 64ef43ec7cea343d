"""The text of a definition: YAML 1.2 or JSON as plain data, with the line and column of every key and value.

The safe part of YAML alone: no tags, anchors or aliases. `yes`, `no`, `on` and `off` are texts, as in YAML 1.2.
"""

from __future__ import annotations

import re
from typing import Any, Final

import yaml
from msgspec import Struct

Path = tuple[str | int, ...]
TEXT_BYTES_MAX: Final = 1024 * 1024
NESTING_MAX: Final = 32
_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT: Final = re.compile(r"[-+]?(?:0|[1-9]\d{0,18})")
_FLOAT: Final = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?")


class Mistake(Struct, frozen=True, order=True):
    """One mistake in a definition: where it stands and what to do about it. Line and column count from 1; 0 is unknown."""

    line: int
    column: int
    path: str
    message: str

    def __str__(self) -> str:
        where = f"{self.line}:{self.column}: " if self.line else ""
        return f"{where}{self.path}: {self.message}" if self.path else f"{where}{self.message}"


class Source(Struct, frozen=True):
    """A definition as plain data, where its parts stand, and the mistakes of its text."""

    document: Any
    places: dict[Path, tuple[int, int]]
    mistakes: tuple[Mistake, ...] = ()

    def place(self, path: Path) -> tuple[int, int]:
        """Return line and column of a part, or of the nearest part around it that has a place."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, (0, 0))


class _Loader(yaml.SafeLoader):
    """Notes anchors and aliases and reads on as if there were none, so that a text is read once."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.named: list[Any] = []  # the marks of anchors and aliases

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if getattr(event, "anchor", None):
            mark: Any = event.start_mark
            self.named.append(mark)
            if isinstance(event, yaml.AliasEvent):
                self.get_event()  # type: ignore[no-untyped-call]
                return yaml.ScalarNode("tag:yaml.org,2002:null", "~", mark, mark)
            event.anchor = None
        return super().compose_node(parent, index)


def read_source(text: str) -> Source:
    """Return the plain data in a text, with places and every mistake found while reading."""
    if len(text.encode(errors="replace")) > TEXT_BYTES_MAX:
        return Source(None, {}, (Mistake(1, 1, "", f"a definition has at most {TEXT_BYTES_MAX} bytes"),))
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        return Source(None, {}, (_at(mark, "", f"cannot be read: {problem}"),))
    except RecursionError:
        return Source(None, {}, (Mistake(1, 1, "", f"has more than {NESTING_MAX} levels"),))
    if loader.named:
        told = "anchors and aliases are not read; write the value where it is used"
        return Source(None, {}, tuple(_at(mark, "", told) for mark in loader.named))
    if root is None:
        return Source(None, {}, (Mistake(1, 1, "", "is empty; begin with `workflow: name`"),))
    mistakes: list[Mistake] = []
    places: dict[Path, tuple[int, int]] = {}
    document = _plain(root, (), places, mistakes)
    return Source(document, places, tuple(mistakes))


def of_document(document: Any) -> Source:
    """Return a document that was made by a program: it has no places."""
    return Source(document, {})


def _plain(node: yaml.Node, path: Path, places: dict[Path, tuple[int, int]], mistakes: list[Mistake]) -> Any:
    mark = node.start_mark
    places.setdefault(path, (mark.line + 1, mark.column + 1))
    if len(path) > NESTING_MAX:
        mistakes.append(_at(mark, shown(path[:3]), f"has more than {NESTING_MAX} levels"))
        return None
    if isinstance(node, yaml.MappingNode):
        found: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                mistakes.append(_at(key.start_mark, shown(path), "a key must be text"))
                continue
            if key.value in found:
                mistakes.append(_at(key.start_mark, shown((*path, key.value)), "is given twice"))
            below = (*path, key.value)
            places[below] = (key.start_mark.line + 1, key.start_mark.column + 1)
            found[key.value] = _plain(value, below, places, mistakes)
        return found
    if isinstance(node, yaml.SequenceNode):
        return [_plain(one, (*path, place), places, mistakes) for place, one in enumerate(node.value)]
    return _scalar(node, path, mistakes)


def _scalar(node: yaml.Node, path: Path, mistakes: list[Mistake]) -> Any:
    text: str = node.value
    if getattr(node, "style", None) is not None:  # quoted or a block
        return text
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        number = float(text)
        if number in {float("inf"), float("-inf")}:
            mistakes.append(_at(node.start_mark, shown(path), "is too large a number"))
            return None
        return number
    return text


def _at(mark: Any, path: str, message: str) -> Mistake:
    return Mistake(0 if mark is None else mark.line + 1, 0 if mark is None else mark.column + 1, path, message)


def shown(path: Path) -> str:
    """Return a path in a document as text."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
