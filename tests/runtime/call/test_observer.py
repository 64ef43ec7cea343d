"""An observer is told of each step of calls, tools and handoffs, in the order in which they happen."""

from __future__ import annotations

import inspect
from typing import Any

from handoff_pair import pair

from comity import Agent, Context
from comity.core.agent.tool import Risk, Tool
from comity.ports.observer import Observer


class Seen(Observer):
    """Notes the hooks, each with the name of the call, tool or handoff that it is about."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, str]] = []

    def about(self, *names: str) -> list[tuple[str, str]]:
        return [step for step in self.steps if step[0] in names]


def _noting(name: str) -> Any:
    def note(self: Seen, first: Any, *more: Any) -> Any:
        if name == "moved":
            self.steps.append((name, f"{first} {' '.join(map(str, more))}"))
        elif name in {"putting_aside", "put_aside"}:
            self.steps.append((name, " ".join(call.request.request_id for call in first)))
        elif name == "performed":
            self.steps.append((name, type(first.change).__name__))
        else:
            of = getattr(first, "request", first)
            self.steps.append((name, getattr(first, "name", "") or getattr(of, "request_id", of)))
        return getattr(Observer, name)(self, first, *more)

    return note


for _name, _ in inspect.getmembers(Observer, inspect.isfunction):
    if not _name.startswith("_"):
        setattr(Seen, _name, _noting(_name))


def team() -> list[Agent]:
    orc, leaf = Agent("ORC"), Agent("LEAF", tools_allowed=["look", "pay"])

    @orc.capability("GO")
    async def go(ctx: Context, tool: str) -> None:
        await ctx.call("LEAF", "WORK", {"tool": tool})

    @leaf.capability("WORK")
    async def work(ctx: Context, tool: str) -> str:
        return await ctx.use_tool(tool)

    return [orc, leaf]


TOOLS = [Tool(name="look", function=lambda: "seen"), Tool(name="pay", function=lambda: "paid", risk=Risk.HIGH)]


async def test_an_observer_sees_each_step_of_a_call_and_of_the_calls_below_it(make_node):
    seen = Seen()
    async with make_node(team(), tools=TOOLS, observer=seen) as node:
        assert (await node.call("ORC", "GO", {"tool": "look"}, user_id="u", request_id="r")).ok
    steps = [step for step in seen.steps if step[0] not in {"moved", "performed"}]
    assert steps == [
        ("arrives", "r"), ("starting", "r"), ("queued", "r"), ("entered", "r"), ("runs", "r"),
        ("arrives", "r.1"), ("starting", "r.1"), ("queued", "r.1"), ("entered", "r.1"), ("runs", "r.1"), ("using", "look"),
        ("settling", "r.1"), ("settled", "r.1"), ("leaving", "r.1"), ("settling", "r"), ("settled", "r"), ("leaving", "r"),
    ]  # fmt: skip
    assert ("moved", "activation inactive activate") in seen.steps


async def test_an_observer_sees_which_calls_are_put_aside_until_a_person_answers(make_node):
    seen = Seen()
    async with make_node(team(), tools=TOOLS, observer=seen) as node:
        await node.call("ORC", "GO", {"tool": "pay"}, user_id="u", request_id="r")
    assert seen.about("putting_aside", "put_aside") == [("putting_aside", "r r.1"), ("put_aside", "r r.1")]


async def test_an_observer_sees_the_steps_of_a_handoff(make_node):
    seen = Seen()
    async with make_node(observer=seen) as node:
        manager, receiver = pair(node)
        made = await manager.create_handoff("o11y", "investigate")
        await receiver.take()
        await receiver.complete(made)
        await manager.await_result(made)
    assert seen.about("acknowledged", "performed", "shown") == [
        ("acknowledged", made), ("performed", "Listen"), ("performed", "Take"), ("performed", "Complete"), ("shown", made),
        ("performed", "Listen"),
    ]  # fmt: skip


async def test_the_node_sees_the_agent_that_the_observer_returns(make_node):
    class Blind(Observer):
        def arrives(self, request, agent):
            return None

    async with make_node(team(), observer=Blind()) as node:
        assert (await node.call("ORC", "GO", {"tool": "look"}, user_id="u")).error.code == "ROUTING_UNKNOWN_AGENT"
