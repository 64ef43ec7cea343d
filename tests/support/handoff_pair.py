"""What the tests of handoffs stand on: a manager with its receiver, and what is asked and found."""

from __future__ import annotations

import pytest

from comity import Agent, Context
from comity.contextcore.handoffs.manager import AsyncHandoffManager
from comity.contextcore.handoffs.receiver import AsyncHandoffReceiver
from comity.errors import ComityError

REPORT = {"type": "analysis_report", "fields": ["root_cause", "evidence"]}
FOUND = {"root_cause": "N+1 query", "evidence": ["trace-1"]}


def pair(node, *, agent_id="o11y", capabilities=("investigate",), **more):
    """A manager and a receiver on one node."""
    return AsyncHandoffManager("checkout", "orchestrator", node=node, **more), AsyncHandoffReceiver(
        agent_id, capabilities, node=node
    )


def declared():
    agent = Agent("o11y", aliases=["eyes"], pending_max=2)

    @agent.capability("investigate", output_schema={"type": "object"})
    async def investigate(ctx: Context, app: str):
        return {}

    return agent


def kinds(node, kind=None):
    return [(row.request_id, row.kind) for row in node.audit.rows() if kind in {None, row.kind}]


async def code_of(awaitable):
    with pytest.raises(ComityError) as raised:
        await awaitable
    return raised.value.code
