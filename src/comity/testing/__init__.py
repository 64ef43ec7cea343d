"""For tests of agents: virtual time, so that a test of a 30 s timeout takes milliseconds; models that follow a script; and a
model provider on a real socket that answers by script and fails on demand.
"""

from comity.testing.model_server import Broken, Cut, Failure, Garbage, ModelServer, Received
from comity.testing.scripted import Answer, ScriptedModel, ScriptError, tool_call
from comity.testing.virtual import VirtualClock, run_virtual

__all__ = [
    "Answer",
    "Broken",
    "Cut",
    "Failure",
    "Garbage",
    "ModelServer",
    "Received",
    "ScriptError",
    "ScriptedModel",
    "VirtualClock",
    "run_virtual",
    "tool_call",
]
