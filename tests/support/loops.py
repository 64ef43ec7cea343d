"""A test fails that leaves an event loop open, or closes the lock of a store without saying so: a later test would be blamed.

The collector would find the loop in a later test. A later fork of this process would close any file that got the lock's number.
"""

from __future__ import annotations

import asyncio
import os
import stat
import weakref
from collections.abc import Generator
from typing import Any

import pytest

from comity.engines.sqlite import liveness

_made: set[weakref.ref[asyncio.AbstractEventLoop]] = set()  # since the last test, or still open then


def watch_loops() -> None:
    """Note every event loop of the standard library that is made from now on."""
    made_before = asyncio.BaseEventLoop.__init__

    def make(loop: asyncio.BaseEventLoop) -> None:
        made_before(loop)
        _made.add(weakref.ref(loop))

    asyncio.BaseEventLoop.__init__ = make  # type: ignore[method-assign]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None, Any, Any]:
    """Close the loops that are open and do not run, and fail the test; a fixture of a file may run one in a thread."""
    told = yield
    still_open = [loop for one in [*_made] if (loop := one()) is not None and not loop.is_closed()]
    left = [loop for loop in still_open if not loop.is_running()]
    _made.clear()
    _made.update(weakref.ref(loop) for loop in still_open if loop not in left)
    for loop in left:
        loop.close()
    if left:
        pytest.fail(f"{len(left)} event loops were left open", pytrace=False)
    if gone := [file for file in [*liveness._held] if not _is_file(file)]:
        liveness._held.difference_update(gone)
        pytest.fail(f"the locks of {len(gone)} stores were closed, and their numbers kept", pytrace=False)
    return told


def _is_file(number: int) -> bool:
    try:
        return stat.S_ISREG(os.fstat(number).st_mode)
    except OSError:
        return False
