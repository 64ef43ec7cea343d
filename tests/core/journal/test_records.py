"""Records: what the audit says about a call, what the store keeps of it, and that neither tells what it must not."""

from __future__ import annotations

import hashlib
import zlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from comity.core.call.limits import Limits
from comity.core.envelope.envelope import Background, Error, ExpectedOutput, Reply, Request, Status
from comity.core.envelope.usage import Cost, Usage
from comity.core.journal.audit import ENTRY_FIELDS, GENESIS, Pseudonyms, row, seal
from comity.core.journal.records import (
    HANDED_AT,
    Accepted,
    Document,
    Late,
    Paused,
    Refused,
    Saved,
    Settled,
    StoredCall,
    StoredSession,
    StoredState,
    entry,
    fingerprint,
    is_same,
    part_key,
    part_of,
    part_range,
    stored,
    with_unwritten,
)

NAMES = Pseudonyms(b"key")


def request(**fields) -> Request:
    usual = {
        "request_id": "r1",
        "target": "ANL",
        "capability": "ANL_NPV",
        "user_id": "u1",
        "limits": Limits(),
        "deadline_at": 9_000,
        "created_at": 1_000,
        "root_id": "r0",
        "parent_id": "r0",
        "correlation_id": "wf-1",
        "session_id": "s1",
        "source": "ORC",
        "chain": ("ORC",),
        "body": Raw(b'{"n":1}'),
    }
    return Request(**usual | fields)


def told(record) -> dict[str, object]:
    return dict(
        zip(ENTRY_FIELDS, msgspec.json.decode(entry(record, NAMES)), strict=False)
    )  # a row without a cost ends before it


DONE = Reply.success({"npv": 1}, usage=Usage(prompt_tokens=3, completion_tokens=4), request_id="r1", duration_ms=2.5)
FAILED = Reply(status=Status.ERROR, error=Error.of("TARGET_CRASHED", "it raised"), request_id="r1")


# --- the audit ----------------------------------------------------------------------------------------------------------


def test_an_admission_says_who_asked_whom_for_what_and_nothing_of_an_outcome():
    assert told(Accepted(request(objective="profit"), 5, "n1")) == {
        "kind": "admitted",
        "created_at": 5,
        "request_id": "r1",
        "root_id": "r0",
        "parent_id": "r0",
        "origin": "ORC",
        "target": "ANL",
        "capability": "ANL_NPV",
        "tenant_id": "default",
        "user_id": "u1",
        "session_id": "s1",
        "objective": NAMES.digest("profit"),
        "chain": "ORC",
        "success": None,
        "status": None,
        "error_code": None,
        "duration_ms": None,
        "tokens": None,
        "note": "",
        "correlation_id": "wf-1",
    }


def test_an_admission_says_what_was_hidden_from_the_callee():
    assert told(Accepted(request(), 5, "n1", "hidden: 2 email"))["note"] == "hidden: 2 email"
    assert told(Settled(request(), DONE, 7))["note"] == ""


def test_a_settlement_says_how_it_ended_and_what_it_took():
    end = told(Settled(request(), DONE, 7))
    assert {name: end[name] for name in ("kind", "created_at", "success", "status", "error_code", "duration_ms", "tokens")} == {
        "kind": "settled",
        "created_at": 7,
        "success": 1,
        "status": "success",
        "error_code": None,
        "duration_ms": 2.5,
        "tokens": 7,
    }


def test_a_settlement_says_what_its_tokens_cost_where_they_have_a_price():
    spent = Usage(prompt_tokens=3, cost=Cost(amount=0.25, currency="USD", unpriced_tokens=1))
    alone = request(correlation_id="r0")
    end = told(Settled(alone, replace(DONE, usage=spent), 7))
    assert (end["correlation_id"], end["cost"]) == (None, {"amount": 0.25, "currency": "USD", "unpriced_tokens": 1})
    assert "cost" not in told(Settled(request(), DONE, 7))
    assert list(told(Settled(alone, DONE, 7)))[-1] == "note"


@pytest.mark.parametrize(("record", "kind"), [(Refused, "refused"), (Late, "late"), (Settled, "settled"), (Paused, "paused")])
def test_a_failure_is_no_success_and_says_its_code(record, kind):
    end = told(record(request(), FAILED, 7))
    assert (end["kind"], end["success"], end["status"], end["error_code"]) == (kind, 0, "error", "TARGET_CRASHED")


def test_partial_results_and_questions_are_no_failures():
    for reply in (Reply.partial({}, warnings=["half"]), Reply.needs_input("which year?")):
        assert told(Settled(request(), reply, 7))["success"] == 1


