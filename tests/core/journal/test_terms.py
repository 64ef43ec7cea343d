"""Terms of an append: which calls stand below which, and how a call ends whose caller has ended."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from comity.core.call.limits import Limits
from comity.core.envelope.envelope import Error, Reply, Request, Status
from comity.core.journal.records import Accepted, Document, Resumed, Settled, stored
from comity.core.journal.terms import (
    Bound,
    Fence,
    Terms,
    Version,
    breach,
    checksum,
    counts_below,
    ended_with,
    is_below,
    taken,
)
from comity.errors import CallChangedError, DocumentChangedError, RefusedError, StaleLeaseError

PARTS = st.lists(st.sampled_from((".1", ".2", ".10", "#1")), max_size=4)


@given(PARTS, PARTS)
def test_a_call_is_below_exactly_those_whose_way_begins_its_own(one: list[str], other: list[str]) -> None:
    expected = len(one) > len(other) and one[: len(other)] == other
    assert is_below("r" + "".join(one), "r" + "".join(other)) == expected


def _end(status: Status, at_ms: int) -> Settled:
    return Settled(_request("r", 5_000), Reply(status=status, error=Error.of("CALL_TIMEOUT", "late")), at_ms)


def _request(request_id: str, deadline_at: int) -> Request:
    return Request(request_id, "A", "DO", "u", Limits(), deadline_at, root_id="r")


def test_a_call_times_out_with_its_caller_only_if_its_own_time_is_up() -> None:
    ends = [
        ended_with(_end(Status.TIMEOUT, 5_000), _request("r.1", 5_000)),
        ended_with(_end(Status.TIMEOUT, 5_000), _request("r.1", 5_001)),
        ended_with(_end(Status.CANCELLED, 5_000), _request("r.1", 4_000)),
    ]
    assert [str(end.reply.status) for end in ends] == ["timeout", "cancelled", "cancelled"]
    assert [end.reply.error and end.reply.error.code for end in ends] == ["CALL_TIMEOUT", "CALL_CANCELLED", "CALL_CANCELLED"]
    assert [(end.request.request_id, end.reply.request_id, end.at_ms) for end in ends] == [("r.1", "r.1", 5_000)] * 3


DOCUMENTS = {
    (Document.FENCE, "A"): (3, b"n1"),
    (Document.SESSION, "s"): (7, b'{"id":"s","user_id":"ann"}'),
}
STANDINGS = {"open": True, "ended": False}
BEGUN = {"r": 3, "r.1": 1}  # below each


def _breach(**terms: object) -> type | None:
    begun, document = lambda above: BEGUN[above.request_id], lambda kind, key: DOCUMENTS.get((kind, key))
    found = breach(Terms(**terms), STANDINGS.get, begun, document)
    return None if found is None else type(found)


def test_each_term_holds_for_the_standings_it_names_and_no_others() -> None:
    assert [_breach(fences=(Fence("A", token),)) for token in (2, 3, 4)] == [StaleLeaseError, None, None]
    assert _breach(fences=(Fence("B", 1), Fence("A", 2))) is StaleLeaseError
    for term, allowed in (("unknown", ("new",)), ("unsettled", ("new", "open")), ("ended", ("ended",))):
        for request_id in ("new", "open", "ended"):
            assert _breach(**{term: request_id}) is (None if request_id in allowed else CallChangedError)
    for request_ids, expected in ((("open",), None), (("open", "new"), CallChangedError), (("ended",), CallChangedError)):
        assert _breach(open=request_ids) is expected


def test_a_document_is_replaced_only_by_what_was_made_from_its_last_version() -> None:
    kind, (version, data) = Document.SESSION, DOCUMENTS[Document.SESSION, "s"]
    for made_from, expected in (
        (Version(kind, "s", version), None),
        (Version(kind, "s", version, checksum(data)), None),
        (Version(kind, "s", version, checksum(b"another node's")), DocumentChangedError),
        (Version(kind, "s", version - 1), DocumentChangedError),
        (Version(kind, "s", 0), DocumentChangedError),
        (Version(kind, "new", 0, checksum(b"")), None),
        (Version(kind, "new", 1), DocumentChangedError),
    ):
        assert _breach(documents=(made_from,)) is expected


def test_a_session_can_be_named_first_by_its_own_user_only() -> None:
    named = [("s", "ann"), ("s", "bob"), ("new", "bob")]
    assert [_breach(session=one) for one in named] == [None, RefusedError, None]


def test_a_new_call_needs_room_in_every_tree_it_stands_in_and_one_that_was_accepted_has_its_own() -> None:
    def of(*bounds: tuple[str, int], call: str = "new") -> type | None:
        return _breach(unsettled=call, within=tuple(Bound(request_id, "r", calls_max) for request_id, calls_max in bounds))

    assert [of(("r", calls_max)) for calls_max in (4, 5, 6)] == [RefusedError, None, None]
    assert [of(("r", 5), ("r.1", calls_max)) for calls_max in (2, 3)] == [RefusedError, None]
    assert of(("r", 4), call="open") is None


def test_only_the_end_that_the_terms_name_takes_the_open_calls_below_along() -> None:
    end, other = _end(Status.TIMEOUT, 5_000), Settled(_request("r.2", 9_000), Reply.success(), 4_000)
    below = [_request("r.1", 9_000), _request("r.2", 9_000)]
    records = taken([other, end], Terms(ends="r"), lambda _: True, below)
    assert [(record.request.request_id, str(record.reply.status)) for record in records] == [
        ("r.2", "success"),
        ("r", "timeout"),
        ("r.1", "cancelled"),
    ]
    assert taken([end], Terms(ends="r.7"), lambda _: True, below) == [end]
    stranger = msgspec.structs.replace(_request("r.3", 9_000), root_id="r.3")  # a user chose this id
    assert taken([end], Terms(ends="r"), lambda _: True, [stranger]) == [end]


def test_what_is_not_open_is_not_ended_and_what_is_open_is_not_begun_again() -> None:
    ends = [Settled(_request(one, 9_000), Reply.success(), 4_000) for one in ("ended", "new", "open")]
    begins = [Accepted(_request(one, 9_000), 3_000, "n1") for one in ("new", "open")]
    written = taken([ends[0], *begins, ends[1], ends[2]], Terms(), STANDINGS.get, [])
    assert written == [begins[0], Resumed(begins[1].request, "n1", 3_000), ends[1], ends[2]]
    assert taken([ends[1], begins[0]], Terms(), STANDINGS.get, []) == [begins[0]]  # ended before it was begun


def test_calls_count_below_another_of_their_tree_and_refusals_and_tools_do_not() -> None:
    def counts(request_id: str, root_id: str = "r", status: Status | None = None) -> bool:
        request = msgspec.structs.replace(_request(request_id, 9_000), root_id=root_id)
        reply = None if status is None else Reply(status=status, error=Error.of("AGENT_BUSY", "no"))
        record = Accepted(request, 0, "n1") if reply is None else Settled(request, reply, 0)
        return counts_below(stored(record, "n1"), Bound("r.1", "r", 5))

    assert all((counts("r.1.2"), counts("r.1.2.3"), counts("r.1.2", status=Status.ERROR)))
    assert not any((counts("r.1"), counts("r.2"), counts("r.1#1"), counts("r.1.2#1"), counts("r.1.2", "r.1")))
    assert not counts("r.1.2", status=Status.REFUSED)
