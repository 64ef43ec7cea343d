"""Comity: the layer through which AI agents talk to each other."""

from typing import TYPE_CHECKING, Any

from comity.version import VERSION

if TYPE_CHECKING:
    from comity.agents.model.agent import Agent
    from comity.contextcore.handoffs.manager import AsyncHandoffManager
    from comity.contextcore.handoffs.receiver import AsyncHandoffReceiver
    from comity.contextcore.handoffs.sync import HandoffManager, HandoffReceiver
    from comity.core.agent.retry import Retry
    from comity.core.agent.tool import Risk, Tool
    from comity.core.call.guardrail import Guardrail
    from comity.core.call.limits import Limits
    from comity.core.envelope.envelope import Background, Error, Priority, Reply, Request, Status
    from comity.core.envelope.usage import Cost, Prices, Usage
    from comity.core.journal.retention import Keep, Retention
    from comity.core.redaction.policy import Policy
    from comity.node.node import Node
    from comity.node.sync import SyncNode
    from comity.runtime.call.binding import Bound, bind
    from comity.runtime.call.context import Context
    from comity.runtime.call.events import Event
    from comity.runtime.call.handle import CallHandle
    from comity.runtime.call.sync_context import SyncContext
    from comity.runtime.session.privacy import Privacy

# Each public name and its module. A name is imported when it is first used, so that a command that only reads a store
# does not load the call path, and a program that hands nothing off does not load handoffs.
_MODULES = {
    "Agent": "agents.model.agent",
    "AsyncHandoffManager": "contextcore.handoffs.manager",
    "AsyncHandoffReceiver": "contextcore.handoffs.receiver",
    "Background": "core.envelope.envelope",
    "Bound": "runtime.call.binding",
    "CallHandle": "runtime.call.handle",
    "Context": "runtime.call.context",
    "Cost": "core.envelope.usage",
    "Error": "core.envelope.envelope",
    "Event": "runtime.call.events",
    "Guardrail": "core.call.guardrail",
    "HandoffManager": "contextcore.handoffs.sync",
    "HandoffReceiver": "contextcore.handoffs.sync",
    "Keep": "core.journal.retention",
    "Limits": "core.call.limits",
    "Node": "node.node",
    "Policy": "core.redaction.policy",
    "Prices": "core.envelope.usage",
    "Priority": "core.envelope.envelope",
    "Privacy": "runtime.session.privacy",
    "Reply": "core.envelope.envelope",
    "Request": "core.envelope.envelope",
    "Retention": "core.journal.retention",
    "Retry": "core.agent.retry",
    "Risk": "core.agent.tool",
    "Status": "core.envelope.envelope",
    "SyncContext": "runtime.call.sync_context",
    "SyncNode": "node.sync",
    "Tool": "core.agent.tool",
    "Usage": "core.envelope.usage",
    "bind": "runtime.call.binding",
}

__all__ = [
    "Agent",
    "AsyncHandoffManager",
    "AsyncHandoffReceiver",
    "Background",
    "Bound",
    "CallHandle",
    "Context",
    "Cost",
    "Error",
    "Event",
    "Guardrail",
    "HandoffManager",
    "HandoffReceiver",
    "Keep",
    "Limits",
    "Node",
    "Policy",
    "Prices",
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
    if name == "Agent":
        found.over_http = staticmethod(_agent_over_http)
    globals()[name] = found  # the next use finds it without this function
    return found


def _agent_over_http(*given: Any, **more: Any) -> Any:
    from comity.remote.http_agent import HttpAgent  # noqa: PLC0415  few agents are elsewhere

    return HttpAgent(*given, **more)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
