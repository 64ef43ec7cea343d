"""Comity: the layer through which AI agents talk to each other."""

from comity.core.envelope import Background, Error, Priority, Reply, Request, Status, Usage
from comity.core.guardrail import Guardrail
from comity.core.limits import Limits
from comity.core.retry import Retry
from comity.core.tool import Risk, Tool
from comity.core.version import VERSION
from comity.models.agent import Agent
from comity.runtime.context import Context
from comity.runtime.events import Event
from comity.runtime.node import CallHandle, Node
from comity.runtime.sync import SyncNode

__all__ = [
    "Agent",
    "Background",
    "CallHandle",
    "Context",
    "Error",
    "Event",
    "Guardrail",
    "Limits",
    "Node",
    "Priority",
    "Reply",
    "Request",
    "Retry",
    "Risk",
    "Status",
    "SyncNode",
    "Tool",
    "Usage",
]
__version__ = VERSION
