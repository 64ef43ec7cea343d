"""What is personal is encrypted at rest: AES-256-GCM under a key that lives outside the store."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import os
import shlex
import stat
from pathlib import Path
from typing import Any, Final

from comity.core.document.slices import Sliced, whole
from comity.core.journal.audit import Pseudonyms
from comity.errors import UnavailableError

KEY_BYTES: Final = 32
# A damaged vault must not close the whole store, so a key is refused only if it opens none of the first few.
TRIED_MAX: Final = 8
_OF_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
# For a journal that no node gave the key of its store: no name is found by its digest, not even in two processes.
FRESH_NAMES: Final = Pseudonyms(os.urandom(KEY_BYTES))
_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16


_SLICE_BYTES: Final = 128 * 1024


class Cipher:
    """Encrypts small documents; each is bound to the name it is stored under."""

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes, not {len(key)}")
        self._key = key

    def encrypt(self, data: bytes, name: str) -> bytes:
        """Return nonce, tag and ciphertext."""
        return whole(self.encrypt_sliced(data, name))

    def encrypt_sliced(self, data: bytes, name: str) -> Sliced[bytes]:
        """Return what `encrypt` does, with pauses."""
        nonce = os.urandom(_NONCE_BYTES)
        cipher = self._gcm(nonce, name)
        sealed = [cipher.encrypt(data[:_SLICE_BYTES])]
        for start in range(_SLICE_BYTES, len(data), _SLICE_BYTES):
            yield
            sealed.append(cipher.encrypt(data[start : start + _SLICE_BYTES]))
        return b"".join((nonce, cipher.digest(), *sealed))

    def decrypt(self, sealed: bytes, name: str, what: str) -> bytes:
        """Return the data. Raises `UnavailableError`, which says `what`, if it was changed, moved, or had another key."""
        nonce, tag = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES : _NONCE_BYTES + _TAG_BYTES]
        cipher = self._gcm(nonce, name)
        try:
            data: bytes = cipher.decrypt_and_verify(sealed[_NONCE_BYTES + _TAG_BYTES :], tag)
        except ValueError:
            message = f"{what} cannot be decrypted: the key is another one, or the store was changed"
            raise _of_no_use(message) from None
        return data

    def _gcm(self, nonce: bytes, name: str) -> Any:
        from Cryptodome.Cipher import AES  # noqa: PLC0415  slow to import, and most nodes start before a value is hidden

        cipher = AES.new(self._key, AES.MODE_GCM, nonce=nonce, mac_len=_TAG_BYTES)
        cipher.update(name.encode())
        return cipher


def load() -> None:
    """Load the cipher's libraries. A node does so before its first call: loading them takes 50 ms of the event loop."""
    Cipher(bytes(KEY_BYTES)).encrypt(b"", "")


def derived(key: bytes, purpose: str) -> bytes:
    """Return a key for one purpose; knowing it tells nothing about the others."""
    return hmac.new(key, purpose.encode(), hashlib.sha256).digest()


def key_place(store: Path | None) -> str:
    """Say where the key of a store comes from."""
    if os.environ.get("COMITY_VAULT_KEY"):
        return "the key in COMITY_VAULT_KEY"
    return "the new key of a node without a store" if store is None else f"the key file {_path(store)}"


def key_file(store: Path) -> Path | None:
    """Return the file that holds the key of a store, whether it is there or not; None if the environment has the key."""
    return None if os.environ.get("COMITY_VAULT_KEY") else _path(store)


def key_for(store: Path | None, *, may_make: bool = True) -> bytes:
    """Return the key: from COMITY_VAULT_KEY (base64), else from the file beside the store.

    A file that others than its owner may read or write is refused. A missing file is made; where it may not be, since
    something was encrypted under it, `UnavailableError` says so.
    """
    if given := os.environ.get("COMITY_VAULT_KEY"):
        try:
            key = base64.b64decode(given, validate=True)
        except ValueError:
            raise _of_no_use("COMITY_VAULT_KEY is not base64") from None
        if len(key) != KEY_BYTES:
            raise _of_no_use(f"COMITY_VAULT_KEY has {len(key)} bytes, not {KEY_BYTES}")
        return key
    if store is None:
        return os.urandom(KEY_BYTES)
    path = _path(store)
    try:
        if not path.exists():
            if not may_make:
                message = (
                    f"the store {store} holds what was hidden under a key, and the key file {path} is not there: put it back"
                )
                raise _of_no_use(f"{message}, or name the key in COMITY_VAULT_KEY")
            path.parent.mkdir(parents=True, exist_ok=True)
            _make(path)
        return _read(path)
    except OSError as error:
        raise UnavailableError(f"cannot use the key file {path}: {error}", code="STORE_UNAVAILABLE") from error


def audit_key(store: Path, *, may_make: bool = False) -> bytes | None:
    """Return the key that seals the checkpoints of a store's audit; None if the key of the store is not here."""
    with contextlib.suppress(UnavailableError):
        return derived(key_for(store, may_make=may_make), "audit")
    return None


def _path(store: Path) -> Path:
    return store.with_name(f"{store.name}.key")


def _make(path: Path) -> None:
    """Put a new key in its place, unless another process was first: no process ever finds half a key."""
    unnamed = path.with_name(f"{path.name}.{os.urandom(8).hex()}")
    file = os.open(unnamed, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(file, "wb") as out:
            out.write(os.urandom(KEY_BYTES))
            out.flush()
            os.fsync(out.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(unnamed, path)
    finally:
        unnamed.unlink()


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        key = file.read()
    if mode & _OF_OTHERS:
        message = f"the key file {path} is open to others than its owner (mode {mode:04o}), who can read what the store hides"
        raise _of_no_use(f"{message}: run `chmod 600 {shlex.quote(str(path))}`, or name the key in COMITY_VAULT_KEY")
    if len(key) != KEY_BYTES:
        raise _of_no_use(f"the key file {path} has {len(key)} bytes, not {KEY_BYTES}")
    return key


def _of_no_use(message: str) -> UnavailableError:
    """Return an error whose cause an operator has to put right before a retry."""
    return UnavailableError(message, code="STORE_UNAVAILABLE", retryable=False)
