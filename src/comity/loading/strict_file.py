"""One YAML or JSON file as plain data, and the lines its parts stand on.

YAML is held to what JSON can say: no tags, no anchors, no words that turn into dates or switches, no key twice. So a file means
what it seems to mean, and is no larger in memory than on disk.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import yaml

from comity.core.agent.agent import DeclarationError
from comity.core.document.payload import repeated_keys, walk

# A registry file on disk: room for ten thousand agents.
MANIFEST_BYTES_MAX: Final = 8 * 1024 * 1024
# Mappings and lists inside each other; schemas are the deepest part of a registry.
MANIFEST_NESTING_MAX: Final = 64
SUFFIXES: Final = (".yaml", ".yml", ".json")

Steps = tuple[str | int, ...]


class Document(NamedTuple):
    """What a file says, and its text."""

    path: Path
    text: str
    value: Any


def read(path: Path) -> Document:
    """Return the file's data. Raises `DeclarationError` if it cannot be read or is not what its name says."""
    text = _read_text(path)
    parse = _parse_json if path.suffix.lower() == ".json" else _parse_yaml
    try:
        value = parse(text, path)
    except RecursionError:
        raise _too_deep(path) from None
    except DeclarationError:
        raise
    except ValueError:
        raise DeclarationError(f"{path} holds a whole number with too many digits") from None
    _check_values(value, path)
    if "\\" in text:
        _check_texts(value, path)
    return Document(path, text, value)


class Lines:
    """Where the parts of a document stand. JSON that is no YAML, because of its tabs, has no lines."""

    def __init__(self, text: str) -> None:
        self._root: yaml.Node | None = None
        try:
            self._root = yaml.compose(text, _Loader)
        except (yaml.YAMLError, RecursionError):
            return

    def of(self, steps: Steps) -> int | None:
        """Return the line of what `steps` lead to, or of the last step there is."""
        node, line = self._root, None
        for step in steps:
            if isinstance(node, yaml.MappingNode):
                found = next(((key, value) for key, value in node.value if key.value == step), None)
                if found is None:
                    break
                line, node = found[0].start_mark.line + 1, found[1]
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
                node = node.value[step]
                line = node.start_mark.line + 1
        return line


def _read_text(path: Path) -> str:
    if path.suffix.lower() not in SUFFIXES:
        raise DeclarationError(f"{path} is no registry file: its name must end in {', '.join(SUFFIXES)}")
    try:
        with path.open("rb") as file:
            raw = file.read(MANIFEST_BYTES_MAX + 1)
    except OSError as error:
        raise DeclarationError(f"{path} cannot be read: {error.strerror or error}") from None
    if len(raw) > MANIFEST_BYTES_MAX:
        raise DeclarationError(f"{path} is larger than the {MANIFEST_BYTES_MAX:,} bytes a registry file may have")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DeclarationError(f"{path} is not UTF-8 text: byte {error.start} cannot be read") from None


def _parse_json(text: str, path: Path) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise DeclarationError(f"{path}: {next(repeated_keys(text, '')).path!r} stands twice in one object")
        return found

    def no_constant(name: str) -> Any:
        raise DeclarationError(f"{path}: {name} is not a number that JSON knows")

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=no_constant)
    except json.JSONDecodeError as error:
        raise DeclarationError(f"{path}:{error.lineno}: not JSON: {error.msg}") from None


def _parse_yaml(text: str, path: Path) -> Any:
    try:
        _check_events(text, path)
        return yaml.load(text, _Loader)  # noqa: S506  a safe loader, made stricter
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{path}:{mark.line + 1}" if mark else f"{path}"
        raise DeclarationError(f"{place}: not YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:  # characters YAML does not allow
        raise DeclarationError(f"{path}: not YAML: {' '.join(str(error).split())}") from None


def _check_events(text: str, path: Path) -> None:
    """Refuse what could grow in memory or mean more than data, before anything is built."""
    for event in yaml.parse(text, _Loader):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise DeclarationError(f"{path}:{line}: anchors (&) and aliases (*) are not allowed in a registry file")
        if getattr(event, "tag", None):
            raise DeclarationError(f"{path}:{line}: tags (!) are not allowed in a registry file")


def _check_values(document: Any, path: Path) -> None:
    level = [document]
    for _ in range(MANIFEST_NESTING_MAX + 1):
        if any(isinstance(one, float) and not math.isfinite(one) for one in level):
            raise DeclarationError(f"{path} holds a number that is too large")
        inner = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)]
        if not inner:
            return
        level = [value for values in inner for value in values]
    raise _too_deep(path)


def _check_texts(document: Any, path: Path) -> None:
    """Refuse half of a surrogate pair, which an escape can express and no writer can encode as UTF-8."""
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        where = next(place for place, item, _ in walk(document, "") if isinstance(item, str) and not _is_utf8(item))
        raise DeclarationError(f"{path}: {where} holds a surrogate that is not valid UTF-8") from None


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _too_deep(path: Path) -> DeclarationError:
    return DeclarationError(f"{path} is nested deeper than the {MANIFEST_NESTING_MAX} levels a registry file may have")


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # the C parser where it was built
    """A safe loader whose plain words are what JSON knows: `yes`, `on` and `2024-01-01` stay text, keys are text and unique."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """Build a mapping, or say which key is not text or stands twice."""
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag != "tag:yaml.org,2002:str":
                what = f"the key {key.value!r} is not text; put it in quotes"
                raise yaml.constructor.ConstructorError(None, None, what, key.start_mark)
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value!r} stands twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)  # type: ignore[no-any-return]


for _kind_name, _pattern, _first in (
    ("bool", r"true|false", "tf"),
    ("int", r"[-+]?(0|[1-9][0-9_]*)", "-+0123456789"),
    ("float", r"[-+]?(0|[1-9][0-9_]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?", "-+0123456789"),
    ("null", r"~|null|", ["~", "n", ""]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind_name}", re.compile(f"^(?:{_pattern})$"), list(_first))
