"""The doors that a served node has beside its own API: telemetry in and out, and further ones as they are added here."""

from __future__ import annotations

from comity.server import agent_calls, dialect_doors
from comity.server.app import Door
from comity.server.tempo import routes as tempo


def standard_doors() -> tuple[Door, ...]:
    """Return the doors of `comity serve`."""
    return (Door(tempo.routes), Door(dialect_doors.routes), Door(agent_calls.routes))
