"""The detectors, one by one: what they must find, what they must leave, and that no text can make them slow."""

from __future__ import annotations

import re._constants as sre
import re._parser as sre_parser
from collections import Counter
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from redaction_corpus import (
    BUSINESS_DOCUMENTS,
    BUSINESS_TEXTS,
    PERSONAL_DOCUMENTS,
    PERSONAL_TEXTS,
    TRUE_POSITIVES,
    marked,
    new_vault,
    of_detectors,
    plain,
)

from comity.core.redaction import (
    DEFAULT_SCANNER,
    DETECTORS,
    TOKEN,
    TYPES,
    PatternDetector,
    Scanner,
    may_hold_personal_data,
    redact_text,
    redact_value,
)
from comity.core.redaction.shapes import VALUE_CHARS_MAX

PER_DETECTOR_MIN = 10
BUSINESS_MIN = 200
KINDS = {detector.name: detector.type for detector in DETECTORS}
PATTERNS = [detector for detector in DETECTORS if isinstance(detector, PatternDetector)]


def found_in(text):
    return [(span.detector.name, text[span.start : span.end]) for span in DEFAULT_SCANNER.find(text)]


@pytest.mark.parametrize(("name", "rows"), of_detectors(PERSONAL_TEXTS))
def test_every_marked_value_is_found_whole_and_nothing_else(name, rows):
    for row in rows:
        found = found_in(plain(row))
        assert [value for _, value in found] == marked(row)
        assert KINDS[name] in {KINDS[detector] for detector, _ in found}


@pytest.mark.parametrize(("name", "row"), PERSONAL_DOCUMENTS, ids=str)
def test_every_marked_value_is_found_by_its_json_key(name, row):
    vault = new_vault()
    redaction = redact_value(plain(row), vault)
    tokens = TOKEN.finditer(msgspec.json.encode(redaction.value).decode())
    assert [vault.value(token.group()) for token in tokens] == marked(row)


def test_the_true_positives_hold_at_least_ten_values_per_type_of_the_first_detectors():
    counts = Counter(KINDS[detector] for _, row in PERSONAL_TEXTS for detector, _ in found_in(plain(row)))
    assert {KINDS[name] for name in TRUE_POSITIVES if name in KINDS and counts[KINDS[name]] < PER_DETECTOR_MIN} == set()


def test_business_texts_are_left_alone():
    assert [(text, found_in(text)) for text in BUSINESS_TEXTS if found_in(text)] == []
    assert [redact_text(text, new_vault()).text for text in BUSINESS_TEXTS] == BUSINESS_TEXTS


def test_business_documents_are_left_alone():
    assert [document for document in BUSINESS_DOCUMENTS if redact_value(document, new_vault()).found] == []


def test_the_false_positives_are_at_least_two_hundred_different_lines():
    assert len(set(BUSINESS_TEXTS)) >= BUSINESS_MIN


@pytest.mark.parametrize(("name", "rows"), of_detectors(PERSONAL_TEXTS + PERSONAL_DOCUMENTS))
def test_the_quick_test_never_calls_a_document_with_personal_data_clean(name, rows):
    for value in map(plain, rows):
        variants = [value, {"note": value}, [[value]], {"a": 1, "b": [value, None]}]
        if isinstance(value, str):
            variants += [f"first line\n{value}\nlast", f"\t{value}", f'"{value}"', {value: 1}]
        for variant in variants:
            assert may_hold_personal_data(msgspec.json.encode(variant)), variant


def test_names_are_unique_and_every_type_has_one_category():
    assert len({detector.name for detector in DETECTORS}) == len(DETECTORS)
    assert {detector.type: detector.category for detector in DETECTORS} == TYPES
    assert all(TYPES[detector.type] is detector.category for detector in DETECTORS)


def _repeats(tree):
    """Yield every repeat of a parsed pattern as (least, most, whether a repeat of open length stands inside)."""
    for operation, argument in tree:
        if operation in {sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT}:
            least, most, inner = argument
            yield least, most, any(low != high for low, high, _ in _repeats(inner))
            yield from _repeats(inner)
        elif operation is sre.BRANCH:
            for branch in argument[1]:
                yield from _repeats(branch)
        elif operation is sre.SUBPATTERN:
            yield from _repeats(argument[-1])
        elif operation in {sre.ASSERT, sre.ASSERT_NOT}:
            yield from _repeats(argument[1])


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda detector: detector.name)
def test_no_pattern_repeats_without_bound(detector):
    repeats = list(_repeats(sre_parser.parse(detector.pattern.pattern, detector.pattern.flags)))
    assert all(most is not sre.MAXREPEAT and most <= 128 for _, most, _ in repeats)
    # A group that holds an open repeat is itself repeated a few times at most: the work per start stays a small constant.
    assert all(most <= 30 for least, most, holds_open in repeats if holds_open and least != most)


# Pieces that begin a value of each kind and never end one.
HOSTILE = [
    "://a:b", "a.b-c_d+", "a.b (at) c.d ", "GB29 NWBK 6016 ", "4111 1111 ", "card 4111111111111112 ", "0x29ea1a36", "1A1zP1eP",
    "a4:5e:60:", "2001:db8:", "routing 123456789 ", "123-45-678-", "ssn 000 12 345 ", "046-454-287-", "AB 12 34 56 ",
    "nhs 943 476 591 ", "passport A1B2C3D4E5F6G7 ", "dl A1-B2-C3-", "born 3 may 12/12/", "+44 20 (7946) ", "416-555-123-",
    "416 555 123 ", "call 555 12 34 ", "account 123 456 ", "bic DEUTDEF ", "12 Main Elm Oak ", "address 12 main elm ",
    "12 rue de la ", "K1A 0B", "SW1A 1A", "zip 9410 ", "1.2.3.", "username: a_", "1", "1-", "[[EMAIL_1_", "****", "\u00a0", "é",
]  # fmt: skip


@pytest.mark.parametrize("detector", PATTERNS, ids=lambda detector: detector.name)
def test_each_place_of_a_hostile_text_is_judged_at_most_once(detector):
    judged = []

    def counting(value):
        judged.append(value)
        return detector.accept(value)

    counted = replace(detector, accept=counting)
    for unit in HOSTILE:
        text = (unit * 2000)[:2000]
        judged.clear()
        spans = list(counted.spans(text))
        assert len(judged) <= len(text)
        assert all(0 <= start < end <= len(text) and end - start <= VALUE_CHARS_MAX for start, end in spans)
        assert sum(map(len, judged)) <= len(text) * VALUE_CHARS_MAX


class Counting:
    """A detector that counts how often its surroundings were judged."""

    def __init__(self, inner):
        self.inner, self.count = inner, 0

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def fits(self, before, after):
        self.count += 1
        return self.inner.fits(before, after)


@pytest.mark.parametrize("unit", HOSTILE)
def test_twice_the_hostile_text_is_at_most_little_more_than_twice_the_work(unit):
    def work(size):
        counting = [Counting(detector) for detector in DETECTORS]
        Scanner(counting).find((unit * size)[:size] + " ssn 219-09-9999, jane@example.com")
        return sum(detector.count for detector in counting)

    assert work(2000) <= 2.2 * work(1000) + 50


@given(st.lists(st.sampled_from(HOSTILE), min_size=1, max_size=4), st.integers(1, 60))
def test_no_mixture_of_hostile_pieces_breaks_redaction(units, times):
    text = "".join(units) * times
    vault = new_vault()
    once = redact_text(text, vault).text
    assert redact_text(once, vault).text == once
