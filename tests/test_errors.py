"""Errors: one table of codes that names, explains and blames, used by all of the library, and classes that carry it."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path

import pytest

import comity
from comity import errors
from comity.errors import (
    CODES,
    Breaker,
    CallChangedError,
    CallerError,
    ComityError,
    DocumentChangedError,
    RefusedError,
    StaleLeaseError,
    TargetError,
    UnavailableError,
    breaker_effect,
    family,
)

CODE = r"[A-Z]+(?:_[A-Z]+)+"
FAMILIES = [CallerError, RefusedError, TargetError, UnavailableError]
SOURCE = Path(comity.__file__).parent
# Codes that only agents give: those of the protocols that say something about an agent's own data.
FOR_AGENTS: set[str] = set()  # codes that no module gives
# Where a call gives a code first; elsewhere it is the argument `code`.
GIVES_A_CODE = r"\b(?:code=|(?:Refused|of|PayloadError|family|breaker_effect)\()"


def modules() -> list[Path]:
    # The demo's agents are users of the library and make up codes of their own.
    return [path for path in sorted(SOURCE.rglob("*.py")) if path != SOURCE / "errors.py" and "demo" not in path.parts]


def texts_in(path: Path) -> set[str]:
    """Return what stands in quotes and looks like a code."""
    return set(re.findall(rf'"({CODE})"', path.read_text(encoding="utf-8")))


def codes_given_in(path: Path) -> set[str]:
    return set(re.findall(rf'{GIVES_A_CODE}\s*"(\w+)"', path.read_text(encoding="utf-8")))


# --- the table ----------------------------------------------------------------------------------------------------------


def test_a_code_is_a_category_and_what_is_specific():
    assert [code for code in CODES if not re.fullmatch(CODE, code)] == []


def test_a_code_says_who_must_act_and_what_to_do_in_one_sentence():
    for code, meaning in CODES.items():
        assert meaning.family in FAMILIES, code
        assert type(meaning.retryable) is bool, code
        assert isinstance(meaning.breaker, Breaker), code
        assert re.fullmatch(r"[A-Z][^.]+\.", meaning.advice), code


def test_the_codes_the_design_names_are_there():
    assert {
        "INPUT_VALIDATION_FAILED",
        "DATA_MISSING_REQUIRED_INPUT",
        "ROUTING_CYCLE_DETECTED",
        "CAPABILITY_UNAVAILABLE",
    } <= set(CODES)


def test_what_the_caller_must_change_cannot_be_retried_as_it_is():
    retryable = {code for code, meaning in CODES.items() if meaning.family is CallerError and meaning.retryable}
    assert retryable == {"SESSION_CONFLICT"}  # a second look may find that nothing needs to change


def test_only_failures_of_the_target_count_for_its_breaker():
    counting = {code for code, meaning in CODES.items() if meaning.breaker is not Breaker.IGNORES}
    assert counting == {
        "CALL_TIMEOUT",
        "TARGET_CRASHED",
        "TARGET_TEMPORARY_FAILURE",
        "MODEL_RATE_LIMITED",
        "MODEL_OVERLOADED",
        "MODEL_TIMEOUT",
        "MODEL_UNREACHABLE",
        "MODEL_FAILED",
        "MODEL_MISCONFIGURED",
        "TARGET_MISCONFIGURED",
        "OUTPUT_VALIDATION_FAILED",
        "OUTPUT_TOO_LARGE",
    }
    assert not [code for code in counting if CODES[code].family in {CallerError, RefusedError}]
    assert {code for code in counting if CODES[code].breaker is Breaker.TRIPS} == {
        "TARGET_MISCONFIGURED",
        "MODEL_MISCONFIGURED",
    }


def test_every_code_a_module_gives_is_in_the_table():
    assert [(path, code) for path in modules() for code in codes_given_in(path) if code not in CODES] == []


def test_the_search_for_codes_finds_them():
    assert "ROUTING_CYCLE_DETECTED" in codes_given_in(SOURCE / "core" / "call" / "admission.py")
    assert "ENVELOPE_MALFORMED" in codes_given_in(SOURCE / "core" / "envelope" / "codec.py")


def test_every_code_of_the_table_is_given_somewhere_or_is_for_agents():
    mentioned = set().union(*map(texts_in, modules())) | {
        one.default_code for one in (StaleLeaseError, CallChangedError, DocumentChangedError)
    }
    assert set(CODES) - mentioned == FOR_AGENTS


def test_what_looks_like_a_code_of_ours_is_one():
    # Where codes are worked out and not only given; on the command line, capitals name arguments.
    deciding = [
        path
        for path in modules()
        if path.relative_to(SOURCE).parts[0] in {"core", "runtime", "engines", "node", "doors", "contextcore", "loading"}
    ]
    categories = {code.partition("_")[0] for code in CODES}
    looks = set().union(*map(texts_in, deciding))
    assert {text for text in looks if text.partition("_")[0] in categories} <= set(CODES)


def test_a_code_means_the_same_to_family_and_breaker_effect_as_in_the_table():
    for code, meaning in CODES.items():
        assert family(code) is meaning.family
        assert breaker_effect(code) is meaning.breaker


def test_a_code_an_agent_made_up_is_its_answer_and_not_its_failure():
    assert family("WEATHER_TOO_BAD") is TargetError
    assert breaker_effect("WEATHER_TOO_BAD") is Breaker.IGNORES


@pytest.mark.parametrize(
    ("code", "effect"),
    [("WEATHER_TOO_BAD", Breaker.COUNTS), ("TARGET_FAILED", Breaker.COUNTS), ("AGENT_BUSY", Breaker.IGNORES)],
)
def test_an_agents_own_failure_counts_if_it_says_that_a_retry_can_help(code, effect):
    assert breaker_effect(code, retryable=True) is effect


# --- the classes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FAMILIES)
def test_each_family_has_a_code_of_its_own_by_default(kind):
    assert issubclass(kind, ComityError)
    assert CODES[kind.default_code].family is kind
    error = kind("why")
    assert (error.code, error.message, error.retryable) == (kind.default_code, "why", CODES[kind.default_code].retryable)


def test_an_error_takes_from_the_table_what_it_is_not_told():
    for code, meaning in CODES.items():
        error = family(code)(code=code)
        assert (error.message, error.retryable) == (meaning.advice, meaning.retryable)
        assert family(code)(code=code, retryable=not error.retryable).retryable is not error.retryable


def test_an_error_of_an_unknown_code_cannot_be_retried_unless_it_says_so():
    assert ComityError(code="WEATHER_TOO_BAD").message == "WEATHER_TOO_BAD"
    assert not ComityError(code="WEATHER_TOO_BAD").retryable
    assert ComityError(code="WEATHER_TOO_BAD", retryable=True).retryable


def test_an_error_shows_its_code_and_its_message_and_keeps_its_facts():
    error = UnavailableError("full", code="AGENT_BUSY", retry_after_ms=5, agent="ANL", place=7)
    assert str(error) == "AGENT_BUSY: full"
    assert (error.retry_after_ms, error.facts) == (5, {"agent": "ANL", "place": 7})


def test_a_message_is_text_whatever_it_was_made_of():
    assert TargetError(ValueError("why")).message == "why"


@pytest.mark.parametrize("twin", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy])  # noqa: S301
@pytest.mark.parametrize("error", [UnavailableError("full", code="AGENT_BUSY", retry_after_ms=5, place=7), CallerError()])
def test_an_error_is_the_same_after_a_way_between_processes(error, twin):
    again = twin(error)
    assert type(again) is type(error)
    assert (str(again), again.args, vars(again)) == (str(error), error.args, vars(error))


def test_the_families_are_all_there_are():
    assert ComityError.__subclasses__()[:4] == FAMILIES
    assert {one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, ComityError)} == {
        ComityError,
        *FAMILIES,
        StaleLeaseError,  # what only nodes that share a store tell each other
        CallChangedError,
        DocumentChangedError,
    }
