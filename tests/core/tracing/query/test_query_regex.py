import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from steps import grows_no_faster_than_the_text

from comity.core.tracing.query.pattern import NESTING_MAX, PATTERN_CHARACTERS_MAX, REPEAT_MAX, PatternError
from comity.core.tracing.query.regex import (
    REMEMBERED_CHARS_MAX,
    REMEMBERED_STATES_MAX,
    REMEMBERED_TEXTS_MAX,
    STATES_MAX,
    TRANSITIONS_MAX,
    Regex,
)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("abc", ["abc"], ["ab", "abcd", "xabc", ""]),
        ("agent|both", ["agent", "both"], ["agents", "xboth"]),
        ("", [""], ["a"]),
        ("a|", ["a", ""], ["b"]),
        (".*", ["", "a\nb"], []),
        ("(?-s:.)*", ["ab"], ["a\nb"]),
        ("a*b+c?", ["b", "aabbc"], ["a", "cc"]),
        ("a{2}", ["aa"], ["a", "aaa"]),
        ("a{2,}", ["aa", "aaaa"], ["a"]),
        ("a{1,3}?", ["a", "aaa"], ["", "aaaa"]),
        ("a{x", ["a{x"], ["a"]),
        ("x{,3}", ["x{,3}"], ["xxx"]),
        ("[a-c]x", ["ax", "cx"], ["dx"]),
        ("[^a-c]", ["d", "\n"], ["a"]),
        ("[]a]", ["]", "a"], ["b"]),
        ("[a-]", ["a", "-"], ["b"]),
        (r"[\d-z]", ["5", "-", "z"], ["y"]),
        (r"[\d\-x]", ["5", "-", "x"], ["y"]),
        (r"\d\w\s", ["5_ ", "0a\t"], ["٣a ", "5é "]),
        (r"\D\W\S", ["a-b"], ["1-b", "aab", "a- "]),
        ("[[:alpha:]]+[[:^digit:]]", ["abc", "a-"], ["a1", "1a"]),
        (r"\p{Lu}\pL\PN", ["Éa-"], ["éaa", "Aa1"]),
        (r"\p{^Lu}", ["a"], ["A"]),
        ("(?i)straße|x", ["STRAßE", "X"], ["y"]),
        (r"ab\b", ["ab"], ["a"]),
        (r"-a\B", [], ["-a"]),
        ("(?i:a)b", ["Ab"], ["AB"]),
        ("a(?i)b|c", ["aB", "C"], ["Ab"]),
        ("(?i)[^a]", ["b"], ["a", "A"]),
        ("^a$", ["a"], ["b"]),
        ("a$b", [], ["ab", "a"]),
        ("(?m)a$\n^b", ["a\nb"], ["a b"]),
        (r"\Aa\z", ["a"], ["a\n"]),
        (r"a\b.*", ["a b", "a"], ["ab"]),
        (r"a\B.*", ["ab"], ["a b", "a"]),
        (r"\Qa.b*\E", ["a.b*"], ["axb"]),
        (r"\Qab\E+", ["abb"], ["abab"]),
        (r"\Q\Ex", ["x"], [""]),
        (r"\x41\x{e9}\101\n\.", ["AéA\n."], ["AéA\nx"]),
        ("(?P<name>a)(?<other>b)(?:c)", ["abc"], ["ab"]),
        ("(a|b)*c", ["ababc", "c"], ["abd"]),
    ],
)
def test_a_pattern_matches_whole_texts_as_re2_does(pattern, yes, no):
    regex = Regex(pattern)
    assert [text for text in yes if not regex.matches(text)] == []
    assert [text for text in no if regex.matches(text)] == []


