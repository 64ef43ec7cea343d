"""What was asked for is checked: type, fields, size."""

from __future__ import annotations

import pytest

from comity.core.document.expected_output import output_problems, read_expected
from comity.core.envelope.envelope import ExpectedOutput

REPORT = ExpectedOutput(type="analysis_report", fields=("root_cause", "evidence"))


def paths(expected, data, size=10):
    return [problem.path for problem in output_problems(expected, data, size)]


def test_nothing_asked_for_is_always_met():
    assert paths(None, "anything") == []
    assert paths(ExpectedOutput(), 3) == []


def test_every_field_must_be_there_and_say_something():
    assert paths(REPORT, {"root_cause": "N+1", "evidence": []}) == []
    assert paths(REPORT, {"root_cause": None, "more": 1}) == ["result.root_cause", "result.evidence"]


def test_a_named_type_is_an_object_that_does_not_call_itself_something_else():
    assert paths(REPORT, "the cause is N+1") == ["result"]
    assert paths(ExpectedOutput(type="analysis_report"), {"type": "poem"}) == ["result.type"]
    assert paths(ExpectedOutput(type="analysis_report"), {"type": "analysis_report"}) == []


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("object", {}, []),
        ("array", [1], {}),
        ("string", "", 1),
        ("number", 1.5, "1.5"),
        ("number", 1, True),
        ("integer", 1, 1.5),
        ("integer", 0, False),
        ("boolean", True, 1),
        ("null", None, 0),
    ],
)
def test_a_type_of_json_is_checked_as_such(name, good, bad):
    assert paths(ExpectedOutput(type=name), good) == []
    assert paths(ExpectedOutput(type=name), bad) == ["result"]


def test_the_size_is_bounded_where_a_bound_was_given():
    assert paths(ExpectedOutput(bytes_max=10), "x", 10) == []
    assert paths(ExpectedOutput(bytes_max=10), "x", 11) == ["result"]


def test_what_is_expected_is_read_as_it_will_be_read_from_a_store():
    assert read_expected(None) == (None, ())
    assert read_expected({"type": "analysis_report", "fields": ["root_cause", "evidence"]}) == (REPORT, ())
    assert read_expected(REPORT) == (REPORT, ())


@pytest.mark.parametrize(
    ("given", "path"),
    [
        (5, "expected_output"),
        ({"colour": "red"}, "expected_output.colour"),
        (ExpectedOutput(fields=("a", 5)), "expected_output.fields[1]"),
        ({"bytes_max": 1.5}, "expected_output.bytes_max"),
        ({"type": "\ud800"}, "expected_output.type"),
    ],
    ids=ascii,
)
def test_what_could_not_be_read_again_is_not_expected(given, path):
    assert [problem.path for problem in read_expected(given)[1]] == [path]
