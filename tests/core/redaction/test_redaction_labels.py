"""The table of labels: every type is named in the languages in which it is written."""

from __future__ import annotations

import msgspec
import pytest
from corpus import read_corpus
from redaction_corpus import HERE, new_vault

from comity.core.redaction import may_hold_personal_data, redact_text
from comity.core.redaction.shapes import first_letters

LABELS: dict[str, dict[str, list[str]]] = read_corpus(HERE / "labels_by_language.yaml")


@pytest.mark.parametrize("kind", LABELS)
def test_every_label_of_the_table_names_its_value(kind):
    left = [
        f"{language}: {label}"
        for language, (value, *labels) in LABELS[kind].items()
        for label in labels
        if value in redact_text(f"{label}: {value}", new_vault()).text
    ]
    assert left == []


@pytest.mark.parametrize("kind", ["PHONE", "DOB", "PASSPORT", "BANK_ACCOUNT", "PASSWORD", "USERNAME", "ADDRESS"])
def test_the_table_has_no_holes_among_forty_languages(kind):
    assert len(LABELS[kind]) >= 38


@pytest.mark.parametrize(
    ("pattern", "letters"),
    [("pass|Wort", "PWpw"), ("(?:a|bc)?de", "ABDabd"), ("[xy]z?|ß", "SXYxyß"), (r"\.net|(?:(?:u|v)w)?", r".UVuv")],
)
def test_the_letters_with_which_words_begin(pattern, letters):
    assert set(first_letters(pattern)[1:-1].replace("\\", "")) == set(letters)


@pytest.mark.parametrize("text", ["Compare it with the plan of 2025-07-01", "Parcel 4165550132 has come", "12345678"])
@pytest.mark.parametrize("key", ["message", "text"])
def test_a_number_in_a_message_alone_is_no_reason_to_search_it(key, text):
    """Most calls have an input of that name: a search takes a hundred times as long as the quick test."""
    assert not may_hold_personal_data(msgspec.json.encode({key: text}))
    assert may_hold_personal_data(msgspec.json.encode({key: f"{key} 4165550132"}))
    assert may_hold_personal_data(msgspec.json.encode({"note": f'the "{key}" 4165550132'}))
