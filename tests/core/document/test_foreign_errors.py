"""What foreign code raises, in words."""

from __future__ import annotations

import sys

import pytest

from comity.core.document.foreign_errors import error_of, told
from comity.core.document.payload import PayloadError, Problem
from comity.core.envelope.envelope import Error
from comity.errors import CallerError, UnavailableError


@pytest.mark.parametrize(
    ("raised", "says"),
    [
        (ValueError("two is wrong"), "ValueError: two is wrong"),
        (RuntimeError(), "RuntimeError"),
        (BaseException("odd"), "BaseException: odd"),
    ],
)
def test_an_exception_is_told_by_its_type_and_what_it_says(raised, says):
    assert told(raised) == says


@pytest.mark.parametrize(("code", "says"), [(None, "sys.exit()"), (0, "sys.exit(0)"), ("why", "sys.exit('why')")])
def test_leaving_the_program_is_told_as_what_the_code_did(code, says):
    with pytest.raises(SystemExit) as caught:
        sys.exit(code)
    assert told(caught.value) == f"SystemExit: its code called {says}"


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


class Mutest(Exception):
    def __str__(self) -> str:
        raise SystemExit(1)


@pytest.mark.parametrize("kind", [Mute, Mutest])
def test_an_exception_that_cannot_be_shown_is_told_by_its_type(kind):
    assert told(kind()) == f"{kind.__name__}, which cannot be shown as text"


def test_an_agents_error_is_told_whole():
    raised = UnavailableError("later", code="MY_LIMIT", retryable=True, retry_after_ms=5, problems=(Problem("a", "is wrong"),))
    assert error_of(raised) == Error(
        code="MY_LIMIT", message="later", retryable=True, retry_after_ms=5, problems=(Problem("a", "is wrong"),)
    )


@pytest.mark.parametrize(
    ("facts", "path"),
    [
        ({"retry_after_ms": 1.5}, "error.retry_after_ms"),
        ({"retry_after_ms": -1}, "error.retry_after_ms"),
        ({"retry_after_ms": True}, "error.retry_after_ms"),
        ({"retry_after_ms": 2**60}, "error.retry_after_ms"),
        ({"retryable": "maybe"}, "error.retryable"),
        ({"problems": (Problem("a", "x"), object())}, "error.problems[1]"),
        ({"problems": (Problem("a", 5),)}, "error.problems[0].message"),
    ],
)
def test_an_agents_error_that_could_not_be_read_again_names_what_is_wrong_with_it(facts, path):
    with pytest.raises(PayloadError) as caught:
        error_of(CallerError("x", **facts))
    assert caught.value.problems[0].path == path
