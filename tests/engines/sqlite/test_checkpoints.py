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
from comity.engines.sqlite.journal import SqliteJournal
from comity.engines.sqlite.shares import SHARE
from comity.engines.sqlite.spacing import CALLERS_MANY, GATHER_S, Spacing
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


@pytest.mark.parametrize(("took_s", "delay_s"), [(0.0, 0.0), (0.002, 0.001), (1.0, GATHER_S)])
def test_commits_keep_half_of_what_the_last_one_took_between_them_and_no_more_than_their_bound(took_s, delay_s):
    spacing = Spacing()
    spacing.begin(100.0 - took_s, 1, has_left=False)
    spacing.end(100.0)
    assert round(spacing.delay_s(100.0, is_shared=False), 6) == delay_s


@pytest.mark.parametrize(
    ("served", "has_left", "delay_s"), [(CALLERS_MANY, False, 0.001), (CALLERS_MANY - 1, False, 0.0), (CALLERS_MANY, True, 0.0)]
)
def test_where_several_users_write_half_of_the_shortest_commit_lies_between_two_that_serve_many(served, has_left, delay_s):
    spacing = Spacing()
    for begun_s, took_s in ((99.9, 0.002), (99.994, 0.006)):
        spacing.begin(begun_s, served, has_left=has_left)
        spacing.end(begun_s + took_s)
    assert round(spacing.delay_s(100.0, is_shared=True), 6) == delay_s


def test_a_journal_notes_how_long_commits_took_and_whether_the_last_one_left_something(tmp_path):
    async def main() -> None:
        journal = SqliteJournal(tmp_path / "s.db", "n")
        journal.open()
        left = []
        for user_ids in (["bob"], ["eve"] * (SHARE + 1), ["bob"]):
            for number, user_id in enumerate(user_ids):
                journal._groups.append(((settled(f"{user_id}{len(left)}{number}", user_id=user_id),), None))
            journal._hand_over()
            left.append(journal._spacing._has_left)
            while journal._is_writing:
                await asyncio.sleep(0)
        assert left == [False, True, False]
        assert len(journal._spacing._took_s) >= 3
        assert min(journal._spacing._took_s) > 0
        await journal.close()

    asyncio.run(main())


@pytest.mark.parametrize(("callers", "is_handed_over"), [(1, True), (2, False)])
def test_what_comes_after_a_commit_for_several_callers_waits_for_the_others(tmp_path, callers, is_handed_over):
    """They come again together: a commit for the first of them, and one for all others, would be two."""
    journal = SqliteJournal(tmp_path / "s.db", "n")
    journal._loop = loop = StillLoop()  # type: ignore[assignment]
    journal._spacing.begin(99.998, callers, has_left=False)
    journal._spacing.end(100.0)
    journal.append([settled("r")], lambda error: None)
    assert journal._is_writing is is_handed_over
    assert len(loop.delays) == (not is_handed_over)