@pytest.mark.parametrize("record", [Accepted(request(), 5, "n"), Settled(request(), DONE, 7), Refused(request(), FAILED, 7)])
def test_an_entry_fills_every_field_of_a_row(record):
    read = row(seal(1, entry(record, NAMES), GENESIS))
    assert dict(zip(ENTRY_FIELDS, read[1:-2], strict=True)) == {"cost": None, **told(record)}


def test_the_chain_is_written_root_first():
    assert told(Accepted(request(chain=("ORC", "CST", "ANL/7")), 5, "n"))["chain"] == "ORC CST ANL/7"
    assert told(Accepted(request(chain=(), source=None), 5, "n"))["chain"] == ""


SECRET = ["ann@example.com", "Ann Smith", "+49 170 1234567"]


@pytest.mark.parametrize("secret", SECRET)
@pytest.mark.parametrize("record", [Accepted, Refused, Settled, Late])
def test_no_place_where_a_call_can_carry_personal_data_reaches_the_audit(secret, record):
    key = secret.replace(" ", "_")
    call = request(
        user_id=secret,
        session_id=secret,
        objective=secret,
        message=secret,
        body=Raw(msgspec.json.encode({"who": secret})),
        target=f"CART/{secret}",
        source=f"CART/{key}@{secret}",
        chain=(f"CART/{secret}", "ORC", f"CART/{key}@{secret}"),
        metadata={"who": secret},
    )
    reply = Reply(status=Status.ERROR, error=Error.of("TARGET_FAILED", secret), message=secret, data={"who": secret})
    row_told = repr(entry(record(call, 5, "n") if record is Accepted else record(call, reply, 5), NAMES))
    assert secret not in row_told
    assert key not in row_told
    assert row_told.count("CART/hmac:") == 4
    assert "ORC" in row_told


@pytest.mark.parametrize("secret", SECRET)
def test_what_a_caller_took_for_a_name_is_not_repeated_if_it_is_personal(secret):
    refused = told(Refused(request(target=secret, capability=f"mail {secret}"), FAILED, 7))
    assert secret not in repr(refused)
    assert refused["target"] == NAMES.digest(secret)


def test_names_and_opaque_keys_stay_readable():
    end = told(Refused(request(target="CART/user-456", session_id="s-1"), FAILED, 7))
    assert (end["target"], end["capability"], end["session_id"], end["origin"]) == ("CART/user-456", "ANL_NPV", "s-1", "ORC")


# --- the store ----------------------------------------------------------------------------------------------------------


def test_an_open_call_is_kept_with_its_request_and_without_a_reply():
    call = request(objective="profit")
    kept = stored(Accepted(call, 5, "n1"), "n1")
    assert (kept.request, kept.reply, kept.settled_at, kept.node_id) == (call, None, None, "n1")
    assert (kept.request_id, kept.root_id, kept.parent_id) == ("r1", "r0", "r0")
    assert (kept.tenant_id, kept.user_id, kept.session_id) == ("default", "u1", "s1")
    assert (kept.target, kept.capability, kept.objective) == ("ANL", "ANL_NPV", "profit")
    assert (kept.created_at, kept.deadline_at, kept.fingerprint) == (1_000, 9_000, fingerprint(call))


def test_a_settled_call_is_kept_with_its_reply_and_without_its_request():
    kept = stored(Settled(request(), DONE, 7), "n1")
    assert (kept.request, kept.reply, kept.settled_at) == (None, DONE, 7)


def test_a_call_that_waits_for_a_person_is_kept_whole_and_belongs_to_no_node():
    call, question = request(), Reply.needs_input("may I?", request_id="r1")
    kept = stored(Paused(call, question, 7), "n1")
    assert (kept.request, kept.reply, kept.state) == (call, question, StoredState.PAUSED)


@pytest.mark.parametrize(
    ("record", "state"),
    [
        (Accepted(request(), 5, "n"), StoredState.OPEN),
        (Accepted(request(), 5, HANDED_AT), StoredState.HANDED_OFF),
        (Paused(request(), Reply.needs_input("may I?", request_id="r1"), 7), StoredState.PAUSED),
        (Settled(request(), DONE, 7, HANDED_AT), StoredState.SETTLED),
    ],
)
def test_a_stored_call_knows_its_state(record, state):
    assert stored(record, record.node_id if type(record) is Settled else "n").state is state


