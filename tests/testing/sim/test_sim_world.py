"""A whole simulated world: the project's own workload under every fault, the same for the same seed."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import weakref
from pathlib import Path

import pytest
from workloads.mesh import CALLS_MIN, STORM, mesh
from workloads.scenarios import SCENARIOS

from comity import Agent, Context
from comity.testing import Fault, Kind, World

SEEDS = range(8)  # `regressions.txt` has more, and `make sim` a thousand


@pytest.fixture(scope="module")
def storm():
    """Return the outcomes of some seeds of the project's own workload with every fault on."""
    return [World(seed, faults=STORM, is_swarm=True).run(mesh) for seed in SEEDS]


def test_nothing_that_must_hold_fails_under_every_fault(storm):
    assert [(one.seed, one.failure) for one in storm if not one.ok] == []
    assert min(one.calls for one in storm) >= CALLS_MIN


def test_things_did_go_wrong(storm):
    fired = {firing.kind for one in storm for firing in one.fired}
    assert fired >= {Kind.NODE_CRASH_IN_WRITE, Kind.NODE_CRASH, Kind.STORE_FULL, Kind.AGENT_CALL_TIMEOUT, Kind.AGENT_BUSY}
    marks = {mark for one in storm for mark in one.marks}
    assert marks >= {"node crashed", "calls of a dead node taken up", "repeated request joined", "late reply"}


def test_different_seeds_give_different_runs(storm):
    assert len({one.trace.digest() for one in storm}) == len(SEEDS)


DIGESTS = """
import sys
from workloads.scenarios import SCENARIOS
for run in sys.argv[1:]:
    name, seed = run.split()
    print(run, SCENARIOS[name].run(int(seed)).trace.digest())
"""


def test_the_same_seeds_give_the_same_traces_in_two_processes_with_two_hash_seeds_and_in_another_order():
    runs = [f"{name} 1" for name in ("mesh", "nodes", "handoffs")]
    here = [f"{run} {SCENARIOS[run.split()[0]].run(int(run.split()[1])).trace.digest()}" for run in runs]
    support = str(Path(__file__).parents[2] / "support")
    other_hash_seed = {"PYTHONHASHSEED": "12345"}  # this process has a seed that Python chose, or none
    environment = os.environ | {"PYTHONPATH": support} | other_hash_seed
    command = [sys.executable, "-c", DIGESTS, *runs[::-1]]
    there = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert there.splitlines() == here[::-1]


def collect() -> None:
    while gc.collect():  # what finalizers let go is found by the next
        pass


@pytest.mark.parametrize("name", ["mesh", "nodes"])
def test_a_world_that_is_over_leaves_nothing_in_memory(name):
    play, worlds = SCENARIOS[name], []
    for seed in range(3):
        world = World(seed, faults=play.faults, is_swarm=True)
        worlds.append(weakref.ref(world))
        world.run(play.scenario)
        del world
    collect()
    assert [seed for seed, world in enumerate(worlds) if world() is not None] == []


def echo() -> Agent:
    agent = Agent("A")

    @agent.capability("ECHO")
    async def repeat(ctx: Context, text: str) -> str:
        await asyncio.sleep(0.1)
        return text

    return agent


def test_a_client_gets_its_reply_although_the_node_dies_under_its_call():
    async def scenario(world):
        node = await world.node([echo()])
        asking = asyncio.ensure_future(world.call("A", "ECHO", {"text": "hello"}, user_id="u"))
        await asyncio.sleep(0.05)
        world.crash(node.life)
        reply = await asking
        assert reply.data == "hello"

    outcome = World(1).run(scenario)
    assert outcome.failure == ""
    assert outcome.marks["node crashed"] == outcome.marks["node restarted"] == 1


def test_a_failing_assertion_of_the_scenario_is_the_failure_of_the_run():
    async def scenario(_):
        assert 1 + 1 == 3, "as expected"

    outcome = World(1).run(scenario)
    assert "as expected" in outcome.failure
    assert outcome.invariant == ""


def test_what_nobody_caught_fails_the_run():
    async def scenario(world):
        async def forgotten():
            raise KeyError("lost")

        task = asyncio.ensure_future(forgotten())
        await asyncio.sleep(1)
        del task

    assert "lost" in World(1).run(scenario).failure


def test_chance_and_time_of_code_that_asks_nobody_belong_to_the_seed():
    import random
    import time
    import uuid

    seen = []

    async def scenario(_):
        await asyncio.sleep(5)
        seen.append((time.time(), time.monotonic(), random.random(), uuid.uuid4(), os.urandom(4)))

    for _ in range(2):
        assert World(3).run(scenario).ok
    assert seen[0] == seen[1]
    assert World(4).run(scenario).ok
    assert seen[2][2:] != seen[0][2:]
    assert seen[0][1] == 5.0


@pytest.mark.parametrize(
    "line",
    [
        line
        for line in (Path(__file__).parent / "regressions.txt").read_text().splitlines()
        if line and not line.startswith("#")
    ],
)
def test_what_once_failed_stays_repaired(line):
    name, seed, _ = line.split(maxsplit=2)
    assert SCENARIOS[name].run(int(seed)).failure == ""


def test_nothing_uses_what_takes_other_steps_in_other_versions_of_python():
    files = (Path(__file__).parents[3] / "src").rglob("*.py")
    assert [path.name for path in files if "asyncio.wait_for(" in path.read_text(encoding="utf-8")] == []


def test_what_a_node_had_under_way_when_it_died_is_freed():
    def plans() -> int:
        collect()
        return sum(type(one) is dict and "plan" in one for one in gc.get_objects())  # the inputs of every call

    assert SCENARIOS["mesh"].run(3).ok  # and have every schema made
    before = plans()
    assert SCENARIOS["mesh"].run(3).ok
    assert plans() == before


def test_a_store_that_fails_is_seen_by_callers_and_outlived():
    async def scenario(world):
        await world.node([echo()])
        for number in range(20):
            reply = await world.call("A", "ECHO", {"text": str(number)}, user_id="u")
            assert reply.data == str(number)

    fault = Fault(kind=Kind.STORE_WRITE_FAILED, probability=0.2, count=3)
    outcome = World(5, faults=[fault]).run(scenario)
    assert outcome.failure == ""
    assert len(outcome.fired) == 3
