"""Comity: the layer through which AI agents talk to each other."""

from typing import TYPE_CHECKING, Any

from comity.core.version import VERSION

if TYPE_CHECKING:
    from comity.core.envelope import Background, Error, Priority, Reply, Request, Status, Usage
    from comity.core.guardrail import Guardrail
    from comity.core.limits import Limits
    from comity.core.redaction.policy import Policy
    from comity.core.retention import Keep, Retention
    from comity.core.retry import Retry
    from comity.core.tool import Risk, Tool
    from comity.models.agent import Agent
    from comity.runtime.binding import Bound, bind
    from comity.runtime.context import Context
    from comity.runtime.events import Event
    from comity.runtime.handle import CallHandle
    from comity.runtime.handoff.manager import AsyncHandoffManager
    from comity.runtime.handoff.receiver import AsyncHandoffReceiver
    from comity.runtime.handoff.sync import HandoffManager, HandoffReceiver
    from comity.runtime.node import Node
    from comity.runtime.privacy import Privacy
    from comity.runtime.sync import SyncNode
    from comity.runtime.sync_context import SyncContext

# Each public name and its module. A name is imported when it is first used, so that a command that only reads a store
# does not load the call path, and a program that hands nothing off does not load handoffs.
_MODULES = {
    "Agent": "models.agent",
    "AsyncHandoffManager": "runtime.handoff.manager",
    "AsyncHandoffReceiver": "runtime.handoff.receiver",
    "Background": "core.envelope",
    "Bound": "runtime.binding",
    "CallHandle": "runtime.handle",
    "Context": "runtime.context",
    "Error": "core.envelope",
    "Event": "runtime.events",
    "Guardrail": "core.guardrail",
    "HandoffManager": "runtime.handoff.sync",
    "HandoffReceiver": "runtime.handoff.sync",
    "Keep": "core.retention",
    "Limits": "core.limits",
    "Node": "runtime.node",
    "Policy": "core.redaction.policy",
    "Priority": "core.envelope",
    "Privacy": "runtime.privacy",
    "Reply": "core.envelope",
    "Request": "core.envelope",
    "Retention": "core.retention",
    "Retry": "core.retry",
    "Risk": "core.tool",
    "Status": "core.envelope",
    "SyncContext": "runtime.sync_context",
    "SyncNode": "runtime.sync",
    "Tool": "core.tool",
    "Usage": "core.envelope",
    "bind": "runtime.binding",
}

__all__ = [
    "Agent",
    "AsyncHandoffManager",
    "AsyncHandoffReceiver",
    "Background",
    "Bound",
    "CallHandle",
    "Context",
    "Error",
    "Event",
    "Guardrail",
    "HandoffManager",
    "HandoffReceiver",
    "Keep",
    "Limits",
    "Node",
    "Policy",
    "Priority",
    "Privacy",
    "Reply",
    "Request",
    "Retention",
    "Retry",
    "Risk",
    "Status",
    "SyncContext",
    "SyncNode",
    "Tool",
    "Usage",
    "bind",
]
__version__ = VERSION


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'comity' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    found = getattr(import_module(f"comity.{_MODULES[name]}"), name)
    globals()[name] = found  # the next use finds it without this function
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
