"""Vaults: values to tokens and back, for one session only."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from redaction_corpus import PERSONAL_VALUES, new_vault

from comity.core.redaction import DEFAULT_SCANNER, TOKEN, TYPES, Vault, VaultFullError, restore_json
from comity.core.redaction import vault as module
from comity.core.redaction.vault import TOKEN_CHARS_MAX

VALUES = st.one_of(st.sampled_from(PERSONAL_VALUES), st.integers(0, 10**12), st.text(max_size=20))
ENTRIES = st.lists(st.tuples(st.sampled_from(sorted(TYPES)), VALUES), max_size=12)


@given(ENTRIES)
def test_the_same_value_gets_the_same_token_and_different_values_never_share_one(entries):
    vault = new_vault()
    tokens = {entry: vault.token(*entry) for entry in entries}
    assert all(vault.token(*entry) == token for entry, token in tokens.items())
    assert len(set(tokens.values())) == len(tokens) == len(vault)
    assert all(vault.value(token) == value for (_, value), token in tokens.items())
    assert all(type(vault.value(token)) is type(value) for (_, value), token in tokens.items())


@given(ENTRIES, ENTRIES)
def test_a_vault_read_back_from_plain_data_goes_on_as_if_it_had_never_been_stored(before, after):
    kept = new_vault()
    for entry in before:
        kept.token(*entry)
    stored = Vault.from_data(msgspec.json.decode(msgspec.json.encode(kept.to_data())))
    assert stored.to_data() == kept.to_data()
    assert [stored.token(*entry) for entry in after] == [kept.token(*entry) for entry in after]


def test_two_spellings_of_a_value_share_a_number_and_come_back_as_written():
    vault = new_vault()
    first = vault.token("CARD", "4111 1111 1111 1111")
    second = vault.token("CARD", "4111-1111-1111-1111")
    assert (first, second) == ("[[CARD_1_kqzmtwbf]]", "[[CARD_1v2_kqzmtwbf]]")
    assert vault.value(second) == "4111-1111-1111-1111"
    assert vault.token("CARD", "5133401878017598") == "[[CARD_2_kqzmtwbf]]"
    assert [vault.token("EMAIL", one) for one in ("ann@example.com", "Ann@Example.com")] == [
        "[[EMAIL_1_kqzmtwbf]]",
        "[[EMAIL_1v2_kqzmtwbf]]",
    ]


def test_a_new_value_never_takes_the_number_of_another_after_an_old_one_was_spelled_anew():
    vault = new_vault()
    for value in ("5133401878017598", "4010928159013962", "5133 4018 7801 7598"):
        vault.token("CARD", value)
    assert vault.token("CARD", "6011379600369070") == "[[CARD_3_kqzmtwbf]]"


@pytest.mark.parametrize(
    ("kind", "one", "other"), [("IP", "1.2.3.45", "1.23.4.5"), ("DOB", "1/11/1984", "11/1/1984"), ("BTC", "1Aa", "1aA")]
)
def test_values_that_differ_only_in_where_the_dots_or_capitals_stand_are_not_the_same(kind, one, other):
    vault = new_vault()
    assert vault.token(kind, one) == f"[[{kind}_1_kqzmtwbf]]"
    assert vault.token(kind, other) == f"[[{kind}_2_kqzmtwbf]]"


def test_a_number_and_its_text_are_two_spellings_of_one_value():
    vault = new_vault()
    assert vault.token("SSN", 219099999) == "[[SSN_1_kqzmtwbf]]"
    assert vault.token("SSN", "219-09-9999") == "[[SSN_1v2_kqzmtwbf]]"
    assert vault.value("[[SSN_1_kqzmtwbf]]") == 219099999


def test_a_token_of_another_vault_is_unknown():
    ours, theirs = new_vault("kqzmtwbf"), new_vault("zzzzzzzz")
    token = theirs.token("EMAIL", "jane@example.com")
    ours.token("EMAIL", "bob@example.com")
    assert token not in ours
    assert ours.value(token) is None


@given(st.sampled_from(sorted(TYPES)), st.integers(1, 999_999), st.from_regex("[a-z]{8,32}", fullmatch=True))
def test_no_detector_looks_into_a_token(kind, number, tag):
    token = f"[[{kind}_{number}_{tag}]]"
    assert TOKEN.fullmatch(token)
    assert len(token) <= TOKEN_CHARS_MAX
    assert DEFAULT_SCANNER.find(token) == []
    assert msgspec.json.encode(token) == f'"{token}"'.encode()


@pytest.mark.parametrize("tag", ["", "short", "UPPERCASE", "with1digit", "a" * 33, "with-dash"])
def test_a_tag_that_could_be_guessed_or_misread_is_refused(tag):
    with pytest.raises(ValueError, match="tag"):
        Vault(tag)


def test_a_tag_made_of_entropy_differs_with_every_bit():
    tags = {Vault.from_entropy((1 << bit).to_bytes(8, "big")).tag for bit in range(64)}
    assert len(tags) == 64
    assert all(len(tag) == 16 for tag in tags)


@pytest.mark.parametrize("kind", ["email", "E", "E1", "_E", "E_", "E]]"])
def test_a_type_that_would_spoil_the_token_is_refused(kind):
    with pytest.raises(ValueError, match="type"):
        new_vault().token(kind, "x")


@pytest.mark.parametrize("bound", ["VALUES_MAX", "VAULT_BYTES_MAX"])
def test_a_full_vault_says_so_instead_of_letting_values_through(monkeypatch, bound):
    monkeypatch.setattr(module, bound, 2)
    vault = new_vault()
    vault.token("SSN", "a")
    vault.token("SSN", "b")
    with pytest.raises(VaultFullError):
        vault.token("SSN", "c")
    assert vault.token("SSN", "a") == "[[SSN_1_kqzmtwbf]]"


@given(ENTRIES, ENTRIES, ENTRIES)
def test_two_who_read_one_vault_never_give_one_token_to_two_values_and_can_know_what_the_other_hid(before, here, there):
    kept = new_vault()
    for entry in before:
        kept.token(*entry)
    ours, theirs = (Vault.from_data(kept.to_data(), issuer) for issuer in ("n1", "n2"))
    hidden = [(vault.token(*entry), entry[1]) for vault, entries in ((ours, here), (theirs, there)) for entry in entries]
    ours.learn(theirs)
    again = Vault.from_data(msgspec.json.decode(msgspec.json.encode(ours.to_data())), "n3")
    for vault in (ours, again):
        assert [(token, vault.value(token)) for token, _ in hidden] == hidden
        assert restore_json(msgspec.json.encode([token for token, _ in hidden]), vault) == msgspec.json.encode(
            [value for _, value in hidden]
        )
        assert len({vault.token(*entry) for entry in [*before, *here, *there]}) == len({*before, *here, *there})


CARDS = "4111 1111 1111 1111", "4111-1111-1111-1111"


def test_a_vault_is_stored_with_each_value_and_the_tag_only_where_it_is_of_another_copy():
    vault = new_vault()
    for card in CARDS:
        vault.token("CARD", card)
    assert vault.to_data() == {"tag": "kqzmtwbf", "values": [["CARD", 1, 1, CARDS[0]], ["CARD", 1, 2, CARDS[1]]]}
    other = Vault.from_data(vault.to_data(), issuer="n2")
    other.token("EMAIL", "ann@example.com")
    assert other.to_data()["values"][0] == ["CARD", 1, 1, CARDS[0], "kqzmtwbf"]
    assert other.to_data()["values"][2] == ["EMAIL", 1, 1, "ann@example.com"]


def test_a_second_spelling_gets_a_token_of_its_own_after_a_restart_and_in_another_copy():
    kept, learner = new_vault(), new_vault()
    kept.token("CARD", CARDS[0])
    learner.learn(kept)
    for vault in (Vault.from_data(kept.to_data()), learner):
        assert vault.token("CARD", CARDS[1]) == "[[CARD_1v2_kqzmtwbf]]"
        assert vault.token("CARD", CARDS[0]) == "[[CARD_1_kqzmtwbf]]"


def test_a_tag_is_two_letters_from_a_to_p_for_each_byte_and_at_most_32():
    assert Vault.from_entropy(bytes([0x0F] * 8)).tag == "ap" * 8
    assert Vault.from_entropy(bytes([0xF0] * 17)).tag == "pa" * 16
    assert len(Vault.from_data(new_vault().to_data(), issuer="n2").tag) == 16


def test_known_values_are_hidden_where_no_detector_finds_them_the_longest_first(monkeypatch):
    vault = new_vault()
    inner, outer = vault.token("NAME", "Smith"), vault.token("NAME", "Smithson")
    vault.token("NAME", "Lees")
    assert vault.hide_known("Smithson, Smith, Lees") == f"{outer}, {inner}, Lees", "four letters may stand for anything"
    monkeypatch.setattr(module, "_SEARCHED_MAX", 3)
    assert vault.hide_known("Smith") == inner
    monkeypatch.setattr(module, "_SEARCHED_MAX", 2)
    assert vault.hide_known("Smith") == "Smith"
