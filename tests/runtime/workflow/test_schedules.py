"""Schedules on a node, by a clock that the test moves: runs start at their times, once, whatever happens in between."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from comity import Agent, Node
from comity.core.journal.records import Document, Saved
from comity.errors import CallerError, UnavailableError
from comity.runtime.workflow.schedules import run_id_of
from comity.testing import World
from comity.testing.sim.nodes import CrashedError
from comity.workflow import load

TICK = load("workflow: tick\ninput: {type: object, properties: {n: {type: integer}}}\nnodes: {x: {call: A/TICK}}")
LONG = load("workflow: long\nnodes: {w: {wait: 90s}, x: {call: A/TICK, after: [w]}}")
MINUTE_S = 60  # not hours: in each second of virtual time a node looks after its work
HOUR_S = 3_600


def team(ticks: list[int] | None = None) -> list[Agent]:
    agent = Agent("A")

    @agent.capability("TICK")
    async def tick() -> dict:
        if ticks is not None:
            ticks.append(1)
        return {}

    return [agent]


async def test_an_interval_starts_a_run_at_each_of_its_times(make_node):
    ticks: list[int] = []
    async with make_node(team(ticks)) as node:
        flows = node.workflows
        made = await flows.schedules.add("regular", TICK, {"n": 1}, user_id="u", every="1m")
        assert made.next_at == made.created_at + MINUTE_S * 1000
        await asyncio.sleep(3.5 * MINUTE_S)
        found = flows.schedules.get("regular")
        assert (len(ticks), found.runs, found.skipped) == (3, 3, 0)
        assert (found.taken_at, found.starting, found.problem) == (0, (), "")
        assert found.last_at == made.created_at + 3 * MINUTE_S * 1000
        assert flows.get(found.last_run).status == "completed"
        assert {one.user_id for one in flows.list(workflow="tick")} == {"u"}


async def test_a_paused_schedule_starts_nothing_and_what_passed_meanwhile_is_not_made_up(make_node):
    ticks: list[int] = []
    async with make_node(team(ticks)) as node:
        schedules = node.workflows.schedules
        await schedules.add("regular", TICK, user_id="u", every="1m", missed="all")
        await schedules.pause("regular")
        await asyncio.sleep(5.5 * MINUTE_S)
        assert not ticks
        await schedules.resume("regular")
        await asyncio.sleep(MINUTE_S)
        assert len(ticks) == 1
        await schedules.remove("regular")
        await asyncio.sleep(5 * MINUTE_S)
        assert (len(ticks), schedules.list()) == (1, [])


def test_a_schedule_that_replaces_one_whose_time_is_being_taken_stays(tmp_path):
    async def replaced() -> None:
        async with Node(team(), store=tmp_path / "s.db", lag_ms=None) as node:
            flows, schedules = node.workflows, node.workflows.schedules
            old = await schedules.add("regular", TICK, user_id="u", every="1m")
            due = schedules._written(replace(old, next_at=old.created_at))
            flows.journal.append((Saved(Document.SCHEDULE, "regular", 2, due),))
            schedules.look_at("regular")  # its write is under way
            made = await schedules.add("regular", TICK, user_id="u", every="1h")
            await flows.result(run_id_of("regular", old.created_at))
            assert schedules.get("regular") == made

    asyncio.run(replaced())


async def test_a_change_of_a_schedule_that_another_process_wrote_meanwhile_is_made_again(make_node):
    async with make_node(team()) as node:
        schedules, journal = node.workflows.schedules, node.workflows.journal
        made = await schedules.add("regular", TICK, user_id="u", every="1m")
        version, data = journal.load(Document.SCHEDULE, "regular")
        other = replace(made, skipped=7)
        journal.append((Saved(Document.SCHEDULE, "regular", version + 1, schedules._written(other)),))
        load, stale = journal.load, [(version, data)]
        journal.load = lambda kind, key: stale.pop() if stale else load(kind, key)
        assert await schedules.pause("regular") == replace(other, is_paused=True) == schedules.get("regular")


@pytest.mark.parametrize(("overlap", "runs", "skipped"), [("skip", 2, 2), ("queue", 3, 1), ("allow", 4, 0)])
async def test_a_run_that_has_not_ended_is_not_overtaken_unless_that_is_allowed(make_node, overlap, runs, skipped):
    async with make_node(team()) as node:
        schedules = node.workflows.schedules
        await schedules.add("regular", LONG, user_id="u", every="1m", overlap=overlap)
        await asyncio.sleep(4.5 * MINUTE_S)  # runs last a minute and a half
        found = schedules.get("regular")
        assert (found.runs, found.skipped) == (runs, skipped)


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"every": "0s"}, "a second or more"),
        ({"every": "soon"}, "a second or more"),
        ({}, "either"),
        ({"cron": "* * * * *", "every": "1h"}, "either"),
        ({"cron": "61 * * * *"}, "minute '61'"),
        ({"cron": "0 0 30 2 *"}, "never comes"),
        ({"every": "1m", "zone": "Mars/Olympus"}, "no time zone"),
        ({"every": "1m", "overlap": "perhaps"}, "perhaps"),
        ({"every": "1m", "input": {"n": "one"}}, "input.n"),
        ({"every": "1m", "name": "a b"}, "letters"),
    ],
)
async def test_a_schedule_that_cannot_be_is_refused_with_the_reason(make_node, wrong, what):
    async with make_node(team()) as node:
        with pytest.raises(CallerError, match=what):
            await node.workflows.schedules.add(**{"name": "s", "workflow": TICK, "user_id": "u", **wrong})


async def test_a_run_that_cannot_be_started_is_named_and_the_schedule_goes_on(make_node):
    async with make_node(team()) as node:
        flows = node.workflows
        await flows.schedules.add("s", TICK, {"n": 1}, user_id="u", every="1m")
        flows.add("workflow: tick\ninput: {type: object, required: [m]}\nnodes: {x: {call: A/TICK}}")
        await asyncio.sleep(1.5 * MINUTE_S)
        found = flows.schedules.get("s")
        assert (found.runs, found.next_at) == (0, found.created_at + 2 * MINUTE_S * 1000)
        assert "is not what it takes" in found.problem


@pytest.mark.parametrize(("missed", "runs", "skipped"), [("none", 1, 3), ("one", 2, 2), ("all", 4, 0)])
def test_times_that_passed_while_the_node_stood_still_are_made_up_by_the_rule(missed, runs, skipped):
    ticks: list[int] = []

    async def scenario(world):
        node = await world.node(team(ticks))
        schedules = node.node.workflows.schedules
        await node.within(schedules.add("regular", TICK, user_id="u", every="1h", missed=missed, overlap="allow"))
        await asyncio.sleep(1.5 * HOUR_S)
        world.pause(node, 3 * HOUR_S)  # from 1:30 to 4:30: a run that is late by minutes is not missed
        await asyncio.sleep(3.25 * HOUR_S)
        found = schedules.get("regular")
        assert (found.runs, len(ticks), found.skipped) == (runs, runs, skipped)

    outcome = World(1).run(scenario)
    assert outcome.ok, outcome.failure


def play(**cut):
    """Return how a world went in which a schedule is made and its node may die once, and the runs in the end."""
    found = {}

    async def scenario(world):
        node = await world.node(team())
        world.arm(node)
        name = "often"
        while not found:
            try:
                await node.until_up()
                schedules = node.node.workflows.schedules
                if not schedules.list():
                    await node.within(schedules.add(name, TICK, user_id="u", every="2m"))
                begun = schedules.get(name).created_at
                await asyncio.sleep(max(begun + 300_000 - node.clock.now_ns() / 1e6, 0) / 1000)
                await node.until_up()
                flows = node.node.workflows
                runs = {one.run_id: str(one.status) for one in flows.list()}
                expected = [run_id_of(name, begun + minutes * 60_000) for minutes in (2, 4)]
                found.update(runs=runs, expected=expected, counted=flows.schedules.get(name).runs)
            except (CrashedError, UnavailableError):
                await asyncio.sleep(1)

    return World(1, **cut).run(scenario), found


def test_a_node_that_dies_at_any_write_starts_each_run_of_its_schedule_once():
    whole, found = play()
    assert whole.ok, whole.failure
    crashed = 0
    for point in range(1, whole.writes + 1):
        outcome, found = play(cut_at_append=point)
        assert outcome.failure == "", (point, outcome.failure)
        assert found["runs"] == dict.fromkeys(found["expected"], "completed"), point
        assert found["counted"] == 2, point
        crashed += outcome.marks.get("node crashed", 0)
    assert crashed
