"""What every test may use."""

from __future__ import annotations

import functools
import gc
import inspect
import os

import pytest
from hypothesis import HealthCheck, settings

from comity import Node
from comity.testing import VirtualClock, run_virtual

# A loaded machine is no defect: no deadline, and no example takes too long to make. `make fuzz` tries many more of them.
settings.register_profile(
    "suite",
    max_examples=int(os.environ.get("COMITY_EXAMPLES", "20")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("suite")


def pytest_collection_finish() -> None:
    """Keep what is there before the first test out of every garbage collection to come."""
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run `async def` tests in virtual time."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    run_virtual(pyfuncitem.obj(**arguments))
    return True


@pytest.fixture
def make_node():
    """Make nodes on virtual time, without the watchdog's thread."""
    return functools.partial(Node, clock=VirtualClock(), lag_ms=None)
