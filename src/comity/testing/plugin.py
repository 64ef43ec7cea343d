"""The pytest plugin: `--comity-seed` and `--comity-faults` repeat one run of a simulated test; a failure is shown once.

It loads nothing else of Comity: every run of pytest loads it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from typing import Any

import pytest

PROPERTY = "comity simulation"

pytest.register_assert_rewrite("comity.testing.contracts")  # its suites are run as tests: a failure shows the values


def pytest_addoption(parser: Any) -> None:
    """Declare the options."""
    group = parser.getgroup("comity", "simulated agents")
    group.addoption("--comity-seed", type=int, default=None, metavar="N", help="run simulated tests with this seed only")
    group.addoption(
        "--comity-faults", default=None, metavar="SCHEDULE", help="and with these faults only, as a failure printed them"
    )


def pytest_configure(config: Any) -> None:
    """Pass on what was asked, to the processes of pytest-xdist as well, and where names of tests begin."""
    if config.getoption("comity_faults") is not None and config.getoption("comity_seed") is None:
        raise pytest.UsageError("--comity-faults is of one seed; name it with --comity-seed, as the failure printed it")
    for option, variable in (("comity_seed", "COMITY_SEED"), ("comity_faults", "COMITY_FAULTS")):
        value = config.getoption(option)
        if value is not None:
            os.environ[variable] = str(value)
    os.environ["COMITY_PYTEST_ROOT"] = os.path.relpath(config.rootpath, config.invocation_params.dir)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Generator[None, Any, Any]:
    """Tell of a failed simulation once: pytest would repeat the whole message in its summary, and miss the hidden frames."""
    report = yield
    seeded = sys.modules.get("comity.testing.sim.seeded")
    counted = getattr(getattr(item, "obj", None), "report", None)
    if seeded is not None and call.when == "call" and isinstance(counted, seeded.Report):
        report.user_properties.append((PROPERTY, counted.summary()))  # which pytest-xdist passes on
    if seeded is not None and call.excinfo is not None and isinstance(call.excinfo.value, seeded.SimulationError):
        told = report.longrepr
        if getattr(told, "reprcrash", None) is not None:
            told.reprcrash.message = f"SimulationError: {call.excinfo.value.summary}"
        if hasattr(told, "reprtraceback"):
            told.reprtraceback.extraline = None
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Tell how often faults struck in each simulated test."""
    reports = [one for some in terminalreporter.stats.values() for one in some if getattr(one, "when", "") == "call"]
    told = [f"{one.nodeid}: {text}" for one in reports for name, text in one.user_properties if name == PROPERTY]
    if told:
        terminalreporter.write_sep("-", "simulated")
    for line in told:
        terminalreporter.write_line(line)


def pytest_unconfigure(config: Any) -> None:
    """Leave nothing behind."""
    for option, variable in (("comity_seed", "COMITY_SEED"), ("comity_faults", "COMITY_FAULTS")):
        if config.getoption(option) is not None:
            os.environ.pop(variable, None)
    os.environ.pop("COMITY_PYTEST_ROOT", None)
