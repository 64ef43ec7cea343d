"""What an editor shows: every parameter of the public surface is named and explained, and none hides behind `**more`."""

from __future__ import annotations

import inspect
import re
from typing import get_overloads

import pytest

import comity
from comity import Agent, AsyncHandoffManager, AsyncHandoffReceiver, Context, HandoffManager, HandoffReceiver, Node, SyncNode

EXPLAINED = [
    Agent,
    Agent.fallback,
    Agent.implementation,
    Node,
    Node.call,
    Node.receive,
    Node.decide,
    Context.call,
    Context.hand_off,
    Context.insight,
    Context.insights,
    Context.once,
    Context.span,
    Context.report_usage,
    AsyncHandoffManager,
    AsyncHandoffManager.create_handoff,
    AsyncHandoffManager.await_result,
    AsyncHandoffManager.list_handoffs,
    AsyncHandoffReceiver,
    AsyncHandoffReceiver.complete,
    AsyncHandoffReceiver.fail,
    AsyncHandoffReceiver.request_input,
    AsyncHandoffReceiver.serve,
]
FREE = {"SyncNode.__init__", "Context.use_tool", "SyncContext.use_tool"}  # takes what Node takes; takes a tool's own inputs


def methods():
    for kind in map(comity.__getattr__, comity.__all__):
        if inspect.isclass(kind) and kind.__module__.startswith("comity.runtime"):
            for name, member in vars(kind).items():
                if inspect.isfunction(member) and (not name.startswith("_") or name == "__init__"):
                    yield f"{kind.__name__}.{name}", member


@pytest.mark.parametrize("what", EXPLAINED, ids=lambda what: what.__qualname__)
def test_every_parameter_is_explained(what):
    declared = inspect.signature(what).parameters
    names = [name for name, one in declared.items() if one.kind not in {one.VAR_KEYWORD, one.VAR_POSITIONAL}]
    told = inspect.getdoc(what)
    missing = [name for name in names if name not in {"self", "target"} and not re.search(rf"\b{name}\b", told)]
    assert missing == []


def test_every_parameter_of_a_capability_is_explained():
    names = set(inspect.signature(get_overloads(comity.core.agent.agent.Agent.capability)[1]).parameters) - {"self"}
    told = inspect.getdoc(Agent.capability)
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", told)] == []


@pytest.mark.parametrize(("name", "method"), list(methods()), ids=lambda one: one if isinstance(one, str) else "")
def test_no_parameter_hides(name, method):
    signature = inspect.signature(method)
    hidden = [one for one in signature.parameters.values() if one.kind is one.VAR_KEYWORD]
    assert not hidden or name in FREE or get_overloads(method) or name.endswith(("Node.call", "SyncContext.call"))
    assert name.endswith("__init__") or method.__doc__


def test_sync_twins_have_the_parameters_of_what_they_twin():
    for name in ("create_handoff", "create_and_await", "list_handoffs"):
        ours, theirs = (inspect.signature(getattr(kind, name)) for kind in (HandoffManager, AsyncHandoffManager))
        assert list(ours.parameters) == list(theirs.parameters)
    for name in ("complete", "fail", "request_input"):
        ours, theirs = (inspect.signature(getattr(kind, name)) for kind in (HandoffReceiver, AsyncHandoffReceiver))
        assert list(ours.parameters) == list(theirs.parameters)
    assert "user_id" in inspect.signature(SyncNode.call).parameters
