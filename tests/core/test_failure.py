"""What foreign code raises, in words."""

from __future__ import annotations

import sys

import pytest

from comity.core.failure import told


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