@pytest.mark.parametrize(
    "pattern",
    [
        "[", "[a", "(", ")", "a)", "(a", "*", "+a", "a**", "a{2}{3}", "a{3,2}", f"a{{{REPEAT_MAX + 1}}}", "[b-a]",
        r"\1", r"\8", r"\k", r"\C", "\\", r"\x4", r"\x{}", r"\x{110000}", r"\p{Greek}", r"\p{L", "(?=a)", "(?!a)", "(?<=a)", "(?>a)",
        "(?P>a)", "(?P<>a)", "(?P<a-b>a)", "(?z)", "(?i-)", "[[:nope:]]", "(?", "(?i",
    ],
)  # fmt: skip
def test_what_re2_refuses_is_refused(pattern):
    with pytest.raises(PatternError):
        Regex(pattern)


def test_patterns_are_bounded_in_length_depth_and_size():
    with pytest.raises(PatternError, match="at most"):
        Regex("a" * (PATTERN_CHARACTERS_MAX + 1))
    with pytest.raises(PatternError, match="nest"):
        Regex("(" * (NESTING_MAX + 2) + "a" + ")" * (NESTING_MAX + 2))
    with pytest.raises(PatternError, match="too large"):
        Regex("((a{100}){100}){100}")


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(.*)*x", "(a*)*(a*)*b"])
def test_a_pattern_that_would_make_a_backtracker_hang_takes_steps_that_grow_as_the_text(pattern):
    regex = Regex(pattern)
    assert not regex.matches("a" * 20_000)
    assert grows_no_faster_than_the_text(regex.matches, "a" * 5_000)


def test_what_is_remembered_is_bounded_in_states_and_in_characters():
    regex, text = Regex("(a|b)*a(a|b){400}"), "".join("ab"[n * n % 7 % 2] for n in range(3_000))
    assert regex.matches(text) is (text[-401] == "a")
    assert sum(map(len, regex._sets)) <= REMEMBERED_STATES_MAX + STATES_MAX
    wide = Regex("((a|b)?){900}")  # each of its states leads to all that follow it
    assert wide.matches("ab" * 40)
    assert sum(map(len, wide._closures.values())) <= REMEMBERED_STATES_MAX
    long = Regex("x*")
    for n in range(30):
        assert long.matches("x" * (100_000 + n))
        assert sum(map(len, long._texts)) <= REMEMBERED_CHARS_MAX


def test_a_long_text_of_few_characters_costs_a_step_per_character_not_per_state():
    regex, text = Regex("(a|b)*a(a|b){300}"), "ab" * 200
    assert regex.matches(text) is (text[-301] == "a")
    assert set(regex._next) == {"a", "b"}  # asked once for each character, of all states together


def test_forgetting_what_was_remembered_changes_no_answer():
    regex = Regex("(é|[0-9a-f])*7")
    texts = [f"{number:x}" for number in range(REMEMBERED_TEXTS_MAX * 2)]
    assert [regex.matches(text) for text in texts] == [text.endswith("7") for text in texts]
    regex._cached = TRANSITIONS_MAX + 1
    assert regex.matches("0é7")
    assert not regex.matches("0é8x")


@pytest.mark.filterwarnings("ignore:Possible:FutureWarning")  # what sets may mean in a Python to come
@given(st.text("ab|()*+?.[]^$-", max_size=8), st.text("ab-", max_size=6))
def test_where_pythons_re_means_the_same_the_answers_agree(pattern, text):
    # Python reads these as possessive or nested repetition, or as groups RE2 does not have.
    assume(not re.search(r"[*+?][*+?]|\(\?", pattern))
    try:
        expected = re.fullmatch(pattern, text, re.DOTALL) is not None
    except re.error:
        assume(False)
    try:
        regex = Regex(pattern)
    except PatternError:
        assume(False)
    assert regex.matches(text) is expected


@given(st.text(max_size=20))
def test_any_text_is_a_pattern_or_a_pattern_error(pattern):
    try:
        assert Regex(pattern).matches(pattern) in {True, False}
    except PatternError as error:
        assert str(error)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=12).filter(lambda text: "\\E" not in text))
def test_a_quoted_text_matches_itself_and_nothing_longer(text):
    regex = Regex(f"\\Q{text}\\E")
    assert regex.matches(text)
    assert not regex.matches(text + "x")
