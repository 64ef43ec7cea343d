"""The audit chain: whatever is done to it, the first row that no longer fits is found and named."""

from __future__ import annotations

import hashlib
import hmac
import json

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from comity.core.journal.audit import (
    ENTRY_FIELDS,
    GENESIS,
    PSEUDONYM,
    START,
    Kind,
    Pseudonyms,
    Row,
    Stored,
    cut_entry,
    row,
    seal,
    verify,
    walk,
)

texts = st.text(max_size=5)
entries = st.tuples(st.sampled_from([kind.value for kind in Kind]), st.integers(0, 2**40), texts, st.none() | texts, texts).map(
    msgspec.json.encode
)


def chained(some: list[bytes]) -> list[Stored]:
    rows, previous = [], GENESIS
    for row_id, entry in enumerate(some, 1):
        rows.append(seal(row_id, entry, previous))
        previous = rows[-1][3]
    return rows


NAMES = Pseudonyms(b"key")


def full_entry(**given_fields: object) -> bytes:
    return msgspec.json.encode([given_fields.get(name) for name in ENTRY_FIELDS])


chains = st.lists(entries, min_size=1, max_size=8).map(chained)
ROWS = chained([full_entry(kind="admitted", request_id=f"r{number}") for number in range(6)])


# --- a chain nobody touched ---------------------------------------------------------------------------------------------


@given(chains)
def test_an_untouched_chain_is_whole(rows):
    assert verify(rows, head=rows[-1][3]) == (True, len(rows), None, "")
    assert verify(rows).ok


def test_no_rows_are_a_whole_chain():
    assert verify([], head=GENESIS) == (True, 0, None, "")


@given(chains, st.integers(0, 7))
def test_the_end_of_a_chain_can_be_checked_alone(rows, dropped):
    kept, before = rows[dropped:], rows[:dropped]
    previous = before[-1][3] if before else GENESIS
    verdict = verify(kept, first_id=len(before) + 1, previous_hash=previous, head=rows[-1][3])
    assert verdict == (True, len(kept), None, "")


def test_the_hash_covers_the_place_the_row_before_and_every_byte():
    row_id, body, previous, sealed = ROWS[2]
    assert (row_id, previous) == (3, ROWS[1][3])
    assert sealed == hashlib.sha256(b"3:" + previous.encode() + b":" + body).hexdigest()
    assert json.loads(body)[0] == "admitted"


# --- tampering ----------------------------------------------------------------------------------------------------------


@given(chains, st.data())
def test_an_edited_row_is_named(rows, data):
    at = data.draw(st.integers(0, len(rows) - 1))
    row_id, body, previous, sealed = rows[at]
    byte, bit = data.draw(st.integers(0, len(body) - 1)), 1 << data.draw(st.integers(0, 7))
    changed = bytearray(body)
    changed[byte] ^= bit
    rows[at] = (row_id, bytes(changed), previous, sealed)
    verdict = verify(rows, head=rows[-1][3])
    assert (verdict.ok, verdict.rows, verdict.row_id) == (False, at, row_id)
    assert f"row {row_id} was changed" in verdict.reason


@given(chains, st.data())
def test_a_removed_row_is_named(rows, data):
    at = data.draw(st.integers(0, len(rows) - 1))
    head = rows[-1][3]
    gone = rows.pop(at)[0]
    verdict = verify(rows, head=head)
    assert (verdict.ok, verdict.rows, verdict.row_id) == (False, at, gone)
    assert ("cut off" if at == len(rows) else f"row {gone} is missing") in verdict.reason


@given(chains, st.data())
def test_a_cut_off_end_is_found_by_the_head(rows, data):
    kept = data.draw(st.integers(0, len(rows) - 1))
    verdict = verify(rows[:kept], head=rows[-1][3])
    assert (verdict.ok, verdict.rows, verdict.row_id) == (False, kept, kept + 1)
    assert f"rows after {kept} were cut off" in verdict.reason


@given(chains, st.data())
def test_rows_in_another_order_are_found_at_the_first_that_is_out_of_place(rows, data):
    order = data.draw(st.permutations(range(len(rows))))
    assume(list(order) != list(range(len(rows))))
    first = next(place for place, was in enumerate(order) if place != was)
    verdict = verify([rows[was] for was in order], head=rows[-1][3])
    assert (verdict.ok, verdict.rows, verdict.row_id) == (False, first, first + 1)


