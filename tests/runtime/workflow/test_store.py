"""What a store keeps of a run: pages of events, which give back the history."""

from __future__ import annotations

import msgspec
import pytest

from comity.core.journal.records import Document, Saved, below
from comity.core.workflow.history import Event, Fired, Received, Started, encode_event
from comity.engines.memory.journal import MemoryJournal
from comity.runtime.workflow.store import PAGE_BYTES_MAX, PAGE_EVENTS_MAX, Pages, RunRecord, RunStore


def events(count: int) -> list[Event]:
    return [Started(1, "r", {"n": 1}), *(Fired(at, at) for at in range(2, count + 1))]


def written(journal: MemoryJournal, happened: list[Event], number: int = 0) -> None:
    pages = Pages("r", number)
    for one in happened:
        journal.append((pages.add(encode_event(one)),))


def test_a_record_that_leaves_everything_out_that_it_may_is_of_a_run_with_which_nothing_has_happened():
    names = ("run_id", "workflow", "version", "definition", "user_id", "tenant_id", "session_id")
    told = dict.fromkeys(names, "x") | {"status": "running", "created_at": 1, "updated_at": 1}
    read = msgspec.json.decode(msgspec.json.encode(told), type=RunRecord)
    left_out = {name: value for name, value in msgspec.structs.asdict(read).items() if name not in told}
    assert len(left_out) > 10
    assert not any(left_out.values())


@pytest.mark.parametrize("count", [1, PAGE_EVENTS_MAX, PAGE_EVENTS_MAX + 1, 3 * PAGE_EVENTS_MAX])
def test_a_history_comes_back_from_its_pages_as_it_was(count):
    journal = MemoryJournal()
    written(journal, events(count))
    store = RunStore(journal)
    assert store.events("r") == events(count)
    assert store.count("r") == count
    assert len(journal.documents_below(Document.RUN_EVENT, "r")) == -(-count // PAGE_EVENTS_MAX)


def test_a_long_event_ends_its_page():
    journal, long = MemoryJournal(), Received(1, "paid", "x" * PAGE_BYTES_MAX)
    written(journal, [long, long, Fired(2, 2)])
    assert RunStore(journal).events("r") == [long, long, Fired(2, 2)]
    assert len(journal.documents_below(Document.RUN_EVENT, "r")) == 3


def test_a_run_goes_on_with_a_page_of_its_own_after_documents_of_one_event_each():
    journal, happened = MemoryJournal(), events(5)
    for number, one in enumerate(happened[:3]):  # as stores have it from before there were pages
        journal.append((Saved(Document.RUN_EVENT, below("r", f"{number:08d}"), 1, encode_event(one)),))
    written(journal, happened[3:], 3)
    assert RunStore(journal).events("r") == happened
