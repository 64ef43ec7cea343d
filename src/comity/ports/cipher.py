"""Encryption of documents at rest."""

from __future__ import annotations

from typing import Protocol

from comity.core.document.slices import Sliced


class Cipher(Protocol):
    """Encrypts small documents; each is bound to the name it is stored under."""

    def encrypt(self, data: bytes, name: str) -> bytes:
        """Return the encrypted data."""
        ...

    def encrypt_sliced(self, data: bytes, name: str) -> Sliced[bytes]:
        """Return what `encrypt` returns, in slices."""
        ...

    def decrypt(self, sealed: bytes, name: str, what: str) -> bytes:
        """Return the data. Raises `UnavailableError`, naming `what`, if it was changed, moved, or has another key."""
        ...
