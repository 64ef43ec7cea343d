"""What a run may use: every call below it is charged to one account, whichever steps run side by side or went before."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from comity import Agent, Context, Node, Reply

MAP = '{over: "{{input.of}}", concurrency: 50}'
FIFTY = {"of": list(range(50))}


class Team:
    """Agents that count what they do."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.agents = [Agent("A"), Agent("B")]
        first, second = self.agents

        @first.capability("ONE")
        async def one() -> dict:
            self.ran.append("one")
            return {}

        @first.capability("TREE")
        async def tree(ctx: Context) -> dict:
            for _ in range(40):
                (await ctx.call("B", "LEAF")).unwrap()
            return {}

        @first.capability("THINK")
        async def think(ctx: Context) -> dict:
            self.ran.append("think")
            ctx.report_usage(prompt_tokens=90)
            return {}

        @first.capability("UNDO")
        async def undo(ctx: Context) -> dict:
            self.ran.append("undo")
            (await ctx.call("B", "LEAF")).unwrap()
            return {}

        @first.capability("SPEND")
        async def spend(ctx: Context, calls: bool) -> Reply:
            ctx.report_usage(prompt_tokens=100)
            if calls:
                (await ctx.call("B", "LEAF")).unwrap()
            return Reply.failure("no", code="OWN_CODE")

        @second.capability("LEAF")
        async def leaf() -> dict:
            self.ran.append("leaf")
            return {}


def ended(team: Team, *texts: str, given: object = None, name: str = "w"):
    async def main():
        async with Node(team.agents) as node:
            node.workflows.add(*texts)
            run = await node.workflows.start(name, given, user_id="u")
            return await run.result(), run.record

    return asyncio.run(main())


@pytest.mark.parametrize("limit", ["calls_max", "steps_max"])
def test_steps_side_by_side_share_what_the_run_may_call(limit):
    team = Team()
    text = f"workflow: w\nlimits: {{{limit}: 5}}\nnodes:\n  x: {{call: A/ONE, map: {MAP}}}"
    reply, record = ended(team, text, given=FIFTY)
    assert (reply.error.code, record.calls, record.steps) == ("WORKFLOW_LIMIT_REACHED", 5, 5)
    assert len(team.ran) <= 5


@pytest.mark.parametrize("nodes", ["x: {call: A/TREE}", "x: {call: A/ONE}\n  y: {call: A/TREE}"])
def test_calls_below_steps_are_refused_once_the_run_has_none_left(nodes):
    team = Team()
    reply, record = ended(team, f"workflow: w\nlimits: {{calls_max: 5}}\nnodes:\n  {nodes}")
    assert (reply.error.code, record.calls) == ("WORKFLOW_LIMIT_REACHED", 5)
    assert len(team.ran) == 4  # TREE itself adds nothing


def test_a_sub_workflow_has_its_own_limits_and_its_failure_is_its_nodes():
    team = Team()
    sub = f"workflow: sub\nlimits: {{calls_max: 2}}\nnodes:\n  x: {{call: A/ONE, map: {MAP.replace('50', '1')}}}"
    text = (
        'workflow: w\nnodes:\n  s: {run: sub, input: {of: "{{input.of}}"}}\n  t: {call: A/ONE}\n'
        "edges:\n  - {from: s, to: t, on: error}"
    )
    reply, record = ended(team, sub, text, given=FIFTY)
    assert (reply.status, record.calls, team.ran) == ("success", 3, ["one"] * 3)


def test_no_step_begins_once_the_tokens_of_the_run_are_used_up():
    team = Team()
    text = f"workflow: w\nlimits: {{tokens_max: 100}}\nnodes:\n  x: {{call: A/THINK, map: {MAP.replace('50', '2')}}}"
    reply, record = ended(team, text, given=FIFTY)
    assert reply.error.code == "WORKFLOW_LIMIT_REACHED"
    assert record.tokens == 180


