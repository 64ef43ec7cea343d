"""Texts written without a look at the detectors, kept after their first run."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from corpus import read_corpus
from redaction_corpus import HERE, marked, new_vault, plain

from comity.core.redaction import may_hold_personal_data, redact_value

FRESH: dict[str, list[Any]] = read_corpus(HERE / "fresh_texts.yaml")


def strings(value: Any) -> list[str]:
    match value:
        case str():
            return [value]
        case dict():
            return [text for item in value.values() for text in strings(item)]
        case list():
            return [text for item in value for text in strings(item)]
        case _:
            return []


def redacted(value: Any) -> Any:
    return redact_value(value, new_vault()).value


def test_ordinary_texts_stay_as_they_are():
    assert [text for text in FRESH["ordinary"] if redacted(text) != text] == []


def test_no_marked_value_of_a_personal_text_stays():
    left = [
        row for row in FRESH["personal"] for text in strings(redacted(plain(row))) if any(one in text for one in marked(row))
    ]
    assert left == []


def test_the_quick_test_lets_each_personal_text_through_to_the_scan():
    texts = [plain(row) for row in FRESH["personal"] if marked(row)]
    assert [text for text in texts if not may_hold_personal_data(msgspec.json.encode(text))] == []


@pytest.mark.parametrize(("kind", "at_least"), [("ordinary", 600), ("personal", 600)])
def test_the_texts_are_many(kind, at_least):
    assert len(FRESH[kind]) >= at_least
