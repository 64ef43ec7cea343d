"""What a capability takes and gives: checkers made from type hints or from JSON Schema, built when first needed.

A checker reads JSON bytes and returns either the arguments or every problem with its path. Validators are built on first use,
because ten thousand registered agents of which a few are called must not cost ten thousand validators.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Collection, Mapping
from copy import deepcopy
from difflib import get_close_matches
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any, NotRequired, Protocol

import jsonschema_rs
from msgspec import MsgspecError, Struct
from msgspec.json import encode as _encode
from pydantic_core import ValidationError
from typing_extensions import TypedDict

from comity.core.call.limits import NAME_CHARS_MAX, PROBLEMS_MAX
from comity.core.document import plain_types
from comity.core.document.beginning import Beginning
from comity.core.document.foreign_errors import ENDINGS, told
from comity.core.document.payload import Problem, Taker, taker, unpack_long
from comity.core.document.slices import ONE_GO_BYTES, in_one_go

_DETAILS_MAX = 1_000  # problems that pydantic is asked to tell: a microsecond each
_UNTYPED = (Any, type(None), dict, object)


class Checked(Struct, frozen=True, gc=False):
    """The outcome of a check: the value, or what is wrong with it."""

    value: Any
    problems: tuple[Problem, ...] = ()


class Checker(Protocol):
    """Reads one JSON document against a schema."""

    is_plain: bool  # whether the value it returns is the document as `unpack` reads it

    def check(self, raw: bytes) -> Checked:
        """Return the value, or every problem."""
        ...

    def check_read(self, raw: bytes, value: Any) -> Checked:
        """Return what `check` does, of a document whose value as `unpack` reads it is there already."""
        ...

    def json_schema(self) -> dict[str, Any]:
        """Return the schema as plain data."""
        ...


class SchemaError(ValueError):
    """The schema or signature itself cannot be used."""


class JsonSchema:
    """A foreign JSON Schema, given as data."""

    is_plain = True

    def __init__(self, schema: Mapping[str, Any], *, path: str) -> None:
        self._schema = dict(schema)
        self._path = path
        try:
            # Values are masked, since a message may not repeat personal data; references are never fetched.
            self._validator = jsonschema_rs.validator_for(self._schema, mask="the value", retriever=_no_retrieval)
        except (ValueError, jsonschema_rs.ReferencingError) as error:
            where = join("schema", getattr(error, "instance_path", ()))
            raise SchemaError(f"not a valid JSON Schema: {where}: {str(error).splitlines()[0]}") from None

    def check(self, raw: bytes) -> Checked:
        """Return the document as it is, or every problem."""
        return self.check_read(raw, unpack_long(raw))

    def check_read(self, _raw: bytes, value: Any) -> Checked:
        """Return the value, or every problem."""
        if not (errors := errors_of(self._validator, value)):
            return Checked(value)
        problems = tuple(Problem(join(self._path, one.instance_path), one.message) for one in errors[:PROBLEMS_MAX])
        return Checked(None, problems)

    def json_schema(self) -> dict[str, Any]:
        """Return the schema as given."""
        return self._schema


def errors_of(validator: Any, value: Any) -> list[jsonschema_rs.ValidationError]:
    """Return the errors of a value under a JSON Schema: of a long value those in its beginning, or else the first error.

    The validator collects all errors before it yields the first, which takes up to 60 µs for each.
    """
    if validator.is_valid(value):
        return []
    begun = Beginning(value)
    errors = [one for one in validator.iter_errors(begun.value) if begun.is_all or begun.holds(one.instance_path)]
    if errors or begun.is_all:
        return errors
    try:
        validator.validate(value)
    except jsonschema_rs.ValidationError as error:
        return [error]
    return []


class PythonType:
    """A Python type, checked by pydantic in strict JSON mode: numbers are not text, dates are ISO text."""

    def __init__(
        self,
        kind: Any,
        *,
        path: str,
        is_closed: bool = False,
        names: Collection[str] = (),
        reader: plain_types.Reader | None = None,
        is_simple: bool = False,
        is_plain: bool = False,
        untyped: Mapping[str, type] = MappingProxyType({}),
    ) -> None:
        from pydantic import ConfigDict, PydanticUserError, TypeAdapter  # noqa: PLC0415  slow to import, needed on first use

        self._path = path
        self._names = names
        self._untyped = untyped  # the inputs that are taken as they are read, and what they must be
        self.is_plain = is_plain  # it needs a reader then: the validator may read numbers in another way
        self._reader = reader  # that takes what is sound in less time; see `plain_types`
        # Packs and reads a value at once, where its types allow it.
        self.take: Taker | None = taker(*reader) if is_simple and reader is not None else None
        self.is_closed = is_closed  # whether it takes an object of declared names and no others
        try:
            try:
                self._adapter: Any = TypeAdapter(kind, config=ConfigDict(allow_inf_nan=False))
            except PydanticUserError:  # models, dataclasses and typed dicts bring their own configuration
                self._adapter = TypeAdapter(kind)
        except Exception as error:  # noqa: BLE001  a user's annotation can fail in any way; it is their declaration
            raise SchemaError(f"{path}: {kind!r} cannot be used as a type: {error}") from None
        self._validate = self._adapter.validator.validate_json

    def check(self, raw: bytes) -> Checked:
        """Return the typed value, or every problem."""
        if len(raw) >= ONE_GO_BYTES:
            if self._untyped:
                try:
                    # The validator takes five times as long to read it.
                    return self.check_read(raw, in_one_go(unpack_long, raw))
                except MsgspecError:
                    pass  # the validator says what is wrong
        elif self._reader is not None:
            decode, as_dict = self._reader
            try:
                return Checked(as_dict(decode(raw)))
            except MsgspecError:
                pass  # the validator says what is wrong, if anything is
        return self._validated(raw)

    def _validated(self, raw: bytes) -> Checked:
        checked = self._outcome(raw)
        if not isinstance(checked, ValidationError):
            return Checked(checked)
        if checked.error_count() <= _DETAILS_MAX:
            return Checked(None, _problems(checked, self._path, self._names))
        begun = Beginning(in_one_go(unpack_long, raw))
        error = self._outcome(_encode(begun.value))
        problems = _problems(error, self._path, self._names, begun) if isinstance(error, ValidationError) else ()
        return Checked(None, problems or (Problem(self._path, f"has {checked.error_count():,} problems"),))

    def _outcome(self, raw: bytes) -> Any:
        """Return the typed value, or the error that says what is wrong."""
        is_long = len(raw) >= ONE_GO_BYTES
        try:
            return in_one_go(self._read, raw) if is_long else self._validate(raw, strict=True)
        except ValidationError as error:
            return error
        except ENDINGS:
            raise
        except BaseException as raised:  # a validator of the user's own can fail in any way
            raise SchemaError(f"{self._path}: its validator failed with {told(raised)}") from raised

    def check_read(self, raw: bytes, value: Any) -> Checked:
        """Return what `check` does. To read a long document again takes long; what has no type of its own is not."""
        if len(raw) < ONE_GO_BYTES:
            return self.check(raw)
        if not self._untyped or not isinstance(value, dict):
            return self._validated(raw)
        kept = {
            name: item
            for name, item in value.items()
            if isinstance(item, dict | list | str) and isinstance(item, self._untyped.get(name, ()))
        }
        small = {name: type(item)() if name in kept else item for name, item in value.items()}
        checked = self._validated(_encode(small))
        return checked if checked.problems else Checked(checked.value | kept)

    def _read(self, raw: bytes) -> Any:
        return self._validate(raw, strict=True)

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema pydantic derives from the type, as a dictionary of the caller's own."""
        return deepcopy(self._json_schema)

    @cached_property
    def _json_schema(self) -> dict[str, Any]:
        """Derived once: it takes milliseconds, and a model agent tells it to its model in every turn."""
        schema: dict[str, Any] = self._adapter.json_schema()
        return schema


