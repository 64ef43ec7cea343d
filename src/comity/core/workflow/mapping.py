"""Mapping: `{{node.data.names}}` in the strings of a definition, compiled once.

A string that is one template keeps the type of the value; inside text, numbers, booleans and null print as JSON. A missing path
is an error unless the template says `?? value`. Templates come from the definition alone: a value is never scanned for `{{`.

    {{node.data.names[0]}}      a path: fields, list indexes, quoted keys
    {{$.node.data.names[*]}}    RFC 9535 JSONPath over all nodes; one value where the query is singular, else a list
    {{size(node.data.names)}}   any CEL expression
    {{node.data.x ?? "none"}}   the value after `??` where a part of the path is missing
    {{node.data | json}}        as JSON text
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from comity.core.call.limits import CITED_CHARS_MAX
from comity.core.expression import EvaluationError, Expression, ExpressionError, MissingError
from comity.core.workflow.jsonpath import compile_query
from comity.errors import CallerError

Variables = Mapping[str, Any]
Render = Callable[[Variables], Any]
Path = tuple[str | int, ...]
_STEP: Final = re.compile(r"""\.([A-Za-z_]\w*)|\[(\d+)\]|\[(?:"([^"\\]*)"|'([^'\\]*)')\]""")
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_JSON_SUFFIX: Final = re.compile(r"\|\s*json\s*$")
# A JSONPath query that finds at most one value.
_SINGULAR: Final = re.compile(r"""\$(?:\s*(?:\.\s*[^\W\d]\w*|\[\s*(?:-?\d+|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\s*\]))*\s*""")
_LITERALS: Final = frozenset({"true", "false", "null"})
_PLAIN: Final = frozenset({int, float, bool, type(None)})
TEXT_CHARS_MAX: Final = 1024 * 1024  # of a text with its templates filled in


class MappingError(Exception):
    """A template has no value for these variables."""


