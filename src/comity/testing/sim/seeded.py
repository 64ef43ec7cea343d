"""`@simulate`: a test that runs under many seeds, and when one fails says how to see it again with the fewest faults."""

from __future__ import annotations

import functools
import inspect
import os
import shlex
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from comity.testing.sim.faults import Fault, Firing, Tally, parse_schedule, schedule
from comity.testing.sim.report import Report
from comity.testing.sim.shrink import shrink
from comity.testing.sim.world import STEPS_MAX, Outcome, World

SEEDS: Final = 100
LINES_SHOWN: Final = 40

# The options of the pytest plugin; a seed or a schedule given there replaces what the test says.
SEED_VARIABLE: Final = "COMITY_SEED"
FAULTS_VARIABLE: Final = "COMITY_FAULTS"
# And from where it was started, the way to the folder that its names of tests begin at.
ROOT_VARIABLE: Final = "COMITY_PYTEST_ROOT"

Test = Callable[..., Awaitable[None]]


class SimulationError(AssertionError):
    """A seed under which a test fails. Its message has the command that repeats it and what happened; `summary` is a line."""

    def __init__(self, message: str, *, summary: str) -> None:
        super().__init__(message)
        self.summary = summary


def simulate(
    *,
    seeds: int | Iterable[int] = SEEDS,
    faults: Sequence[Fault] = (),
    is_swarm: bool = False,
    steps_max: int = STEPS_MAX,
) -> Callable[[Test], Callable[..., None]]:
    """Run an `async` test whose first parameter is a `World` under many seeds; its `report` counts what happened.

    Fails if a fault that must strike, as every named fault must, struck under none of the seeds.

    @simulate(seeds=200, faults=Fault.each(Kind.NODE_CRASH))
    async def test_nothing_is_lost(world): ...
    """
    numbers = range(seeds) if isinstance(seeds, int) else tuple(seeds)
    if not numbers or not all(isinstance(number, int) for number in numbers):
        raise ValueError(f"seeds is how many, at least 1, or the numbers themselves; not {seeds!r}")
    if not isinstance(faults, Sequence) or not all(isinstance(fault, Fault) for fault in faults):
        raise TypeError(f"faults is a list of Fault, as Fault.each(…) makes it; not {faults!r}")

    def decorate(test: Test) -> Callable[..., None]:
        if not inspect.iscoroutinefunction(test) or not _own_parameters(test):
            raise TypeError(f"{getattr(test, '__name__', test)} must be an `async def` whose first parameter is the World")

        @functools.wraps(test)
        def run(*arguments: Any, **fixtures: Any) -> None:
            __tracebackhide__ = True
            report, tally = Report([fault.kind for fault in faults if fault.must_strike]), Tally(faults)
            run.report = report  # type: ignore[attr-defined]  # which the pytest plugin shows

            def play(seed: int, only: Iterable[Firing] | None) -> Outcome:
                world = World(seed, faults=faults, only=only, is_swarm=is_swarm, steps_max=steps_max)
                outcome = world.run(lambda world: test(*arguments, world, **fixtures))
                tally.add(world.faults)
                return outcome

            asked, told = os.environ.get(SEED_VARIABLE), os.environ.get(FAULTS_VARIABLE)
            only = None if told is None else parse_schedule(told)
            for seed in numbers if asked is None else (int(asked),):
                outcome = play(seed, only)
                report.add_seed([(test.__name__, outcome)])
                if not outcome.ok:
                    smallest = outcome if only is not None else shrink(outcome, functools.partial(play, seed))
                    raise _failure(smallest, test) from smallest.error
            if asked is None and only is None and (unmet := tally.unmet()):
                raise SimulationError("\n".join(unmet), summary=unmet[0])

        _hide_world(run, test)
        return run

    return decorate


def _failure(outcome: Outcome, test: Test) -> SimulationError:
    error = outcome.error
    if error is not None:
        error.__traceback__ = _from_users_line(error.__traceback__)
    what, *_ = outcome.failure.splitlines()
    summary = f"{what} (seed {outcome.seed}, {len(outcome.fired)} faults)"
    return SimulationError(explain(outcome, test), summary=summary)


def _from_users_line(traceback: TracebackType | None) -> TracebackType | None:
    """Return the part that begins in the user's own code: how the simulator came there explains nothing."""
    while traceback is not None and traceback.tb_frame.f_globals.get("__name__", "").partition(".")[0] in {"comity", "asyncio"}:
        traceback = traceback.tb_next
    return traceback


def explain(outcome: Outcome, test: Test) -> str:
    """Return what failed, the command that repeats it, and how it came to that."""
    shown = outcome.trace.lines(LINES_SHOWN)
    left_out = len(outcome.trace.events) - len(shown)
    return "\n".join(
        (
            outcome.failure,
            f"seed {outcome.seed}, {len(outcome.fired)} faults: {schedule(outcome.fired)}",
            "",
            "see it again with:",
            f"  {replay_command(outcome, test)}",
            "",
            *([f"({left_out} events before)"] if left_out else []),
            *shown,
        )
    )


def replay_command(outcome: Outcome, test: Test) -> str:
    """Return the one command that repeats a run where this one was started."""
    running = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    file, mark, name = (running or f"{inspect.getsourcefile(test)}::{test.__name__}").partition("::")
    path = os.path.normpath(Path(os.environ.get(ROOT_VARIABLE, ""), file))
    asked = f"--comity-seed {outcome.seed} --comity-faults '{schedule(outcome.fired)}'"
    return f"python -m pytest {shlex.quote(path + mark + name)} {asked}"


def _hide_world(run: Callable[..., None], test: Test) -> None:
    """Let pytest see only the parameters that it must fill."""
    signature = inspect.signature(test)
    world, *_ = _own_parameters(test)
    kept = [parameter for parameter in signature.parameters.values() if parameter.name != world.name]
    run.__signature__ = signature.replace(parameters=kept, return_annotation=None)  # type: ignore[attr-defined]
    del run.__wrapped__  # type: ignore[attr-defined]


def _own_parameters(test: Test) -> list[inspect.Parameter]:
    """Return the parameters of a test but for `self`."""
    return [parameter for name, parameter in inspect.signature(test).parameters.items() if name != "self"]
