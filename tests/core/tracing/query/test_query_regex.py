import re
import sys

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from steps import grows_no_faster_than_the_text

from comity.core.tracing.query.pattern import NESTING_MAX, PATTERN_CHARACTERS_MAX, REPEAT_MAX, PatternError
from comity.core.tracing.query.regex import (
    ALIKE_MOST,
    REMEMBERED_BYTES_MAX,
    REMEMBERED_CHARS_MAX,
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


def test_what_is_remembered_is_bounded_in_bytes_and_in_characters():
    regex, text = Regex("(a|b)*a(a|b){200}"), "".join("ab"[n * n % 7 % 2] for n in range(1_000))
    assert regex.matches(text) is (text[-201] == "a")
    assert sum(map(sys.getsizeof, regex._sets)) <= REMEMBERED_BYTES_MAX + STATES_MAX
    wide = Regex("((a|b)?){200}")  # each of its states leads to all that follow it
    assert wide.matches("ab" * 40)
    assert sum(map(sys.getsizeof, wide._closures.values())) <= REMEMBERED_BYTES_MAX
    long = Regex("x*")
    for n in range(30):
        assert long.matches("x" * (100_000 + n))
        assert sum(map(len, long._texts)) <= REMEMBERED_CHARS_MAX


def test_a_long_text_of_few_characters_costs_a_step_per_character_not_per_state():
    regex, text = Regex("(a|b)*a(a|b){300}"), "ab" * 200
    assert regex.matches(text) is (text[-301] == "a")
    assert set(regex._taking) == {"a", "b"}  # asked once for each character, of all states together


def test_the_copies_of_a_repeated_piece_are_moved_together_however_many_there_are():
    few, many = Regex("(a|b)*a(a|b){9}"), Regex("(a|b)*a(a|b){1000}")
    assert len(many._ways()[0]) == len(few._ways()[0])
    assert not many._ways()[1]
    text = "".join("ab"[n * n % 7 % 2] for n in range(3_000))
    assert many.matches(text) is (text[-1001] == "a")


def test_memory_of_the_sets_of_a_large_pattern_is_given_up_beyond_its_bound(monkeypatch):
    monkeypatch.setattr("comity.core.tracing.query.regex.REMEMBERED_BYTES_MAX", 20_000)
    regex, text = Regex("(a|b)*a(a|b){200}"), "".join("ab"[n * n % 7 % 2] for n in range(1_000))
    assert regex.matches(text) is (text[-201] == "a")
    assert len(regex._sets) < 100
    wide = Regex("((a|b)?){300}")
    assert wide.matches("ab")
    assert len(wide._closures) < 200


@given(
    st.recursive(
        st.sampled_from(["a", "b", "c", ".", "[ab]", "a?", "b*"]),
        lambda part: (
            st.tuples(part, st.integers(0, 3), st.integers(0, 4)).map(lambda it: f"({it[0]}){{{it[1]},{it[1] + it[2]}}}")
            | st.lists(part, min_size=2, max_size=4).map("|".join).map("({})".format)
            | st.lists(part, min_size=2, max_size=3).map("".join)
        ),
        max_leaves=8,
    ),
    st.text("abc", max_size=12),
)
def test_states_moved_together_reach_what_each_reaches_by_itself(pattern, text):
    together, apart = Regex(pattern), Regex(pattern)
    apart._moves = [(0, ())] * (len(apart._steps) + 1), 0  # more groups than states: each is moved by itself
    groups, _ = together._ways()
    expected = re.fullmatch(pattern, text, re.DOTALL) is not None
    assert together.matches(text) is apart.matches(text) is expected
    assert all(len(shifts) <= ALIKE_MOST for _, shifts in groups)


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
