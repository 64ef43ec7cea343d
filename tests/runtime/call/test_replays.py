"""What a store has under a request's id: it is given to the same request of the same user of the same tenant, and to no other."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from msgspec import Raw
from msgspec.structs import replace

from comity.core.call.endings import end_leftovers, interrupted
from comity.core.call.limits import Limits
from comity.core.call.machine import Event
from comity.core.call.refusal import Refused
from comity.core.envelope.envelope import Error, Reply, Request
from comity.core.journal.records import Accepted, Paused, Settled
from comity.engines.memory.journal import MemoryJournal
from comity.errors import UnavailableError
from comity.runtime.call.placement import Placement
from comity.runtime.call.replay import count_begun, is_run, known
from comity.runtime.call.replies import Replies

ASKED = Request("r", "ANL", "NPV", "ann", Limits(calls_max=7), 9_000, tenant_id="acme", body=Raw(b'{"a":1}'), root_id="r")
OTHERS = [
    replace(ASKED, tenant_id="evil"),
    replace(ASKED, user_id="bob"),
    replace(ASKED, body=Raw(b'{"a":2}')),
    replace(ASKED, message="more"),
    replace(ASKED, target="DOC"),
    replace(ASKED, capability="IRR"),
]
DONE, QUESTION = Reply.success(1, request_id="r"), Reply.needs_input("may I?", request_id="r")


def journal(*records) -> MemoryJournal:
    made = MemoryJournal("n1")
    made.append([Accepted(ASKED, 1, "n1"), *records])
    return made


def code_of(found) -> str:
    assert isinstance(found, Refused)
    return found.code


@pytest.mark.parametrize(
    "records", [(), (Settled(ASKED, DONE, 2),), (Paused(ASKED, QUESTION, 2),)], ids=["open", "settled", "paused"]
)
@pytest.mark.parametrize("other", OTHERS, ids=["tenant", "user", "inputs", "message", "target", "capability"])
def test_another_request_under_the_same_id_is_refused_however_the_first_stands(records, other):
    assert code_of(known(other, journal(*records), Placement().meets_open)) == "IDENTITY_REQUEST_ID_REUSED"


def test_the_same_request_gets_what_the_first_got():
    meets_open = Placement().meets_open
    assert known(ASKED, MemoryJournal("n1"), meets_open) is None
    assert known(ASKED, journal(Settled(ASKED, DONE, 2)), meets_open) == DONE
    assert known(ASKED, journal(Paused(ASKED, QUESTION, 2)), meets_open) == QUESTION


def test_an_open_call_is_about_to_end_here_or_under_way_elsewhere():
    meets_open, below = Placement().meets_open, replace(ASKED, parent_id="p")
    stored = journal().call("r")
    ending = meets_open(ASKED, stored, "n1")
    assert ("about to end" in ending.message, ending.code, ending.retry_after_ms) == (True, "AGENT_BUSY", 1_000)
    assert meets_open(below, stored, "n1") is None
    for request in (ASKED, below):
        refusal = meets_open(request, stored, "n2")
        assert (refusal.code, refusal.retry_after_ms) == ("AGENT_BUSY", 1_000)
        assert "under way on another node" in refusal.message


def test_a_store_that_cannot_say_what_was_begun_leaves_no_budget():
    def unreadable(_: Request) -> int:
        raise UnavailableError("gone", code="STORE_UNAVAILABLE")

    assert count_begun(SimpleNamespace(begun=unreadable), ASKED) == 7
    below = replace(ASKED, request_id="r.1", parent_id="r")
    assert count_begun(journal(Accepted(below, 2, "n1")), ASKED) == 1


@pytest.mark.parametrize(
    ("now_ms", "status", "code"), [(8_999, "error", "CALL_INTERRUPTED"), (9_000, "timeout", "CALL_TIMEOUT")]
)
def test_what_no_node_takes_up_is_interrupted_until_its_deadline_and_timed_out_from_it(now_ms, status, code):
    (end,) = interrupted((ASKED,), now_ms)
    assert (str(end.reply.status), end.reply.error.code, end.at_ms) == (status, code, now_ms)
    assert (end.reply.request_id, end.reply.source) == ("r", "ANL")


def test_what_was_left_open_ends_with_the_call_it_stands_at_or_below():
    left = {one: replace(ASKED, request_id=one) for one in ("r.1", "r.1.2", "r.1#1", "r.10", "r.2")}
    root = SimpleNamespace(leftovers=left)
    assert [end.request.request_id for end in end_leftovers(root, "r.1", 1)] == ["r.1", "r.1.2", "r.1#1"]
    assert list(left) == ["r.10", "r.2"]


def test_a_run_of_a_workflow_is_known_by_its_address():
    assert [is_run(one) for one in ("comity.workflow", "comity.workflow/n1", "comity.workflows", "ANL/comity.workflow")] == [
        True, True, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "is_again", "told"),
    [(None, True, "raised"), (None, False, "refused"), ("call", True, "ended"), ("call", False, "ended")],
)
def test_a_call_whose_store_cannot_be_read_is_refused_or_ended_and_only_a_replay_raises(call, is_again, told):
    def settle(ended, event, reply) -> None:
        assert (ended, event, reply.status, reply.message) == ("call", Event.CANCEL, "error", "gone")

    settlement = SimpleNamespace(
        settle=settle, unrecorded=lambda error: Error.of("STORE_UNAVAILABLE", error.message), unavailable=lambda _: "refusal"
    )
    calls = {} if call is None else {"r": call}
    replies = SimpleNamespace(calls=calls, settlement=settlement, refuse=lambda request, refusal: "refused")
    error = UnavailableError("gone")
    with pytest.raises(UnavailableError) if told == "raised" else nullcontext():
        assert Replies.unread(replies, ASKED, error, is_again=is_again) == ("call" if told == "ended" else told)


@pytest.mark.parametrize(
    ("stored", "told"),
    [
        (None, "waits"),
        (SimpleNamespace(settled_at=None, reply=Reply.success("open")), "waits"),
        (SimpleNamespace(settled_at=5, reply=None), "waits"),
        (SimpleNamespace(settled_at=5, reply=Reply.success("ended")), "ended"),
        (UnavailableError("not now"), "waits"),
    ],
)
async def test_a_call_that_waited_for_a_person_is_told_as_it_has_ended_meanwhile(stored, told):
    def read(_request_id: str) -> object:
        if isinstance(stored, Exception):
            raise stored
        return stored

    replies = SimpleNamespace(
        calls={}, _journal=SimpleNamespace(call=read), settlement=SimpleNamespace(shown=lambda reply, _: reply)
    )
    assert (await Replies._newest(replies, Reply.needs_input("Allow?", data="waits"))).data == told
