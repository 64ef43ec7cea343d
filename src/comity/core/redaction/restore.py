"""Putting hidden values back: tokens of a vault become the values they stand for."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from comity.core.document.payload import unpack_long
from comity.core.document.slices import Sliced, in_one_go, whole
from comity.core.redaction.hiding import SLICE_ITEMS
from comity.core.redaction.search import SHORT_CHARS
from comity.core.redaction.vault import TOKEN, Value, Vault

_encode = msgspec.json.Encoder().encode


def restore_text(text: str, vault: Vault, types: frozenset[str] | None = None) -> str:
    """Return `text` with this vault's tokens turned back, all of them or those of `types`; other tokens stay."""
    if "[[" not in text:
        return text
    return TOKEN.sub(lambda match: str(_restored(match, vault, types)), text)


def _restored_text(text: str, vault: Vault, types: frozenset[str] | None) -> Sliced[str]:
    pieces: list[str] = []
    end = 0
    for number, match in enumerate(TOKEN.finditer(text), 1):
        pieces += (text[end : match.start()], str(_restored(match, vault, types)))
        end = match.end()
        if number % SLICE_ITEMS == 0:
            yield
    pieces.append(text[end:])
    return "".join(pieces)


def restore_value(value: Any, vault: Vault, types: frozenset[str] | None = None) -> Any:
    """Return a copy of a JSON-like value with this vault's tokens turned back, in keys too."""
    return whole(restore_value_sliced(value, vault, types))


def restore_value_sliced(value: Any, vault: Vault, types: frozenset[str] | None = None) -> Sliced[Any]:
    """Return what `restore_value` does, with pauses."""
    match value:
        case str() if len(value) <= SHORT_CHARS:
            return _restored_short(value, vault, types)
        case str():
            return (yield from _restored_text(value, vault, types))
        case dict():
            result: dict[Any, Any] = {}
            for number, (key, item) in enumerate(value.items(), 1):
                is_short = isinstance(item, str) and len(item) <= SHORT_CHARS
                result[restore_text(key, vault, types)] = (
                    _restored_short(item, vault, types) if is_short else (yield from restore_value_sliced(item, vault, types))
                )
                if number % SLICE_ITEMS == 0:
                    yield
            return result
        case list() | tuple():
            items: list[Any] = []
            for number, item in enumerate(value, 1):
                is_short = isinstance(item, str) and len(item) <= SHORT_CHARS
                items.append(
                    _restored_short(item, vault, types) if is_short else (yield from restore_value_sliced(item, vault, types))
                )
                if number % SLICE_ITEMS == 0:
                    yield
            return items if isinstance(value, list) else tuple(items)
        case _:
            return value


def _restored_short(text: str, vault: Vault, types: frozenset[str] | None) -> Value:
    whole_token = TOKEN.fullmatch(text)
    return _restored(whole_token, vault, types) if whole_token else restore_text(text, vault, types)


def restore_json(raw: bytes, vault: Vault, types: frozenset[str] | None = None) -> bytes:
    """Return a JSON document with this vault's tokens turned back."""
    return whole(restore_json_sliced(raw, vault, types))


def restore_json_sliced(raw: bytes, vault: Vault, types: frozenset[str] | None = None) -> Sliced[bytes]:
    """Return what `restore_json` does, with pauses."""
    if not any(tag.encode() in raw for tag in vault.tags):
        return raw
    yield
    value = in_one_go(unpack_long, raw)
    yield
    value = yield from restore_value_sliced(value, vault, types)
    yield
    return _encode(value)


def _restored(match: re.Match[str], vault: Vault, types: frozenset[str] | None) -> Value:
    token = match.group()
    if types is not None and match[1] not in types:
        return token
    value = vault.value(token)
    return token if value is None else value
