"""The doors that a served node has beside its own API: telemetry in and out, and further ones as they are added here."""

from __future__ import annotations

from comity.server import agent_calls, contextcore_doors, dialect_doors, oidc, token_exchange
from comity.server.app import Door
from comity.server.settings import Settings
from comity.server.tempo import routes as tempo


def standard_doors(settings: Settings | None = None) -> tuple[Door, ...]:
    """Return the doors of `comity serve`."""
    doors = tuple(
        map(Door, (tempo.routes, dialect_doors.routes, contextcore_doors.routes, agent_calls.routes, token_exchange.routes))
    )
    if settings is None or not settings.oidc:
        return doors
    sign_ins = oidc.SignIns(oidc.provider_of(settings.oidc))
    return (*doors, Door(lambda state: oidc.routes(state, sign_ins), open_prefixes=(oidc.PREFIX,)))
