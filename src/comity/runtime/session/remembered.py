"""A user's memory as it is stored: what its facts say is encrypted, all else can be read.

So a fact can be forgotten, with the session it came from or with its user, also where the key is lost.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from comity.core.session.memory import Fact, Memory
from comity.errors import UnavailableError
from comity.ports import Cipher


class _Sealed(Fact, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A fact as it is stored, its text empty."""

    sealed: bytes


class StoredMemory(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A memory as it is stored."""

    facts: tuple[_Sealed, ...] = ()
    made: int = 0
    dropped: int = 0


_encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(StoredMemory).decode


def opened(cipher: Cipher, key: str, raw: bytes) -> Memory:
    """Return a memory as it was stored under a key. Raises `UnavailableError` if it cannot be read or decrypted."""
    try:
        stored = decode(raw)
    except msgspec.MsgspecError as error:
        user_id = key.rpartition("\x1f")[2]
        message = f"what is remembered of user {user_id!r} cannot be read: {error}; erase it"
        raise UnavailableError(message, code="STORE_UNAVAILABLE", retryable=False) from None
    facts = []
    for one in stored.facts:
        text = cipher.decrypt(one.sealed, f"memory {key} {one.id}", "what is remembered of a user").decode()
        facts.append(Fact(**{name: getattr(one, name) for name in Fact.__struct_fields__} | {"text": text}))
    return Memory(tuple(facts), stored.made, stored.dropped)


def sealed(cipher: Cipher, key: str, memory: Memory) -> bytes:
    """Return a memory as it is stored under a key."""
    facts = []
    for one in memory.facts:
        fields = {name: getattr(one, name) for name in Fact.__struct_fields__}
        hidden = cipher.encrypt(one.text.encode(errors="replace"), f"memory {key} {one.id}")
        facts.append(_Sealed(**fields | {"text": "", "sealed": hidden}))
    return _encode(StoredMemory(tuple(facts), memory.made, memory.dropped))


def without_session(raw: bytes, session_id: str) -> bytes | None:
    """Return a stored memory without what was last reported in a session, for which no key is needed; None if nothing was."""
    stored = decode(raw)
    kept = tuple(one for one in stored.facts if one.session_id != session_id)
    return None if kept == stored.facts else _encode(replace(stored, facts=kept))
