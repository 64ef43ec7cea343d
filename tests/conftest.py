"""What every test may use."""

from __future__ import annotations

import functools
import inspect

import pytest
from hypothesis import settings

from comity import Node
from comity.testing import VirtualClock, run_virtual

# No deadline: a loaded machine is no defect. Tests that need more examples than this say so.
settings.register_profile("suite", deadline=None, max_examples=20)
settings.load_profile("suite")


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
