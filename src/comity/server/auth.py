"""Who sends a request: the server's own token, a console token, or a signed token of a user or an agent."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
from pathlib import Path
from typing import Final

from comity.core.access import Principal, Right
from comity.core.access.claims import Kind
from comity.errors import RefusedError
from comity.server.token_auth import Auth

CODE_MS: Final = 60_000  # how long a one-time code can be exchanged
CONSOLE_MS: Final = 12 * 60 * 60 * 1000  # how long a console token holds
CODES_MAX: Final = 64
TOKEN_CHARS_MIN: Final = 16
CONSOLES_MAX: Final = 1_000


class Operator(Principal, frozen=True):
    """The person who started the server: may do everything, for any user of any tenant."""


OPERATOR: Final = Operator(Kind.USER, "operator", "operator", "default", frozenset(Right), token_id="server")  # noqa: S106  a name
# The identity of a request where no token is needed.
STRANGER: Final = Principal(Kind.USER, "", "", "")


def user_of(principal: Principal, named: str | None) -> str:
    """Return the user a request is made for. Raises `RefusedError` if it names another than the token's own."""
    if type(principal) is Operator:
        return named or principal.user_id
    if named not in {None, principal.user_id}:
        raise RefusedError("the request names another user than its token", code="IDENTITY_MISMATCH")
    return principal.user_id


def tenant_of(principal: Principal, named: str | None) -> str:
    """Return the tenant a request is made in. Raises `RefusedError` if it names another than the token's own."""
    if type(principal) is Operator:
        return named or principal.tenant_id
    if named not in {None, principal.tenant_id}:
        raise RefusedError("the request names another tenant than its token", code="IDENTITY_MISMATCH")
    return principal.tenant_id


def session_of(principal: Principal, named: str | None) -> str | None:
    """Return the session a request is made in. Raises `RefusedError` if it names another than the token's own."""
    if principal.session_id and named not in {None, principal.session_id}:
        raise RefusedError("the request names another session than its token", code="IDENTITY_MISMATCH")
    return principal.session_id or named


def seen_tenant(principal: Principal) -> str | None:
    """Return the tenant whose records a principal sees; None for all."""
    return None if type(principal) is Operator else principal.tenant_id


class Gate:
    """Finds out who sends a request."""

    def __init__(self, token: str, signed: Auth) -> None:
        self._header = hashlib.sha256(f"Bearer {token}".encode()).digest()
        self.signed = signed
        self._codes: dict[str, int] = {}
        self._consoles: dict[bytes, int] = {}

    def authenticate(self, authorization: str, now_ms: int) -> Principal:
        """Return who an `Authorization` header stands for. Raises `RefusedError` IDENTITY_*."""
        digest = hashlib.sha256(authorization.encode(errors="surrogateescape")).digest()
        if hmac.compare_digest(digest, self._header) or self._consoles.get(digest, 0) > now_ms:
            return OPERATOR
        return self.signed.authenticate(authorization, now_ms=now_ms)

    def code(self, now_ms: int) -> str:
        """Return a new one-time code that signs a browser in; the oldest goes where there are too many."""
        while len(self._codes) >= CODES_MAX:
            del self._codes[next(iter(self._codes))]
        code = secrets.token_urlsafe(18)
        self._codes[code] = now_ms + CODE_MS
        return code

    def exchange(self, code: str, now_ms: int) -> tuple[str, int]:
        """Return a console token for a code, and when it ends. Raises `RefusedError` for a code that is used or expired."""
        if self._codes.pop(code, 0) <= now_ms:
            raise RefusedError("the code is unknown, used or expired", code="IDENTITY_EXPIRED")
        for digest in [one for one, until in self._consoles.items() if until <= now_ms]:
            del self._consoles[digest]
        while len(self._consoles) >= CONSOLES_MAX:
            del self._consoles[next(iter(self._consoles))]
        token, until = secrets.token_urlsafe(32), now_ms + CONSOLE_MS
        self._consoles[hashlib.sha256(f"Bearer {token}".encode()).digest()] = until
        return token, until


def token_file(store: Path) -> Path:
    """Return where the server's token is kept."""
    return store.with_name(f"{store.name}.token")


def stored_token(path: Path) -> str:
    """Return the server's token, made on the first start in a file that only its owner can read."""
    unnamed = path.with_name(f"{path.name}.{os.getpid()}.part")
    handle = os.open(unnamed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(f"{secrets.token_urlsafe(32)}\n")
        with contextlib.suppress(FileExistsError):  # of two that start together, one makes it
            path.hardlink_to(unnamed)
    finally:
        unnamed.unlink()
    if path.stat().st_mode & 0o077:
        message = f"others may read {path}: chmod 600 it, or remove it to get a new token"
        raise RefusedError(message, code="IDENTITY_INVALID")
    token = path.read_text().strip()
    if len(token) < TOKEN_CHARS_MIN:
        raise RefusedError(f"{path} holds no token: remove it to get a new one", code="IDENTITY_INVALID")
    return token
