"""What `ctx` shows: the public names and no others, the same in both contexts, each in the documentation."""

from __future__ import annotations

from pathlib import Path

import pytest

from comity import Agent, Context, SyncContext
from comity.core.tracing.telemetry import Settings

DOCS = "\n".join(page.read_text() for page in (Path(__file__).parents[3] / "docs").glob("*.md"))
PUBLIC = {
    "answer_question", "call", "clock", "gather", "guidance", "guidance_text", "hand_off", "history", "insight", "insights", "left_ms",
    "limits", "memory", "note", "once", "progress", "project_id", "report_usage", "request", "session", "span", "state", "token",
    "tokens_left", "traceparent", "tracestate", "use_tool", "write",
}  # fmt: skip


def shown(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


def test_ctx_shows_what_is_for_agents_and_nothing_else():
    assert shown(Context) == PUBLIC
    assert shown(SyncContext) == PUBLIC | {"start_call"}


@pytest.mark.parametrize("name", sorted(PUBLIC | {"start_call"}))
def test_every_name_of_ctx_has_a_docstring_and_a_place_in_the_docs(name):
    assert getattr(SyncContext, name).__doc__
    assert f"ctx.{name}" in DOCS


@pytest.mark.parametrize(("named", "project_id"), [("checkout", "checkout"), ("", "acme")])
async def test_the_project_of_a_call_is_the_nodes_and_else_its_tenant(make_node, named, project_id):
    agent = Agent("A")

    @agent.capability("GO")
    async def go(ctx: Context) -> str:
        return ctx.project_id

    async with make_node([agent], telemetry=Settings(project_id=named)) as node:
        assert (await node.call("A", "GO", user_id="u", tenant_id="acme")).data == project_id
