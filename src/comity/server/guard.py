"""What stands before everything else: the Host allow-list, then the Origin, so that no web page can reach the server.

A page of another site can make a browser ask a server on loopback, and by DNS rebinding even read the answer. A rebound page
names its own host, so the Host is looked at first; an Origin of another site is refused even for reading.
"""

from __future__ import annotations

from typing import Final

from comity.core.call.limits import CITED_CHARS_MAX
from comity.errors import CallerError, RefusedError
from comity.server.settings import Settings

CSP: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; font-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
# On every answer.
SAFE_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
PAGE_HEADERS: Final = (
    *SAFE_HEADERS,
    (b"content-security-policy", CSP),
    (b"cross-origin-opener-policy", b"same-origin"),
)


class Guard:
    """Lets requests pass whose Host and Origin are this server's."""

    def __init__(self, settings: Settings, port: int) -> None:
        scheme = "https" if settings.certfile else "http"
        names = ["127.0.0.1", "localhost", "[::1]"]
        if not settings.is_loopback and settings.host not in {"0.0.0.0", "::"}:  # noqa: S104  compared, not bound
            names.append(settings.host)
        hosts = {f"{name}:{port}" for name in names}
        if port == (443 if settings.certfile else 80):
            hosts |= set(names)
        public = {name.lower() for name in settings.public_hosts}
        hosts |= public | {f"{name}:{port}" for name in public if ":" not in name}
        self._hosts = frozenset(host.encode() for host in hosts)
        own = {f"{scheme}://{host}" for host in hosts} | {f"https://{name}" for name in public}
        self._allowed = frozenset(origin.rstrip("/").encode() for origin in settings.allow_origins)
        self._origins = frozenset(origin.encode() for origin in own) | self._allowed

    def check_host(self, host: bytes) -> None:
        """Raise `CallerError` HTTP_HOST_UNKNOWN for a host name that is not this server's."""
        if host not in self._hosts and host.lower() not in self._hosts:
            raise CallerError(f"this server is not {ascii(host.decode('latin-1'))[:CITED_CHARS_MAX]}", code="HTTP_HOST_UNKNOWN")

    def check_origin(self, origin: bytes | None, site: bytes | None, *, is_page: bool) -> None:
        """Raise `RefusedError` HTTP_ORIGIN_REFUSED for a request that a page of another site makes."""
        if origin is not None and origin not in self._origins:
            raise RefusedError("pages of another origin may not use this server", code="HTTP_ORIGIN_REFUSED")
        if site == b"cross-site" and not is_page and origin not in self._allowed:
            raise RefusedError("pages of another site may not use this server", code="HTTP_ORIGIN_REFUSED")

    def cors(self, origin: bytes | None) -> tuple[tuple[bytes, bytes], ...]:
        """Return the CORS headers for an origin that was allowed by name; none for every other."""
        if origin is None or origin not in self._allowed:
            return ()
        return ((b"access-control-allow-origin", origin), (b"vary", b"origin"))
