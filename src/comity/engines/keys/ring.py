"""The keys a node signs with, the keys of nodes it trusts, and what was revoked: three files in a folder of mode 0700.

Each key is Ed25519 and is used with EdDSA alone. Rotation makes a new key for signing and keeps the previous one for verifying
until every token it signed has expired. Several processes may share the folder: each looks at the files' times before it
believes what it read, at most every `LOOK_MS`, which is how a revocation reaches all of them within a second.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from comity.core.access.claims import AT, USER_LIFE_S_MAX
from comity.core.access.scope import Scope
from comity.core.envelope.envelope import is_id
from comity.core.units import MS_PER_S
from comity.engines.keys.extra import load_cryptography
from comity.errors import CallerError, UnavailableError

ALGORITHM: Final = "EdDSA"
LOOK_MS: Final = 250
KEYS_MAX: Final = 8
REVOKED_MAX: Final = 100_000
TRUSTED_SCOPE: Final = "call:*/* records:read"  # of another node, unless it is given less


class Key(Struct, frozen=True, omit_defaults=True):
    """One Ed25519 key: `x` is the public half and `d` the private one, both as base64url; another node's key has no `d`."""

    kid: str
    x: str
    d: str = ""
    created_at: int = 0
    retired_at: int | None = None  # since then it signs no more


class Peer(Struct, frozen=True, omit_defaults=True):
    """Another node whose tokens are accepted, and how much they may allow at most here."""

    issuer: str
    keys: tuple[Key, ...]
    scope: str = TRUSTED_SCOPE
    tenants: tuple[str, ...] = ("default",)


class Ring(Struct, frozen=True):
    """What is in the key file."""

    issuer: str
    keys: tuple[Key, ...]
    peers: tuple[Peer, ...] = ()


class Revoked(Struct, frozen=True):
    """Token ids with the time after which they are expired anyway, and key ids."""

    tokens: dict[str, int] = field(default_factory=dict)
    keys: tuple[str, ...] = ()


def keys_folder(store: str | Path) -> Path:
    """Return where the keys of a node with this store are kept unless another folder is named."""
    return Path(f"{store}.keys")


