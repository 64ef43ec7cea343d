"""What stands beside a number decides where the number itself does not."""

from __future__ import annotations

import pytest
from redaction_corpus import new_vault

from comity.core.redaction import redact_text


def redacted(text: str) -> str:
    return redact_text(text, new_vault()).text


@pytest.mark.parametrize(
    "text",
    [
        "part 03-1234-5678 superseded by 03-1234-5679",
        "item 123-45-6789 is blue, the next one 123-45-6790",
        "Chapter 10.11.12.13 describes the valve; 10.11.12.14 the actuator.",
    ],
)
def test_a_number_beside_a_things_number_of_its_shape_is_a_things(text):
    assert redacted(text) == text


def test_a_label_of_its_own_counts_beside_a_things_number():
    assert redacted("part 03-1234-5678, tel 03-1234-5679") == "part 03-1234-5678, tel [[PHONE_1_kqzmtwbf]]"


@pytest.mark.parametrize("text", ["tel domu 22 441 28 89", "phone in Bogotá office 601 441 28 89", "dni del titular 12345678Z"])
def test_two_words_may_stand_between_a_label_and_a_number_that_proves_more(text):
    assert text[-5:] not in redacted(text)


@pytest.mark.parametrize("text", ["phone sales grew 4155550132", "tel order 22 441 28 89", "dni records read 12345678A"])
def test_words_between_a_label_and_any_other_number_end_the_label(text):
    assert redacted(text) == text


@pytest.mark.parametrize(
    "text", ["Telefon domowy sąsiadki: 604 183 927", "Llame al fontanero urgente 634 918 275", "Teléfono de turno 612 345 678"]
)
def test_nine_digits_in_threes_are_a_phone_number_in_languages_that_write_it_so(text):
    assert text[-11:] not in redacted(text)


@pytest.mark.parametrize(
    "text",
    [
        "Phone sales this year: 604 183 927",
        "Telefon Umsatz: 604 183 927",
        "Telefon satış adedi: 604 183 927",
        "Ventas por teléfono del trimestre: 612 345 678",
        "Telefon i internet razem: 604 183 927 zł",
    ],
)
def test_nine_digits_in_threes_are_a_count_behind_words_that_say_so(text):
    assert redacted(text) == text


@pytest.mark.parametrize("text", ["85041260446 (PESEL)", "740.204.589-79 is his CPF", "40518196128 ist meine Steuer-ID."])
def test_a_number_with_a_check_digit_may_have_its_label_behind_it(text):
    assert redacted(text).startswith("[[")


@pytest.mark.parametrize("words", ["x", "it is", "first of all,", "Numer:"])
def test_a_number_with_a_check_digit_has_its_label_behind_it_whatever_words_stand_before(words):
    assert redacted(f"{words} 85041260446 (PESEL).").startswith(f"{words} [[")


@pytest.mark.parametrize(
    "text", ["85041260447 (PESEL)", "106823607 (BSN validation) rows", "98963893188 is the OIB byte count"]
)
def test_a_label_behind_a_number_without_a_check_digit_or_before_a_noun_says_nothing(text):
    assert redacted(text) == text


def test_the_words_behind_a_number_take_back_a_plain_one_alone():
    assert redacted("call 4165550132 widgets") == "call 4165550132 widgets"
    assert redacted("ligue para (21) 99812-4477 ainda hoje") == "ligue para [[PHONE_1_kqzmtwbf]] ainda hoje"


def test_a_text_under_the_key_text_is_no_phone_number():
    assert redacted("text: 4155550132") == "text: 4155550132"
    assert redacted("please text 4155550132") == "please text [[PHONE_1_kqzmtwbf]]"


def test_labels_of_scripts_with_vowel_signs_are_read_whole():
    assert redacted("आधार संख्या 2341 2341 2346") == "आधार संख्या [[NATIONAL_ID_1_kqzmtwbf]]"


def test_a_list_of_numbers_in_order_is_no_card():
    assert redacted("rooms on this floor, 4411 4412 4413 4418") == "rooms on this floor, 4411 4412 4413 4418"


def test_a_mistyped_number_is_hidden_under_a_label_that_means_nothing_else():
    assert redacted("PESEL 44051401358") == "PESEL [[NATIONAL_ID_1_kqzmtwbf]]"
    assert redacted("CPF: 529.982.247-24") == "CPF: [[TAX_ID_1_kqzmtwbf]]"


@pytest.mark.parametrize("text", ["RUN 12345678-0", "ID number 8001015009080", "PESEL checks failed 44051401358"])
def test_a_mistyped_number_stays_where_the_label_may_mean_something_else_or_stands_apart(text):
    assert redacted(text) == text
