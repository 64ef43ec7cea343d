"""While several users write, a commit takes a share of each, and each user's own records stay in their order."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from comity.core.journal.records import Document, Saved, below, part_key
from comity.core.journal.terms import Terms
from comity.engines.sqlite.journal import SqliteJournal
from comity.engines.sqlite.judging import Conditional
from comity.engines.sqlite.shares import SHARE, SHARED_S, Group, Sharing, divide
from comity.testing.contracts.records import accepted, refused, run, settled

SESSION = below("default", "own")


def burst(user_id: str, count: int = 2 * SHARE) -> list[Group]:
    return [((accepted(f"{user_id}{one}", user_id=user_id),), None) for one in range(count)]


def saved(version: int, key: str = SESSION, kind: Document = Document.SESSION) -> Group:
    return (Saved(kind, key, version, b"{}"),), None


def test_a_commit_takes_a_share_of_a_burst_and_the_others_whole():
    eve, bob, ann = burst("eve"), burst("bob", 2), burst("ann", 1)
    now, later = divide([*eve, *bob, *ann])
    assert now == [*eve[:SHARE], *bob, *ann]
    assert later == eve[SHARE:]


def test_a_user_of_the_same_name_in_another_tenant_has_a_share_of_its_own():
    eve = burst("eve", SHARE)
    other: Group = ((accepted("other", user_id="eve", tenant_id="acme"),), None)
    assert divide([*eve, other, *burst("eve", 1)]) == ([*eve, other], burst("eve", 1))


@pytest.mark.parametrize("place", [0, SHARE + 3])
@pytest.mark.parametrize("document", [saved(3), saved(3, kind=Document.VAULT), saved(3, part_key(SESSION, 7), Document.PART)])
def test_what_a_session_holds_keeps_its_order_with_the_calls_of_its_user(document, place):
    groups: list[Group] = [((accepted(f"r{one}", user_id="eve", session_id="own"),), None) for one in range(2 * SHARE)]
    groups.insert(place, document)
    now, later = divide(groups)
    assert now + later == groups
    assert len(now) == SHARE


def test_what_is_refused_says_nothing_about_whose_session_it_named():
    claim: Group = ((refused("claim", user_id="eve", session_id="own"),), None)
    groups = [saved(1), *burst("eve"), claim, saved(2)]
    now, later = divide(groups)
    assert [one for one in now if one in (saved(1), saved(2))] == [saved(1), saved(2)]
    assert claim in later


@pytest.mark.parametrize(
    "shared",
    [
        saved(1, "agent", Document.STATE),
        ((accepted("a", user_id="eve"), accepted("b", user_id="bob")), None),
        ((Conditional((accepted("c", user_id="bob"),), Terms()),), None),
    ],
    ids=["an agent's state", "records of two users", "records on terms"],
)
def test_a_batch_with_what_users_share_is_written_whole(shared):
    groups = [*burst("eve"), shared]
    assert divide(groups) == (groups, [])


def test_a_listener_without_records_waits_for_all_that_came_before_it():
    told: list[Exception | None] = []
    listener: Group = ((), told.append)
    assert divide([listener, *burst("eve", SHARE), listener, *burst("eve", 1), listener]) == (
        [listener, *burst("eve", SHARE), listener],
        [*burst("eve", 1), listener],
    )


def test_the_records_of_one_user_are_not_divided():
    sharing = Sharing()
    sharing.note(burst("eve"), 0.0)
    sharing.note(burst("eve"), 0.1)
    assert not sharing.is_shared(0.1)
    sharing.note(burst("bob", 1), 0.2)
    assert sharing.is_shared(0.2)
    sharing.note(burst("bob"), 0.3)
    assert not sharing.is_shared(0.2 + SHARED_S)
    sharing.note([*burst("bob"), *burst("eve")], 9.0)
    assert sharing.is_shared(9.0)


def test_one_record_of_a_user_is_durable_before_the_burst_of_another(tmp_path: Path):
    async def scenario(journal: SqliteJournal) -> None:
        told: list[str] = []
        found: list[tuple[int, bytes] | None] = []
        journal.append((accepted("first", user_id="eve"), settled("first", user_id="eve")), lambda _: None)  # is being written
        for one in range(2 * SHARE):
            journal.append((settled(f"e{one}", user_id="eve", session_id="own"),), lambda _, name=f"e{one}": told.append(name))
        journal.append((Saved(Document.SESSION, SESSION, 5, b"{}"),))
        journal.append((settled("b", user_id="bob"),), lambda _: found.append(journal.load(Document.SESSION, SESSION)))
        journal.append((settled("c", user_id="bob"),), lambda _: told.append("c"))
        done = asyncio.Event()
        journal.append((), lambda _: done.set())
        await done.wait()
        assert told == [*(f"e{one}" for one in range(SHARE)), "c", *(f"e{one}" for one in range(SHARE, 2 * SHARE))]
        assert found == [(5, b"{}")], "a document that waits for a later commit is found"
        assert journal.verify().ok

    run(SqliteJournal(tmp_path / "store.db", "node"), scenario)


def test_a_journal_that_closes_writes_what_waits(tmp_path: Path):
    async def scenario(journal: SqliteJournal) -> None:
        for records, _ in (*burst("eve"), *burst("bob")):
            journal.append(records)

    run(SqliteJournal(tmp_path / "store.db", "node"), scenario)

    async def look(journal: SqliteJournal) -> None:
        assert len(journal.rows()) == 4 * SHARE

    run(SqliteJournal(tmp_path / "store.db", "next"), look)
