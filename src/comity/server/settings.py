"""How a server is set up: by a file, the environment and flags, in this order; later ones win."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml
from msgspec import Struct

from comity.core.call.limits import REQUEST_BYTES_MAX
from comity.errors import CallerError

PREFIX: Final = "COMITY_SERVE_"
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every setting of the server, each with its unit."""

    host: str = "127.0.0.1"
    port: int = 7654
    public_hosts: tuple[str, ...] = ()  # names, beside loopback, under which the server is asked
    allow_origins: tuple[str, ...] = ()  # exact origins of other pages that may ask
    certfile: str = ""
    keyfile: str = ""
    insecure_http: bool = False  # beyond loopback without TLS
    body_bytes_max: int = REQUEST_BYTES_MAX
    body_bytes_per_s_min: int = 10_000  # a body that arrives slower ends its connection
    head_s: float = 10.0  # until a request's head is complete
    stall_s: float = 10.0  # a client that takes nothing for so long is cut off
    keep_alive_s: int = 30
    connections_max: int = 10_000
    connections_per_address_max: int = 4_096
    rate_per_s: float = 2_000.0  # requests of one user or agent
    rate_burst: int = 4_000
    drain_s: float = 20.0
    heartbeat_s: float = 15.0  # between comments on an idle stream
    log_requests: bool = False
    oidc: dict[str, str] = {}  # a provider by which users sign in: see docs/identity.md
    delegation_path: str = "/.netlify/functions/chat-internal"  # where delegations are posted, as their protocol has it

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can ask."""
        return self.host in _LOOPBACK

    def check(self) -> None:
        """Raise `CallerError` for settings that would expose the server without saying so."""
        if bool(self.certfile) != bool(self.keyfile):
            raise _wrong("certfile and keyfile go together: give both")
        if not self.is_loopback and not self.certfile and not self.insecure_http:
            raise _wrong(
                f"--host {self.host} can be reached from other machines and would carry tokens in clear: "
                "give --certfile and --keyfile, or --insecure-http where something in front of it encrypts"
            )
        if not 0 <= self.port <= 65_535:
            raise _wrong("port must be a number from 0 to 65535")


def read_settings(path: Path | None, environ: Mapping[str, str] = os.environ, **flags: Any) -> Settings:
    """Return the settings of a file, overridden by `COMITY_SERVE_…` variables, overridden by flags that are not None."""
    told: dict[str, Any] = {}
    if path is not None:
        try:
            document = yaml.safe_load(path.read_text())
        except (OSError, yaml.YAMLError) as error:
            raise _wrong(f"{path} cannot be read: {error}") from None
        if not isinstance(document, dict):
            raise _wrong(f"{path} must be a mapping of settings")
        told |= document
    known = {field.name: field for field in msgspec.structs.fields(Settings)}
    for name, value in environ.items():
        field = name.removeprefix(PREFIX).lower()
        if name.startswith(PREFIX):
            if field not in known:
                raise _wrong(f"{name} sets nothing; the settings are {', '.join(known)}")
            told[field] = value.split(",") if "tuple" in str(known[field].type) else value
    told |= {name: value for name, value in flags.items() if value is not None}
    try:
        settings = msgspec.convert(told, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise _wrong(f"the server's settings are wrong: {error}") from None
    settings.check()
    return settings


def _wrong(message: str) -> CallerError:
    return CallerError(message, code="INPUT_VALIDATION_FAILED")
