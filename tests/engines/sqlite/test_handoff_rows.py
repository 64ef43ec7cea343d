"""What one process remembers of the queue is used only as long as it is true."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from comity.core.envelope.envelope import Reply
from comity.core.handoff.holder import Holder
from comity.core.handoff.machine import Complete, Offer
from comity.core.handoff.queue import Step, Sweep
from comity.engines.sqlite import handoff_rows as handoff_tables
from comity.engines.sqlite.connecting import connect
from comity.engines.sqlite.handoffs import SqliteHandoffs
from comity.engines.sqlite.tables import prepare, write_batch
from comity.testing.contracts.handoffs import ME, NOW, made, taking


class Process:
    """One of several that write to a store."""

    def __init__(self, path: Path) -> None:
        self.connection = connect(path)
        prepare(self.connection)
        handoff_tables.prepare(self.connection)
        self.queue = SqliteHandoffs(path, "node", None, None, None)
        self.statements: list[str] = []
        self.connection.set_trace_callback(self.statements.append)

    def do(self, step: Step, *more: Step) -> Step:
        self.statements.clear()
        write_batch(self.connection, [step, *more], "node", None, self.queue.perform)
        return step

    def offer(self, handoff_id: str) -> None:
        self.do(Step(change=Offer(made(handoff_id)), handoff_id=handoff_id, now_ms=NOW))

    def complete(self, handoff_id: str, by: Holder) -> Step:
        return self.do(Step(change=Complete(by, Reply.success(1)), handoff_id=handoff_id, now_ms=NOW))

    @property
    def has_read(self) -> bool:
        return any("standing, reply FROM handoffs" in one for one in self.statements)

    @property
    def has_read_requests(self) -> bool:
        return any(one.startswith("SELECT id, lane, request") for one in self.statements)


def test_a_handoff_is_not_read_again_while_nobody_else_has_written(tmp_path):
    one = Process(tmp_path / "store.db")
    with contextlib.closing(one.connection):
        one.offer("h")
        (outcome,) = one.do(taking()).outcomes
        assert not one.has_read
        ended = one.complete("h", Holder(outcome.handoff.holder, outcome.handoff.fence))
        assert (ended.outcome.refusal, ended.outcome.handoff.state, one.has_read) == (None, "completed", False)


def test_what_is_offered_and_taken_in_one_transaction_is_written_once(tmp_path):
    one = Process(tmp_path / "store.db")
    with contextlib.closing(one.connection):
        offers = [Step(change=Offer(made(name)), handoff_id=name, now_ms=NOW) for name in ("h", "i")]
        take = taking(2)
        one.do(*offers, take)
        assert [outcome.handoff.id for outcome in take.outcomes] == ["h", "i"]
        assert sum(statement.startswith("INSERT INTO handoffs") for statement in one.statements) == 1


def test_what_another_process_wrote_since_is_seen(tmp_path):
    one, other = Process(tmp_path / "store.db"), Process(tmp_path / "store.db")
    with contextlib.closing(one.connection), contextlib.closing(other.connection):
        one.offer("h")
        (outcome,) = other.do(taking()).outcomes
        assert outcome.handoff.holder == ME
        assert one.do(taking()).outcomes == []
        assert one.complete("h", Holder("another#1", 1)).outcome.refusal.code == "HANDOFF_LEASE_LOST"
        assert (one.has_read, one.has_read_requests) == (True, False)  # what was asked for cannot have changed
        assert other.complete("h", Holder(ME, 1)).outcome.refusal is None
        assert one.complete("h", Holder(ME, 1)).outcome.refusal.code == "HANDOFF_ENDED"


def spoil(process, handoff_id, column="request"):
    process.connection.execute(f"UPDATE handoffs SET {column} = ? WHERE id = ?", (b"{}", handoff_id))


def test_what_cannot_be_read_is_named_and_stands_in_nobodys_way(tmp_path, caplog):
    one = Process(tmp_path / "store.db")
    with contextlib.closing(one.connection):
        for name in ("bad", "worse", "other", "good"):
            one.offer(name)
        spoil(one, "bad")
        spoil(one, "worse", "standing")
        one.connection.execute("UPDATE handoffs SET id = 'misnamed' WHERE id = 'other'")
        other = Process(tmp_path / "store.db")  # remembers nothing
        with contextlib.closing(other.connection):
            assert [one.id for one in handoff_tables.read(other.connection, "", ())] == ["good"]
            caplog.clear()
            assert [outcome.handoff.id for outcome in other.do(taking()).outcomes] == ["good"]
            assert all(f"'{name}' cannot be read" in caplog.text for name in ("bad", "worse", "misnamed"))
            caplog.clear()
            assert other.do(taking()).outcomes == []
            assert caplog.text == ""  # they do not come up again
            assert handoff_tables.set_aside(other.connection) == ["bad", "worse", "misnamed"]


def test_what_cannot_be_read_is_not_swept_again_and_again(tmp_path, caplog):
    one = Process(tmp_path / "store.db")
    with contextlib.closing(one.connection):
        one.offer("bad")
        spoil(one, "bad")
        swept = [one.do(Step(change=Sweep(), now_ms=200_000)).outcomes for _ in range(2)]
        assert swept == [[], []]
        assert caplog.text.count("cannot be read") == 1


def test_nothing_is_done_to_what_cannot_be_read_nor_put_in_its_place(tmp_path):
    one = Process(tmp_path / "store.db")
    with contextlib.closing(one.connection):
        one.offer("bad")
        spoil(one, "bad")
        other = Process(tmp_path / "store.db")
        with contextlib.closing(other.connection):
            again, good = (Step(change=Offer(made(name)), handoff_id=name, now_ms=NOW) for name in ("bad", "good"))
            other.do(again, good)
            assert (again.outcome.refusal.code, good.outcome.refusal) == ("STORE_UNAVAILABLE", None)
            with pytest.raises(ValueError, match="bad cannot be read"):
                handoff_tables.get(other.connection, "bad")