def from_signature(function: Callable[..., Any], *, without: Collection[str] = ()) -> tuple[Checker, bool]:
    """Return the checker for a function's inputs and whether it wants the context as its first argument.

    Parameters in `without` do not come from the caller.
    """
    hints = _hints(function)
    fields: dict[str, Any] = {}
    wants_context = takes_any = False
    for index, parameter in enumerate(_signature(function).parameters.values()):
        if index == 0 and is_context(parameter, hints):
            wants_context = True
        elif parameter.name in without:
            continue
        elif parameter.kind is parameter.VAR_KEYWORD:
            takes_any = True
        elif parameter.kind in {parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY}:
            raise SchemaError(f"parameter {parameter.name!r} of {_name(function)} cannot be given by name")
        else:
            kind = hints.get(parameter.name, Any)
            fields[parameter.name] = kind if parameter.default is parameter.empty else NotRequired[kind]
    make_typed_dict: Any = TypedDict  # type checkers know the functional form with literal fields only
    inputs = make_typed_dict("Inputs", fields)
    inputs.__pydantic_config__ = {"extra": "allow" if takes_any else "forbid", "allow_inf_nan": False}
    reader = None if takes_any else plain_types.reader(fields)
    is_simple = all(map(plain_types.is_simple, fields.values()))
    untyped = {name: kind for name in fields if (kind := plain_types.as_read(hints.get(name, Any))) is not None}
    checker = PythonType(
        inputs,
        path="inputs",
        is_closed=not takes_any,
        names=tuple(fields),
        reader=reader,
        is_simple=is_simple,
        untyped=untyped,
    )
    return checker, wants_context


