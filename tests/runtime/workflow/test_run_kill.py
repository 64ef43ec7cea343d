"""A process that drives a run is killed -9 again and again: the result is the same, and the world outside hears each effect once.

The suite kills COMITY_RUN_KILLS lives, 2 unless told otherwise; `make kill` kills many, one of two that share a store too, and at
every position of the journal. The suite cuts every position in `tests/testing/sim/test_sim_workflow_crash_points.py`, which needs no process.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import warm

LIVES = Path(__file__).parent / "run_lives.py"
MOVES = int(os.environ.get("COMITY_RUN_MOVES", "0"))
KILLS = int(os.environ.get("COMITY_RUN_KILLS", "2"))


def effects_of(effects: Path) -> list[int]:
    """Return what the world outside heard, once for each idempotency key."""
    return sorted(map(int, dict(line.split() for line in effects.read_text().splitlines()).values()))


def test_a_run_whose_process_is_killed_gives_the_same_result_and_each_effect_once(tmp_path: Path) -> None:
    chance = random.Random(int(os.environ.get("COMITY_KILL_SEED", "1")))
    killed = stores = 0
    while killed < KILLS:
        stores += 1
        store, effects = tmp_path / f"{stores}.db", tmp_path / f"{stores}.txt"
        said = ""
        while "ended" not in said:
            command = [sys.executable, LIVES, store, effects]
            with warm.start(command, stdout=subprocess.PIPE, text=True) as life:
                said = life.stdout.readline()
                if killed < KILLS:
                    time.sleep(chance.random() * 0.4)  # the moment of a kill is chance, not a wait for something
                    life.send_signal(signal.SIGKILL)
                    killed += 1
                said += life.stdout.read()
            assert life.returncode in {0, -signal.SIGKILL}, said
        assert "'sum': 10" in said, said
        assert "'answer': 'yes'" in said, said
        assert effects_of(effects) == list(range(1, 10)), effects.read_text()  # one key per step, whatever happened


if MOVES:  # takes seconds each: `make kill` runs it; `test_cluster_runs.py` moves runs in virtual time

    def test_a_run_whose_process_is_killed_goes_on_in_another_that_shares_the_store(tmp_path: Path) -> None:
        chance = random.Random(int(os.environ.get("COMITY_KILL_SEED", "1")))
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        for number in range(MOVES):
            store, effects = tmp_path / f"{number}.db", tmp_path / f"{number}.txt"
            command = [sys.executable, LIVES, store, effects]
            with (
                subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as first,
                subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as second,
            ):
                first.stdout.readline()  # it may have ended the run when the second one is up: then that one says so at once
                second.stdout.readline()
                time.sleep(chance.random() * 0.4)  # as above
                gone, other = (first, second) if chance.random() < 0.5 else (second, first)
                gone.send_signal(signal.SIGKILL)
                said = other.stdout.read()
            assert "'sum': 10" in said, said
            assert "'answer': 'yes'" in said, said
            assert effects_of(effects) == list(range(1, 10)), effects.read_text()


if "COMITY_RUN_POSITIONS" in os.environ:  # takes minutes: `make kill` runs it

    @pytest.mark.timeout(0)
    def test_a_run_whose_process_is_killed_at_any_append_of_its_journal_gives_the_same_result_and_each_effect_once(
        tmp_path: Path,
    ) -> None:
        stride = os.environ["COMITY_RUN_POSITIONS"]  # 1 is every position
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(LIVES.parent), *filter(None, sys.path)])}
        command = [sys.executable, LIVES.parent / "run_positions.py", tmp_path, stride]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        print(done.stdout)  # noqa: T201
        assert done.returncode == 0, done.stdout + done.stderr
