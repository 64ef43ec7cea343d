"""The key of a store: generated only if nothing is encrypted yet, else tested on existing vaults before it is used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from comity.engines.cipher import Cipher, derived, key_for, key_place
from comity.errors import UnavailableError
from comity.runtime.session.remembered import opened as open_memory
from comity.runtime.session.sealing import decrypt_vault


def store_key(store: Path | None, sealed: Sequence[tuple[str, bytes]], remembered: Sequence[tuple[str, bytes]] = ()) -> bytes:
    """Return the key of a store; generate one only if nothing is encrypted yet.

    `sealed` are its first vaults and `remembered` its first memories of users, by document key. Raises `UnavailableError` if
    the key is missing or cannot decrypt them.
    """
    key = key_for(store, may_make=not sealed and not remembered)
    if not sealed and not remembered:
        return key
    vaults, memories = vault_cipher(key), memory_cipher(key)
    is_right = any(_opens(decrypt_vault, vaults, *one) for one in sealed)
    if not is_right and not any(_opens(open_memory, memories, *one) for one in remembered):
        message = f"{key_place(store)} cannot decrypt this store; restore the key file that was used to create it"
        raise UnavailableError(message, code="STORE_UNAVAILABLE", retryable=False)
    return key


def vault_cipher(key: bytes) -> Cipher:
    """Return the cipher for a store's vaults."""
    return Cipher(derived(key, "vault"))


def memory_cipher(key: bytes) -> Cipher:
    """Return the cipher for a store's memories of users."""
    return Cipher(derived(key, "memory"))


def _opens(how: Callable[[Cipher, str, bytes], object], cipher: Cipher, key: str, sealed: bytes) -> bool:
    try:
        how(cipher, key, sealed)
    except UnavailableError:
        return False
    return True
