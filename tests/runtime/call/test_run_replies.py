"""What a node makes of what an implementation gave back: known inputs, substitutes, and what only the end of a call knows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from comity import Reply, Status
from comity.core.call.limits import WARNINGS_MAX
from comity.core.envelope.confidence import Band, at_most
from comity.core.envelope.envelope import Error
from comity.core.envelope.reserved import CODE as RESERVED
from comity.core.envelope.usage import Usage
from comity.errors import RefusedError, TargetError
from comity.runtime.call.failures import _raised_error
from comity.runtime.call.run import STANDS_IN, _as_number, _instead, _with_known, complete


@pytest.mark.parametrize(
    ("said", "value"),
    [("5", 5), ("-2.5", -2.5), ("five", "five"), ("", ""), ('"5"', '"5"'), ("[5]", "[5]"), (5, 5), (None, None), ([5], [5])],
)
def test_a_text_that_reads_as_a_number_is_one_and_everything_else_stays(said: Any, value: Any):
    assert (_as_number(said), type(_as_number(said))) == (value, type(value))


@pytest.mark.parametrize("count", [0, 1, WARNINGS_MAX])
def test_a_question_says_what_is_known_already_by_name_and_within_the_bound(count: int):
    warnings = tuple(f"w{number}" for number in range(count))
    asked = Reply.needs_input("Which?", warnings=warnings)
    found = _with_known(asked, {"b": 1, "a": 2})
    assert found.warnings == (*warnings, "known already: a, b")[:WARNINGS_MAX]


class Noting:
    def __init__(self) -> None:
        self.noted: list[str] = []

    def note(self, text: str) -> None:
        self.noted.append(text)


@pytest.mark.parametrize(
    ("primary", "why"),
    [(None, "is switched off by its breaker"), (Error.of("TARGET_FAILED", "x"), "failed with TARGET_FAILED")],
)
@pytest.mark.parametrize("warning", ["", "From last week."])
def test_the_answer_of_a_substitute_says_so_to_its_user_and_why_to_those_who_run_the_node(primary, why, warning):
    ctx, spare = Noting(), SimpleNamespace(name="spare", equivalent=False, warning=warning)
    given = Reply.success(1, confidence=0.99, warnings=("own",))
    found = _instead(given, SimpleNamespace(primary=primary), spare, ctx)
    assert ctx.noted == [f"spare answered; the first implementation {why}"]
    assert (found.status, found.degraded, found.warnings) == (Status.PARTIAL, True, (warning or STANDS_IN, "own"))
    assert found.confidence == at_most(Band.MEDIUM, 0.99) < 0.99


def test_an_equivalent_substitute_answers_as_the_first_one_would():
    ctx, given = Noting(), Reply.success(1)
    assert (
        _instead(given, SimpleNamespace(primary=None), SimpleNamespace(name="spare", equivalent=True, warning=""), ctx) is given
    )
    assert len(ctx.noted) == 1


@pytest.mark.parametrize("given", [Reply.failure("no"), Reply.needs_input("Which?")])
def test_a_substitute_that_gives_no_answer_keeps_its_status(given: Reply):
    spare = SimpleNamespace(name="spare", equivalent=False, warning="")
    found = _instead(given, SimpleNamespace(primary=None), spare, Noting())
    assert (found.status, found.degraded, found.warnings) == (given.status, True, (STANDS_IN,))


def test_a_substitute_adds_no_more_warnings_than_there_may_be():
    spare = SimpleNamespace(name="spare", equivalent=False, warning="")
    given = Reply.success(1, warnings=tuple(f"w{number}" for number in range(WARNINGS_MAX)))
    found = _instead(given, SimpleNamespace(primary=None), spare, Noting())
    assert found.warnings == (STANDS_IN, *given.warnings)[:WARNINGS_MAX]


@pytest.mark.parametrize("below", [0, 3])
@pytest.mark.parametrize("given", [None, Reply.failure("no")])
def test_a_reply_says_who_answered_whom_in_which_session_how_long_it_took_and_what_was_used(given, below):
    request = SimpleNamespace(request_id="r", target="A", session_id="s")
    call = SimpleNamespace(
        request=request,
        calls_below=below,
        used=Usage(prompt_tokens=1),
        usage=lambda: Usage(prompt_tokens=1, calls=below),
        started_ns=1_000_000,
        capability=SimpleNamespace(confidence=0.7),
        has_missed=False,
    )
    found = complete(given, call, 4_500_000, {"n": 1})
    assert (found.request_id, found.source, found.session_id, found.duration_ms) == ("r", "A", "s", 3.5)
    assert (found.data, found.usage) == ({"n": 1}, Usage(prompt_tokens=1, calls=below))
    if given is None:
        assert (found.status, found.confidence, found.warnings) == (Status.SUCCESS, 0.7, ())
    else:
        assert (found.status, found.error) == (given.status, given.error)


@pytest.mark.parametrize(
    ("told", "code"),
    [
        (None, RESERVED),
        (set(), RESERVED),
        ({"BUDGET_TOKENS_EXHAUSTED"}, RESERVED),
        ({"BUDGET_CALLS_EXHAUSTED"}, "BUDGET_CALLS_EXHAUSTED"),
    ],
)
def test_an_agent_passes_on_a_code_of_the_platform_that_it_was_told_and_raises_no_other(told, code):
    call = SimpleNamespace(told=told, request=SimpleNamespace(target="A"))
    with pytest.raises(RefusedError) as raised:
        raise RefusedError("no calls left", code="BUDGET_CALLS_EXHAUSTED")
    assert _raised_error(raised.value, call).code == code


def test_an_agent_raises_codes_of_its_own_as_they_are():
    call = SimpleNamespace(told=None, request=SimpleNamespace(target="A"))
    assert _raised_error(TargetError("sold out", code="STOCK_EMPTY"), call).code == "STOCK_EMPTY"
