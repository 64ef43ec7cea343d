"""What every test may use."""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import io
import os
import runpy
import signal
import subprocess
from pathlib import Path

import pytest
import warm
from forks import pytest_addoption, pytest_runtestloop  # noqa: F401  hooks
from hypothesis import HealthCheck, settings
from loops import pytest_runtest_teardown, watch_loops  # noqa: F401  a hook

from comity import Node
from comity.testing import VirtualClock, run_virtual

# A loaded machine is no defect: no deadline, and no example takes too long to make. The suite tries the same examples every time,
# so that a change is judged by what it changed; `make fuzz` tries many more, and others each time.
settings.register_profile(
    "suite",
    max_examples=int(os.environ.get("COMITY_EXAMPLES", "12")),
    derandomize="COMITY_EXAMPLES" not in os.environ,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("suite")


# Everything else in the environment goes: what a program does must not depend on a PYTHONUNBUFFERED, LANG or COMITY_STORE of
# the machine. A test that needs a variable sets it.
KEPT_VARIABLES = {
    *("HOME", "PATH", "TMPDIR", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"),
    *(
        "COMITY_CHROMIUM",
        "COMITY_API_EXAMPLES",
        "COMITY_CUTS",
        "COMITY_DRAINS",
        "COMITY_EXAMPLES",
        "COMITY_HANDOFFS",
        "COMITY_KILLS",
        "COMITY_KILL_SEED",
        "COMITY_CRASH_POINTS",
        "COMITY_RUN_KILLS",
        "COMITY_RUN_MOVES",
        "COMITY_RUN_POSITIONS",
        "COMITY_PROCESS_KILLS",
        "COMITY_REMOTE_KILLS",
        "COMITY_TEMPO_DIR",
    ),
}


ONE_CERTIFICATE = Path(__file__).parent / "support" / "one_certificate.pem"
TEST_S_MAX = "300"  # a hang fails; it does not cost the whole run


@pytest.hookimpl(tryfirst=True)
def pytest_configure() -> None:
    """Give this process, and so all that it starts, the same environment and signals on every machine."""
    for name in [*os.environ]:
        if name not in KEPT_VARIABLES and not name.startswith("PYTEST_"):
            del os.environ[name]
    os.environ.setdefault("PYTEST_TIMEOUT", TEST_S_MAX)  # read by pytest-timeout
    # No test reaches an outside host by TLS. Every HTTP client would load the 140 certificates of the system's bundle, in 50 ms.
    os.environ["SSL_CERT_FILE"] = str(ONE_CERTIFICATE)
    watch_loops()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job is started deaf to it
    gc.disable()  # until the tests are collected: they stay


def pytest_collection_finish() -> None:
    """Keep what is there before the first test out of every garbage collection to come, and collect less often."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


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


@pytest.fixture
def run_script(monkeypatch):
    """Run a script as a program, but in this process, which has imported what takes half a second; return its output."""

    def run(script: Path) -> str:
        monkeypatch.syspath_prepend(script.parent)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            runpy.run_path(str(script), run_name="__main__")
        return out.getvalue()

    return run


@pytest.fixture
def start_process():
    """Start Python programs whose output is read as text; kill those that are left when the test ends, however it does."""
    processes = []

    def start(command, **more):
        process = warm.start(command, **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | more)
        processes.append(process)
        return process

    yield start
    for process in processes:
        with process:
            process.kill()
