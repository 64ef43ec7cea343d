"""What a detector promises about shapes and surroundings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from comity.core.redaction import DETECTORS, Category, Need, PatternDetector, Scanner
from comity.core.redaction.labelled import LabelledDetector
from comity.core.redaction.shapes import Context, LatePattern, _could_match, _whole_words, words

BY_NAME = {detector.name: detector for detector in DETECTORS}


def detector(need, **more):
    return PatternDetector(
        name="badge",
        type="BADGE",
        category=Category.GOVERNMENT,
        priority=50,
        pattern=LatePattern(r"(?<![0-9])[0-9]{4}(?![0-9])"),
        hint="[0-9]{4}",
        need=need,
        context=words("badge"),
        **more,
    )


def test_shapes_that_overlap_are_all_tried():
    """What is found must not depend on where a scan began, or a stream would differ from the whole."""
    assert list(BY_NAME["bank_account"].spans("123 456 789")) == [(0, 11), (4, 11)]


def test_a_scan_may_begin_anywhere_and_still_sees_the_left_border():
    ssn = BY_NAME["ssn"]
    assert list(ssn.spans("1219-09-9999", 1)) == []
    assert list(ssn.spans(" 219-09-9999", 1)) == [(1, 12)]


@pytest.mark.parametrize(
    ("need", "before", "after", "fits"),
    [
        (Need.NOTHING, "order ", "", True),
        (Need.NO_FOREIGN_LABEL, "", "", True),
        (Need.NO_FOREIGN_LABEL, "order ", "", False),
        (Need.NO_FOREIGN_LABEL, "order badge ", "", True),
        (Need.CONTEXT, "", "", False),
        (Need.CONTEXT, "badge ", "", True),
        (Need.CONTEXT, "badge order ", "", False),
        (Need.CONTEXT, "badger ", "", False),
        (Need.CONTEXT, "BADGE: ", "", True),
        (Need.CONTEXT, "badge was found, they say, in the old hall: ", "", False),
        (Need.CONTEXT, "", " is my badge", True),
        (Need.CONTEXT, "", ", the badge office", False),
        (Need.CONTEXT, "order ", " is my badge", False),
    ],
)
def test_surroundings_are_judged_by_the_need_of_the_detector(need, before, after, fits):
    assert detector(need).fits(before, after) is fits


@pytest.mark.parametrize(
    ("before", "after", "fits"),
    [
        ("", " is my badge", True),
        ("", " (badge)", True),
        ("total ", " is my badge", False),
        ("", ", badge 5", False),
        ("", " and 12 badge", False),
        ("", " is what it says on his old badge", False),
    ],
)
def test_a_word_right_after_the_value_counts_where_allowed(before, after, fits):
    assert detector(Need.CONTEXT, trailing=True).fits(before, after) is fits


def test_a_key_names_a_value_only_if_its_last_word_does_not_say_otherwise():
    badge = detector(Need.CONTEXT)
    assert badge.names("staff badge")
    assert badge.names("badge number")
    assert not badge.names("badge count")
    assert not badge.names("order")


def test_context_is_found_beside_letters_of_any_alphabet():
    assert Context("badge").end_in("é badge ") == 7
    assert Context("badge").end_in("\ud800 badge ") == 7
    assert Context("badge").end_in("ébadges ") == -1


def test_patterns_are_compiled_when_a_scanner_is_prepared_not_when_they_are_declared():
    """Declaring all of them is part of every import; a node that runs compiles none of them while calls wait."""
    named = detector(Need.CONTEXT, not_after=LatePattern("-$"), not_near=LatePattern("room"), keys=LatePattern("badge$"))
    patterns = [named.pattern, named.not_after, named.not_near, named.keys]
    scanner = Scanner([named])
    assert not any("compiled" in vars(pattern) for pattern in patterns)
    scanner.prepare()
    assert all("compiled" in vars(pattern) for pattern in patterns)


def test_what_judges_labels_and_context_is_compiled_when_a_scanner_is_prepared():
    labelled = replace(next(one for one in DETECTORS if isinstance(one, LabelledDetector)))
    named = replace(detector(Need.CONTEXT), context=words("a badge that no other test asks for"))
    before = _could_match.cache_info().misses, _whole_words.cache_info().misses
    Scanner([labelled, named]).prepare()
    assert vars(labelled).keys() >= {"_labels", "_could_name"}
    assert (_could_match.cache_info().misses, _whole_words.cache_info().misses) == (before[0] + 1, before[1] + 1)