@pytest.mark.parametrize(("calls", "code"), [("true", "WORKFLOW_LIMIT_REACHED"), ("false", "OWN_CODE")])
def test_a_step_that_used_all_tokens_fails_the_run_with_its_limit_only_if_it_lacked_some(calls, code):
    """Dies where the code of a step's failure is not compared: every failure without tokens left would be the limit's."""
    text = f"workflow: w\nlimits: {{tokens_max: 100}}\nnodes:\n  x: {{call: A/SPEND, input: {{calls: {calls}}}}}"
    reply, _ = ended(Team(), text)
    assert reply.error.code == code


def test_what_was_done_is_taken_back_though_the_run_has_no_call_left():
    team = Team()
    text = (
        "workflow: w\nlimits: {calls_max: 1}\nnodes:\n  x: {call: A/ONE, undo: {call: A/UNDO}}\n  y: {call: A/ONE, after: [x]}"
    )
    reply, _ = ended(team, text)
    assert (reply.error.code, team.ran) == ("WORKFLOW_LIMIT_REACHED", ["one", "undo", "leaf"])
    assert "not_undone" not in reply.error.facts


def test_a_run_that_goes_on_and_a_fork_have_what_was_left_of_their_calls(tmp_path):
    team = Team()
    text = "workflow: w\nlimits: {calls_max: 5}\nnodes:\n  x: {call: A/ONE}\n  q: {ask: 'on?', after: [x]}\n  y: {call: A/TREE, after: [q]}"

    async def main():
        async with Node(team.agents, store=tmp_path / "s.db") as node:
            node.workflows.add(text)
            run = await node.workflows.start("w", user_id="u", run_id="r")
            while not run.record.questions:
                await asyncio.sleep(0)
        async with Node(team.agents, store=tmp_path / "s.db") as node:
            fork = await node.workflows.fork("r")
            for one in (node.workflows.handle("r"), fork):
                while not one.record.questions:
                    await asyncio.sleep(0)
                team.ran.clear()
                await one.answer(one.record.questions[0].question_id, "yes")
                assert (await one.result()).error.code == "WORKFLOW_LIMIT_REACHED"
                assert (team.ran, one.record.calls) == (["leaf"] * 3, 5)

    asyncio.run(main())


def test_steps_that_waited_for_their_turn_are_not_begun_once_the_run_is_cancelled():
    team, begun = Team(), []

    @team.agents[0].capability("LONG")
    async def long() -> dict:
        begun.append(1)
        await asyncio.Event().wait()
        return {}

    async def main():
        async with Node(team.agents) as node:
            node.workflows.add(f"workflow: w\nnodes:\n  x: {{call: A/LONG, map: {MAP}}}")
            run = await node.workflows.start("w", FIFTY, user_id="u")
            while len(begun) < 10:  # fan_out_max
                await asyncio.sleep(0)
            await run.cancel()
            assert (await run.result()).status == "cancelled"
            assert len(begun) == 10

    asyncio.run(main())


async def test_the_map_of_the_guide_runs_four_items_at_a_time_and_does_without_one_of_them(make_node):
    guide = Path(__file__).parents[3].joinpath("docs/workflows.md").read_text(encoding="utf-8")
    (example,) = (one for one in guide.split("```yaml\n") if one.startswith("workflow: ask-prices"))
    shop, under_way = Agent("SHOP", concurrency=10), [0, 0]  # now, and at most

    @shop.capability("PRICE")
    async def price(item: str, line: int) -> dict:
        under_way[0] += 1
        under_way[1] = max(under_way)
        await asyncio.sleep(1)
        under_way[0] -= 1
        if item == "unknown":
            raise ValueError(item)
        return {"price": line}

    async with make_node([shop]) as node:
        node.workflows.add(example.partition("```")[0])
        reply = await node.workflows.run("ask-prices", {"items": [*"abcde", "unknown"]}, user_id="u")
        assert (reply.status, under_way) == ("partial", [0, 4])
        assert reply.data["prices"] == [*({"price": line} for line in range(5)), None]
        two = await node.workflows.run("ask-prices", {"items": ["a", "unknown", "unknown"]}, user_id="u")
        assert two.error.code == "TARGET_CRASHED"