@given(chains, st.data())
def test_contents_that_changed_places_are_found_at_the_first(rows, data):
    """What reordering means in a table that is read by id: each place keeps its id and gets another row's content."""
    assume(len(rows) > 1)
    one, other = sorted(data.draw(st.permutations(range(len(rows))))[:2])
    mine, theirs = rows[one], rows[other]
    rows[one], rows[other] = (mine[0], *theirs[1:]), (theirs[0], *mine[1:])
    verdict = verify(rows, head=theirs[3] if other < len(rows) - 1 else mine[3])
    assert (verdict.ok, verdict.rows, verdict.row_id) == (False, one, mine[0])


@given(chains, entries, st.data())
def test_a_row_put_in_between_is_named(rows, entry, data):
    at = data.draw(st.integers(0, len(rows) - 1))
    row_id, _, previous, _ = rows[at]
    head = rows[-1][3]
    rows.insert(at, seal(row_id, entry, previous))  # sealed so that it fits what stands before it
    assume(rows[at] != rows[at + 1])
    verdict = verify(rows, head=head)
    assert (verdict.ok, verdict.rows, verdict.row_id) == (False, at + 1, row_id)
    assert f"row {row_id} stands twice" in verdict.reason


@given(chains, entries)
def test_a_row_added_after_the_recorded_end_is_named(rows, entry):
    last = rows[-1]
    verdict = verify([*rows, seal(last[0] + 1, entry, last[3])], head=last[3])
    assert (verdict.ok, verdict.rows, verdict.row_id) == (False, len(rows), last[0] + 1)
    assert "added" in verdict.reason


@given(chains, entries, st.data())
def test_a_row_replaced_and_sealed_anew_is_found_at_the_row_that_follows(rows, entry, data):
    assume(len(rows) > 1)
    at = data.draw(st.integers(0, len(rows) - 2))
    row_id, body, previous, _ = rows[at]
    rows[at] = seal(row_id, entry, previous)
    assume(rows[at][1] != body)
    verdict = verify(rows, head=rows[-1][3])
    assert (verdict.ok, verdict.rows, verdict.row_id) == (False, at + 1, row_id + 1)
    assert f"row {row_id + 1} does not follow" in verdict.reason


@given(chains, entries, st.data())
def test_a_chain_sealed_anew_from_some_row_on_is_found_by_the_head(rows, entry, data):
    at = data.draw(st.integers(0, len(rows) - 1))
    again = rows[:at]
    for row_id, body, _, _ in rows[at:]:
        content = entry if row_id == at + 1 else body
        again.append(seal(row_id, content, again[-1][3] if again else GENESIS))
    assume(again[at][1] != rows[at][1])
    verdict = verify(again, head=rows[-1][3])
    assert not verdict.ok
    assert "sealed anew" in verdict.reason


@pytest.mark.parametrize("body", ["text", None, 7])
def test_a_body_that_is_no_longer_bytes_is_a_changed_row(body):
    row_id, _, previous, sealed = ROWS[1]
    rows = [ROWS[0], (row_id, body, previous, sealed), *ROWS[2:]]
    assert verify(rows)[:3] == (False, 1, 2)


def test_a_chain_may_not_begin_before_or_after_its_first_row():
    assert verify(ROWS[1:]).row_id == 1
    assert verify([seal(0, full_entry(), GENESIS), *ROWS]).row_id == 0
    assert verify(ROWS, previous_hash="f" * 64).row_id == 1


# --- what a row says ----------------------------------------------------------------------------------------------------


def test_a_stored_row_reads_as_its_fields():
    entry = full_entry(kind="settled", request_id="r", target="ANL", tokens=3)
    read = row(seal(4, entry, "p"))
    assert (read.id, read.kind, read.request_id, read.target, read.tokens) == (4, "settled", "r", "ANL", 3)
    assert (read.previous_hash, read.hash) == ("p", seal(4, entry, "p")[3])


def test_a_row_that_names_no_workflow_is_of_the_workflow_of_its_root():
    said = msgspec.json.decode(full_entry(root_id="r"))
    assert row(seal(4, msgspec.json.encode(said[:-2]), "p")).correlation_id == "r"
    assert row(seal(4, msgspec.json.encode([*said[:-2], "w"]), "p")).correlation_id == "w"
    with pytest.raises(ValueError, match="row 4 of the audit cannot be read"):
        row(seal(4, msgspec.json.encode(said[:-3]), "p"))


