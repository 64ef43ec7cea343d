"""What a store keeps of a run: pages of events, which give back the history."""

from __future__ import annotations

import msgspec
import pytest

from comity.core.journal.records import Document, Saved, below
from comity.core.workflow.history import Event, Fired, Received, Settled, Started, encode_event
from comity.engines.memory.journal import MemoryJournal
from comity.errors import CallerError
from comity.runtime.workflow.store import (
    _PROGRAMS_MAX,
    PAGE_BYTES_MAX,
    PAGE_EVENTS_MAX,
    UNCOMMITTED_BYTES_MAX,
    Pages,
    RunRecord,
    RunStore,
)
from comity.workflow import load


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


PART = load("workflow: part\nnodes: {x: {call: A/DO}}")
WHOLE = load("workflow: whole\nnodes: {r: {run: part}}")


def test_a_definition_is_compiled_with_its_parts_once_and_one_that_misses_a_part_is_unknown():
    store = RunStore(MemoryJournal())
    with pytest.raises(CallerError, match="whole runs the workflow part, which the node does not know") as caught:
        store.pin(WHOLE, {})
    assert caught.value.code == "WORKFLOW_UNKNOWN"
    program = store.pin(WHOLE, {"part": PART})
    assert list(program.parts) == ["part"]
    assert store.pin(WHOLE, {}) is program
    assert store.program(program.hash) is program
    other = store.pin(WHOLE, {"part": PART})
    assert other is program


def test_a_definition_is_stored_once_and_read_back_with_its_parts():
    journal = MemoryJournal()
    store = RunStore(journal)
    program = store.pin(WHOLE, {"part": PART})
    journal.append(store.kept(program))
    assert store.kept(program) == ()
    read = RunStore(journal).program(program.hash)
    assert (read.hash, read.graph.definition, list(read.parts)) == (program.hash, WHOLE, ["part"])
    with pytest.raises(CallerError, match=r"no definition 0123456789ab$") as caught:
        store.program("0123456789abcdef")
    assert caught.value.code == "WORKFLOW_UNKNOWN"


def test_a_bounded_number_of_definitions_stays_compiled():
    store = RunStore(MemoryJournal())
    made = [load(f"workflow: w{number}\nnodes: {{x: {{call: A/DO}}}}") for number in range(_PROGRAMS_MAX + 1)]
    programs = [store.pin(one, {}) for one in made]
    assert (len(store._pinned), len(store._programs)) == (1, _PROGRAMS_MAX)
    assert store.program(programs[1].hash) is programs[1]
    with pytest.raises(CallerError):
        store.program(programs[0].hash)  # the oldest, which was never stored


def test_of_the_data_that_no_commit_may_have_a_bounded_number_of_bytes_is_kept():
    class Busy(MemoryJournal):
        is_idle = False

    store, half = RunStore(Busy()), UNCOMMITTED_BYTES_MAX // 2
    for step in (1, 2):
        store.outline("r", Settled(1, step, {"status": "success", "data": step}), half)
    assert list(store._uncommitted.values()) == [(half, 1), (half, 2)]
    store.outline("r", Settled(1, 3, {"status": "success", "data": 3}), 1)
    assert store._uncommitted == {"r.2": (half, 2), "r.3": (1, 3)}
    assert store._uncommitted_bytes == half + 1
    Busy.is_idle = True
    store.outline("r", Settled(1, 4, {"status": "success", "data": 4}), 7)
    assert (store._uncommitted, store._uncommitted_bytes) == ({"r.4": (7, 4)}, 7)
