"""The stored form of a user's memory: only the texts of facts and notes are encrypted.

So facts can be erased with their session or user even if the key is lost.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from comity.core.session.memory import Fact, Memory, Note
from comity.errors import UnavailableError
from comity.ports import Cipher


class _Sealed(Fact, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A stored fact: the encrypted text in `sealed`, `text` empty."""

    sealed: bytes


class _SealedNote(Note, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A stored note: the encrypted text in `sealed`, `text` empty."""

    sealed: bytes


class StoredMemory(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A memory as it is stored."""

    facts: tuple[_Sealed, ...] = ()
    made: int = 0
    dropped: int = 0
    notes: tuple[_SealedNote, ...] = ()


_encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(StoredMemory).decode


def opened(cipher: Cipher, key: str, raw: bytes) -> Memory:
    """Decrypt the memory stored under a key. Raises `UnavailableError` if it cannot be decoded or decrypted."""
    try:
        stored = decode(raw)
    except msgspec.MsgspecError as error:
        user_id = key.rpartition("\x1f")[2]
        message = f"what is remembered of user {user_id!r} cannot be read: {error}; erase it"
        raise UnavailableError(message, code="STORE_UNAVAILABLE", retryable=False) from None

    def text_of(one: _Sealed | _SealedNote) -> str:
        return cipher.decrypt(one.sealed, _place(key, one), "what is remembered of a user").decode()

    facts = tuple(Fact(**_fields(one, Fact) | {"text": text_of(one)}) for one in stored.facts)
    notes = tuple(Note(**_fields(one, Note) | {"text": text_of(one)}) for one in stored.notes)
    return Memory(facts, stored.made, stored.dropped, notes)


def sealed(cipher: Cipher, key: str, memory: Memory) -> bytes:
    """Encrypt a memory to be stored under a key."""

    def hidden(one: Fact | Note) -> dict[str, Any]:
        return {"text": "", "sealed": cipher.encrypt(one.text.encode(errors="replace"), _place(key, one))}

    facts = tuple(_Sealed(**_fields(one, Fact) | hidden(one)) for one in memory.facts)
    notes = tuple(_SealedNote(**_fields(one, Note) | hidden(one)) for one in memory.notes)
    return _encode(StoredMemory(facts, memory.made, memory.dropped, notes))


def _fields(one: Fact | Note, kind: type[Fact | Note]) -> dict[str, Any]:
    return {name: getattr(one, name) for name in kind.__struct_fields__}


def _place(key: str, one: Fact | Note) -> str:
    """Return the associated data of a text's encryption, which binds the text to its place."""
    return f"memory {key} {f'note {one.agent} ' if isinstance(one, Note) else ''}{one.id}"


def without_session(raw: bytes, session_id: str) -> bytes | None:
    """Return a stored memory without the facts and notes of a session; None if there are none. Needs no key."""
    stored = decode(raw)
    facts = tuple(one for one in stored.facts if one.session_id != session_id)
    notes = tuple(one for one in stored.notes if one.session_id != session_id)
    kept = replace(stored, facts=facts, notes=notes)
    return None if kept == stored else _encode(kept)
