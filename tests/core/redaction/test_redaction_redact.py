"""Redacting and restoring texts, nested values and JSON documents."""

from __future__ import annotations

import copy
import json

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from redaction_corpus import documents, new_vault, texts
from steps import count_steps

from comity.core.document.slices import whole
from comity.core.redaction import (
    DEFAULT_SCANNER,
    Action,
    Policy,
    hiding,
    may_hold_personal_data,
    redact,
    redact_json,
    redact_text,
    redact_value,
    restore_json,
    restore_text,
    restore_value,
    roles,
    walk,
)
from comity.core.redaction.hiding import SLICE_ITEMS, replaced_sliced, walls_in, walls_sliced
from comity.core.redaction.redact import redact_json_sliced, redact_text_sliced, scrub
from comity.core.redaction.restore import restore_value_sliced
from comity.core.redaction.search import Wall


@given(texts())
def test_what_was_redacted_comes_back_exactly(text):
    vault = new_vault()
    assert restore_text(redact_text(text, vault).text, vault) == text


@given(texts(), st.sampled_from([Action.TOKENISE, Action.MASK, Action.BLOCK]))
def test_a_second_redaction_changes_nothing(text, action):
    vault, policy = new_vault(), Policy(default=action)
    once = redact_text(text, vault, policy)
    twice = redact_text(once.text, vault, policy)
    assert (twice.text, twice.found) == (once.text, ())


@given(texts())
def test_the_quick_test_calls_no_text_clean_in_which_something_is_found(text):
    if redact_text(text, new_vault()).found:
        assert DEFAULT_SCANNER.may_find(text)
        assert may_hold_personal_data(msgspec.json.encode({"message": text}))
        assert may_hold_personal_data(json.dumps([text]).encode())


@pytest.mark.parametrize("heads", ["user,password", "User,Password", "USER,PASSWORD"])
def test_a_column_of_users_beside_one_of_passwords_holds_user_names_however_its_head_is_written(heads):
    kinds = {one.type for one in redact_text(f"{heads}\nmjones,Hunter2!x\nbkent,Sommer19!\n", new_vault()).found}
    assert kinds == {"USERNAME", "PASSWORD"}


@given(texts(), texts())
def test_two_vaults_never_restore_each_others_tokens(text, other):
    ours, theirs = new_vault("kqzmtwbf"), new_vault("yyyyyyyyyy")
    redacted = redact_text(text, ours).text
    redact_text(other, theirs)
    redact_text(text, theirs)
    assert restore_text(redacted, theirs) == redacted


@given(documents())
@example({"A4-5E-60-C2-7B-9F": "deadbeef0001"})
def test_a_document_is_redacted_the_same_as_value_and_as_bytes_and_comes_back_exactly(document):
    raw = msgspec.json.encode(document)
    by_value, by_bytes = new_vault(), new_vault()
    redacted = redact_value(msgspec.json.decode(raw), by_value)
    redacted_raw = redact_json(raw, by_bytes)
    assert msgspec.json.decode(redacted_raw.raw) == redacted.value
    assert redacted_raw.found == redacted.found
    assert restore_value(redacted.value, by_value) == msgspec.json.decode(raw)
    assert msgspec.json.decode(restore_json(redacted_raw.raw, by_bytes)) == msgspec.json.decode(raw)
    again = redact_json(redacted_raw.raw, by_bytes)
    assert (again.raw, again.found) == (redacted_raw.raw, ())


def test_a_token_from_elsewhere_is_left_as_it_is():
    vault = new_vault()
    redact_text("jane@example.com", vault)
    for forged in ("[[EMAIL_1_zzzzzzzz]]", "[[EMAIL_2_kqzmtwbf]]", "[[SSN_1_kqzmtwbf]]", "[[EMAIL_1]]", "[[email_1_kqzmtwbf]]"):
        assert restore_text(forged, vault) == forged
        assert redact_text(forged, vault).text == forged


def test_the_type_named_by_a_token_is_no_context_for_its_neighbour():
    vault = new_vault()
    first = redact_text("call 4165551234", vault).text
    token = first.removeprefix("call ")
    assert redact_text(f"{token} 4165559876", vault).found == ()


def test_values_that_touch_are_all_found():
    text = "+41 44 668 18 00 4111 1111 1111 1111 219-09-9999"
    assert [finding.type for finding in redact_text(text, new_vault()).found] == ["PHONE", "CARD", "SSN"]


def test_the_context_of_a_list_reaches_every_number_in_it():
    text = "phones: " + ", ".join(f"416555{number:04}" for number in range(60))
    assert len(redact_text(text, new_vault()).found) == 60


