"""What a journal in memory keeps, and what it forgets first where there is no more room."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from comity.core.journal.records import Document, Saved
from comity.core.journal.retention import Keep, Retention
from comity.engines.memory import journal as memory
from comity.engines.memory.journal import MemoryJournal
from comity.testing.contracts.records import accepted, settled

LONG_BYTES = 100


def _pruned(**kinds: Keep) -> Callable[[MemoryJournal], None]:
    return lambda journal: list(journal.prune(Retention(**kinds), 10_000)) and None


REMOVALS = {
    "session erased": lambda journal: journal.erase("default", "s-1"),
    "calls pruned": _pruned(calls=Keep(count=0)),
    "replies pruned": _pruned(replies=Keep(count=0)),
}


@pytest.mark.parametrize("remove", REMOVALS.values(), ids=REMOVALS)
def test_long_replies_that_were_removed_take_no_room_from_those_that_come_after_them(monkeypatch, remove) -> None:
    monkeypatch.setattr(memory, "MEMORY_REPLIES_BYTES_MAX", 3 * LONG_BYTES)
    journal = MemoryJournal()
    for n in range(9):
        for name in ("a", "b", "c"):
            journal.append((replace(settled(f"{name}{n}", data=n), reply_bytes=LONG_BYTES),))
            found = journal.call(f"{name}{n}")
            assert found is not None
            assert (found.reply and found.reply.data) == n
        remove(journal)


@pytest.mark.parametrize("remove", [REMOVALS["session erased"], REMOVALS["calls pruned"]], ids=["erased", "pruned"])
def test_calls_that_were_removed_are_not_among_those_that_are_forgotten_for_room(monkeypatch, remove) -> None:
    monkeypatch.setattr(memory, "SETTLED_KEPT_MAX", 2)
    journal = MemoryJournal()
    for n in range(2):
        journal.append((settled(f"old{n}"),))
    remove(journal)
    for n in range(3):
        journal.append((settled(f"new{n}"),))
    assert [journal.call(f"new{n}") is not None for n in range(3)] == [False, True, True]


def test_a_session_in_use_and_the_newest_are_not_forgotten_for_room(monkeypatch) -> None:
    monkeypatch.setattr(memory, "MEMORY_SESSIONS_MAX", 3)
    journal, forgotten = MemoryJournal(), []
    journal.forgot = forgotten.extend
    journal.append((accepted("r", session_id="s0"),))
    sessions = [f"default\x1fs{n}" for n in range(4)]
    monkeypatch.setattr(memory, "MEMORY_SESSIONS_BYTES_MAX", 1)
    for n, key in enumerate(sessions):
        journal.append((Saved(Document.SESSION, key, 1, b"{}", used_at=n),))
    assert forgotten == sessions[1:3]


def test_a_page_of_a_run_is_replaced_only_by_a_later_version() -> None:
    journal, key = MemoryJournal(), "r\x1f0"
    for version, data in ((2, b"[1,2]"), (1, b"[1]"), (2, b"[9]"), (3, b"[1,2,3]")):
        journal.append((Saved(Document.RUN_EVENT, key, version, data),))
    assert journal.documents_below(Document.RUN_EVENT, "r") == [(key, b"[1,2,3]")]
    journal.append((Saved(Document.RUN_EVENT, key, 2, b"[1,2]"),))
    assert journal.load(Document.RUN_EVENT, key) == (3, b"[1,2,3]")


def test_the_questions_of_a_call_go_with_it_where_there_is_no_more_room(monkeypatch) -> None:
    monkeypatch.setattr(memory, "SETTLED_KEPT_MAX", 1)
    journal = MemoryJournal()
    for name in ("a", "b"):
        journal.append((Saved(Document.APPROVAL, f"{name}#1", 1, b'{"root_id":"%s"}' % name.encode()),))
        journal.append((settled(name),))
    assert [journal.load(Document.APPROVAL, f"{name}#1") is not None for name in ("a", "b")] == [False, True]
