"""For tests of agents: virtual time, so that a test of a 30 s timeout takes milliseconds; models that follow a script; a model
provider on a real socket that answers by script and fails on demand; and a simulator in which one seed decides what goes wrong.

Names are loaded when they are first used, so that importing this package, as its pytest plugin does, costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from comity.testing.cassette import Cassette, CassetteError
    from comity.testing.provider.server import Broken, Cut, Failure, Garbage, ModelServer, Received
    from comity.testing.scripted import Answer, ScriptedModel, ScriptError, tool_call
    from comity.testing.sim.campaign import Campaign, Play
    from comity.testing.sim.faults import Fault, Kind
    from comity.testing.sim.invariants import ViolationError
    from comity.testing.sim.nodes import CrashedError, SimNode
    from comity.testing.sim.seeded import SimulationError, simulate
    from comity.testing.sim.world import Outcome, World, current_world
    from comity.testing.virtual import VirtualClock, run_virtual

_HOMES = {
    "cassette": ("Cassette", "CassetteError"),
    "sim.campaign": ("Campaign", "Play"),
    "sim.faults": ("Fault", "Kind"),
    "provider.server": ("Broken", "Cut", "Failure", "Garbage", "ModelServer", "Received"),
    "sim.nodes": ("CrashedError", "SimNode"),
    "sim.invariants": ("ViolationError",),
    "scripted": ("Answer", "ScriptError", "ScriptedModel", "tool_call"),
    "sim.seeded": ("SimulationError", "simulate"),
    "virtual": ("VirtualClock", "run_virtual"),
    "sim.world": ("Outcome", "World", "current_world"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Answer",
    "Broken",
    "Campaign",
    "Cassette",
    "CassetteError",
    "CrashedError",
    "Cut",
    "Failure",
    "Fault",
    "Garbage",
    "Kind",
    "ModelServer",
    "Outcome",
    "Play",
    "Received",
    "ScriptError",
    "ScriptedModel",
    "SimNode",
    "SimulationError",
    "ViolationError",
    "VirtualClock",
    "World",
    "current_world",
    "run_virtual",
    "simulate",
    "tool_call",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
