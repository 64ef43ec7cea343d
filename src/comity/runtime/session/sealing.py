"""Encryption of session vaults, agent states and durable steps in the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from comity.core.document.payload import unpack
from comity.core.document.slices import Sliced
from comity.ports import Cipher

if TYPE_CHECKING:
    from comity.core.redaction import Vault

_PART_VALUES: Final = 1_000  # values of a vault encoded per slice
_SEALED = b"\0"  # no JSON begins so


class Seal:
    """Encrypts agent states and durable steps that may hold personal data."""

    def __init__(self, cipher: Cipher, may_hold: Callable[[bytes], bool] | None) -> None:
        self._cipher = cipher
        self._may_hold = may_hold  # None where nothing is hidden

    def sealed(self, name: str, data: bytes) -> bytes:
        """Return the JSON for the store, encrypted if it may hold personal data; `name` binds it to its place."""
        return data if self._may_hold is None or not self._may_hold(data) else _SEALED + self._cipher.encrypt(data, name)

    def opened(self, name: str, written: bytes) -> bytes:
        """Return the original JSON. Raises `UnavailableError` if it was encrypted with another key."""
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
    """Decrypt the vault stored under a key; `issuer` is the node that may add tokens, empty for read-only."""
    from comity.core.redaction import Vault  # noqa: PLC0415  slow to import, and trying a key needs none of it

    return Vault.from_data(unpack(decrypt_vault(cipher, key, sealed)), issuer)


def decrypt_vault(cipher: Cipher, key: str, sealed: bytes) -> bytes:
    """Decrypt the data of the vault stored under a key. Raises `UnavailableError` if it was encrypted with another key."""
    tenant_id, _, session_id = key.partition("\x1f")
    return cipher.decrypt(sealed, f"vault {key}", f"what is hidden in session {session_id} of tenant {tenant_id}")
