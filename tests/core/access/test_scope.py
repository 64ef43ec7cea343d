"""Scopes allow what they name and nothing else, and narrowing never widens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.core.access.scope import SCOPE_CHARS_MAX, WORDS_MAX, Scope
from comity.errors import CallerError

WORDS = st.sampled_from(
    [
        "call:*/*",
        "call:ANL/*",
        "call:*/ANL_NPV",
        "call:ANL/ANL_NPV",
        "call:DOC/DOC_GENERATE",
        "insight:read",
        "insight:*",
        "handoff:write",
    ]
)
SCOPES = st.lists(WORDS, max_size=4).map(lambda words: Scope.of(" ".join(words)))
CALLS = [("ANL", "ANL_NPV"), ("ANL", "ANL_IRR"), ("DOC", "DOC_GENERATE"), ("DOC", "ANL_NPV")]


def test_a_star_stands_for_one_part_and_an_empty_scope_for_nothing():
    assert Scope.of("call:ANL/*").allows_call("ANL", "ANL_NPV")
    assert not Scope.of("call:ANL/*").allows_call("ANLX", "ANL_NPV")
    assert Scope.of("call:*").allows_call("DOC", "X")
    assert not Scope().allows_call("ANL", "ANL_NPV")
    assert not Scope.of("insight:read").allows("insight:write")


@pytest.mark.parametrize(
    "text",
    [
        "call:",
        "call:A",
        "all",
        "call:A/B/C",
        "Insight:read",
        "a:b:c",
        "call:A/" + "x" * 2000,
        " ".join(f"{a}{b}:x" for a in "abcdefghi" for b in "abcdefgh"),
    ],
)
def test_a_word_that_is_no_scope_is_refused(text):
    with pytest.raises(CallerError):
        Scope.of(text)


def test_a_scope_may_have_as_many_words_and_characters_as_said_and_no_more():
    most = " ".join(f"w{chr(97 + number // 26)}{chr(97 + number % 26)}:x" for number in range(WORDS_MAX))
    longest = "call:A/B".ljust(SCOPE_CHARS_MAX)
    assert len(Scope.of(most).words) == WORDS_MAX
    assert Scope.of(longest).words == ("call:A/B",)
    for beyond in (most + " one:more", longest + " "):
        with pytest.raises(CallerError):
            Scope.of(beyond)


@given(SCOPES, SCOPES)
def test_a_scope_that_includes_another_allows_every_call_the_other_allows(wide, narrow):
    if wide.includes(narrow):
        for agent, capability in CALLS:
            assert wide.allows_call(agent, capability) or not narrow.allows_call(agent, capability)
        assert wide.allows("insight:write") or not narrow.allows("insight:write")