def test_the_nearest_label_decides():
    vault = new_vault()
    assert redact_text("no SSN on file. Order 219099999", vault).found == ()
    assert [finding.type for finding in redact_text("order 12, SSN 219099999", vault).found] == ["SSN"]


@pytest.mark.parametrize("text", ["\ud800 jane@example.com", "jane@example.com \udfff", "\ud800 SSN 219099999 \ud800"])
def test_a_lone_surrogate_does_not_hide_a_value(text):
    vault = new_vault()
    redaction = redact_text(text, vault)
    assert len(redaction.found) == 1
    assert restore_text(redaction.text, vault) == text


def test_only_granted_types_are_restored():
    vault = new_vault()
    redacted = redact_value({"mail": "jane@example.com", "note": "SSN 219-09-9999"}, vault).value
    restored = restore_value(redacted, vault, frozenset({"EMAIL"}))
    assert restored == {"mail": "jane@example.com", "note": "SSN [[SSN_1_kqzmtwbf]]"}


def test_nested_values_and_keys_are_redacted_and_the_original_is_untouched():
    document = {"people": [{"mail": "jane@example.com", "tags": ("a", "bob@example.com")}], "by": {"jane@example.com": 3}}
    before = copy.deepcopy(document)
    vault = new_vault()
    redaction = redact_value(document, vault)
    assert redaction.value == {
        "people": [{"mail": "[[EMAIL_1_kqzmtwbf]]", "tags": ("a", "[[EMAIL_2_kqzmtwbf]]")}],
        "by": {"[[EMAIL_1_kqzmtwbf]]": 3},
    }
    assert [finding.path for finding in redaction.found] == ["people[0].mail", "people[0].tags[1]", "by"]
    assert document == before


def test_no_finding_holds_the_value_it_stands_for():
    redaction = redact_value({"jane@example.com": {"ssn": "219-09-9999"}}, new_vault())
    assert "jane" not in repr(redaction.found)
    assert "219" not in repr(redaction.found)


def test_a_number_is_hidden_only_when_its_key_names_it_and_comes_back_as_a_number():
    document = {
        "ssn": 219099999,
        "total": 219099999,
        "phones": [4165551234],
        "card": 4111111111111112,
        "zip": 94105,
        "dob": True,
    }
    vault = new_vault()
    value = redact_value(document, vault).value
    assert value == {
        "ssn": "[[SSN_1_kqzmtwbf]]",
        "total": 219099999,
        "phones": ["[[PHONE_1_kqzmtwbf]]"],
        "card": 4111111111111112,  # fails its checksum
        "zip": "[[POSTAL_CODE_1_kqzmtwbf]]",
        "dob": True,
    }
    assert restore_value(value, vault) == document
    assert restore_text("it was [[SSN_1_kqzmtwbf]]", vault) == "it was 219099999"


@pytest.mark.parametrize(
    "document",
    [
        {"kontakt": {"mobilnummer": 4791746382}},
        {"contact": {"mobile": 4915734827193}},
        {"users": [{"gsm": 32478384927}]},
        {"owner": {"cell": 14158384927}},
        {"personne": {"portable": 638492715}},
        {"question": "Votre téléphone", "valeur": 639981278},
        {"pregunta": "¿Su teléfono?", "respuesta": 612345678},
    ],
)
def test_a_number_under_a_key_for_mobiles_is_hidden_if_it_is_valid_with_or_without_its_country_code(document):
    assert len(redact_value(document, new_vault()).found) == 1


@pytest.mark.parametrize(
    "document",
    [
        {"mobile": 2345678},
        {"mobile": 999999999999},
        {"traffic": {"mobile": 4182736012}},
        {"mobile": 4182736012, "desktop": 3918273645},
        {"mobile_calls": 4915734827193},
        {"mobile_users": 4155550132},
    ],
)
def test_a_number_under_a_key_for_mobiles_that_counts_stays(document):
    assert redact_value(document, new_vault()).value == document


def test_a_number_obeys_the_policy():
    policy = Policy({"SSN": Action.MASK, "PHONE": Action.ALLOW})
    value = redact_value({"ssn": 219099999, "phone": 4165551234}, new_vault(), policy).value
    assert value == {"ssn": "****9999", "phone": 4165551234}


def test_keys_that_end_in_the_same_mask_stay_apart():
    document = {"card 4111 1111 1111 1111": 1, "card 4111-1111-1111-1111": 2}
    value = redact_value(document, new_vault(), Policy(default=Action.MASK)).value
    assert value == {"card ****1111": 1, "card ****1111 (2)": 2}


