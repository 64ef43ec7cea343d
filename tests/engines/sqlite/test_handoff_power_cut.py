"""What was acknowledged of a handoff survives the loss of power, though taking one is committed without a sync.

After a cut every holder is gone. So it does not matter whether a lease is still there: what was created is there, what was
completed is completed, and the rest can be taken and ended by the next receiver.
"""

from __future__ import annotations

import contextlib
import random
import shutil
from typing import NamedTuple

import apsw
from power import Disk, Op, Recorder

from comity.core.envelope.envelope import Reply
from comity.core.handoff.holder import Holder
from comity.core.handoff.machine import Complete, Handoff, Offer
from comity.core.handoff.queue import Step, Sweep
from comity.engines.sqlite import handoff_rows as handoff_tables
from comity.engines.sqlite.audit_rows import verify_chain
from comity.engines.sqlite.connecting import PRAGMAS, connect
from comity.engines.sqlite.handoffs import SqliteHandoffs
from comity.engines.sqlite.syncing import Syncing
from comity.engines.sqlite.tables import prepare, write_batch
from comity.engines.sqlite.turns import Turns
from comity.testing.contracts.handoffs import NOW, made, taking

RUNS = 4
CUTS_PER_RUN = 40
COMMITS = 60
LATER = NOW + 50_000  # after every lease, before every deadline


class Run(NamedTuple):
    """What a writer asked of its disk, and what somebody had been told after each acknowledged commit."""

    ops: list[Op]
    created: list[set[str]]
    completed: list[set[str]]


def alone() -> Syncing:
    return Syncing(Turns(lambda: False))


def write(connection, steps: list[Step], syncing: Syncing) -> None:
    queue = SqliteHandoffs(None, "node", None, None, None)
    with syncing.commit(connection, steps):
        write_batch(connection, steps, "node", None, queue.perform)


def complete(handoff: Handoff, now_ms: int) -> Step:
    change = Complete(Holder(handoff.holder, handoff.fence), Reply.success({"n": 1}))
    return Step(handoff_id=handoff.id, change=change, now_ms=now_ms)


def record(folder, seed: int) -> Run:
    """Let the store's own code create, take and complete on a recorded disk."""
    chance = random.Random(seed)
    run = Run([], [set()], [set()])
    held: list[Handoff] = []
    vfs = Recorder(run.ops)
    with contextlib.closing(apsw.Connection(str(folder / "store.db"), vfs=vfs.name)) as connection:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        for pragma in (*PRAGMAS, f"wal_autocheckpoint = {chance.choice((10, 30, 1_000))}"):
            connection.execute(f"PRAGMA {pragma}")
        prepare(connection)
        handoff_tables.prepare(connection)
        syncing = alone()
        for number in range(COMMITS):
            created, completed = set(run.created[-1]), set(run.completed[-1])
            kind = chance.choice(["create", "take", "complete"])
            if kind == "take":
                step = taking(chance.randrange(1, 4))
                write(connection, [step], syncing)
                held += [outcome.handoff for outcome in step.outcomes]
                continue  # nobody is told that this is safe
            steps = []
            if kind == "create":
                steps = [
                    Step(handoff_id=one.id, change=Offer(one), now_ms=NOW)
                    for one in (made(f"h{number}-{index}") for index in range(chance.randrange(1, 4)))
                ]
                created |= {step.handoff_id for step in steps}
            elif held:
                steps = [complete(held.pop(), NOW + 6)]
                completed.add(steps[0].handoff_id)
            if steps:
                write(connection, steps, syncing)
                run.created.append(created)
                run.completed.append(completed)
                run.ops.append(Op("safe", at=len(run.created) - 1))
        end = len(run.ops)  # a disk that is cut is not closed first
    del run.ops[end:]
    return run


def recover(run: Run, store, safe: int) -> None:
    """Open what is left as the next node would, check it, and end what is open."""
    with contextlib.closing(connect(store)) as connection:
        connection.execute("PRAGMA synchronous = OFF")  # there is no second cut
        prepare(connection)
        handoff_tables.prepare(connection)
        assert verify_chain(connection).ok
        states = dict(connection.execute("SELECT id, state FROM handoffs"))
        completed = {name for name, state in states.items() if state == "completed"}
        assert run.created[safe] <= set(states)
        assert run.completed[safe] <= completed
        settled = {name for (name,) in connection.execute("SELECT request_id FROM audit_rows WHERE kind = 'settled'")}
        assert settled == completed
        rest = taking(1_000, now_ms=LATER)
        syncing = alone()
        write(connection, [Step(change=Sweep(), now_ms=LATER), rest], syncing)
        write(connection, [complete(outcome.handoff, LATER) for outcome in rest.outcomes], syncing)
        assert {state for (state,) in connection.execute("SELECT state FROM handoffs")} <= {"completed"}
        assert verify_chain(connection).rows == 2 * len(states)


def test_what_was_created_and_completed_survives_every_cut_and_the_rest_goes_on(tmp_path):
    cuts = unsynced = 0
    for seed in range(RUNS):
        folder = tmp_path / str(seed)
        folder.mkdir()
        run = record(folder, seed)
        chance, disk, done = random.Random(seed), Disk(), 0
        for moment in sorted(chance.randrange(len(run.ops) + 1) for _ in range(CUTS_PER_RUN)):
            for op in run.ops[done:moment]:
                disk.do(op)
            done = max(done, moment)
            scratch = tmp_path / "scratch"
            scratch.mkdir()
            disk.cut(scratch, chance)
            recover(run, scratch / "store.db", disk.safe_commits)
            shutil.rmtree(scratch)
            cuts, unsynced = cuts + 1, unsynced + disk.has_unsynced
    assert cuts == RUNS * CUTS_PER_RUN
    assert unsynced > cuts // 4, "too few cuts could take anything"


def test_taking_asks_nothing_of_the_disk_and_creating_does(tmp_path):
    ops: list[Op] = []
    vfs = Recorder(ops)
    with contextlib.closing(apsw.Connection(str(tmp_path / "store.db"), vfs=vfs.name)) as connection:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        for pragma in PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
        prepare(connection)
        handoff_tables.prepare(connection)
        syncs, syncing = [], alone()
        for steps in ([Step(handoff_id="h", change=Offer(made("h")), now_ms=NOW)], [taking()]):
            ops.clear()
            write(connection, steps, syncing)
            syncs.append(sum(op.kind == "sync" for op in ops))
            assert any(op.kind == "write" for op in ops)
    assert syncs == [1, 0]
