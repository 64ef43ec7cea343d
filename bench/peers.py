"""The same job beside ours in other frameworks, none of which checks, bounds or records the call.

Each peer is installed in an environment of its own below `.venv-peers/`. Rounds are interleaved and the median is printed.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parent / ".venv-peers"
PEERS = {"autogen_core": "autogen-core==0.7.5", "agent_framework_core": "agent-framework-core==1.23.0"}


def environment(name: str, requirement: str) -> str:
    """Return the interpreter of a peer's environment, made and filled if need be."""
    folder = ENVIRONMENTS / name
    python = folder / "bin" / "python"
    if not (folder / ".ready").exists():
        print(f"installing {requirement} …", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement], check=True)
        (folder / ".ready").touch()
    return str(python)


def cpu_us(python: str, job: str, calls: int, lanes: int, *more: str) -> float:
    # -P: the job is named after its framework and must not be imported in its place
    command = [python, "-P", str(HERE / "jobs" / f"{job}.py"), str(calls), str(lanes), *more]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    jobs = [
        ("comity, governed", sys.executable, "comity_call", 12_800, ()),
        ("comity, governed and durable", sys.executable, "comity_call", 12_800, ("durable",)),
        *((requirement, environment(name, requirement), name, 2_560, ()) for name, requirement in PEERS.items()),
    ]
    runs: dict[str, list[float]] = {}
    for _ in range(options.rounds):
        for name, python, job, calls, more in jobs:
            runs.setdefault(name, []).append(cpu_us(python, job, calls, 64, *more))
    durable = runs["comity, governed and durable"]
    print(f"{'64 in flight':<32} {'CPU µs per call':>16} {'× ours, durable':>16}")
    for name, figures in runs.items():
        ratio = statistics.median(theirs / ours for theirs, ours in zip(figures, durable, strict=True))
        print(f"{name:<32} {statistics.median(figures):>16.1f} {ratio:>16.2f}")


if __name__ == "__main__":
    main()