def from_return(function: Callable[..., Any]) -> Checker | None:
    """Return the checker for what a function returns, or None where the annotation says nothing to check."""
    kind = _hints(function).get("return", Any)
    if _is_reply(kind):
        kind = (*typing.get_args(kind), Any)[0]
    if typing.get_origin(kind) in {typing.Union, types.UnionType} and any(map(_is_reply, typing.get_args(kind))):
        return None  # a reply or something else: which of the two is known when it is returned
    if any(kind is one for one in _UNTYPED):  # by identity: an annotation need not be hashable
        return None
    reader = plain_types.table_reader(kind)
    return PythonType(kind, path="data", reader=reader, is_plain=reader is not None)


def takes(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the names of a function's inputs, in order, each with its default or `Parameter.empty`."""
    hints = _hints(function)
    parameters = list(_signature(function).parameters.values())
    if parameters and is_context(parameters[0], hints):
        del parameters[0]
    return {one.name: one.default for one in parameters if one.kind in {one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY}}


def is_context(parameter: inspect.Parameter, hints: Mapping[str, Any]) -> bool:
    """Return whether a first parameter asks for the call's context: by its annotation, or by the name `ctx` without one."""
    if parameter.name in hints:
        return getattr(hints[parameter.name], "__name__", "") in {"Context", "SyncContext"}
    return parameter.name == "ctx"


def is_hinted_sync(function: Callable[..., Any]) -> bool:
    """Return whether a function's first parameter asks for the context of a thread."""
    first = next(iter(_signature(function).parameters), "")
    return getattr(_hints(function).get(first), "__name__", "") == "SyncContext"


def join(path: str, steps: Any) -> str:
    """Write a location as `inputs.cash_flows[2]`."""
    for step in steps:
        path += f"[{step}]" if isinstance(step, int) else f".{step}"
    return path


def _problems(error: ValidationError, path: str, names: Collection[str], begun: Beginning | None = None) -> tuple[Problem, ...]:
    """Return the problems of a document. If only its beginning was checked, errors of the shortened parts are left out."""
    details = error.errors(include_url=False, include_input=False)
    genuine = [detail for detail in details if begun is None or begun.holds(detail["loc"])]
    return tuple(Problem(join(path, detail["loc"]), _message(detail, names)) for detail in genuine[:PROBLEMS_MAX])


def _message(detail: Any, names: Collection[str]) -> str:
    """Return what is wrong in one sentence, without the value where pydantic would repeat it."""
    match detail["type"]:
        case "missing":
            return "is required"
        case "extra_forbidden":
            meant = get_close_matches(str(detail["loc"][-1])[:NAME_CHARS_MAX], names, n=1) if len(detail["loc"]) == 1 else []
            return f"is unknown; did you mean {meant[0]}?" if meant else "is unknown"
        case "union_tag_invalid":
            return "Input tag should be one of {expected_tags}, found using {discriminator}".format_map(detail["ctx"])
    return str(detail["msg"])


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise SchemaError(f"the parameters of {_name(function)} cannot be read: {error}") from None


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(inspect.unwrap(function), include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        raise SchemaError(f"the annotations of {_name(function)} cannot be read: {error}") from None


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", repr(function))


def _is_reply(kind: Any) -> bool:
    return getattr(kind, "__name__", "") == "Reply"


def _no_retrieval(uri: str) -> Any:
    raise ValueError(f"reference to {uri} is outside the schema")


@cache
def load() -> None:
    """Check a function: the first node of a process does this before its first call, whose time the imports would use up."""

    def declared(number: int) -> int:
        return number

    from_signature(declared)[0].check(b'{"number": 1}')
