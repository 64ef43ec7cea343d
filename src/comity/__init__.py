"""Comity: the layer through which AI agents talk to each other."""

from typing import TYPE_CHECKING, Any

from comity.core.envelope import Background, Error, Priority, Reply, Request, Status, Usage
from comity.core.guardrail import Guardrail
from comity.core.limits import Limits
from comity.core.retry import Retry
from comity.core.tool import Risk, Tool
from comity.core.version import VERSION
from comity.models.agent import Agent
from comity.runtime.context import Context
from comity.runtime.events import Event
from comity.runtime.handle import CallHandle
from comity.runtime.node import Node
from comity.runtime.sync import SyncNode

if TYPE_CHECKING:
    from comity.runtime.handoff.manager import AsyncHandoffManager
    from comity.runtime.handoff.receiver import AsyncHandoffReceiver
    from comity.runtime.handoff.sync import HandoffManager, HandoffReceiver

__all__ = [
    "Agent",
    "AsyncHandoffManager",
    "AsyncHandoffReceiver",
    "Background",
    "CallHandle",
    "Context",
    "Error",
    "Event",
    "Guardrail",
    "HandoffManager",
    "HandoffReceiver",
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

# Loaded when somebody asks for them: most programs hand nothing off.
_LATER = {
    "AsyncHandoffManager": "handoff.manager",
    "AsyncHandoffReceiver": "handoff.receiver",
    "HandoffManager": "handoff.sync",
    "HandoffReceiver": "handoff.sync",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'comity' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    return getattr(import_module(f"comity.runtime.{_LATER[name]}"), name)
