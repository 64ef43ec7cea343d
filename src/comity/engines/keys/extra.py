"""The packages of the extra `server` that keys and tokens need, imported when they are first needed."""

from __future__ import annotations

from types import ModuleType

from comity.errors import UnavailableError


def load_cryptography() -> ModuleType:
    """Return the Ed25519 module of `cryptography`. Raises `UnavailableError`, which names the extra, where it is missing."""
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415  an extra
    except ImportError as error:
        raise _missing(error) from None
    return ed25519


def load_jwt() -> ModuleType:
    """Return PyJWT. Raises `UnavailableError`, which names the extra, where it is missing."""
    try:
        import jwt  # noqa: PLC0415  an extra
    except ImportError as error:
        raise _missing(error) from None
    return jwt


def _missing(error: ImportError) -> UnavailableError:
    message = f"tokens and keys need the extra `server`: pip install 'comity[server]' ({error})"
    return UnavailableError(message, retryable=False)
