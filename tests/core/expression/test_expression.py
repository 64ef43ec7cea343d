"""Expressions: what CEL says of values, errors and types, and where an edge condition differs on purpose."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.core.expression import STEPS_MAX, CostError, EvaluationError, Expression, ExpressionError, MissingError
from comity.core.expression.functions import matches
from comity.core.expression.lexer import TEXT_CHARS_MAX
from comity.core.expression.macros import PATTERNS, STEPS
from comity.core.expression.parse import HEIGHT_MAX, NESTING_MAX
from comity.core.expression.values import Uint, equal, in_order

REPLY = {
    "status": "success",
    "data": {"score": 0.9, "names": ["Ann", "Bob"], "count": 3, "big": 2**40, "none": None, "ok": True, "by": {"in-1": 7}},
    "message": "Done.",
}


def value(text, **variables):
    return Expression(text).value({"response": REPLY, **variables})


@pytest.mark.parametrize("key", ["null", "[1]", '{"k": 1}', "b'x'"])
def test_what_can_be_no_key_is_not_looked_for_in_a_map(key):
    with pytest.raises(EvaluationError):
        value(f"{key} in response.data")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('response.status == "success"', True),
        ('response.status == "failure"', False),
        ("response.data.score > 0.8", True),
        ('response.data.score > 0.8 && response.status == "success"', True),
        ("response.data.count == 3.0", True),
        ("response.data.count != 3", False),
        ("1 == true", False),
        ("1u == 1 && 1 == 1.0", True),
        ('"1" == 1', False),
        ("response.data.names[1]", "Bob"),
        ("response.data.by.`in-1`", 7),
        ('"Ann" in response.data.names', True),
        ('"score" in response.data', True),
        ("has(response.data.score) && !has(response.data.missing)", True),
        ("size(response.data.names) == 2 && response.message.size() == 5", True),
        ("response.data.ok ? 'yes' : 'no'", "yes"),
        ("response.data.none == null", True),
        ('response.message.startsWith("Do") && response.message.contains("one") && response.message.endsWith(".")', True),
        ("response.data.names.exists(n, n.matches('^B'))", True),
        ("response.data.names.all(n, size(n) == 3)", True),
        ("response.data.names.exists_one(n, n == 'Ann')", True),
        ("response.data.names.map(n, n.lowerAscii())", ["ann", "bob"]),
        ("response.data.names.filter(n, n != 'Ann')", ["Bob"]),
        ("[1, 2, 3].map(x, x > 1, x * 10)", [20, 30]),
        ("{'a': 1}['a'] + {true: 2, 1: 3}[1]", 4),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("1.0 / 0.0", math.inf),
        ("'a' + 'b' + string(1) + string(1.5)", "ab11.5"),
        ("int('12') + int(3.9)", 15),
        ("timestamp('2025-01-01T00:00:00Z') + duration('36h') > timestamp('2025-01-02T00:00:00Z')", True),
        ("response.data.?missing.orValue('none')", "none"),
        ("math.greatest(1, 2.5, 2u)", 2.5),
        ("'%s is %.1f'.format(['it', 2.25])", "it is 2.2"),
        ("// a note\n1 + 1", 2),
    ],
)
def test_an_expression_has_its_value(text, expected):
    found = value(text)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("response.data.score > 'x'", "double and string"),
        ("response.status > 1", "string and int"),
        ("1 + 1.0", "int and double"),
        ("9223372036854775807 + 1", "overflows"),
        ("1 / 0", "zero"),
        ("!1", "int"),
        ("1 ? 2 : 3", "int"),
        ("response.message.nothing", "response.message is string and has no fields"),
        ("nothing(1)", "no function nothing with 1 arguments"),
        ("'a'.matches('(')", "pattern"),
        ("[1][5]", "outside"),
        ("{'a': 1, 'a': 2}", "twice"),
        ("timestamp('yesterday')", "no timestamp"),
    ],
)
def test_what_has_no_value_says_why(text, why):
    with pytest.raises(EvaluationError, match=why):
        value(text)


@pytest.mark.parametrize(
    "text", ["true || 1/0 > 1", "1/0 > 1 || true", "!(false && 1/0 > 1)", "!(1/0 > 1 && false)", "[1, 0].exists(x, 1/x == 1)"]
)
def test_a_side_that_decides_wins_over_an_error(text):
    assert value(text) is True


@pytest.mark.parametrize(
    "text", ["response.data.missing > 1", "!(response.data.missing > 1)", "other.x", "response.data.names[9] == 'x'"]
)
def test_a_missing_path_is_an_error_in_a_value_and_false_in_a_condition(text):
    with pytest.raises(MissingError):
        value(text)
    assert Expression(text).holds({"response": REPLY}) is False


def test_a_type_error_in_a_condition_is_an_error_and_not_silently_false():
    with pytest.raises(EvaluationError, match="string and int"):
        Expression("response.status > 1").holds({"response": REPLY})
    with pytest.raises(EvaluationError, match="a condition does not take double"):
        Expression("response.data.score").holds({"response": REPLY})


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("1 +", 3),
        ("a b", 2),
        ("(1", 2),
        ("'abc", 0),
        ("a.1", 1),
        ("for", 0),
        ("[1,,2]", 3),
        ("1 = 2", 2),
        ("a ? b", 5),
        ("", 0),
    ],
)
def test_text_that_is_no_expression_names_the_place(text, at):
    with pytest.raises(ExpressionError) as refused:
        Expression(text)
    assert refused.value.at == at


def test_functions_that_do_not_exist_are_problems_with_their_places():
    assert [(one.message, one.at) for one in Expression("true || lenght(a) > 1").problems()] == [
        ("there is no function lenght with 1 arguments", 8)
    ]
    assert Expression("size(a) > 1").problems() == []


@pytest.mark.parametrize(
    "text",
    [
        "(" * (NESTING_MAX + 1) + "1" + ")" * (NESTING_MAX + 1),
        "+".join("1" * (HEIGHT_MAX + 2)),
        "a" + ".b" * (HEIGHT_MAX + 1),
        "-" * 2000 + "1",
        "1" + " " * TEXT_CHARS_MAX,
    ],
)
def test_what_is_too_large_is_refused_before_it_runs(text):
    with pytest.raises(ExpressionError):
        Expression(text)


@pytest.mark.parametrize(
    "text",
    [
        "l.exists(a, l.exists(b, l.exists(c, a + b + c == -1)))",
        "l.map(a, l.map(b, l.map(c, 1)))",
        "[s, s, s, s].map(x, x.replace('a', x))",
        "l.all(x, s.contains('b' + string(x)) == false)",
    ],
)
def test_loops_and_texts_cost_no_more_than_their_bound(text):
    with pytest.raises((CostError, EvaluationError)):
        Expression(text).value({"l": list(range(2_000)), "s": "a" * 50_000})
    assert STEPS_MAX <= 100_000


def test_a_text_that_is_almost_a_double_is_read_in_one_pass():
    with pytest.raises(EvaluationError, match="cannot become double"):
        Expression("double(s)").value({"s": "1" * 300_000 + "x"})


@pytest.mark.parametrize("text", ["1h" * 200, "1" * 5_000 + "h"])
def test_a_long_text_is_no_duration(text):
    with pytest.raises(EvaluationError, match="256 characters"):
        Expression("duration(s)").value({"s": text})


def test_a_pattern_takes_a_step_for_every_character_that_it_remembers_nothing_of():
    with pytest.raises(CostError):
        Expression("s.matches('(a|b|ab|.)*\\\\bx')").value({"s": "ab" * 60_000})


@pytest.mark.parametrize("texts", [["abc"], ["abc", "abd", "abc"], ["abc", "ab" * 400], ["ab" * 400, "abc"]])
def test_what_other_evaluations_asked_does_not_change_the_steps_of_a_pattern(texts):
    def steps():
        variables = {STEPS: [STEPS_MAX], PATTERNS: {}}
        for text in texts:
            matches(variables, text, "(a.*|[^b])+c{2}")
        return STEPS_MAX - variables[STEPS][0]

    first = steps()
    matches({STEPS: [STEPS_MAX], PATTERNS: {}}, "abdabe" * 100, "(a.*|[^b])+c{2}")
    assert first == steps() > 0


WORDS = st.sampled_from(
    [
        "a",
        "b",
        "response",
        ".",
        ".?",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "?",
        ":",
        ",",
        "+",
        "-",
        "*",
        "/",
        "%",
        "!",
        "==",
        "!=",
        "<",
        "<=",
        ">",
        ">=",
        "&&",
        "||",
        "in",
        "1",
        "2u",
        "0.5",
        "'x'",
        "b'y'",
        "true",
        "null",
        "size",
        "has",
        "all",
        "map",
        "x",
    ]
)


@given(st.lists(WORDS, max_size=30))
def test_any_words_are_read_or_refused_and_evaluated_or_refused(words):
    try:
        expression = Expression(" ".join(words))
        expression.value({"a": {"b": [1, 2.5, "x"]}, "response": REPLY})
    except (ExpressionError, EvaluationError) as error:
        assert str(error)


@pytest.mark.parametrize("sign", ["==", "!=", "<", "<=", ">", ">="])
def test_two_values_compare_the_same_whether_python_or_cel_compares_them(sign):
    both = Expression(f"a {sign} b")
    values = [
        0,
        1,
        2**53 + 1,
        1.0,
        2.0**53,
        math.nan,
        math.inf,
        Uint(1),
        True,
        False,
        "",
        "1",
        b"1",
        None,
        [1],
        [1.0],
        {"k": 1},
    ]
    for one, other in itertools.product(values, repeat=2):
        try:
            expected = equal(one, other) is (sign == "==") if sign in {"==", "!="} else in_order(sign, one, other)
        except EvaluationError:
            with pytest.raises(EvaluationError):
                both.value({"a": one, "b": other})
        else:
            assert both.value({"a": one, "b": other}) is expected, (one, sign, other)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text):
    try:
        Expression(text)
    except ExpressionError as error:
        assert 0 <= error.at <= len(text)


@pytest.mark.parametrize(
    "text",
    [
        "l.all(x, x in l)",
        "l.all(x, l == m)",
        "size(l.map(x, l + l)) > 0",
        "l.all(x, '%s'.format([d]) != '')",
        "l.all(x, [l] != [m, l])",
    ],
)
def test_what_a_loop_compares_searches_and_joins_counts(text):
    numbers = list(range(5_000))
    with pytest.raises(CostError):
        Expression(text).value({"l": numbers, "m": list(numbers), "d": {str(one): one for one in numbers}})


@pytest.mark.parametrize("text", ["int(s)", "uint(s)"])
def test_a_number_of_too_many_digits_is_no_number(text):
    with pytest.raises(EvaluationError):
        Expression(text).value({"s": "1" * 5_000})
