"""Several processes on one store are killed at random under load; what their callers were told is true for ever.

The suite kills one of two processes COMITY_PROCESS_KILLS times, 4 unless told otherwise; `make processes` kills one of two and
one of four, 300 times in all. A failure prints the seed; COMITY_KILL_SEED replays its choices, though not the exact moment of a kill.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import random
import selectors
import sys
import time
from collections import Counter
from multiprocessing import forkserver
from pathlib import Path

import process_lives
import pytest

from comity.core.session import parts
from comity.engines.sqlite.audit_rows import read_rows, verify_chain
from comity.engines.sqlite.connecting import connect
from comity.engines.sqlite.tables import read_session

KILLS = int(os.environ.get("COMITY_PROCESS_KILLS", "4"))
SEED = int(os.environ.get("COMITY_KILL_SEED", str(random.SystemRandom().randrange(10**6))))
SIZES = (2, 4) if "COMITY_PROCESS_KILLS" in os.environ else (2,)
KILLS_PER_STORE = 30  # everything ever written is checked at the end of a store
PATIENCE_S = 600.0  # a machine under load starts processes slowly; pytest's own timeout ends what hangs in the suite
# What a caller may be told instead of a result; a call that is asked for again once its time is up is refused.
FORKED = multiprocessing.get_context("forkserver")  # what all import is imported once; nothing was begun before the fork
FORKED.set_forkserver_preload(["process_warm"])
QUIET_CODES = {"CALL_TIMEOUT", "NODE_UNREACHABLE", "CALL_INTERRUPTED", "LIMIT_DEADLINE_PASSED"}


class Process:
    """One process, and what it has said."""

    def __init__(self, store: Path, name: str, heard: list[list[str]]) -> None:
        self.name = name
        self._heard = heard
        self._rest = b""
        until, self.until = FORKED.Pipe(duplex=False)
        self.said, to = FORKED.Pipe(duplex=False)
        self.process = FORKED.Process(target=process_lives.live, args=(str(store), name, until, to), daemon=True)
        self.process.start()
        until.close()
        to.close()
        os.set_blocking(self.said.fileno(), False)
        self.is_ready = self.is_over = False

    def read(self) -> bool:
        """Take what it said; return whether it may say more."""
        data = os.read(self.said.fileno(), 1 << 20)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            words = line.decode().split()
            self.is_ready |= words == ["ready"]
            self.is_over |= words == ["over"]
            self._heard.append(words)
        return bool(data)


class Crowd:
    """The processes of one store."""

    def __init__(self, store: Path, size: int, chance: random.Random) -> None:
        self.store, self.chance = store, chance
        self.heard: list[list[str]] = []
        self._lives = 0
        self._selector = selectors.DefaultSelector()
        self.processes = [self._begin() for _ in range(size)]

    def _begin(self) -> Process:
        self._lives += 1
        process = Process(self.store, f"p{self._lives}", self.heard)
        self._selector.register(process.said, selectors.EVENT_READ, process)
        return process

    def listen(self, until, what: str) -> None:
        """Take what they say until something is so."""
        give_up = time.monotonic() + PATIENCE_S
        while not until():
            assert time.monotonic() < give_up, f"{what}; seed {SEED}"
            for key, _ in self._selector.select(0.05):
                if not key.data.read():
                    self._selector.unregister(key.fileobj)

    def kill_one(self) -> None:
        """Kill a process under load, and put another in its place."""
        self.listen(lambda: all(one.is_ready for one in self.processes), "a process did not begin")
        seen = len(self.heard) + self.chance.randrange(5, 120)
        self.listen(lambda: len(self.heard) >= seen, "no calls were answered")
        time.sleep(self.chance.random() * 0.01)
        doomed = self.processes.pop(self.chance.randrange(len(self.processes)))
        doomed.process.kill()
        doomed.process.join()
        with contextlib.suppress(BlockingIOError):
            while doomed.read():
                pass
        with contextlib.suppress(KeyError):
            self._selector.unregister(doomed.said)
        doomed.said.close()
        doomed.until.close()
        self.processes.append(self._begin())

    def end(self) -> None:
        """Let all end in good order."""
        self.listen(lambda: all(one.is_ready for one in self.processes), "a process did not begin")
        for one in self.processes:
            one.until.close()
        self.listen(lambda: all(one.is_over for one in self.processes), "a process did not end")
        for one in self.processes:
            one.process.join()
        assert [one.process.exitcode for one in self.processes] == [0] * len(self.processes)

    def close(self) -> None:
        for one in self.processes:
            one.process.kill()
            one.process.join()
            one.said.close()
        self._selector.close()


def check(crowd: Crowd) -> Counter:
    """Compare what callers were told with what the store has."""
    acknowledged = [words[1:] for words in crowd.heard if words[:1] == ["ack"]]
    refused = Counter(words[1] for words in crowd.heard if words[:1] == ["not"])
    with contextlib.closing(connect(crowd.store, read_only=True)) as connection:
        assert verify_chain(connection).ok
        assert connection.execute("PRAGMA quick_check").fetchone() == ("ok",)
        rows = read_rows(connection)
        ended = {one for (one,) in connection.execute("SELECT request_id FROM calls WHERE open_at IS NULL")}
        states = {key: json.loads(data) for key, data in connection.execute(
            "SELECT key, CAST(data AS TEXT) FROM documents WHERE kind = 'state'")}  # fmt: skip
        keys = [key for (key,) in connection.execute("SELECT key FROM documents WHERE kind = 'session'")]
        stored = {key.partition("\x1f")[2]: read_session(connection, key) for key in keys}
        sessions = {name: parts.read(one.head, one.rows)[0] for name, one in stored.items()}
    times = Counter((row.request_id, row.kind) for row in rows if row.kind in {"admitted", "settled"})
    assert max(times.values()) == 1, [one for one, count in times.items() if count > 1][:5]
    for address, state in states.items():
        twice = [one for one, count in Counter(state["done"]).items() if count > 1]
        assert not twice, f"{address} did {twice[:5]} twice; seed {SEED}"
    for kind, request_id, key, operation, number in acknowledged:
        assert request_id in ended, f"{request_id} was acknowledged and has not ended in the store; seed {SEED}"
        if kind == "said":
            turns = [turn.text for turn in sessions[key].turns]
            assert [turns.count(text) for text in (operation, f"heard {operation}")] == [1, 1], (
                f"{operation} in {key}; seed {SEED}"
            )
        else:
            done = states[f"COUNT/{key}"]["done"]
            assert done[int(number) - 1] == operation, f"{operation} was told {number} of COUNT/{key}; seed {SEED}"
    assert set(refused) <= QUIET_CODES, f"{refused}; seed {SEED}"
    return Counter({"acknowledged": len(acknowledged)}) + refused


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the process that the others are forked from find what they have in common."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    forkserver.ensure_running()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.usefixtures("forks")
def test_whoever_is_killed_nothing_acknowledged_is_lost_and_nothing_is_done_twice(tmp_path: Path, size: int) -> None:
    chance = random.Random(f"{SEED} {size}")
    seen: Counter = Counter()
    left = KILLS // 2
    for number in range(-(-left // KILLS_PER_STORE)):
        crowd = Crowd(tmp_path / f"{number}.db", size, chance)
        try:
            for _ in range(min(left, KILLS_PER_STORE)):
                crowd.kill_one()
            left -= KILLS_PER_STORE
            crowd.end()
            seen += check(crowd)
        finally:
            crowd.close()
        assert not {one.suffix for one in tmp_path.iterdir()} & {".lock", ".sock"}, "a process left a file behind"
    print(f"\n{size} processes, {KILLS // 2} kills, seed {SEED}: {dict(seen)}")  # noqa: T201
