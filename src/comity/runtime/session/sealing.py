"""What is hidden in a store, sealed and opened: vaults of sessions, and what agents keep for themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from comity.core.document.payload import unpack
from comity.core.document.slices import Sliced
from comity.ports import Cipher

if TYPE_CHECKING:
    from comity.core.redaction import Vault

_PART_VALUES: Final = 1_000  # of a vault, made ready in one slice
_SEALED = b"\0"  # no JSON begins so


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

    return Vault.from_data(unpack(decrypt_vault(cipher, key, sealed)), issuer)


def decrypt_vault(cipher: Cipher, key: str, sealed: bytes) -> bytes:
    """Return the data of the vault that is stored under a key. Raises `UnavailableError` where the cipher is another one."""
    tenant_id, _, session_id = key.partition("\x1f")
    return cipher.decrypt(sealed, f"vault {key}", f"what is hidden in session {session_id} of tenant {tenant_id}")