class TemplateError(ValueError):
    """The text of a template cannot be read. `at` is its offset in the string that holds it."""

    def __init__(self, message: str, at: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.at = at


class Template(Struct, frozen=True):
    """One `{{…}}`: its text, where it stands in its string, and the path it reads if it is one."""

    text: str
    at: int
    render: Render
    path: Path | None = None
    names: frozenset[str] = frozenset()  # variables it reads
    has_default: bool = False
    is_json: bool = False


def compiled(value: Any) -> Render | None:
    """Return a function from variables to the value with its templates filled in; None where there is no template.

    Raises `TemplateError`.
    """
    match value:
        case str():
            return _text(value)
        case dict():
            parts = {key: compiled(one) for key, one in value.items()}
            if not any(parts.values()):
                return None
            pairs = [(key, parts[key], one) for key, one in value.items()]
            if len(pairs) == 1:
                ((key, part, _),) = pairs
                assert part is not None
                return lambda variables: {key: part(variables)}
            return lambda variables: {key: one if part is None else part(variables) for key, part, one in pairs}
        case list() | tuple():
            renders = [(compiled(one), one) for one in value]
            if not any(part for part, _ in renders):
                return None
            return lambda variables: [one if part is None else part(variables) for part, one in renders]
    return None


def templates_of(value: Any, path: Path = ()) -> Iterator[tuple[Path, Template]]:
    """Yield the templates in a value, each with the path to the string that holds it. Raises `TemplateError`."""
    match value:
        case str():
            for part in _parts(value):
                if isinstance(part, Template):
                    yield path, part
        case dict():
            for key, one in value.items():
                yield from templates_of(one, (*path, key))
        case list() | tuple():
            for place, one in enumerate(value):
                yield from templates_of(one, (*path, place))


def is_whole(text: str) -> Template | None:
    """Return the template if a string is exactly one."""
    parts = _parts(text)
    return parts[0] if len(parts) == 1 and isinstance(parts[0], Template) else None


def read_path(text: str) -> Path | None:
    """Return a path such as `node.data.names[0]` as its steps, or None if the text is something else."""
    name = _NAME.match(text)
    if name is None or name[0] in _LITERALS:
        return None
    steps: list[str | int] = [name[0]]
    place = name.end()
    while place < len(text):
        step = _STEP.match(text, place)
        if step is None:
            return None
        field, index, double, single = step.groups()
        steps.append(int(index) if index is not None else next(one for one in (field, double, single) if one is not None))
        place = step.end()
    return tuple(steps)


def walk(variables: Variables, path: Path) -> Any:
    """Return what stands at a path. Raises `MissingError`."""
    value: Any = variables
    for place, step in enumerate(path):
        is_list = isinstance(value, list) and type(step) is int
        if (is_list and step < len(value)) or (isinstance(value, Mapping) and step in value):  # type: ignore[operator]
            value = value[step]
        else:
            raise MissingError(f"{shown_path(path[: place + 1])} is missing")
    return value


def shown_path(path: Path) -> str:
    """Return a path as text."""
    return "".join(f"[{step}]" if type(step) is int else f".{step}" for step in path).removeprefix(".")


# --- inside a string ---


def _text(text: str) -> Render | None:
    parts = _parts(text)
    if not any(isinstance(part, Template) for part in parts):
        return None
    if len(parts) == 1:
        return parts[0].render  # type: ignore[union-attr]

    def render(variables: Variables) -> str:
        pieces: list[str] = []
        chars = 0
        for part in parts:
            piece = part if isinstance(part, str) else _printed(part, part.render(variables))
            chars += len(piece)
            if chars > TEXT_CHARS_MAX:
                raise MappingError(
                    f"the text that begins with {text[:CITED_CHARS_MAX]!r} has more than {TEXT_CHARS_MAX} characters"
                )
            pieces.append(piece)
        return "".join(pieces)

    return render


def size_of(value: Any, most: int) -> int:
    """Return about how many bytes a value has as JSON; stops counting once it is more than `most`.

    What stands in a value several times is counted each time, as it is written.
    """
    size, waiting = 0, [value]
    while waiting and size <= most:
        one = waiting.pop()
        kind = type(one)
        if kind is str:
            size += len(one) + 3
        elif kind in _PLAIN:
            size += 4
        elif kind is dict or isinstance(one, Mapping):
            size += 2 + sum(map(len, one)) + 4 * len(one)
            waiting += one.values()
        elif isinstance(one, list | tuple):
            size += 2 + len(one)
            waiting += one
        else:
            size += 4
    return size


def _printed(template: Template, value: Any) -> str:
    if type(value) is str:
        return value
    if value is None or isinstance(value, bool | int | float):
        return msgspec.json.encode(value).decode()
    kind = "a list" if isinstance(value, list) else "an object"
    raise MappingError(
        f"{{{{{template.text}}}}} is {kind}, which has no place inside text; write {{{{{template.text} | json}}}}"
    )


def _parts(text: str) -> list[str | Template]:
    """Return a string as its texts and templates."""
    parts: list[str | Template] = []
    place = 0
    while (begin := text.find("{{", place)) >= 0:
        if begin > place:
            parts.append(text[place:begin])
        end = _end(text, begin + 2)
        parts.append(_template(text[begin + 2 : end], begin + 2))
        place = end + 2
    if place < len(text) or not parts:
        parts.append(text[place:])
    return parts


def _end(text: str, place: int) -> int:
    """Return where a template's text ends: at the `}}` outside of quotes and braces of its own."""
    depth, begin = 0, place
    while place < len(text):
        letter = text[place]
        if letter in "\"'":
            place = _after_quote(text, place)
            continue
        if letter == "{":
            depth += 1
        elif letter == "}":
            if not depth and text.startswith("}}", place):
                return place
            depth -= 1
        place += 1
    raise TemplateError("a `{{` is not closed by `}}`", begin - 2)


def _after_quote(text: str, place: int) -> int:
    quote = text[place]
    place += 1
    while place < len(text) and text[place] != quote:
        place += 2 if text[place] == "\\" else 1
    return place + 1


def _template(text: str, at: int) -> Template:
    inner = text.strip()
    at += len(text) - len(text.lstrip())
    if not inner:
        raise TemplateError("a template between `{{` and `}}` is empty", at)
    body, suffix = _JSON_SUFFIX.subn("", inner)
    source, default = _split_default(body.strip())
    render, path, names = _source(source, at)
    if default is not None:
        otherwise, _, more = _source(default, at + body.index("??") + 2)
        render, names = _with_default(render, otherwise), names | more
    if suffix:
        render = _as_json(render)
    return Template(inner, at, render, None if suffix else path, names, default is not None, bool(suffix))


def _split_default(text: str) -> tuple[str, str | None]:
    place = 0
    while place < len(text):
        if text[place] in "\"'":
            place = _after_quote(text, place)
        elif text.startswith("??", place):
            return text[:place].strip(), text[place + 2 :].strip()
        else:
            place += 1
    return text, None


def _source(text: str, at: int) -> tuple[Render, Path | None, frozenset[str]]:
    """Return what a template reads: a path, a JSONPath query, or a CEL expression."""
    if text.startswith("$"):
        return _query(text, at), None, frozenset()
    path = read_path(text)
    if path is not None:
        return _walker(path), path, frozenset({str(path[0])})
    try:
        expression = Expression(text)
    except ExpressionError as error:
        raise TemplateError(error.message, at + error.at) from None
    if problems := expression.problems():
        raise TemplateError(problems[0].message, at + problems[0].at)

    def value(variables: Variables) -> Any:
        try:
            return expression.value(variables)  # type: ignore[arg-type]
        except MissingError:
            raise
        except EvaluationError as error:
            raise MappingError(f"{{{{{text}}}}}: {error}") from None

    return value, None, expression.names


def _walker(path: Path) -> Render:
    if len(path) == 3:  # what most templates are: node.data.field
        first, second, third = path

        def three(variables: Variables) -> Any:
            try:
                found = variables[first][second]  # type: ignore[index]
                if type(found) is dict:
                    return found[third]
            except (KeyError, TypeError):
                pass
            return walk(variables, path)

        return three
    if len(path) == 2:  # input.field
        base, field = path

        def two(variables: Variables) -> Any:
            found = variables.get(base)  # type: ignore[arg-type]
            return found[field] if type(found) is dict and field in found else walk(variables, path)

        return two
    return lambda variables: walk(variables, path)


def _query(text: str, at: int) -> Render:
    try:
        query = compile_query(text)
    except ImportError:
        message = f"{text} is a JSONPath query, which needs the extra `jsonpath`: pip install 'comity[jsonpath]'"
        raise CallerError(message, code="WORKFLOW_INVALID") from None
    except ValueError as error:
        raise TemplateError(f"{text} is not a JSONPath query: {error}", at) from None
    is_singular = _SINGULAR.fullmatch(text) is not None

    def find(variables: Variables) -> Any:
        found = [node.value for node in query.find(dict(variables))]
        if not is_singular:
            return found
        if not found:
            raise MissingError(f"{text} is missing")
        return found[0]

    return find


def _with_default(render: Render, otherwise: Render) -> Render:
    def either(variables: Variables) -> Any:
        try:
            return render(variables)
        except MissingError:
            return otherwise(variables)

    return either


def _as_json(render: Render) -> Render:
    return lambda variables: msgspec.json.encode(render(variables)).decode()
