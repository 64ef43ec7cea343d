"""What was acknowledged survives the loss of power, at whatever moment it comes; with a sync less it would not.

A process that is alone syncs inside its transactions, processes that share a store sync after them.
COMITY_CUTS sets how many cuts the suite makes of each, 240 unless told otherwise.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest
from power import Disk, Op, Recorder

from comity.core.journal.records import Document, Record, Saved
from comity.engines.sqlite.audit_rows import verify_chain
from comity.engines.sqlite.connecting import PRAGMAS, connect
from comity.engines.sqlite.syncing import Syncing
from comity.engines.sqlite.tables import prepare, write_batch
from comity.engines.sqlite.turns import Turns
from comity.testing.contracts.records import accepted, late, refused, settled

CUTS = int(os.environ.get("COMITY_CUTS", "240"))
RUNS = 6
COMMITS = 40


class Run(NamedTuple):
    """What a writer asked of its disk, and what is true after each of its commits."""

    ops: list[Op]
    rows: list[int]  # by number of commits
    hashes: list[str]
    settled: list[set[str]]
    versions: list[int]  # of the one state there is


def record(folder: Path, seed: int, ops: list[Op], *, is_shared: bool) -> Run:
    """Let the store's own code write to a recorded disk: its pragmas, its schema, its batches, its syncs.

    On a store that is shared, commits of another process come between, which syncs them later: one sync covers both.
    """
    chance = random.Random(seed)
    vfs = Recorder(ops)
    run = Run(ops, [0], [""], [set()], [0])
    turns = Turns(lambda: is_shared)
    with contextlib.closing(apsw.Connection(str(folder / "store.db"), vfs=vfs.name)) as connection, contextlib.closing(turns):
        connection.execute(
            "PRAGMA locking_mode = EXCLUSIVE"
        )  # a VFS in Python has no shared memory; the files see no difference
        for pragma in PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {chance.choice((10, 30, 1_000))}")
        prepare(connection)
        turns.open(folder / "store.db-wal")
        syncing = Syncing(turns)
        for number in range(1, COMMITS + 1):
            records = batch(number, chance)
            if is_shared and 1 < number < COMMITS and chance.random() < 0.3:
                write_batch(connection, records, "other")
            else:
                with syncing.commit(connection, records):
                    write_batch(connection, records, "node")
                ops.append(Op("safe", at=number))
            run.rows.append(*connection.execute("SELECT count(*) FROM audit").fetchone())
            run.hashes.append(*connection.execute("SELECT hash FROM head").fetchone())
            run.settled.append({name for (name,) in connection.execute("SELECT request_id FROM calls WHERE open_at IS NULL")})
            run.versions.append(number)
        del ops[ops.index(Op("safe", at=COMMITS)) + 1 :]
    return run


def batch(number: int, chance: random.Random) -> list[Record]:
    records: list[Record] = [Saved(Document.STATE, "COUNT", number, b"x" * chance.randrange(200))]
    for index in range(chance.randrange(1, 6)):
        name = f"r{number}-{index}"
        inputs = b'{"text":"%s"}' % (b"y" * chance.choice((0, 100, 20_000)))
        records.append(accepted(name, inputs=inputs))
        if chance.random() < 0.3:
            records.append(refused(f"{name}.1", parent_id=name))
        if chance.random() < 0.8:
            records += [settled(name, {"n": index}), late(name)]
    return records


class Losses(NamedTuple):
    """What cuts cost, over all of them."""

    cuts: int = 0
    acknowledged: int = 0
    lost: int = 0  # acknowledged commits that were not there
    undone: int = 0  # cuts that took what had been written of a commit nobody was told of
    kept: int = 0  # cuts that left all of it

    def plus(self, *numbers: int) -> Losses:
        return Losses(*(a + b for a, b in zip(self, numbers, strict=True)))


def cut_often(run: Run, cuts: int, seed: int, scratch: Path) -> Losses:
    """Cut the power at random moments of a run, in the order in which they come, and look what is left."""
    chance = random.Random(seed)
    disk, losses = Disk(), Losses()
    moments = sorted(chance.randrange(len(run.ops) + 1) for _ in range(cuts))
    done = 0
    for moment in moments:
        for op in run.ops[done:moment]:
            disk.do(op)
        done = max(done, moment)
        scratch.mkdir()
        disk.cut(scratch, chance)
        commits = recover(run, scratch / "store.db", disk.safe_commits)
        lost, more = max(disk.safe_commits - commits, 0), commits > disk.safe_commits
        losses = losses.plus(1, disk.safe_commits, lost, disk.has_unsynced and not more, more)
        shutil.rmtree(scratch)
    return losses


def recover(run: Run, store: Path, safe_commits: int) -> int:
    """Open what is left as the next node would, check that it is whole, write on, and return how many commits it holds."""
    with contextlib.closing(connect(store)) as connection:
        connection.execute("PRAGMA synchronous = OFF")  # there is no second cut
        prepare(connection)
        verdict = verify_chain(connection)
        assert verdict.ok, verdict
        commits = run.rows.index(verdict.rows)  # a commit is there as a whole or not at all
        (head,) = connection.execute("SELECT hash FROM head").fetchone()
        assert commits == 0 or head == run.hashes[commits]
        found = {name for (name,) in connection.execute("SELECT request_id FROM calls WHERE open_at IS NULL")}
        assert found == run.settled[commits]
        (version,) = connection.execute("SELECT version FROM documents WHERE kind = 'state'").fetchone() or (0,)
        assert version == run.versions[commits]
        write_batch(connection, [accepted("afterwards")], "next")
        assert verify_chain(connection) == (True, verdict.rows + 1, None, "")
    return commits


def lose_power(tmp_path: Path, cuts: int, patched: pytest.MonkeyPatch, *, is_shared: bool, is_weakened: bool = False) -> Losses:
    """Cut the power during several runs and return what it cost. `is_weakened` leaves out the syncs after a transaction."""
    losses = Losses()
    for seed in range(RUNS):
        folder = tmp_path / str(seed)
        folder.mkdir()
        ops: list[Op] = []
        patched.setattr(os, "fdatasync", lambda file, ops=ops: None if is_weakened else ops.append(Op("sync", name_of(file))))
        run = record(folder, seed, ops, is_shared=is_shared)
        losses = losses.plus(*cut_often(run, cuts // RUNS, seed, tmp_path / "scratch"))
    sys.stdout.write(f"{losses}\n")
    assert losses.undone, "no cut took anything: the disk is too kind to prove anything"
    assert losses.kept, "no cut left anything that was not synced: the disk is simpler than a disk"
    return losses


def name_of(file: int) -> str:
    return Path(f"/proc/self/fd/{file}").readlink().name


@pytest.mark.parametrize("is_shared", [False, True])
def test_what_was_acknowledged_survives_every_cut(tmp_path, monkeypatch, is_shared):
    losses = lose_power(tmp_path, CUTS, monkeypatch, is_shared=is_shared)
    assert losses.cuts == CUTS
    assert losses.lost == 0


def test_without_the_syncs_after_transactions_acknowledged_commits_are_lost(tmp_path, monkeypatch):
    assert lose_power(tmp_path, 180, monkeypatch, is_shared=True, is_weakened=True).lost > 0


def test_the_store_really_runs_with_the_pragmas_that_were_tested(tmp_path):
    with contextlib.closing(connect(tmp_path / "store.db")) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
