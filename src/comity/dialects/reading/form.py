"""Forms: the fields of a dialect's documents, declared once, read with every problem named and written as they came.

A field at its default may stand in a document or be left out. The canonical envelope does not tell these apart, so what a
document did otherwise than we would is kept as *marks*, a list of paths in the envelope's metadata under `form.<dialect>`.
Writing with the same marks gives the same document. A mark never hides a value that has changed since.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from functools import cache
from itertools import islice
from typing import Any, ClassVar, Final, TypeVar

import msgspec
from msgspec import NODEFAULT, UNSET, Struct, UnsetType
from msgspec.structs import FieldInfo

from comity.core.document.payload import Problem
from comity.dialects.reading.document import malformed, short_number

PROBLEMS_MAX: Final = 100
_KEY_CHARS_MAX: Final = 64


class Form(Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of one document, spelt as its seed spells them. `written` are those we write even at their default."""

    written: ClassVar[frozenset[str]] = frozenset()


F = TypeVar("F", bound=Form)


def read(plain: Any, form: type[F]) -> F:
    """Return the document as its form, or raise `CallerError` with every field that is unknown, missing or wrong."""
    try:
        return msgspec.convert(plain, form)
    except msgspec.ValidationError as error:
        found = tuple(islice(_problems(plain, form, ""), PROBLEMS_MAX))
        raise malformed(found or (Problem("$", _complaint(error)[0]),)) from None


def write(form: Form, marks: Collection[str] = ()) -> dict[str, Any]:
    """Return the document as plain data, with the fields at their default that `marks` asks for."""
    return _written(form, marks, "")


def marks_of(plain: Mapping[str, Any], form: Form) -> list[str]:
    """Return the paths of fields at their default that stand in the document though we leave them out, or the reverse."""
    return list(_marks(plain, form, ""))


def key_of(dialect: str) -> str:
    """Return the metadata key under which the marks of a dialect are kept."""
    return f"form.{dialect}"


def kept(metadata: Mapping[str, Any], dialect: str) -> frozenset[str]:
    """Return the marks in an envelope's metadata; metadata is open to anyone, so anything may stand there."""
    marks = metadata.get(key_of(dialect), ())
    return frozenset(mark for mark in marks if isinstance(mark, str)) if isinstance(marks, (list, tuple)) else frozenset()


def with_marks(metadata: dict[str, Any], dialect: str, marks: list[str]) -> dict[str, Any]:
    """Return metadata with the marks in it, if there are any."""
    return {**metadata, key_of(dialect): sorted(marks)} if marks else metadata


def plain_of(value: Any) -> Any:
    """Return a fresh copy of a value of an envelope as plain JSON data."""
    if isinstance(value, Struct):
        value = msgspec.to_builtins(value)
    if isinstance(value, Mapping):
        return {key: plain_of(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_of(inner) for inner in value]
    return str(value) if isinstance(value, StrEnum) else value


@cache
def fields_of(form: type[Struct]) -> tuple[FieldInfo, ...]:
    """Return the fields of a form or of a part of the envelope."""
    return msgspec.structs.fields(form)


def is_default(field: FieldInfo, value: Any) -> bool:
    """Return whether a field holds its default, as if the document had left it out."""
    if field.default_factory is not NODEFAULT:
        return bool(value == field.default_factory())
    return field.default is not NODEFAULT and bool(value == field.default)


# --- writing ------------------------------------------------------------------------------------------------------------


def _written(form: Form, marks: Collection[str], prefix: str) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for field in fields_of(type(form)):
        name, value = field.name, getattr(form, field.name)
        path = prefix + name
        if value is UNSET or (is_default(field, value) and (name in form.written) == (path in marks)):
            continue
        if isinstance(value, Form):
            plain[name] = _written(value, marks, f"{path}.")
        elif isinstance(value, tuple) and value and isinstance(value[0], Form):
            plain[name] = [_written(item, marks, f"{path}.{index}.") for index, item in enumerate(value)]
        else:
            plain[name] = short_number(value) if type(value) is float else plain_of(value)
    return plain


def _marks(plain: Mapping[str, Any], form: Form, prefix: str) -> Iterator[str]:
    for field in fields_of(type(form)):
        name, value = field.name, getattr(form, field.name)
        path = prefix + name
        if value is not UNSET and is_default(field, value) and (name in plain) != (name in form.written):
            yield path
        if name not in plain:
            continue
        if isinstance(value, Form):
            yield from _marks(plain[name], value, f"{path}.")
        elif isinstance(value, tuple) and value and isinstance(value[0], Form):
            for index, item in enumerate(value):
                yield from _marks(plain[name][index], item, f"{path}.{index}.")


# --- what is wrong ------------------------------------------------------------------------------------------------------


def _problems(value: Any, kind: Any, path: str) -> Iterator[Problem]:
    """Yield every problem, since the decoder stops at the first."""
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        members = typing.get_args(kind)
        if value is None and types.NoneType in members:
            return
        kind = next(member for member in members if member not in {types.NoneType, UnsetType})
    if isinstance(kind, type) and issubclass(kind, Form):
        yield from _field_problems(value, kind, path)
        return
    if typing.get_origin(kind) is tuple and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _problems(item, typing.get_args(kind)[0], f"{path}[{index}]")
        return
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        message, tail = _complaint(error)
        if isinstance(kind, type) and issubclass(kind, StrEnum) and isinstance(value, str):
            message = f"must be one of {', '.join(kind)}"
        yield Problem((path or "$") + tail, message)


def _field_problems(value: Any, form: type[Form], path: str) -> Iterator[Problem]:
    if not isinstance(value, dict):
        yield Problem(path or "$", f"must be an object, not {type(value).__name__}")
        return
    prefix = f"{path}." if path else ""
    fields = {field.name: field for field in fields_of(form)}
    for key in value:
        if key not in fields:
            # A key may be as long or as odd as its sender likes.
            shown = key[:_KEY_CHARS_MAX] if key.isprintable() else "?"
            yield Problem(prefix + shown, f"is not a field here; the fields are {', '.join(fields)}")
    for name, field in fields.items():
        if name in value:
            yield from _problems(value[name], field.type, prefix + name)
        elif field.required:
            yield Problem(prefix + name, "is required and missing")


def _complaint(error: msgspec.ValidationError) -> tuple[str, str]:
    """Return a decoder's message and the path at its end, without the `$` it starts with."""
    message, _, path = str(error).partition(" - at `$")
    return message.replace("Expected", "must be", 1).replace(", got", ", not", 1), path.rstrip("`")
