"""Kill -9 the process that drives a run at positions of its journal: `run_positions.py FOLDER STRIDE [FIRST]`.

Position n is the n-th append of the first life. At each the process is killed twice, in runs of their own: as soon as the append was
made, so that it may be lost, and as soon as it is on disk. A second life then goes on. Lives are forked from this process, which has
imported everything, so that all positions take a minute or two. Prints what it saw.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import run_lives

from comity.engines.sqlite.journal import SqliteJournal

EXPECTED = {"sum": 10, "answer": "yes"}


def live(store: Path, effects: Path, cut_at: int, *, is_durable: bool) -> int:
    """Fork one life; kill it at an append, 0 for none. Return the signal that ended it."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        sys.stdout = (effects.parent / f"{effects.stem}.out").open("a")
        die_at(cut_at, is_durable=is_durable)
        asyncio.run(run_lives.main(store, effects))
        print("appends", SqliteJournal.appends)  # type: ignore[attr-defined]  # noqa: T201
        sys.stdout.flush()
        os._exit(0)
    except BaseException as error:  # noqa: BLE001  a child must not run on as the parent
        print("failed", repr(error), flush=True)  # noqa: T201
        os._exit(1)


def die_at(cut_at: int, *, is_durable: bool) -> None:
    """Let this process die at an append of its journal."""
    append = SqliteJournal.append
    SqliteJournal.appends = 0  # type: ignore[attr-defined]

    def counted(self: SqliteJournal, records: Any, then: Any = None, terms: Any = None) -> None:
        SqliteJournal.appends += 1  # type: ignore[attr-defined]
        if SqliteJournal.appends != cut_at:  # type: ignore[attr-defined]
            append(self, records, then, terms)
        elif is_durable:
            append(self, records, lambda _: os.kill(os.getpid(), signal.SIGKILL), terms)
        else:
            append(self, records, then, terms)
            os.kill(os.getpid(), signal.SIGKILL)

    SqliteJournal.append = counted  # type: ignore[method-assign,assignment]


def check(store: Path, effects: Path, what: str) -> None:
    """Let a second life go on, and compare what came of the run and what the world outside heard."""
    ended = live(store, effects, 0, is_durable=False)
    said = (effects.parent / f"{effects.stem}.out").read_text()
    assert ended == 0, (what, ended, said)
    assert f"ended {EXPECTED}" in said, (what, said)
    heard = [line.split() for line in effects.read_text().splitlines()]
    assert sorted(map(int, dict(heard).values())) == list(range(1, 10)), (what, heard)  # one key per step
    assert len(heard) <= 9 + 2, (what, heard)  # the two branches that may have been paying when it died ask again


def main(folder: Path, stride: int, first: int) -> None:
    """Kill at every position, or every `stride`-th."""
    assert live(folder / "whole.db", folder / "whole.txt", 0, is_durable=False) == 0
    most = int((folder / "whole.out").read_text().rpartition("appends ")[2])
    killed = 0
    for position in range(first, most + 1, stride):
        for is_durable in (False, True):
            what = f"{position}{'d' if is_durable else 'q'}"
            store, effects = folder / f"{what}.db", folder / f"{what}.txt"
            ended = live(store, effects, position, is_durable=is_durable)
            assert ended in {-signal.SIGKILL, 0}, (what, ended)
            killed += ended == -signal.SIGKILL
            check(store, effects, what)
    print(f"{most} appends, {killed} lives killed, every run ended with {EXPECTED}, each effect once")  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1)
