"""Who sends a request, and what they may do: the seam that every door stands on.

`Auth` is what the server needs. `ServerToken` is the smallest sound one: a single token that is made on the first start and
kept beside the store, and console tokens that are given for one-time codes.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from msgspec import Struct

from comity.errors import CallerError, RefusedError

CODE_MS: Final = 60_000  # how long a one-time code can be exchanged
CONSOLE_MS: Final = 12 * 60 * 60 * 1000  # how long a console token holds
CODES_MAX: Final = 64
CONSOLES_MAX: Final = 1_000
ANYBODY: Final = "*"


class Principal(Struct, frozen=True, kw_only=True):
    """Who sends a request.

    `acts_for` is the user whose calls it may make: its own subject, or `*` for any user of its tenant. `tenant_id` is the one
    tenant it sees; None for one that sees all.
    """

    kind: Literal["user", "agent"]
    subject: str
    tenant_id: str | None = None
    acts_for: str = ANYBODY
    roles: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    token_id: str = ""
    claims: dict[str, Any] = {}

    def user(self, named: str | None) -> str:
        """Return the user a request is made for. Raises `RefusedError` if it names another than the token's own."""
        if self.acts_for == ANYBODY:
            return named or self.subject
        if named is not None and named != self.acts_for:
            raise RefusedError(f"the token is {self.acts_for}'s and names another user", code="IDENTITY_MISMATCH")
        return self.acts_for

    def tenant(self, named: str | None) -> str:
        """Return the tenant a request is made in. Raises `RefusedError` if it names another than the token's own."""
        if self.tenant_id is None:
            return named or "default"
        if named is not None and named != self.tenant_id:
            raise RefusedError("the token is of another tenant than the request names", code="IDENTITY_MISMATCH")
        return self.tenant_id


# Who asks where no token is needed.
STRANGER: Final = Principal(kind="user", subject="", acts_for="", tenant_id="")


class Auth(Protocol):
    """Finds out who sends a request and whether they may do what they ask."""

    def authenticate(self, authorization: str, now_ms: int) -> Principal:
        """Return who an `Authorization` header stands for. Raises `ComityError` HTTP_TOKEN_* or IDENTITY_*."""
        ...

    def check(self, principal: Principal, right: str) -> None:
        """Raise `RefusedError` HTTP_RIGHT_MISSING unless the principal has a right such as `calls:create`."""
        ...

    def code(self, now_ms: int) -> str:
        """Return a new one-time code that signs a browser in."""
        ...

    def exchange(self, code: str, now_ms: int) -> tuple[str, int]:
        """Return a console token for a one-time code, and when it ends. Raises `CallerError` HTTP_TOKEN_INVALID."""
        ...


class ServerToken(Auth):
    """One token for everything, and console tokens for people who were shown a one-time code."""

    def __init__(self, token: str) -> None:
        self._header = hashlib.sha256(f"Bearer {token}".encode()).digest()
        self._codes: dict[str, int] = {}
        self._consoles: dict[bytes, int] = {}
        self._operator = Principal(kind="user", subject="operator", roles=("admin",), token_id="server")  # noqa: S106  a name

    def authenticate(self, authorization: str, now_ms: int) -> Principal:
        """Return the operator. Raises `CallerError` for a token that is missing or not ours."""
        if not authorization:
            raise CallerError("the request has no token", code="HTTP_TOKEN_MISSING")
        digest = hashlib.sha256(authorization.encode(errors="surrogateescape")).digest()
        if hmac.compare_digest(digest, self._header):
            return self._operator
        if self._consoles.get(digest, 0) > now_ms:
            return self._operator
        raise CallerError("the token is unknown, expired or revoked", code="HTTP_TOKEN_INVALID")

    def check(self, principal: Principal, right: str) -> None:
        """Let the operator do everything."""

    def code(self, now_ms: int) -> str:
        """Return a new one-time code; the oldest goes where there are too many."""
        while len(self._codes) >= CODES_MAX:
            del self._codes[next(iter(self._codes))]
        code = secrets.token_urlsafe(18)
        self._codes[code] = now_ms + CODE_MS
        return code

    def exchange(self, code: str, now_ms: int) -> tuple[str, int]:
        """Return a console token for a code that was not used before and has not expired."""
        if self._codes.pop(code, 0) <= now_ms:
            raise CallerError("the code is unknown, used or expired", code="HTTP_TOKEN_INVALID")
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
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        if path.stat().st_mode & 0o077:
            raise RefusedError(f"others may read {path}: chmod 600 it, or remove it to get a new token") from None
        return path.read_text().strip()
    with os.fdopen(handle, "w") as file:
        token = secrets.token_urlsafe(32)
        file.write(f"{token}\n")
    return token
