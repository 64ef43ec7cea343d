"""The key of a store: made where nothing is hidden yet, and tried on what is hidden before anything else is hidden under it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from comity.core.document.payload import unpack
from comity.core.document.slices import Sliced
from comity.engines.cipher import TRIED_MAX as TRIED_MAX  # noqa: PLC0414  where its readers look for it
from comity.engines.cipher import Cipher, derived, key_for, key_place
from comity.errors import UnavailableError
from comity.runtime.session.remembered import opened as open_memory

if TYPE_CHECKING:
    from comity.core.redaction import Vault

_PART_VALUES: Final = 1_000  # of a vault, made ready in one slice
_SEALED = b"\0"  # no JSON begins so


def store_key(store: Path | None, sealed: Sequence[tuple[str, bytes]], remembered: Sequence[tuple[str, bytes]] = ()) -> bytes:
    """Return the key of a store whose first vaults are `sealed`, each under its document's key; a new one only without any.

    `remembered` are its first memories of users, which are encrypted as well. Raises `UnavailableError` where the key is
    missing, or is not the one these were hidden under.
    """
    key = key_for(store, may_make=not sealed and not remembered)
    if not sealed and not remembered:
        return key
    vaults, memories = vault_cipher(key), memory_cipher(key)
    is_right = any(_opens(_decrypt, vaults, *one) for one in sealed)
    if not is_right and not any(_opens(open_memory, memories, *one) for one in remembered):
        message = f"{key_place(store)} cannot decrypt this store; restore the key file that was used to create it"
        raise UnavailableError(message, code="STORE_UNAVAILABLE", retryable=False)
    return key


def vault_cipher(key: bytes) -> Cipher:
    """Return what encrypts and decrypts the vaults of a store with this key."""
    return Cipher(derived(key, "vault"))


def memory_cipher(key: bytes) -> Cipher:
    """Return what encrypts and decrypts what a store with this key remembers of users."""
    return Cipher(derived(key, "memory"))


class Seal:
    """Encrypts what agents keep for themselves, states and steps, if it may hold personal data; they get it back in clear."""

    def __init__(self, cipher: Cipher, may_hold: Callable[[bytes], bool] | None) -> None:
        self._cipher = cipher
        self._may_hold = may_hold  # None where nothing is hidden

    def sealed(self, name: str, data: bytes) -> bytes:
        """Return JSON as it is written under a name."""
        return data if self._may_hold is None or not self._may_hold(data) else _SEALED + self._cipher.encrypt(data, name)

    def opened(self, name: str, written: bytes) -> bytes:
        """Return JSON as it was. Raises `UnavailableError` where the key of the store is another one."""
        is_sealed = written.startswith(_SEALED)
        return self._cipher.decrypt(written[len(_SEALED) :], name, f"the {name}") if is_sealed else written


def seal(cipher: Cipher, key: str, vault: Vault) -> Sliced[bytes]:
    """Encrypt the vault that is stored under a key."""
    pieces: list[bytes] = []
    for part in vault.parts(_PART_VALUES):
        pieces.append(part)
        yield
    return (yield from cipher.encrypt_sliced(b"".join(pieces), f"vault {key}"))


def open_vault(cipher: Cipher, key: str, sealed: bytes, issuer: str = "") -> Vault:
    """Decrypt the vault that is stored under a key, for an issuer of further tokens or to be read only."""
    from comity.core.redaction import Vault  # noqa: PLC0415  slow to import, and trying a key needs none of it

    return Vault.from_data(unpack(_decrypt(cipher, key, sealed)), issuer)


def _decrypt(cipher: Cipher, key: str, sealed: bytes) -> bytes:
    tenant_id, _, session_id = key.partition("\x1f")
    return cipher.decrypt(sealed, f"vault {key}", f"what is hidden in session {session_id} of tenant {tenant_id}")


def _opens(how: Callable[[Cipher, str, bytes], object], cipher: Cipher, key: str, sealed: bytes) -> bool:
    try:
        how(cipher, key, sealed)
    except UnavailableError:
        return False
    return True