def test_the_type_named_by_a_token_in_a_key_is_no_context_for_its_value():
    vault = new_vault()
    once = redact_value({"a4:5e:60:c2:7b:9f": "deadbeef0001"}, vault).value
    assert once == {"[[MAC_1_kqzmtwbf]]": "deadbeef0001"}
    assert redact_value(once, vault).found == ()


def test_a_key_names_what_stands_below_it():
    found = redact_value({"bank_account": {"holder": "Jane", "number": "12345678"}}, new_vault()).found
    assert [(finding.type, finding.path) for finding in found] == [("BANK_ACCOUNT", "bank_account.number")]


def test_a_clean_document_comes_back_as_the_same_bytes():
    for raw in (b'{ "n": 1.10, "when": "2025-10-09" }', b'{"caf\\u00e9": "12:30"}', b'{"phone": "none", "n": 12345678}'):
        assert redact_json(raw, new_vault()).raw is raw
        assert restore_json(raw, new_vault()) == raw


def test_an_escaped_value_is_found():
    raw = b'{"mail": "jane\\u0040example.com", "tel": "\\u002b44 20 7946 0958"}'
    assert len(redact_json(raw, new_vault()).found) == 2
    assert len(redact_json(b'{"url": "https:\\/\\/admin:secret@example.com"}', new_vault()).found) == 1


def test_large_integers_survive_redaction():
    raw = b'{"n": 123456789012345678901234567890, "mail": "jane@example.com"}'
    assert b"123456789012345678901234567890" in redact_json(raw, new_vault()).raw


@pytest.mark.parametrize("unit", ["a@b.co ", "219-09-9999 ", "10.2.3.4 ", "4111 1111 1111 1111 "])
def test_every_value_of_dense_personal_text_is_redacted(unit):
    count = 20_000 // len(unit)
    assert len(redact_text(unit * count, new_vault()).found) == count


def test_keys_that_mask_alike_stay_apart():
    document = {f"user{number}@example.com": number for number in range(500)}
    redacted = redact_value(document, new_vault(), Policy(default=Action.MASK)).value
    assert sorted(redacted.values()) == list(range(500))


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        ({"social": {"security": {"number": "123456789"}}}, "SSN"),
        ({"date": {"of": {"birth": 19800229}}}, "DOB"),
        ({"tax": {"id": {"number": "86095742719"}}}, "TAX_ID"),
    ],
)
def test_three_keys_of_the_path_name_a_value(document, kind):
    assert f"[[{kind}_1_" in repr(redact_value(document, new_vault()))


# --- pauses ---


def pauses(work) -> int:
    return sum(1 for _ in work)


def test_a_document_of_many_small_parts_pauses_after_so_many_of_them_and_no_more_often():
    raw = msgspec.json.encode({"mail": "ann@example.com", "list": [1] * 1600})
    assert 1600 // walk._PARTS_IN_SLICE <= pauses(redact_json_sliced(raw, new_vault())) <= 110


def test_many_values_and_many_tokens_are_replaced_with_pauses():
    vault = new_vault()
    spans = DEFAULT_SCANNER.find("ann@example.com, " * 640)
    assert pauses(replaced_sliced("ann@example.com, " * 640, spans, vault, Policy(), "")) == 640 // SLICE_ITEMS
    assert pauses(walls_sliced("**** x " * 640)) == 640 // SLICE_ITEMS


def test_a_short_text_is_redacted_without_a_pause():
    assert pauses(redact_text_sliced("write to ann@example.com", new_vault())) == 0


def test_tokens_and_masks_alone_or_together_are_walls():
    assert walls_in("a [[EMAIL_1_kqzmtwbf]] b") == [Wall(2, 22)]
    assert walls_in("a **** b") == [Wall(2, 6)]
    assert walls_in("[[EMAIL_1_kqzmtwbf]] ****") == [Wall(0, 20), Wall(21, 25)]
    for text in ("a [[EMAIL_1_kqzmtwbf]] b", "a **** b", "[[EMAIL_1_kqzmtwbf]] ****", "a"):
        assert whole(walls_sliced(text)) == walls_in(text)


@pytest.mark.parametrize(
    ("key", "groups"),
    [
        ("card", ["3782", "822463", "10005"]),
        ("phone", ["044", "668", "18", "00"]),
        ("card", [4111, 1111, 1111, 1111]),
    ],
)
def test_groups_of_two_to_six_digits_that_are_one_value_are_hidden_each(key, groups):
    vault = new_vault()
    redacted = redact_value({key: groups}, vault).value
    assert all(one.startswith("[[") for one in redacted[key])
    assert restore_value(redacted, vault) == {key: groups}


