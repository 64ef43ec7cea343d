"""A quick reader of objects whose fields have plain types, beside the validator that can say what is wrong.

Most capabilities take texts, numbers, and lists or tables of these. Such an object is read and checked in one pass by a typed
decoder, in a third of the time that the validator takes. What the decoder does not take, the validator judges.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Final, NotRequired

from msgspec import UNSET, UnsetType, defstruct, field, json, to_builtins
from msgspec.structs import asdict

Reader = tuple[Callable[[bytes], Any], Callable[[Any], dict[str, Any]]]
_PLAIN: Final = (str, int, float, bool)


def reader(fields: Mapping[str, Any]) -> Reader | None:
    """Return a decoder of objects with these fields and no others, and what makes a dict of its result.

    None if a field has another than a plain type: only for these do decoder and validator agree on every value. The decoder
    raises `MsgspecError` for what it does not take. `NotRequired` fields that an object leaves out are not in the dict.
    """
    declared: list[Any] = []
    for name, kind in fields.items():
        is_required = typing.get_origin(kind) is not NotRequired
        kind = kind if is_required else typing.get_args(kind)[0]  # noqa: PLW2901
        if not is_plain(kind):
            return None
        declared.append((name, kind) if is_required else (name, kind | UnsetType, field(default=UNSET)))
    try:
        made = defstruct("Inputs", declared, forbid_unknown_fields=True, kw_only=True, gc=False)
    except (TypeError, ValueError):  # a name that a struct cannot have
        return None
    return json.Decoder(made).decode, asdict if all(len(one) == 2 for one in declared) else to_builtins


def table_reader(kind: Any) -> Reader | None:
    """Return the same for `dict[str, Any]`, of which only that it is an object has to be checked; None for any other type."""
    is_table = typing.get_origin(kind) is dict and typing.get_args(kind) == (str, Any)
    return (json.Decoder(dict[str, Any]).decode, _as_it_is) if is_table else None


def _as_it_is(table: dict[str, Any]) -> dict[str, Any]:
    return table


def as_read(kind: Any) -> type | None:
    """Return what a value must be for the validator to take it as it was read: an object, a list, or anything; else None."""
    if kind is Any or kind is object:
        return object
    if kind is dict or (typing.get_origin(kind) is dict and typing.get_args(kind) == (str, Any)):
        return dict
    return list if kind is list or (typing.get_origin(kind) is list and typing.get_args(kind) == (Any,)) else None


def is_simple(kind: Any) -> bool:
    """Return whether a type, required or not, is a text, number or truth value, or a list of these: no table, and no null."""
    while typing.get_origin(kind) in {NotRequired, list}:
        (kind,) = typing.get_args(kind)
    return any(kind is one for one in _PLAIN)


def is_plain(kind: Any) -> bool:
    """Return whether a type is a text, number or truth value, a list or table of plain types, or one of these or None."""
    if any(kind is one for one in _PLAIN):  # by identity: an annotation need not be hashable
        return True
    origin, of = typing.get_origin(kind), typing.get_args(kind)
    if origin is list:
        return is_plain(of[0])
    if origin is dict:
        return of[0] is str and is_plain(of[1])
    if origin is types.UnionType or origin is typing.Union:
        return len(of) == 2 and of[1] is type(None) and is_plain(of[0])
    return False