def test_a_row_that_says_a_cost_may_leave_its_workflow_out():
    cost = {"amount": 0.5, "currency": "USD"}
    read = row(seal(4, full_entry(root_id="r", cost=cost), "p"))
    assert (read.correlation_id, read.cost) == ("r", cost)
    said = msgspec.json.decode(full_entry(root_id="r"))
    assert row(seal(4, msgspec.json.encode(said[:-2]), "p")).cost is None


@pytest.mark.parametrize("body", [b"", b"{", b"{}", b"[]", b"[1,2]", b"\xff", b'["\xff"]'])
def test_a_row_somebody_made_unreadable_raises_a_value_error(body):
    with pytest.raises(ValueError, match="row 9 of the audit cannot be read"):
        row((9, body, "", ""))


def test_a_row_has_every_column_of_the_seed_and_those_of_the_design():
    seed_001 = {"id", "request_id", "origin", "target", "user_id", "objective", "success", "duration_ms", "created_at"}
    design = {"chain", "capability", "status", "error_code", "tokens", "previous_hash", "hash"}
    assert seed_001 | design <= set(Row._fields)


# --- personal data ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "personal",
    [
        "ann@example.com",
        "Ann Smith",
        "+49 170 1234567",
        "+491701234567",
        "0170-1234567",
        "(030) 123.4567",
        "4111111111111111",
        "Jürgen",
        "安",
        "１２３４５６７",
    ],
)
def test_a_user_id_that_is_itself_personal_enters_as_a_digest(personal):
    shown = NAMES.of(personal)
    assert shown.startswith(PSEUDONYM)
    assert personal not in shown
    assert shown == NAMES.of(personal)


def test_a_digest_is_the_same_in_every_version_so_that_rows_of_older_ones_are_found():
    digest = hmac.new(b"key", "Jürgen".encode(), "sha256").hexdigest()
    assert NAMES.of("Jürgen") == NAMES.digest("Jürgen") == f"{PSEUDONYM}{digest[:16]}"


def test_nobody_finds_a_name_by_trying_without_the_key():
    phone = "+4915112345678"
    others = [Pseudonyms(key).of(phone) for key in (b"", b"other")]
    assert NAMES.of(phone) not in others
    assert hashlib.sha256(phone.encode()).hexdigest()[:16] not in NAMES.of(phone)


@pytest.mark.parametrize("opaque", ["u1", "user-456", "0198a2b4-7c1e-7000-8000-000000000001", "tenant:7", "123456", ""])
def test_an_opaque_user_id_stays_as_it_is(opaque):
    assert NAMES.of(opaque) == opaque


@given(st.text(min_size=1, max_size=200))
def test_a_digest_is_short_and_tells_nothing_of_the_text(text):
    shown = NAMES.digest(text)
    assert len(shown) == len(PSEUDONYM) + 16
    assert shown == NAMES.digest(text)
    assert set(shown.removeprefix(PSEUDONYM)) <= set("0123456789abcdef")


def test_different_texts_have_different_digests():
    assert NAMES.digest("a") != NAMES.digest("b")
    assert NAMES.digest("\ud800") != NAMES.digest("?")


def test_a_cut_is_a_row_with_its_note_no_other_text_and_no_other_number():
    said = dict(zip(ENTRY_FIELDS, msgspec.json.decode(cut_entry(7, "abc", 5)), strict=True))
    assert (said["kind"], said["created_at"]) == (Kind.CUT.value, 5)
    assert said["note"] == "rows 1 to 7 were removed; row 7 had the hash abc"
    for name in set(ENTRY_FIELDS) - {"kind", "created_at", "note"}:
        assert said[name] == ("" if Row.__annotations__[name] == "str" else None), name


def test_a_quick_walk_stops_at_the_first_row_that_does_not_fit_whatever_follows():
    rows = [(row_id, body, sealed.encode()) for row_id, body, _, sealed in ROWS]
    genesis = GENESIS.encode()
    assert walk(rows, 1, genesis) == (7, rows[-1][2])
    assert walk([*rows[:2], (3, b"[]", rows[2][2]), *rows[2:]], 1, genesis) == (3, rows[1][2])
    assert walk(rows[1:], 1, genesis) == (1, genesis)


def test_a_chain_begins_with_row_one_after_sixty_four_zeros():
    assert GENESIS == "0" * 64
    assert (START.row_id, START.hash, START.noted_in, START.at_ms) == (0, GENESIS, 0, 0)
    assert verify(ROWS).ok


def test_seven_digits_may_be_a_phone_number_and_six_are_not():
    assert NAMES.of("555123") == "555123"
    assert NAMES.of("5551234") == NAMES.digest("5551234")
