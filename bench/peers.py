"""The same jobs beside ours in other frameworks, none of which checks, bounds or records the call.

Four jobs: one governed call by the program, for a user; one by an agent to another; a model agent that delegates to another and
answers, with models that answer at once; and a workflow of three steps, in sequence and side by side, which no peer here keeps
in a store. Each peer is installed in an environment of its own below
`.venv-peers/`. Rounds are interleaved; the medians are printed, and the least of each, which neighbours on the machine
disturb least.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parent / ".venv-peers"
LANES = 64
CALL_PEERS = {"autogen_core": "autogen-core==0.7.5", "agent_framework_core": "agent-framework-core==1.23.0"}
DELEGATE_PEERS = {"pydantic_ai_delegate": "pydantic-ai-slim==2.66.0", "openai_agents_delegate": "openai-agents==0.24.0"}
FLOW_PEERS = {"langgraph": "langgraph==1.2.20", "pydantic_graph": "pydantic-graph==2.66.0"}

Job = tuple[str, str, str, int, tuple[str, ...]]  # label, interpreter, script, how many, further words


def environment(name: str, requirement: str) -> str:
    """Return the interpreter of a peer's environment, made and filled if need be."""
    folder = ENVIRONMENTS / name
    python = folder / "bin" / "python"
    if not (folder / ".ready").exists():
        print(f"installing {requirement} …", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement], check=True)
        (folder / ".ready").touch()
        os.sync()  # what was installed is still being written, which would slow down a store that syncs
    return str(python)


def cpu_us(python: str, job: str, calls: int, lanes: int, *more: str) -> float:
    # -P: the job is named after its framework and must not be imported in its place
    command = [python, "-P", str(HERE / "jobs" / f"{job}.py"), str(calls), str(lanes), *more]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def compare(title: str, jobs: list[Job], baseline: str, rounds: int) -> None:
    runs: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, python, job, calls, more in jobs:
            runs.setdefault(name, []).append(cpu_us(python, job, calls, LANES, *more))
    print(f"{title:<40} {'CPU µs':>10} {'least':>10} {'× ' + baseline:>20} {'of the least':>14}")
    for name, figures in runs.items():
        ratio = statistics.median(theirs / ours for theirs, ours in zip(figures, runs[baseline], strict=True))
        least = min(figures) / min(runs[baseline])
        print(f"{name:<40} {statistics.median(figures):>10.1f} {min(figures):>10.1f} {ratio:>20.2f} {least:>14.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", choices=["call", "delegate", "workflow"])
    options = parser.parse_args()
    if options.only in {None, "call"}:
        ours: list[Job] = [
            ("comity", sys.executable, "comity_call", 12_800, ()),
            ("comity, durable", sys.executable, "comity_call", 12_800, ("durable",)),
        ]
        theirs: list[Job] = [(what, environment(name, what), name, 2_560, ()) for name, what in CALL_PEERS.items()]
        compare(f"a governed call, {LANES} in flight", ours + theirs, "comity, durable", options.rounds)
        between = [(*job[:4], (*job[4], "between")) for job in (*ours, theirs[0])]
        compare(f"one between agents, {LANES} in flight", between, "comity, durable", options.rounds)
    if options.only in {None, "delegate"}:
        ours = [
            ("comity", sys.executable, "comity_delegate", 2_560, ()),
            ("comity, durable", sys.executable, "comity_delegate", 2_560, ("durable",)),
        ]
        theirs = [(what, environment(name, what), name, 640, ()) for name, what in DELEGATE_PEERS.items()]
        compare(f"delegate and return, {LANES} in flight", ours + theirs, "comity", options.rounds)
    if options.only in {None, "workflow"}:
        peers = [(what, environment(name, what), f"{name}_flow", 640, ()) for name, what in FLOW_PEERS.items()]
        for shape in ("sequence", "parallel"):
            jobs = [
                ("comity", sys.executable, "comity_flow", 2_560, (shape,)),
                ("comity, durable", sys.executable, "comity_flow", 2_560, (shape, "durable")),
                ("comity, calls by hand", sys.executable, "comity_flow", 2_560, (shape, "hand")),
                ("comity, calls by hand, durable", sys.executable, "comity_flow", 2_560, (shape, "hand", "durable")),
                *((*job[:4], (shape,)) for job in peers),
            ]
            compare(f"workflow of 3 steps, {shape}, {LANES} in flight", jobs, "comity", options.rounds)


if __name__ == "__main__":
    main()
