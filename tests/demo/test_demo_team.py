"""Four agents build a business case on a real node."""

import asyncio
import json

import pytest

from comity import Node
from comity.core.agent.breaker import Policy
from comity.demo import agents
from comity.demo.team import REQUEST


def run(work):
    async def inside():
        async with Node(agents) as node:
            return await work(node)

    return asyncio.run(inside())


def build(tmp_path, **inputs):
    """Run the case; return its reply and its events."""

    async def work(node):
        inputs.setdefault("out", str(tmp_path / "case.md"))
        handle = node.start_call("ORC", "ORC_BUSINESS_CASE", {"trials": 2_000, **inputs}, user_id="u1")
        events = [event async for event in handle.events()]
        return await handle.reply(), events

    return run(work)


def test_the_written_case_says_17206_82_for_the_seed_cash_flows(tmp_path):
    reply, _ = build(tmp_path)
    assert reply.status == "success"
    text = (tmp_path / "case.md").read_text(encoding="utf-8")
    assert "| base | 17,206.82 |" in text
    assert "-100,000 | 25,000 | 35,000 | 45,000 | 55,000" in text
    assert REQUEST in text
    base = next(one for one in reply.data["scenarios"] if one["name"] == "base")
    assert base["npv"] == 17_206.82
    assert sum(flow / (1 + base["irr"]) ** year for year, flow in enumerate(base["cash_flows"])) == pytest.approx(0, abs=1e-3)
    assert reply.data["document"] == str(tmp_path / "case.md")


def test_every_figure_is_under_way_before_the_simulation_ends(tmp_path):
    _, events = build(tmp_path)
    started = {event.seq: event.capability for event in events if event.kind == "started" and event.target == "ANL"}
    assert sorted(started.values()) == sorted(["ANL_NPV", "ANL_IRR", "ANL_PAYBACK"] * 3 + ["ANL_MONTE_CARLO"])
    (end,) = (event.seq for event in events if event.kind == "settled" and event.capability == "ANL_MONTE_CARLO")
    assert max(started) < end


def test_the_same_seed_gives_the_same_outlook_and_another_does_not(tmp_path):
    outlooks = [build(tmp_path, seed=seed)[0].data["outlook"] for seed in (5, 5, 6)]
    assert outlooks[0] == outlooks[1]
    assert outlooks[0] != outlooks[2]


def test_a_simulation_lets_other_calls_pass():
    async def work(node):
        slow = asyncio.ensure_future(
            node.call("ANL", "ANL_MONTE_CARLO", {"cash_flows": [-1, 2], "trials": 20_000}, user_id="u1")
        )
        await asyncio.sleep(0)
        quick = await node.call("ANL", "ANL_NPV", {"cash_flows": [-1, 2], "discount_rate": 0}, user_id="u1")
        was_running = not slow.done()
        return quick, was_running, await slow

    quick, was_running, slow = run(work)
    assert quick.unwrap()["npv"] == 1
    assert was_running
    assert slow.unwrap()["trials"] == 20_000


def test_a_figure_that_does_not_exist_makes_the_case_partial_not_failed(tmp_path):
    reply, _ = build(tmp_path, plan={"unit_cost": 500})  # every unit loses money, so there is no rate of return
    assert reply.status == "partial"
    assert "irr of the base scenario is not available." in reply.warnings
    text = (tmp_path / "case.md").read_text(encoding="utf-8")
    assert "Do not enter" in text
    assert "irr of the base scenario is not available" in text


def test_a_file_of_somebody_else_ends_the_case_with_the_reason(tmp_path):
    (tmp_path / "case.md").write_text("mine", encoding="utf-8")
    reply, _ = build(tmp_path)
    assert reply.status == "error"
    assert "is not a document of this demo" in reply.error.message
    assert (tmp_path / "case.md").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("inputs", "path"),
    [
        ({"cash_flows": [1], "discount_rate": 0.1}, "inputs.cash_flows"),
        ({"cash_flows": [1, 2], "discount_rate": -1}, "inputs.discount_rate"),
        ({"cash_flows": [1, "2"], "discount_rate": 0.1}, "inputs.cash_flows[1]"),
        ({"cash_flows": [1, 2]}, "inputs.discount_rate"),
    ],
)
def test_bad_figures_are_refused_with_their_path(inputs, path):
    reply = run(lambda node: node.call("ANL", "ANL_NPV", inputs, user_id="u1"))
    assert reply.status == "refused"
    assert [problem.path for problem in reply.error.problems] == [path]


def test_two_who_ask_each_other_are_stopped_at_the_first_repeat():
    async def work(node):
        reply = await node.call("CST", "CST_OPINION", {"question": "?"}, user_id="u1")
        return reply, [(row.kind, row.target) for row in node.audit.rows()]

    reply, rows = run(work)
    assert reply.status == "partial"
    assert reply.data == {"opinion": "The figures alone say: enter in steps."}
    assert reply.warnings == ("There is no second opinion in this.",)
    assert rows == [("admitted", "CST"), ("admitted", "ANL"), ("refused", "CST"), ("settled", "ANL"), ("settled", "CST")]


def test_a_feed_that_is_down_trips_the_breaker_and_the_fallback_is_marked():
    async def work(node):
        prices = [await node.call("ANL", "ANL_MARKET_PRICE", user_id="u1") for _ in range(Policy().failures_max + 1)]
        return prices, await node.call("ANL", "ANL_MARKET_SIZE", user_id="u1")

    prices, size = run(work)
    assert {reply.error.code for reply in prices[:-1]} == {"TARGET_TEMPORARY_FAILURE"}
    assert prices[-1].error.code == "CAPABILITY_UNAVAILABLE"
    assert 0 < prices[-1].error.retry_after_ms <= Policy().open_ms
    assert size.ok
    assert size.degraded
    assert size.data == {"units": 20_000, "source": "plan"}


def test_every_capability_of_the_demo_can_be_prepared_and_its_examples_fit():
    for agent in agents:
        for capability in agent.capabilities.values():
            capability.prepare()
            for example in capability.examples:
                assert not capability.inputs.check(json.dumps(example).encode()).problems
