"""The checkout-latency investigation from beginning to end: two processes, one store, one set of findings for five audiences.

python examples/checkout_latency/run.py [FOLDER]
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from telemetry import traces

from comity.cli.main import main as comity
from comity.engines.clock import SystemClock
from comity.engines.sqlite.spans.store import SpanStore

HERE = Path(__file__).parent
AUDIENCES = ("executive", "manager", "developer", "operator", "agent")


def run(folder: Path) -> None:
    """Prepare the folder, let the two agents work, and show the result."""
    shutil.copy(HERE / "project.yaml", folder / "project.yaml")
    with SpanStore(folder / "telemetry.db") as telemetry:
        telemetry.ingest(list(traces(SystemClock().now_ns())))
    os.environ["COMITY_PROJECT"] = "checkout-service"
    specialist = subprocess.Popen([sys.executable, HERE / "specialist.py", folder])
    orchestrator = subprocess.Popen([sys.executable, HERE / "orchestrator.py", folder])
    try:
        for process in (orchestrator, specialist):
            if process.wait(timeout=90):
                sys.exit(f"{process.args[1]} failed")
    finally:
        for process in (orchestrator, specialist):
            process.kill()  # if one failed, the other would wait for it; one that has ended is left alone
    places = ["--store", str(folder / "work.db"), "--guidance", str(folder / "project.yaml")]
    for audience in AUDIENCES:
        print(f"\n=== {audience}", flush=True)
        comity(["view", "--audience", audience, *places])
    print("\n=== what people see of their guidance now", flush=True)
    comity(["guidance", "show", *places])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as made:
            run(Path(made))
