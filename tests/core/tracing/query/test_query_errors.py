from hypothesis import given
from hypothesis import strategies as st

from comity.core.tracing.query.errors import Fault, QueryError, place
from comity.errors import CallerError


def test_an_error_carries_its_place_its_fault_and_what_was_expected():
    error = QueryError("unexpected }", fault=Fault.SYNTAX, line=2, column=7, expected="a value")
    assert isinstance(error, CallerError)
    assert (error.line, error.column, error.expected, error.fault) == (2, 7, "a value", "syntax")
    assert error.facts == {"line": 2, "column": 7, "expected": "a value", "fault": "syntax"}
    assert error.message == "line 2, column 7: unexpected }; expected a value"
    assert not error.retryable


@given(st.text("ab\n"), st.data())
def test_a_place_leads_back_to_its_offset(text, data):
    offset = data.draw(st.integers(0, len(text)))
    line, column = place(text, offset)
    lines = text.split("\n")
    assert sum(len(one) + 1 for one in lines[: line - 1]) + column - 1 == offset
    assert column - 1 <= len(lines[line - 1])
