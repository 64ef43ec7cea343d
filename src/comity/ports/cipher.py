"""What hides documents at rest."""

from __future__ import annotations

from typing import Protocol

from comity.core.document.slices import Sliced


class Cipher(Protocol):
    """Encrypts small documents; each is bound to the name it is stored under."""

    def encrypt(self, data: bytes, name: str) -> bytes:
        """Return what is stored."""
        ...

    def encrypt_sliced(self, data: bytes, name: str) -> Sliced[bytes]:
        """Return what `encrypt` does, with pauses."""
        ...

    def decrypt(self, sealed: bytes, name: str, what: str) -> bytes:
        """Return the data. Raises `UnavailableError`, which says `what`, if it was changed, moved, or had another key."""
        ...