class KeyRing:
    """The keys of one node. Without a folder they live as long as the process."""

    def __init__(self, folder: str | Path | None, *, issuer: str = "", now_ms: int) -> None:
        """Open the keys in `folder`, or make them; `issuer` names a node whose keys are made now, by its key unless given."""
        if issuer:
            _check_name(issuer)
        self._folder = None if folder is None else Path(folder)
        self._looked_at = 0
        self._seen: tuple[Any, ...] = ()
        self.generation = 0  # changes when keys or revocations did
        self.revoked = Revoked()
        if self._folder is None:
            self.ring = _new_ring(issuer, now_ms)
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._locked():
            if not self._path("keys").exists():
                self._write("keys", _new_ring(issuer, now_ms))
        self.ring = _read(self._path("keys"), Ring)
        self.look(now_ms)

    @property
    def issuer(self) -> str:
        """The name of this node in the tokens it signs, and the audience of those it accepts."""
        return self.ring.issuer

    @property
    def signer(self) -> Key:
        """The key that signs now."""
        return next(key for key in reversed(self.ring.keys) if key.retired_at is None)

    def look(self, now_ms: int) -> None:
        """Read the files again if another process changed them; asks the disk at most every `LOOK_MS`."""
        if self._folder is None or 0 <= now_ms - self._looked_at < LOOK_MS:
            return
        self._looked_at = now_ms
        seen = tuple(_stamp(self._path(name)) for name in ("keys", "revoked"))
        if seen == self._seen:
            return
        self._seen = seen
        self.ring = _read(self._path("keys"), Ring)
        self.revoked = _read(self._path("revoked"), Revoked) if seen[1] is not None else Revoked()
        self.generation += 1

    def find(self, issuer: str, kid: str, now_ms: int) -> tuple[Key, Peer | None] | None:
        """Return the key with which an issuer signed, with the peer it belongs to; None for a key that is not trusted."""
        if issuer == self.issuer:
            key = next((key for key in self.ring.keys if key.kid == kid), None)
            is_over = key is not None and key.retired_at is not None and now_ms > key.retired_at + USER_LIFE_S_MAX * MS_PER_S
            return None if key is None or is_over else (key, None)
        for peer in self.ring.peers:
            if peer.issuer == issuer:
                return next(((key, peer) for key in peer.keys if key.kid == kid), None)
        return None

    def is_revoked(self, token_id: str, kid: str) -> bool:
        """Return whether a token or the key it was signed with was withdrawn."""
        return token_id in self.revoked.tokens or kid in self.revoked.keys

    # --- changing ---

    def rotate(self, now_ms: int) -> Key:
        """Make a new key that signs from now on; the others go on verifying until their tokens have expired."""
        made = _new_key(now_ms)
        with self._changing(now_ms):
            retired = [key if key.retired_at is not None else _retired(key, now_ms) for key in self.ring.keys]
            kept = [key for key in retired if now_ms - (key.retired_at or now_ms) <= USER_LIFE_S_MAX * MS_PER_S]
            self._put(Ring(self.issuer, (*kept[-(KEYS_MAX - 1) :], made), self.ring.peers))
        return made

    def rename(self, issuer: str, now_ms: int) -> None:
        """Give the node another name. Tokens that were made for the previous name are refused from now on."""
        _check_name(issuer)
        with self._changing(now_ms):
            self._put(Ring(issuer, self.ring.keys, self.ring.peers))

    def trust(self, issuer: str, jwks: Any, *, scope: str = TRUSTED_SCOPE, tenants: tuple[str, ...], now_ms: int) -> Peer:
        """Accept tokens that another node signs with the keys of its JWKS document, and no more than `scope` allows."""
        if issuer == self.issuer:
            raise CallerError(f"{issuer} is this node's own name; give the other node another one", field="issuer")
        if not is_id(issuer) or not tenants:
            raise CallerError("name the issuer and at least one tenant it may speak for", field="issuer")
        peer = Peer(issuer, _keys_of(jwks), str(Scope.of(scope)), tenants)
        with self._changing(now_ms):
            others = tuple(one for one in self.ring.peers if one.issuer != issuer)
            self._put(Ring(self.issuer, self.ring.keys, (*others, peer)))
        return peer

    def distrust(self, issuer: str, now_ms: int) -> bool:
        """Accept no token of another node any more; return whether any was accepted before."""
        with self._changing(now_ms):
            others = tuple(one for one in self.ring.peers if one.issuer != issuer)
            is_known = len(others) < len(self.ring.peers)
            self._put(Ring(self.issuer, self.ring.keys, others))
        return is_known

    def revoke(self, *, token_id: str = "", kid: str = "", expires_s: int = 0, now_ms: int) -> None:
        """Withdraw a token, or all that a key signed. Another key must sign before a node's own signing key is revoked."""
        if kid and kid == self.signer.kid:
            raise CallerError("rotate the keys first: this key signs the tokens of this node", field="kid")
        with self._changing(now_ms):
            tokens = {one: end for one, end in self.revoked.tokens.items() if end > now_ms // MS_PER_S}
            if len(tokens) >= REVOKED_MAX:
                raise UnavailableError(f"{REVOKED_MAX:,} tokens are revoked; revoke their key instead", retryable=False)
            if token_id:
                tokens[token_id] = expires_s or now_ms // MS_PER_S + USER_LIFE_S_MAX
            keys = self.revoked.keys if not kid or kid in self.revoked.keys else (*self.revoked.keys, kid)
            self.revoked = Revoked(tokens, keys)
            if self._folder is not None:
                self._write("revoked", self.revoked)

    def jwks(self) -> dict[str, Any]:
        """Return the public keys with which this node's tokens are verified."""
        return {"keys": [_public(key) for key in self.ring.keys if key.kid not in self.revoked.keys]}

    # --- files ---

    def _put(self, ring: Ring) -> None:
        self.ring = ring
        if self._folder is not None:
            self._write("keys", ring)

    @contextmanager
    def _changing(self, now_ms: int) -> Iterator[None]:
        """Hold the folder's lock and begin from what the files say now."""
        if self._folder is None:
            self.generation += 1
            yield
            return
        with self._locked():
            self._looked_at = 0
            self.look(now_ms)
            yield
            self.generation += 1
            self._seen = tuple(_stamp(self._path(name)) for name in ("keys", "revoked"))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        assert self._folder is not None
        with (self._folder / "lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _path(self, name: str) -> Path:
        assert self._folder is not None
        return self._folder / f"{name}.json"

    def _write(self, name: str, value: Struct) -> None:
        """Replace a file in one step, so that a reader finds the old or the new one, whole."""
        path = self._path(name)
        scratch = path.with_suffix(f".{os.getpid()}.new")
        scratch.touch(mode=0o600)
        scratch.write_bytes(msgspec.json.format(msgspec.json.encode(value)))
        scratch.replace(path)


def _read(path: Path, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError) as error:
        raise UnavailableError(f"{path} cannot be read: {error}; restore it, or remove the folder", retryable=False) from None


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _check_name(issuer: str) -> None:
    if not is_id(issuer) or AT in issuer or "@" in issuer:
        raise CallerError(
            f"{issuer!r} cannot be the name of a node: use printable characters without @ and {AT}", field="issuer"
        )


def _new_ring(issuer: str, now_ms: int) -> Ring:
    key = _new_key(now_ms)
    return Ring(issuer or f"node-{key.kid[:8]}", (key,))


def _new_key(now_ms: int) -> Key:
    ed25519 = load_cryptography()
    private = ed25519.Ed25519PrivateKey.generate()
    x = encode_bytes(private.public_key().public_bytes_raw())
    return Key(thumbprint(x), x, encode_bytes(private.private_bytes_raw()), now_ms)


def _retired(key: Key, now_ms: int) -> Key:
    return msgspec.structs.replace(key, retired_at=now_ms)


def _public(key: Key) -> dict[str, Any]:
    return {"kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": ALGORITHM, "kid": key.kid, "x": key.x}


def _keys_of(jwks: Any) -> tuple[Key, ...]:
    """Return the Ed25519 keys of a JWKS document. Raises `CallerError` if it has none, or has others beside them."""
    listed = jwks.get("keys") if isinstance(jwks, dict) else None
    if not isinstance(listed, list) or not 1 <= len(listed) <= KEYS_MAX:
        raise CallerError(f"a JWKS document lists 1 to {KEYS_MAX} keys", field="jwks")
    found = []
    for one in listed:
        is_ours = isinstance(one, dict) and (one.get("kty"), one.get("crv")) == ("OKP", "Ed25519")
        if not is_ours or "d" in one or one.get("alg", ALGORITHM) != ALGORITHM:
            raise CallerError("keys of another node are public Ed25519 keys for EdDSA", field="jwks")
        x = one.get("x")
        if not isinstance(x, str) or len(decode_bytes(x)) != 32:
            raise CallerError("an Ed25519 key has an x of 32 bytes", field="jwks")
        found.append(Key(thumbprint(x), x))
    return tuple(found)


def thumbprint(x: str) -> str:
    """Return the key id of a public key: its RFC 7638 thumbprint."""
    canonical = json.dumps({"crv": "Ed25519", "kty": "OKP", "x": x}, separators=(",", ":"), sort_keys=True)
    return encode_bytes(hashlib.sha256(canonical.encode()).digest())


def encode_bytes(data: bytes) -> str:
    """Return bytes as base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode_bytes(text: str) -> bytes:
    """Return the bytes that a base64url text spells; none for a text that spells none, or in another way."""
    try:
        data = base64.b64decode(text.translate(_URL_SAFE) + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        return b""
    return data if encode_bytes(data) == text else b""


_URL_SAFE: Final = str.maketrans("-_", "+/", "+/=")