@pytest.mark.parametrize("record", [Accepted(request(), 5, "n"), Settled(request(), DONE, 7), Settled(request(), FAILED, 8)])
def test_what_is_kept_reads_back_the_same(record):
    kept = stored(record, "n1")
    read = msgspec.json.decode(msgspec.json.encode(kept), type=StoredCall)
    assert msgspec.json.encode(read) == msgspec.json.encode(kept)
    assert read.reply == kept.reply


@given(st.binary(min_size=1, max_size=20))
def test_the_same_request_has_the_same_fingerprint(body):
    assert fingerprint(request(body=Raw(body))) == fingerprint(request(body=Raw(body), request_id="other", deadline_at=1))


def test_a_request_whose_inputs_were_changed_on_the_way_keeps_the_fingerprint_it_came_with():
    assert fingerprint(request(body=Raw(b'{"n":"[EMAIL_1]"}'), fingerprint=7)) == 7
    assert fingerprint(request(fingerprint=0)) == 0


def test_what_an_agent_passes_on_may_have_grown_when_it_asks_the_same_again():
    assert fingerprint(request(context=Background(facts=("a",)))) == fingerprint(request(context=Background(facts=("a", "b"))))


def test_whatever_else_is_asked_has_another_fingerprint():
    prints = {
        fingerprint(request(**other))
        for other in (
            {},
            {"target": "ANM"},
            {"capability": "ANL_IRR"},
            {"body": Raw(b'{"n":2}')},
            {"target": "A", "capability": "NL"},
            {"target": "AN", "capability": "L"},
            {"message": "pay"},
            {"message": "do not pay"},
            {"objective": "pay"},
            {"parent_id": None, "context": Background(facts=("a",))},
            {"parent_id": None, "context": Background(facts=("b",))},
            {"expected_output": ExpectedOutput(type="report")},
            {"parent_id": None, "history": "none"},
            {"history": 3},
        )
    }
    assert len(prints) == 14


def test_the_fingerprint_of_a_plain_request_is_that_of_its_inputs_as_older_stores_have_it():
    plain = zlib.crc32(b'{"n":1}', zlib.crc32(b"ANL\nANL_NPV"))
    assert fingerprint(request(history="full")) == fingerprint(request(parent_id=None, history="full")) == plain
    assert fingerprint(request(history="none")) == plain, "what an agent's call has by default"
    assert fingerprint(request(context=Background(facts=("a",)))) == plain, "a child's background may grow"


def test_two_requests_are_one_only_for_one_tenant_one_user_and_the_same_contents():
    assert is_same(request(), request(deadline_at=1))
    for other in ({"tenant_id": "other"}, {"user_id": "u2"}, {"body": Raw(b"{}")}):
        assert not is_same(request(), request(**other))


def test_the_end_of_a_call_names_the_digest_of_its_thought_and_nothing_without_one():
    thought = Reply.success({"npv": 1}, thought="sell", request_id="r1")
    assert told(Settled(request(), thought, 9))["note"] == f"thought sha256:{hashlib.sha256(b'sell').hexdigest()}"
    assert told(Settled(request(), DONE, 9))["note"] == ""


@pytest.mark.parametrize("correlation_id", ["r0", ""])
def test_a_call_of_no_workflow_but_its_own_writes_no_workflow(correlation_id):
    own, other = (
        msgspec.json.decode(entry(Accepted(request(correlation_id=one), 5, "n1"), NAMES)) for one in (correlation_id, "wf-1")
    )
    assert len(own) == len(other) - 1


def test_a_session_is_read_with_what_is_on_its_way():
    written = StoredSession(2, b"two", [(1, b"one"), (2, b"second")])
    on_its_way = [
        Saved(Document.SESSION, "s", 3, b"three"),
        Saved(Document.SESSION, "s", 1, b"old"),
        Saved(Document.SESSION, "other", 9, b"theirs"),
        Saved(Document.VAULT, "s", 9, b"hidden"),
        Saved(Document.PART, part_key("s", 3), 3, b"third"),
        Saved(Document.PART, part_key("s", 1), 3, b""),  # removed
        Saved(Document.PART, part_key("other", 4), 3, b"theirs"),
    ]
    assert with_unwritten(written, "s", on_its_way) == (3, b"three", [(2, b"second"), (3, b"third")])
    assert with_unwritten(None, "s", on_its_way) == (3, b"three", [(3, b"third")])
    assert with_unwritten(None, "new", on_its_way) is None
    assert part_of(part_key("s", 7)) == ("s", 7)
    first, end = part_range("s")
    assert first <= part_key("s", 0) < part_key("s", 10**11) < end <= part_key("s\x1f", 0)