def test_groups_that_are_no_value_together_and_groups_without_a_name_stay():
    for value in ({"phone": [12, 34]}, {"card": ["99", "4111", "1111", "1111", "1111"]}, [[4111, 1111, 1111, 1111]]):
        assert redact_value(value, new_vault()).value == value


def test_what_stands_beside_the_parts_of_a_birthday_is_redacted_too():
    born = {"date_of_birth": {"year": 1980, "month": 5, "day": 17, "email": "ann@example.com"}}
    hidden = redact_value(born, new_vault()).value["date_of_birth"]
    assert all(str(part).startswith("[[") for part in hidden.values())


def test_a_whole_float_under_a_name_is_hidden_as_the_number_it_is_and_others_stay_floats():
    vault = new_vault()
    hidden = redact_value({"card": 4111111111111111.0}, vault).value
    assert restore_value(hidden, vault) == {"card": 4111111111111111}
    assert hidden["card"].startswith("[[CARD_1_")
    for other in (4111111111111112.0, 4111111111111111.5, 219099999.0, 2.0**63):
        for kept in redact_value({"card": other, "ssn": other}, vault).value.values():
            assert (type(kept), kept) == (float, other)


@pytest.mark.parametrize(
    ("kind", "value", "masked"),
    [
        ("EMAIL", "ann@example.com", "****@example.com"),
        ("PHONE", "12345678", "****5678"),
        ("PHONE", "1234567", "****"),
        ("IP", "10.0.0.12", "****"),
        ("CREDENTIAL", "hunter2hunter2", "****"),
    ],
)
def test_a_mask_shows_the_last_four_of_eight_letters_and_digits_or_more(kind, value, masked):
    assert hiding._mask(kind, value) == masked


def test_stars_take_the_place_of_every_value_for_good():
    assert scrub("ann@example.com or bob@example.com") == "**** or ****"


@pytest.mark.parametrize("short", [1, 0])
def test_a_pause_comes_with_each_slice_that_is_full(short):
    vault, count = new_vault(), SLICE_ITEMS - short
    token = vault.token("EMAIL", "ann@example.com")
    texts = f"{token} " * count
    assert pauses(restore_value_sliced(texts, vault)) == 1 - short
    assert whole(restore_value_sliced(texts, vault)) == "ann@example.com " * count
    assert pauses(restore_value_sliced(["x"] * count, vault)) == 1 - short
    assert pauses(restore_value_sliced({str(number): "x" for number in range(count)}, vault)) == 1 - short
    assert pauses(walls_sliced("**** x " * count)) == 1 - short
    parts = walk._PARTS_IN_SLICE - short
    for value in ([1] * parts, {str(number): 1 for number in range(parts)}):
        assert pauses(redact._redact_value(value, vault, Policy(), DEFAULT_SCANNER)) == 1 - short


def test_a_record_is_redacted_the_same_alone_and_among_others_like_it():
    records = [
        {"name": "Ann", "email": "ann@example.com", "ref": "12-34"},
        {"name": "Bob", "email": "ann@example.com", "ref": "12-34"},
        {"tel": {"no: 2345678": "x"}},
        {"tel no": "2345678: x"},  # the same words as before, with the border elsewhere
        {"name": "ann@example.com", "ann@example.com": "Ann", "ref": "Ann"},
        {"email": "Ann", "ref": "ann@example.com", "tel no": "2345678"},
    ]
    vault = new_vault()
    together = redact_value(records, vault)
    assert together.value == [redact_value(record, vault).value for record in records]
    assert len(together.found) == sum(len(redact_value(record, vault).found) for record in records) > 6
    assert together.value[3]["tel no"].startswith("[[PHONE_1_")


def test_of_no_types_nothing_is_restored_and_of_some_only_those():
    vault = new_vault()
    hidden = redact_text("ann@example.com, 4111 1111 1111 1111", vault).text
    assert restore_text(hidden, vault, frozenset()) == hidden
    assert restore_text(hidden, vault, frozenset({"EMAIL"})).startswith("ann@example.com, [[CARD_1")
    assert restore_text(hidden, vault) == "ann@example.com, 4111 1111 1111 1111"


@pytest.mark.parametrize(
    ("item", "is_group"),
    [("1", True), ("12", True), ("123456", True), ("1234567", False), ("\u0661\u0662", False), ("1a", False), ("", False),
     (12, True), (1, True), (True, False), (1.5, False), (None, False)],
)  # fmt: skip
def test_a_part_of_a_split_number_has_one_to_six_plain_digits(item, is_group):
    assert walk._is_group(item) is is_group


