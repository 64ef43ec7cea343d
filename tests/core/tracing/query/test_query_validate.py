import pytest

from comity.core.tracing.query import parse, validate
from comity.core.tracing.query.errors import Fault, QueryError


def refusal(text):
    query = parse(text)
    try:
        validate(query, text)
    except QueryError as error:
        return error
    return None


@pytest.mark.parametrize(
    "text",
    [
        "{ .a }",
        "{ .a = 1 || .a = 1.5 || .a = 1s }",
        "{ duration > 1 && duration > 1.5 && duration > 1s }",
        '{ .a >= "200" }',
        '{ name > "a" }',
        "{ .a = .b }",
        "{ -.a = 2 && !.b }",
        "{ .a = nil && nil != .b }",
        "{ name != nil }",
        "{ status != error && kind = client }",
        "{ .a ^ 2 % 3 = 1 }",
        "{} | max(duration * 2) > 1s",
        "{} | by(.a + 1) | avg(.b) = 2",
        "{} | rate() by (.a, .b, .c, .d, .e)",
        "{} | avg_over_time(duration) by (.a, .b, .c, .d)",
        "{} | compare({ .a }, 1000)",
        "{ instrumentation:name && instrumentation:version > 1 }",
        "{} | quantile_over_time(duration, 0, 1)",
        '{ .a =~ "x" && "x" =~ "y" }',
    ],
)
def test_operands_of_one_type_make_sense(text):
    assert refusal(text) is None


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("{ 1 }", 1),
        ("{ .a + 1 = 2 && name }", 14),
        ("{ name = 1 }", 8),
        ('{ 1 + "a" = 2 }', 5),
        ("{ status > error }", 10),
        ('{ kind =~ "a" }', 8),
        ("{ true > false }", 8),
        ("{ .a > nil }", 6),
        ("{ -name = 1 }", 3),
        ("{ !1 }", 3),
        ("{ .a =~ 1 }", 6),
        ("{ .a =~ .b }", 6),
        ('{ .a =~ "[" }', 9),
        ("{ name = nil }", 8),
        ("{ nil = resource.service.name }", 7),
        ("{ 1 / 0 = 1 }", 5),
        ("{ 1 % 0 = 1 }", 5),
        ("{} | max(name) > 1", 6),
        ("{} | max(1) > 1", 6),
        ("{} | by(1)", 6),
        ("{} | rate() | topk(0)", 15),
        ("{} | compare({ true }) > 1", 24),
        ("{} | compare({ 1 })", 14),
        ("{} | compare({ true }, 0)", 6),
        ("{} | compare({ true }, 1001)", 6),
        ("{} | compare({ true }, 1, 20, 10)", 6),
        ("({} | compare({ true })) + 1", 26),
        ("{} | quantile_over_time(duration, 1.5)", 6),
        ("{ true } && { 1 }", 13),
        ("({ 1 } | count() > 1) && ({ true })", 2),
        ("{} | min(1 = 3) > 1", 6),
    ],
)
def test_what_makes_no_sense_is_invalid_at_its_column(text, column):
    error = refusal(text)
    assert (error.fault, error.line, error.column) == (Fault.INVALID, 1, column)


@pytest.mark.parametrize(
    "text",
    [
        "{ parent.a = 1 }",
        "{ parent }",
        "{ 1 >= parent }",
        "{} | select(parent.a)",
        "{} | rate() by (parent.a)",
        "{} | max(parent.a) > 1",
        "{} | count() + count() = 1",
        "{} | count() = count()",
        "({} | count()) > 1",
        "{} | rate() by (.a, .b, .c, .d, .e, .f)",
        "{} | avg_over_time(duration) by (.a, .b, .c, .d, .e)",
        "{} | histogram_over_time(duration) by (.a, .b, .c, .d, .e)",
    ],
)
def test_what_the_language_does_not_do_yet_is_unsupported_not_invalid(text):
    assert refusal(text).fault is Fault.UNSUPPORTED


def test_the_innermost_fault_is_the_one_named():
    assert '1 + "a"' in refusal('{ (1 + "a") * 2 = 3 }').problem


def test_a_tree_without_text_is_judged_by_its_own_text():
    with pytest.raises(QueryError, match="both sides must be of one type"):
        validate(parse("{ name = 1 }"))
