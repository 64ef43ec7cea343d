"""The write-ahead log is copied into the main file beside the writer."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sqlite3
from pathlib import Path

import pytest

from comity.engines.sqlite import journal as journal_module
from comity.engines.sqlite.checkpoints import Checkpoints
from comity.engines.sqlite.journal import GATHER_S, SqliteJournal
from comity.testing.contracts.records import settled


def test_a_copy_that_was_asked_for_brings_what_was_committed_into_the_main_file(tmp_path):
    path = tmp_path / "s.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE t (x)")
        writer.execute("INSERT INTO t VALUES ('committed')")
        checkpoints = Checkpoints(path)
        checkpoints.start()
        checkpoints.close()
        alone = shutil.copy(path, tmp_path / "alone.db")  # without its log
        with contextlib.closing(sqlite3.connect(alone)) as copy:
            assert copy.execute("SELECT x FROM t").fetchall() == [("committed",)]


def test_no_new_file_takes_the_place_of_one_that_was_removed(tmp_path):
    checkpoints = Checkpoints(tmp_path / "gone.db")
    checkpoints.start()
    checkpoints.start()
    checkpoints.close()
    assert list(tmp_path.iterdir()) == []


def test_a_journal_asks_for_a_copy_every_few_commits(tmp_path, monkeypatch):
    asked: list[Path] = []

    async def main() -> None:
        journal = SqliteJournal(tmp_path / "s.db", "n")
        journal.open()
        for _ in range(5):
            journal._hand_over()
        await journal.close()

    monkeypatch.setattr(journal_module, "CHECKPOINT_COMMITS", 2)
    monkeypatch.setattr(Checkpoints, "start", lambda self: asked.append(self._path))
    asyncio.run(main())
    assert asked == [tmp_path / "s.db"] * 2


class StillLoop:
    """A loop whose time stands still, and that notes its timers."""

    def __init__(self) -> None:
        self.delays: list[float] = []

    def time(self) -> float:
        return 100.0

    def call_later(self, delay_s: float, *_: object) -> None:
        self.delays.append(delay_s)


def test_commits_keep_half_of_what_the_last_one_took_between_them_and_no_more_than_their_bound(tmp_path):
    journal = SqliteJournal(tmp_path / "s.db", "n")
    journal._loop = loop = StillLoop()  # type: ignore[assignment]
    for took_s in (0.0, 0.002, 1.0):
        journal._handed_at, journal._reported_at = 100.0 - took_s, 100.0
        journal._arm_gathering()
    assert [round(delay_s, 6) for delay_s in loop.delays] == [0.0, 0.001, GATHER_S]


@pytest.mark.parametrize(("callers", "is_handed_over"), [(1, True), (2, False)])
def test_what_comes_after_a_commit_for_several_callers_waits_for_the_others(tmp_path, callers, is_handed_over):
    """They come again together: a commit for the first of them, and one for all others, would be two."""
    journal = SqliteJournal(tmp_path / "s.db", "n")
    journal._loop = loop = StillLoop()  # type: ignore[assignment]
    journal._served, journal._handed_at, journal._reported_at = callers, 99.998, 100.0
    journal.append([settled("r")], lambda error: None)
    assert journal._is_writing is is_handed_over
    assert len(loop.delays) == (not is_handed_over)
