"""`@simulate` as users have it: it finds a planted race, prints one command, and that command fails the same way."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import warm

from comity.testing import Fault, Kind, SimulationError, World, simulate
from comity.testing.plugin import pytest_configure
from comity.testing.sim.faults import Firing
from comity.testing.sim.shrink import shrink

ROOT = Path(__file__).parents[3]


def run_pytest(*arguments: str, cwd: Path = ROOT, finds: bool = False, **environment: str) -> subprocess.CompletedProcess:
    """Run pytest as a user does. Unless it `finds` its plugins, it is told them, in a fork: to find them it imports and rewrites much."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COMITY_"))}
    plugins = ("no:hypothesispytest", "no:anyio", "no:schemathesis")  # which take most of the time to start
    if not finds:
        clean["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        plugins = ("comity.testing.plugin", "xdist.plugin")
    command = [sys.executable, "-m", "pytest", *(f"-p{name}" for name in ("no:cacheprovider", *plugins)), *arguments]
    more = {"cwd": cwd, "env": clean | environment}
    return subprocess.run(command, capture_output=True, text=True, check=False, **more) if finds else warm.run(command, **more)


def test_a_short_users_test_finds_a_planted_race_and_the_printed_command_repeats_it():
    test = ROOT / "examples" / "test_shop.py"
    assert len(test.read_text().splitlines()) < 40
    found = run_pytest(str(test), SHOP_MAY_FAIL="1")
    assert found.returncode == 1
    assert "sold what it did not have" in found.stdout
    (command,) = re.findall(r"^E? *python -m pytest (.*--comity-seed.*)$", found.stdout, re.MULTILINE)
    again = run_pytest(*shlex.split(command), SHOP_MAY_FAIL="1")
    assert again.returncode == 1
    assert "sold what it did not have" in again.stdout
    assert "--comity-faults 'AgentCallNetworkDelay:" in command


USERS = {
    "test_it.py": """
import pytest
from comity.testing import simulate
@pytest.mark.parametrize('name', ['it\\'s :: $HOME', 'b'])
@simulate(seeds=2)
async def test_it(world, name): assert name == 'b'
""",
    "test_wrong.py": """
from comity.testing import simulate
@simulate(seeds=1, steps_max=99)
async def test_wrong(world):
    assert world.seed == 9, 'seed\\nis wrong'
""",
    "test_endless.py": """
from comity.testing import simulate
@simulate(seeds=1, steps_max=99)
async def test_endless(world):
    while True: await __import__('asyncio').sleep(0)
""",
    "test_often.py": """
import pytest
from comity.testing import Fault, Kind, simulate
@pytest.fixture
def kind():
    return Kind.AGENT_BUSY
@simulate(seeds=3, faults=Fault.each(Kind.AGENT_BUSY, probability=1.0))
async def test_often(world, kind):
    for _ in range(world.seed): world.strikes(kind, 'x')
""",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder with the tests of a user, below the one that pytest takes for the root."""
    root = tmp_path_factory.mktemp("users")
    (root / "pytest.ini").write_text("[pytest]\n")
    below = root / "below"
    below.mkdir()
    for name, text in USERS.items():
        (below / name).write_text(text)
    return below


@pytest.fixture(scope="module")
def tellings(folder) -> dict[str, str]:
    """What pytest told of the tests of a user, by where it ran them."""
    # On a build server pytest does not shorten the lines of its summary.
    here = run_pytest("--tb=short", cwd=folder, finds=True, CI="true").stdout
    return {"here": here, "in a worker": run_pytest("--tb=short", "-n", "1", cwd=folder, CI="true").stdout}


@pytest.fixture(params=["here", "in a worker"])
def told(request, tellings) -> str:
    return tellings[request.param]


def test_the_printed_command_runs_where_pytest_was_started_whatever_the_test_is_called(folder, tellings):
    commands = {re.search(r"python -m pytest (.*test_it.*--comity-seed.*)$", one, re.MULTILINE)[1] for one in tellings.values()}
    (command,) = commands
    again = run_pytest(*shlex.split(command), cwd=folder)
    assert (again.returncode, "1 failed in" in again.stdout) == (1, True), again.stdout


@pytest.mark.parametrize(
    ("name", "first", "summary"),
    [
        ("test_wrong", "test_wrong.py:5: in test_wrong", "AssertionError: seed (seed 0, 0 faults)"),
        (
            "test_endless",
            "comity.testing.sim.invariants.ViolationError: EveryCallEnds: 99 steps and no end",
            "EveryCallEnds: ",
        ),
    ],
)
def test_a_failure_is_told_once_from_the_users_line_on_and_in_one_line_of_the_summary(told, name, first, summary):
    body, _, below = told.partition("short test summary info")
    lines = [line for line in body[body.index(f"_ {name} _") :].splitlines()[1:] if not line.startswith("[gw")]
    assert lines[0].startswith(first)
    assert told.count("see it again with") == 3  # once for each failure
    assert "All traceback entries are hidden" not in told
    assert f"\nFAILED {name}.py::{name} - SimulationError: {summary}" in below
    assert len(re.findall("^FAILED", below, re.MULTILINE)) == 3
    assert "3 failed, 2 passed in" in below.splitlines()[4]


def test_how_often_faults_struck_is_told_at_the_end_and_pytest_sees_the_other_parameters_as_fixtures(told):
    assert told.count("test_often.py::test_often: 3 seeds, 0 calls; AgentBusy 3× in 2 seeds") == 1


def crashes(count: int):
    @simulate(seeds=3, faults=Fault.each(Kind.NODE_CRASH, probability=0.5))
    async def test(world: World) -> None:
        seen = 0
        while seen < 40:
            seen += 1
            world.strikes(Kind.NODE_CRASH, "somewhere")
        assert world.faults.counts().get(Kind.NODE_CRASH, 0) < count, "too many"

    return test


def test_a_failure_is_told_with_its_seed_its_smallest_schedule_and_its_command():
    with pytest.raises(SimulationError) as caught:
        crashes(3)()
    told = str(caught.value)
    assert "too many" in told
    assert "seed 0, 3 faults: NodeCrash:" in told
    assert told.count("python -m pytest") == 1


def test_a_test_that_holds_is_run_under_every_seed_and_passes():
    seen = []

    @simulate(seeds=3)
    async def test(world: World) -> None:
        seen.append(world.seed)

    test()
    assert seen == [0, 1, 2]


def test_a_seed_and_a_schedule_from_outside_replace_those_of_the_test(monkeypatch):
    seen = []

    @simulate(seeds=5, faults=Fault.each(Kind.NODE_CRASH, probability=1.0))
    async def test(world: World) -> None:
        hits = [world.strikes(Kind.NODE_CRASH, "x") is not None for _ in range(3)]
        seen.append((world.seed, hits))

    monkeypatch.setenv("COMITY_SEED", "77")
    monkeypatch.setenv("COMITY_FAULTS", "NodeCrash:2")
    test()
    assert seen == [(77, [False, True, False])]


async def holds(world: World) -> None:
    world.strikes(Kind.AGENT_BUSY, "clerk")


def blocks(world: World) -> None:
    raise AssertionError("never reached")


async def alone() -> None:
    raise AssertionError("never reached")


@pytest.mark.parametrize(
    ("test", "settings", "told"),
    [
        (holds, {"seeds": 0}, "at least 1"),
        (holds, {"seeds": ()}, "at least 1"),
        (holds, {"faults": [Kind.NODE_CRASH]}, "a list of Fault"),
        (holds, {"faults": Fault(kind=Kind.NODE_CRASH)}, "a list of Fault"),
        (blocks, {}, "blocks must be an `async def`"),
        (alone, {}, "whose first parameter is the World"),
    ],
)
def test_what_would_test_nothing_is_refused_where_it_is_declared(test, settings, told):
    with pytest.raises((TypeError, ValueError), match=told):
        simulate(**settings)(test)


def test_a_fault_bound_to_a_place_that_never_was_fails_the_test():
    simulate(seeds=2, faults=[Fault(kind=Kind.AGENT_BUSY, where="cl*", probability=1.0)])(holds)()
    with pytest.raises(SimulationError, match="could never strike at 'clark'; it could have struck at: clerk"):
        simulate(seeds=2, faults=[Fault(kind=Kind.AGENT_BUSY, where="clark")])(holds)()


def test_a_world_without_a_node_says_what_it_lacks():
    @simulate(seeds=1)
    async def test(world: World) -> None:
        await world.call("A", "GO", user_id="u")

    with pytest.raises(SimulationError, match="start a node first"):
        test()


def test_the_plugin_loads_no_simulator():
    code = "import sys, comity.testing.plugin; print(sorted(m for m in sys.modules if m.startswith('comity.testing.')))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "['comity.testing.plugin']"


def test_shrinking_keeps_only_the_firings_that_matter():
    needed = {Firing(Kind.NODE_CRASH, 3), Firing(Kind.NODE_CRASH, 17)}

    def play(only):
        async def scenario(world):
            for _ in range(30):
                world.strikes(Kind.NODE_CRASH, "x")
            assert not needed <= set(world.faults.fired), "both"

        return World(1, faults=Fault.each(Kind.NODE_CRASH, probability=1.0), only=only).run(scenario)

    whole = play(None)
    assert len(whole.fired) == 30
    assert set(shrink(whole, play).fired) == needed


def test_every_name_of_the_kit_can_be_imported_and_no_other():
    import comity.testing as kit

    for name in kit.__all__:
        assert getattr(kit, name).__module__.startswith("comity.testing"), name
    assert set(kit.__all__) == set(kit._HOME_OF)
    with pytest.raises(AttributeError):
        _ = kit.nothing


def test_faults_without_their_seed_are_refused():
    given = {"comity_seed": None, "comity_faults": "NodeCrash:2"}
    with pytest.raises(pytest.UsageError, match="name it with --comity-seed"):
        pytest_configure(SimpleNamespace(getoption=given.__getitem__))
    assert "COMITY_FAULTS" not in os.environ
