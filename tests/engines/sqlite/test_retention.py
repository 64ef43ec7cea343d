"""What a store keeps no longer is removed in slices; what is still needed stays, on disk and in memory alike."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from comity.core.agent.declaration import DeclarationError
from comity.core.handoff.machine import Cancel
from comity.core.handoff.queue import Step
from comity.core.journal.records import Document, Saved, Settled, part_key
from comity.core.journal.retention import CONTENT_REMOVED, KINDS, Keep, Pruned, Retention
from comity.core.session.parts import Parts
from comity.core.session.session import Session
from comity.engines.cipher import audit_key, key_for
from comity.engines.memory.journal import MemoryJournal
from comity.engines.sqlite import audit_rows
from comity.engines.sqlite import retention as engine
from comity.engines.sqlite.journal import SqliteJournal, connect
from comity.ports import Journal
from comity.testing.contracts.handoffs import do, made, offer
from comity.testing.contracts.records import accepted, paused, refused, run, settled, written

NOW = 1_000_000
SECOND = timedelta(seconds=1)


@pytest.fixture(params=["memory", "sqlite"])
def journal(request, tmp_path) -> Journal:
    if request.param == "memory":
        return MemoryJournal()
    key_for(tmp_path / "store.db")
    return SqliteJournal(tmp_path / "store.db", "node")


def ended(request_id: str, at_ms: int, **more) -> Settled:
    return msgspec.structs.replace(settled(request_id, {"said": request_id}, created_at=at_ms - 5, **more), at_ms=at_ms)


def session(name: str, used_at: int) -> tuple[Saved, ...]:
    made = Session(id=name, tenant_id="default", user_id="user-1", created_at=0, used_at=used_at)
    key = f"default\x1f{name}"
    return (
        Saved(Document.SESSION, key, 1, Parts().save(made)[0], used_at=used_at),
        Saved(Document.VAULT, key, 1, b"sealed"),
        Saved(Document.PART, part_key(key, 1), 1, b"row"),
    )


def swept(journal: Journal, **kinds: Keep) -> Pruned:
    removed = Pruned()
    for slice_ in journal.prune(Retention(**kinds), NOW):
        removed += slice_
    return removed


def known(journal: Journal, *request_ids: str) -> list[str]:
    return [one for one in request_ids if journal.call(one) is not None]


# --- what may be asked for ---


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_removed_unless_somebody_asks_for_it(journal, kind):
    async def scenario(journal: Journal) -> None:
        await written(journal, accepted("r"), ended("r", 10), *session("s", 10))
        assert swept(journal) == Pruned()
        assert swept(journal, **{kind: Keep()} if kind != "sessions" else {}) == Pruned()
        assert known(journal, "r") == ["r"]

    run(journal, scenario)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Keep(age=5), "a timedelta"),
        (lambda: Keep(age=-SECOND), "not negative"),
        (lambda: Keep(count=-1), "not negative"),
        (lambda: Keep(count=True), "whole number"),
        (lambda: Retention(calls=30), "retention.calls is a Keep"),
        (lambda: Retention(sessions=Keep(age=SECOND)), "give retention.calls an age of at most 0:00:01"),
        (
            lambda: Retention(sessions=Keep(age=SECOND), calls=Keep(age=SECOND), handoffs=Keep(age=2 * SECOND)),
            "retention.handoffs",
        ),
    ],
)
def test_a_retention_that_makes_no_sense_is_refused_when_it_is_made(make, why):
    with pytest.raises(DeclarationError, match=why):
        make()


# --- calls and replies ---


def test_old_calls_go_with_all_below_them_and_young_ones_stay(journal):
    async def scenario(journal: Journal) -> None:
        await written(journal, accepted("old"), accepted("old.1", parent_id="old"), ended("old.1", 10, parent_id="old"))
        await written(journal, refused("old.2", parent_id="old"), ended("old", NOW - 1_001))
        await written(journal, accepted("young"), ended("young", NOW - 999))
        await written(journal, accepted("older"), ended("older", 20))
        assert swept(journal, calls=Keep(age=SECOND)).calls == 4
        assert known(journal, "old", "old.1", "old.2", "older", "young") == ["young"]
        assert journal.verify().ok

    run(journal, scenario)


def test_of_too_many_calls_the_newest_stay(journal):
    async def scenario(journal: Journal) -> None:
        for number in range(10):
            await written(journal, accepted(f"r{number}"), ended(f"r{number}", 10 + number))
        assert swept(journal, calls=Keep(count=3)).calls == 7
        assert [call.request_id for call in journal.calls(limit=10)] == ["r9", "r8", "r7"]

    run(journal, scenario)


def test_a_tree_under_way_stays_whole_whatever_its_age(journal):
    async def scenario(journal: Journal) -> None:
        await written(journal, accepted("open"), accepted("open.1", parent_id="open"), ended("open.1", 10, parent_id="open"))
        await written(journal, accepted("asked"), paused("asked"))
        # The root has ended, a call below it has not: it does not heed that it was cancelled.
        await written(journal, accepted("half"), accepted("half.1", parent_id="half"), ended("half", 10))
        everything = {kind: Keep(age=timedelta(0), count=0) for kind in KINDS}
        removed = swept(journal, **everything)
        assert (removed.calls, removed.replies) == (0, 0)
        assert known(journal, "open", "open.1", "asked", "half", "half.1") == ["open", "open.1", "asked", "half", "half.1"]
        assert journal.call("open.1").reply.data == {"said": "open.1"}

    run(journal, scenario)


def test_the_content_of_a_reply_goes_once_it_is_old_enough_though_others_went_before(journal):
    async def scenario(journal: Journal) -> None:
        slow = msgspec.structs.replace(settled("slow", {"said": "slow"}, created_at=10), at_ms=NOW - 500)
        await written(journal, accepted("slow", created_at=10), slow)
        await written(journal, accepted("r", created_at=10), ended("r", 10))
        removed = [
            sum(one.replies for one in journal.prune(Retention(replies=Keep(age=SECOND)), at_ms))
            for at_ms in (NOW, NOW + 400, NOW + 600, NOW + 700)
        ]
        assert removed == [1, 0, 1, 0]

    run(journal, scenario)


def test_a_reply_may_go_before_its_call_and_how_it_ended_stays_known(journal):
    async def scenario(journal: Journal) -> None:
        await written(journal, accepted("r"), ended("r", 10))
        await written(journal, accepted("new"), ended("new", NOW))
        for replies in (1, 0):  # once is enough
            assert swept(journal, replies=Keep(age=SECOND)).replies == replies
        reply = journal.call("r").reply
        assert (reply.status, reply.data, reply.warnings) == ("success", None, (CONTENT_REMOVED,))
        assert journal.call("new").reply.data == {"said": "new"}
        assert swept(journal, replies=Keep(count=0)).replies == 1

    run(journal, scenario)


def test_with_a_call_go_the_questions_asked_in_it_and_the_session_it_had_for_itself(journal):
    async def scenario(journal: Journal) -> None:
        question = Saved(Document.APPROVAL, "r#1", 1, msgspec.json.encode({"root_id": "r", "granted": True}))
        own = {"session_id": "r"}
        await written(journal, accepted("r", **own), ended("r", 10, **own), question, *session("r", 10), *session("named", 10))
        assert swept(journal, calls=Keep(count=0)).calls == 1
        assert journal.list_documents(Document.APPROVAL) == []
        assert [key for key, _ in journal.list_documents(Document.VAULT)] == ["default\x1fnamed"]

    run(journal, scenario)


# --- sessions ---


def test_sessions_go_by_their_last_use_and_with_them_what_they_hide(journal):
    async def scenario(journal: Journal) -> None:
        await written(journal, *session("old", 10), *session("used", 20), *session("busy", 30), *session("new", NOW))
        await written(journal, Saved(Document.USE, "default\x1fused", NOW - 5, b""))
        await written(journal, accepted("r", session_id="busy"))
        removed = [one for one in journal.prune(Retention(sessions=Keep(count=0)), NOW) if one.sessions]
        assert {key for one in removed for key in one.session_keys} == {f"default\x1f{one}" for one in ("old", "used", "new")}
        assert [key for key, _ in journal.list_documents(Document.SESSION)] == ["default\x1fbusy"]
        assert [key for key, _ in journal.list_documents(Document.VAULT)] == ["default\x1fbusy"]
        assert journal.list_documents(Document.USE) == []
        assert [key for key, _ in journal.list_documents(Document.PART)] == [part_key("default\x1fbusy", 1)]

    run(journal, scenario)


def test_of_too_many_sessions_those_used_last_stay(journal):
    async def scenario(journal: Journal) -> None:
        await written(journal, *session("a", 10), *session("b", 20), *session("c", 30), *session("h\x1fresult", 1))
        await written(journal, Saved(Document.USE, "default\x1fa", 40, b""))
        assert swept(journal, sessions=Keep(count=2)).sessions == 1
        left = [key.partition("\x1f")[2] for key, _ in journal.list_documents(Document.SESSION)]
        assert left == ["a", "c", "h\x1fresult"]
        keep = Keep(age=timedelta(milliseconds=NOW - 35))
        assert swept(journal, sessions=keep, calls=keep, handoffs=keep).sessions == 1

    run(journal, scenario)


# --- the audit ---


def test_the_audit_is_cut_by_age_and_number_and_still_verifies(journal, monkeypatch):
    monkeypatch.setattr(engine, "CUT_ROWS", 4)
    monkeypatch.setattr(engine, "CUT_ROWS_LEAST", 1)

    async def scenario(journal: Journal) -> None:
        for number in range(10):
            await written(journal, accepted(f"r{number}"), ended(f"r{number}", 10 + number))
        await written(journal, accepted("open"))
        assert swept(journal, audit=Keep(count=7)).audit == 14
        assert journal.verify().ok
        rows = [row for row in journal.rows() if row.kind != "cut"]
        assert [row.id for row in rows] == list(range(15, 22))
        assert journal.rows(root_id="r1") == []
        assert len(journal.rows(root_id="r8")) == 2
        await written(journal, accepted("more"), ended("more", 50))
        assert journal.verify().ok

    run(journal, scenario)


def test_the_audit_of_what_is_under_way_is_not_cut(tmp_path):
    async def scenario(journal: Journal) -> None:
        await written(journal, accepted("first"), ended("first", 10))
        await written(journal, accepted("open"), accepted("last"), ended("last", 11))
        assert swept(journal, audit=Keep(count=0)).audit == 2
        assert [row.request_id for row in journal.rows()][:2] == ["open", "last"]

    key_for(tmp_path / "store.db")
    run(SqliteJournal(tmp_path / "store.db", "node"), scenario)


def test_a_damaged_audit_is_not_cut_and_says_why(tmp_path, caplog):
    async def scenario(journal: Journal) -> None:
        await written(journal, accepted("r"), ended("r", 10))
        with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
            connection.execute(
                "UPDATE audit SET body = CAST(replace(CAST(body AS TEXT), 'user-1', 'user-2') AS BLOB) WHERE id = 2"
            )
            connection.commit()
        assert swept(journal, audit=Keep(count=0)).audit == 0
        assert swept(journal, audit=Keep(count=0)).audit == 0
        assert journal.verify().row_id == 2

    key_for(tmp_path / "store.db")
    run(SqliteJournal(tmp_path / "store.db", "node"), scenario)
    assert ["row 2 does not fit" in message for message in caplog.messages] == [True]


def test_without_the_key_that_seals_it_the_audit_is_not_cut(tmp_path):
    async def scenario(journal: Journal) -> None:
        await written(journal, accepted("r"), ended("r", 10))
        assert swept(journal, audit=Keep(count=0)).audit == 0
        assert journal.verify() == (True, 2, None, "")

    run(SqliteJournal(tmp_path / "store.db", "node"), scenario)


# --- slices ---


def test_no_transaction_of_a_sweep_is_large(tmp_path, monkeypatch):
    """A writer waits for one slice at most; also a tree that is larger than a slice goes in several."""
    monkeypatch.setattr(engine, "SLICE_ROWS", 10)
    monkeypatch.setattr(engine, "CUT_ROWS", 10)
    monkeypatch.setattr(engine, "CUT_ROWS_LEAST", 10)

    async def scenario(journal: Journal) -> None:
        await written(journal, accepted("big"), *(ended(f"big.{n}", 10, parent_id="big") for n in range(35)), ended("big", 11))
        for number in range(25):
            await written(journal, accepted(f"r{number}"), ended(f"r{number}", 20), *session(f"s{number}", 10))
        sizes = [one.total for one in journal.prune(Retention(**{kind: Keep(count=0) for kind in KINDS}), NOW)]
        assert max(sizes) <= 20
        assert sum(sizes) >= 61 + 25 + 80
        assert journal.calls(limit=10) == []

    key_for(tmp_path / "store.db")
    run(SqliteJournal(tmp_path / "store.db", "node"), scenario)


def test_no_transaction_of_a_sweep_removes_many_bytes(tmp_path, monkeypatch):
    """What is removed is overwritten: a slice of long replies would keep the writer waiting for its bytes, not its rows."""
    monkeypatch.setattr(engine, "SLICE_BYTES", 10_000)

    async def scenario(journal: Journal) -> None:
        for number in range(4):
            await written(journal, accepted(f"r{number}"), settled(f"r{number}", "x" * 9_000))
        assert [one.calls for one in journal.prune(Retention(calls=Keep(count=0)), NOW)] == [2, 2]

    run(SqliteJournal(tmp_path / "store.db", "node"), scenario)


def test_each_transaction_of_a_sweep_takes_a_turn_with_the_writer(tmp_path):
    """Where two connections race for the file, SQLite lets the loser sleep up to 100 ms; a lock wakes the loser at once."""
    steps: list[str] = []

    class Turn:
        def __enter__(self) -> None:
            steps.append("turn")

        def __exit__(self, *_: object) -> None:
            steps.append("over")

    async def scenario(journal: Journal) -> None:
        await written(journal, accepted("r"), ended("r", 10), *session("s", 10))
        with closing(connect(tmp_path / "store.db")) as connection:
            connection.set_trace_callback(lambda step: steps.append(step.partition(" ")[0]))
            everything = Retention(**{kind: Keep(count=0) for kind in KINDS})
            for _ in engine.Pruner(b"k", turn=Turn()).sweep(connection, everything, NOW):
                pass

    key_for(tmp_path / "store.db")
    run(SqliteJournal(tmp_path / "store.db", "node"), scenario)
    bounds = [step for step in steps if step in {"turn", "BEGIN", "COMMIT", "over"}]
    assert bounds == ["turn", "BEGIN", "COMMIT", "over"] * (len(bounds) // 4)
    assert len(bounds) >= 12  # calls, sessions, audit


def test_a_cut_that_another_process_made_since_it_was_checked_is_not_made_twice(tmp_path):
    """Rows are verified before the transaction, in which all writers wait."""

    async def scenario(journal: Journal) -> None:
        await written(journal, accepted("r"), ended("r", 10), accepted("q"), ended("q", 11))
        with closing(connect(tmp_path / "store.db")) as connection:
            checked = [audit_rows.check_cut(connection, last_id, key) for last_id in (2, 1)]
            for one in checked:
                audit_rows.cut(connection, one, key, NOW)
        assert journal.verify().ok
        assert [row.id for row in journal.rows() if row.kind != "cut"] == [3, 4]

    key_for(tmp_path / "store.db")
    key = audit_key(tmp_path / "store.db")
    assert key is not None
    run(SqliteJournal(tmp_path / "store.db", "node"), scenario)


def steps_of_a_sweep(path: Path, trees: int, retention: Retention) -> int:
    """Fill a store with ended trees, sweep it, and return how many statements were run and rows read for that."""
    key_for(path)
    steps: list[object] = []

    async def scenario(journal: SqliteJournal) -> None:
        journal.handoffs.open(lambda _: None)
        names = [f"r{number}" for number in range(trees)]
        for name in names:
            own = {"session_id": name}
            below = ended(f"{name}.1", 10, parent_id=name)
            question = Saved(Document.APPROVAL, f"{name}#1", 1, b"{}")
            await written(journal, accepted(name, **own), below, ended(name, 11, **own), question, *session(name, 10))
        await offer(journal, *(made(f"handed-{name}") for name in names))
        await do(journal, *(Step(handoff_id=f"handed-{name}", change=Cancel("no"), now_ms=20) for name in names))
        named = (one for name in names for one in session(f"named-{name}", 10))
        await written(journal, *named, *(accepted(f"open-{name}", session_id=f"used-{name}") for name in names))
        with closing(connect(path)) as connection:
            # A trigger is traced as its statement once more; it runs within it, without the interpreter.
            connection.set_trace_callback(lambda step: None if steps[-1:] == [step] else steps.append(step))
            connection.row_factory = lambda _, row: steps.append(row) or row
            removed = sum(engine.Pruner(b"k").sweep(connection, retention, NOW), Pruned())
        assert removed.total >= trees - 1

    run(SqliteJournal(path, "node"), scenario)
    return len(steps)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "spans"])
@pytest.mark.parametrize("keep", [Keep(age=SECOND), Keep(count=1)])
def test_a_sweep_takes_as_many_statements_for_many_calls_as_for_few(tmp_path, kind, keep):
    """Each statement and each row gives a busy event loop the interpreter lock: with some for each call a sweep falls behind."""
    retention = Retention(**dict.fromkeys((kind, "calls", "handoffs") if kind == "sessions" else (kind,), keep))
    few, many = (steps_of_a_sweep(tmp_path / f"{trees}.db", trees, retention) for trees in (2, 15))
    assert many == few


def test_what_cannot_be_read_stays_and_keeps_nothing_else(tmp_path):
    async def scenario(journal: Journal) -> None:
        for name in ("bad", "worse", "good"):
            await written(journal, accepted(name), ended(name, 10))
        with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
            connection.execute("UPDATE calls SET body = x'5bff5d' WHERE request_id = 'bad'")
            connection.execute("UPDATE calls SET body = CAST('[1, null]' AS BLOB) WHERE request_id = 'worse'")
            connection.commit()
        assert swept(journal, replies=Keep(age=SECOND)).replies == 1
        assert swept(journal, calls=Keep(age=SECOND)).calls == 1
        with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
            assert connection.execute("SELECT request_id FROM calls").fetchall() == [("bad",), ("worse",)]

    key_for(tmp_path / "store.db")
    run(SqliteJournal(tmp_path / "store.db", "node"), scenario)


def test_a_dry_sweep_counts_what_would_go_and_removes_nothing(tmp_path):
    async def scenario(journal: Journal) -> None:
        for number in range(5):
            await written(journal, accepted(f"r{number}"), ended(f"r{number}", 20), *session(f"s{number}", 10))
        everything = Retention(**{kind: Keep(count=1) for kind in KINDS})
        with closing(connect(tmp_path / "store.db")) as connection:
            pruner = engine.Pruner(b"k", is_dry=True)
            told = sum((one for one in pruner.sweep(connection, everything, NOW)), Pruned())
        assert (told.replies, told.calls, told.sessions, told.audit) == (0, 4, 4, 9)
        assert len(journal.calls(limit=10)) == 5
        done = swept(journal, **{kind: Keep(count=1) for kind in KINDS})
        assert (done.replies, done.calls, done.sessions, done.audit) == (0, 4, 4, 9)

    key_for(tmp_path / "store.db")
    run(SqliteJournal(tmp_path / "store.db", "node"), scenario)


def test_a_sweep_has_removed_nothing_until_it_removes_something() -> None:
    assert [getattr(Pruned(), kind) for kind in KINDS] == [0] * len(KINDS)
    assert (Pruned().total, Pruned(**dict.fromkeys(KINDS, 2)).total) == (0, 2 * len(KINDS))


def test_a_run_goes_with_its_call_and_no_other_does(journal):
    def kept(name: str) -> list[Saved]:
        return [Saved(Document.RUN, name, 1, b"{}"), Saved(Document.RUN_EVENT, f"{name}\x1f0", 1, b"[]")]

    async def scenario(journal: Journal) -> None:
        await written(journal, accepted("old"), ended("old", 10), *kept("old"))
        await written(journal, accepted("young"), ended("young", NOW), *kept("young"))
        swept(journal, calls=Keep(age=SECOND))
        for kind, key in ((Document.RUN, ""), (Document.RUN_EVENT, "\x1f0")):
            assert [journal.load(kind, name + key) is not None for name in ("old", "young")] == [False, True]

    run(journal, scenario)


def test_rows_of_the_audit_go_up_to_the_first_that_is_young(journal):
    async def scenario(journal: Journal) -> None:
        await written(journal, accepted("a"), ended("a", NOW - 1_001), accepted("b"), ended("b", NOW - 1_000))
        await written(journal, accepted("c"), ended("c", NOW))
        assert swept(journal, audit=Keep(age=SECOND)).audit == 3
        left = [(row.request_id, row.kind) for row in journal.rows() if row.kind != "cut"]
        assert left == [("b", "settled"), ("c", "admitted"), ("c", "settled")]

    run(journal, scenario)


def test_a_call_under_way_keeps_its_tree_and_its_session(tmp_path):
    async def scenario(journal: Journal) -> None:
        await written(journal, accepted("root"), accepted("root.1", parent_id="root", session_id="s1"))
        await written(journal, accepted("gone"), accepted("own", session_id="s2"))

    run(SqliteJournal(tmp_path / "s.db", "n1"), scenario)
    with closing(connect(tmp_path / "s.db")) as connection:
        connection.execute("UPDATE calls SET body = '{' WHERE request_id = 'gone'")
        needed = engine.Needed(connection)
    assert needed.roots == {"root", "own"}
    assert {"default\x1fs1", "default\x1fs2"} <= needed.sessions


def test_a_batch_that_fails_is_rolled_back_and_the_next_one_is_written(tmp_path):
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE t (n)")
        pruner = engine.Pruner(None)

        def fail() -> None:
            connection.execute("INSERT INTO t VALUES (1)")
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError), pruner._writing(connection):
            fail()
        assert not connection.in_transaction
        with pruner._writing(connection):
            connection.execute("INSERT INTO t VALUES (2)")
        assert connection.execute("SELECT n FROM t").fetchall() == [(2,)]


@pytest.mark.parametrize(
    ("keep", "left"),
    [
        (Keep(), ["old", "young", "open"]),
        (Keep(age=SECOND), ["young", "open"]),
        (Keep(count=1), ["open"]),
        (Keep(count=2), ["young", "open"]),
        (Keep(count=0), ["open"]),
        (Keep(count=3), ["old", "young", "open"]),
    ],
)
def test_handoffs_that_ended_go_by_age_and_number_and_one_that_is_open_stays(journal, keep, left):
    async def scenario(journal: Journal) -> None:
        journal.handoffs.open(lambda *_: None)
        await offer(journal, made("old"), made("young"), made("open"))
        await do(journal, Step(handoff_id="old", change=Cancel("no"), now_ms=NOW - 1_001))
        await do(journal, Step(handoff_id="young", change=Cancel("no"), now_ms=NOW - 999))
        assert swept(journal, handoffs=keep).handoffs == 3 - len(left)
        assert [one for one in ("old", "young", "open") if journal.handoffs.get(one) is not None] == left
        assert swept(journal, handoffs=keep).handoffs == 0

    run(journal, scenario)
