"""Faults strike where a test's own agents are, however little virtual time they take; a test whose fault never struck fails."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from comity import Agent, Context
from comity.testing import Fault, Kind, SimulationError, World, simulate

PAGE = Path(__file__).parents[3] / "docs" / "testing.md"
SEEDS = 30

counter = Agent("COUNTER", concurrency=1)


@counter.capability("ADD")
async def add(ctx: Context) -> int:
    ctx.state["sum"] = ctx.state.get("sum", 0) + 1
    return ctx.state["sum"]


def count(*faults: Fault, seeds: int = SEEDS, nodes: int = 1):
    """Count to ten under faults, in less than a tick of virtual time; return the report, and how many nodes died in each seed."""
    died = []

    @simulate(seeds=seeds, faults=faults)
    async def test(world: World) -> None:
        await (world.node([counter]) if nodes == 1 else world.cluster(nodes, [counter]))
        await asyncio.gather(*(world.call("COUNTER", "ADD", user_id="ann") for _ in range(10)))
        await world.heal()
        died.append(world.marks.get("node crashed", 0))

    test()
    return test.report, died


def test_the_pages_own_example_crashes_nodes_in_most_seeds_and_says_so():
    example = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[0]
    names: dict = {}
    exec(compile(example, str(PAGE), "exec"), names)  # noqa: S102  the page's own code
    test = names["test_nothing_is_counted_twice"]
    test()
    report = test.report
    assert report.seeds_struck[Kind.NODE_CRASH] > 0.8 * report.seeds
    assert report.marks["node crashed"] >= report.seeds_struck[Kind.NODE_CRASH]
    assert report.fired[Kind.STORE_SLOW]
    said = f"{report.seeds} seeds, {report.calls} calls; NodeCrash {report.fired[Kind.NODE_CRASH]}×"
    assert report.summary().startswith(said)


def test_a_crash_strikes_a_short_test_at_the_default_probability():
    report, died = count(Fault(kind=Kind.NODE_CRASH))
    assert sum(map(bool, died)) >= SEEDS / 3
    assert sum(died) == report.fired[Kind.NODE_CRASH]


def test_a_pattern_for_a_nodes_name_fits_in_a_short_test():
    report, died = count(Fault(kind=Kind.NODE_CRASH, where="n1*"))
    assert report.fired[Kind.NODE_CRASH] == sum(died) > 0


@pytest.mark.parametrize("kind", [Kind.NODE_PAUSE, Kind.CLOCK_JUMP])
def test_every_fault_of_a_process_strikes_a_short_test(kind):
    report, _ = count(Fault(kind=kind))
    assert report.seeds_struck[kind] >= SEEDS / 4


@pytest.mark.parametrize("kind", [Kind.PARTITION, Kind.PARTITION_ONE_WAY, Kind.PARTITION_GROUP])
def test_networks_are_cut_where_agents_work(kind):
    report, _ = count(Fault(kind=kind, by="step"), nodes=3, seeds=5)
    assert report.fired[kind]


def test_work_goes_on_though_every_occasion_is_a_crash():
    report, died = count(Fault(kind=Kind.NODE_CRASH, probability=1.0), seeds=10)
    assert min(died) >= 1
    assert report.calls == 100


def test_a_crash_that_has_struck_comes_before_everything_is_healed():
    @simulate(seeds=SEEDS, faults=[Fault(kind=Kind.NODE_CRASH, by="step", count=1, probability=0.2)])
    async def test(world: World) -> None:
        node = await world.node([counter])
        await world.call("COUNTER", "ADD", user_id="ann")
        struck = len(world.faults.fired)
        await world.heal()
        assert world.marks.get("node crashed", 0) == struck
        assert node.is_up

    test()


NEVER = [
    (Fault(kind=Kind.MESSAGE_LOST), "MessageLost never struck under 3 seeds: nothing happened.*world.cluster"),
    (Fault(kind=Kind.PARTITION), "Partition never struck.*world.cluster"),
    (Fault(kind=Kind.MODEL_TIMEOUT), "ModelTimeout never struck.*world.model"),
    (Fault(kind=Kind.STORE_TORN_TAIL), "StoreTornTail never struck.*add NodeCrash"),
    (Fault(kind=Kind.RING_LOST), "RingLost never struck.*handoffs"),
    (Fault(kind=Kind.NODE_CRASH, by="time"), "NodeCrash never struck.*hardly any virtual time.*by='time'"),
    (Fault(kind=Kind.NODE_CRASH, where="n2*"), r"NodeCrash could never strike at 'n2\*'; it could have struck at: n1"),
    (
        Fault(kind=Kind.NODE_CRASH, probability=1e-9),
        r"never struck under 3 seeds: it had \d+ occasions, with probability 1e-09 each. Raise.*must_strike=False",
    ),
    (Fault(kind=Kind.AGENT_BUSY, from_ms=60_000, probability=1.0), "its window of time fits the test"),
]


@pytest.mark.parametrize(("fault", "why"), NEVER)
def test_a_fault_that_never_struck_fails_its_test_and_says_why(fault, why):
    with pytest.raises(SimulationError, match=why):
        count(fault, seeds=3)


def test_a_fault_that_need_not_strike_fails_nothing():
    count(Fault(kind=Kind.MESSAGE_LOST, must_strike=False), Fault(kind=Kind.NODE_CRASH, probability=0.0), seeds=1)
    count(*Fault.each(from_ms=60_000), seeds=1)  # every kind, none of which is named


def test_what_a_seed_plays_does_not_depend_on_other_seeds():
    def digests(seeds):
        async def scenario(world: World) -> None:
            await world.node([counter])
            await asyncio.gather(*(world.call("COUNTER", "ADD", user_id="ann") for _ in range(10)))

        faults = Fault.each(Kind.NODE_CRASH, Kind.NODE_PAUSE, probability=0.1)
        return [World(seed, faults=faults).run(scenario).trace.digest() for seed in seeds]

    assert digests([3, 1, 2]) == [digests([seed])[0] for seed in (3, 1, 2)]