def test_an_option_names_the_next_item_of_a_list_and_only_that():
    redacted = redact_value(["run", "--db-password", "Ahorn91", "Ahorn92", "--verbose"], new_vault()).value
    assert redacted[2].startswith("[[PASSWORD_1_")
    assert redacted[:2] + redacted[3:] == ["run", "--db-password", "Ahorn92", "--verbose"]


def test_of_numbers_with_less_than_five_digits_only_the_code_of_a_card_is_hidden():
    redacted = redact_value({"cvv": 318, "pin": 4471, "plz": 8001, "cvc": 31}, new_vault()).value
    assert str(redacted.pop("cvv")).startswith("[[CARD_1_")
    assert redacted == {"pin": 4471, "plz": 8001, "cvc": 31}


def test_a_date_of_birth_split_over_a_list_is_hidden_and_another_date_is_not():
    redacted = redact_value({"dob": [14, 7, 1980], "due": [14, 7, 1980]}, new_vault()).value
    assert [str(part)[:6] for part in redacted["dob"]] == ["[[DOB_"] * 3
    assert redacted["due"] == [14, 7, 1980]


def test_rows_that_do_not_fit_the_heads_of_a_table_are_redacted_by_themselves():
    table = [["name", "iban"], ["x", "DE89370400440532013000"], ["only one"], "mail bo@example.com", {"iban": 7}]
    redacted = redact_value(table, new_vault()).value
    assert redacted[1][0] == "x"
    assert redacted[1][1] != "DE89370400440532013000"
    assert redacted[2] == ["only one"]
    assert "bo@example.com" not in redacted[3]
    assert redacted[4] == {"iban": 7}


def test_a_value_under_a_key_that_is_no_text_is_redacted():
    redacted = redact_value({7: "bo@example.com", None: ["ann@example.com"]}, new_vault()).value
    assert redacted.keys() == {7, None}
    assert "example.com" not in repr(redacted)


@pytest.mark.parametrize(
    ("role", "item", "name"),
    [
        ("KIND", "MRN", "MRN"),
        ("KIND", {"text": "MRN"}, "MRN"),
        ("KIND", {"coding": [{"display": "MRN"}]}, "MRN"),
        ("KIND", {"text": {"name": {"label": "MRN"}}}, "MRN"),
        ("KIND", {"text": {"name": {"label": {"text": "MRN"}}}}, ""),  # too deep
        ("KIND", [], ""),
        ("KIND", {"other": "MRN"}, ""),
        ("KIND", 7, ""),
        ("NAMING", "MRN", "MRN"),
        ("NAMING", {"text": "MRN"}, ""),  # only a kind is looked for further in
        ("NAMING", ["MRN"], ""),
        ("NAMING", "x" * roles._NAME_CHARS_MAX, "x" * roles._NAME_CHARS_MAX),
        ("NAMING", "x" * (roles._NAME_CHARS_MAX + 1), ""),
    ],
)
def test_a_name_is_a_short_text_and_that_of_a_kind_may_stand_further_in(role, item, name):
    assert roles.name_of(roles.Role[role], item) == name


@pytest.mark.parametrize("key", ["item{n}", "tel x{n}"])
def test_a_number_under_a_key_that_never_came_before_asks_few_detectors_for_more_than_a_word(key):
    def steps(numbers: int) -> int:
        document = {"note": "tel 2345678"} | {key.format(n=n): 100_000 + n for n in range(numbers)}
        return count_steps(lambda: redact_value(document, new_vault()))

    steps(10)  # what is done once in a process
    assert (steps(320) - steps(120)) / 200 < 1_500  # 7,000 where every detector looks for its label by itself


def test_the_place_of_a_value_under_a_long_key_is_short():
    redaction = redact_value({"x" * 100_000 + " ssn": [[219_099_999]]}, new_vault())
    assert [one.type for one in redaction.found] == ["SSN"]
    assert len(redaction.found[0].path) < 300


@pytest.mark.parametrize("first", ["user", "species"])
def test_of_a_large_object_few_keys_are_read_before_the_first_pause(first):
    def steps(keys: int) -> int:
        document = {first: "a"} | {f"{first}{n} {keys}": "a@b.co" for n in range(keys)}
        work = redact_json_sliced(json.dumps(document).encode(), new_vault())
        return max(count_steps(lambda: next(work)) for _ in range(200))

    steps(4_000)  # what is done once in a process
    assert steps(16_000) < 2 * steps(4_000)
