import pytest
from hypothesis import given
from hypothesis import strategies as st
from query_world import QUERIES, found, span

from comity.core.tracing.query import ast, parse, validate
from comity.core.tracing.query.ast import Aggregate, Attribute, Binary, IntrinsicField, Literal, Scope, SpansetFilter, Unary
from comity.core.tracing.query.cursor import DEPTH_MAX, NESTING_MAX
from comity.core.tracing.query.errors import Fault, QueryError
from comity.core.tracing.query.rewrite import rewrite
from comity.core.tracing.query.values import Duration
from comity.core.tracing.span import INT64_MIN

A, B, C = (Attribute(Scope.NONE, name) for name in "abc")


def expression(text):
    (stage,) = parse(f"{{ {text} }}").root.stages
    return stage.expression


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        (".a || .b && .c", Binary("&&", Binary("||", A, B), C)),
        (".a = 1 && .b", Binary("&&", Binary("=", A, Literal(1)), B)),
        (".a + .b * .c", Binary("+", A, Binary("*", B, C))),
        (".a - .b - .c", Binary("-", Binary("-", A, B), C)),
        (".a ^ .b ^ .c", Binary("^", A, Binary("^", B, C))),
        ("-.a * .b", Unary("-", Binary("*", A, B))),
        ("-.a + .b", Binary("+", Unary("-", A), B)),
        ("!.a = .b", Binary("=", Unary("!", A), B)),
        ("!.a * .b", Unary("!", Binary("*", A, B))),
        (".a < .b = true", Binary("=", Binary("<", A, B), Literal(True))),
        ("(.a || .b) && .c", Binary("&&", Binary("||", A, B), C)),
        (".a || (.b && .c)", Binary("||", A, Binary("&&", B, C))),
        ("-1", Literal(-1)),
        ("--1", Literal(1)),
        ("-1.5s", Literal(Duration(-1_500_000_000))),
        ("-maxInt - 1", Binary("-", Literal(INT64_MIN + 1), Literal(1))),
        ("-minInt", Literal(INT64_MIN)),
    ],
)
def test_operators_bind_as_in_tempo(text, tree):
    assert expression(text) == tree


def test_structural_operators_bind_tighter_than_logic_and_from_the_left():
    a, b, c = (SpansetFilter(attribute) for attribute in (A, B, C))
    (both,) = parse("{ .a } && { .b } >> { .c }").root.stages
    assert both == ast.SpansetOperation("&&", a, ast.SpansetOperation(">>", b, c))
    (chain,) = parse("{ .a } > { .b } > { .c }").root.stages
    assert chain == ast.SpansetOperation(">", ast.SpansetOperation(">", a, b), c)


def test_an_empty_filter_is_a_filter_that_is_true():
    assert parse("{}") == parse("{ true }")


def test_a_pipeline_keeps_its_stages_in_order():
    stages = parse("{ .a } | by(name) | count() > 2 | coalesce() | select(.b, duration)").root.stages
    assert stages == (
        SpansetFilter(A),
        ast.GroupBy(IntrinsicField("name")),
        ast.ScalarFilter(">", Aggregate("count", None), Literal(2)),
        ast.Coalesce(),
        ast.Select((B, IntrinsicField("duration"))),
    )


def test_metrics_take_their_arguments_grouping_and_second_stages():
    query = parse("{} | quantile_over_time(duration, 0.5, .9) by (span.a, name) | topk(3) > 1.5 with(sample=0.1, x=true)")
    assert query.root.aggregate == ast.MetricsAggregate(
        "quantile_over_time", IntrinsicField("duration"), (0.5, 0.9), (Attribute(Scope.SPAN, "a"), IntrinsicField("name"))
    )
    assert query.root.second == (ast.Rank("topk", 3), ast.Threshold(">", Literal(1.5)))
    assert query.hints == (("sample", Literal(0.1)), ("x", Literal(True)))
    assert query.hint("sample") == 0.1
    assert query.hint("y") is None


def test_compare_takes_a_filter_a_number_and_a_window():
    assert parse("{} | compare({ .a }, 5, 10, 20)").root.aggregate == ast.Compare(SpansetFilter(A), 5, (10, 20))
    with pytest.raises(QueryError):
        parse("{} | compare({ .a }, 5, 10)")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("({} | rate()) > 1 / 2", 0),
        ("({} | rate()) > 1.0 / 2", 0.5),
        ("({} | rate()) > 7 - 2 * 3", 1),
        ("({} | rate()) > (1 + 2) * 3", 9),
        ("({} | rate()) > -3", -3),
        ("({} | rate()) > 10s", Duration(10**10)),
        ("({} | rate()) > -10s", Duration(-(10**10))),
    ],
)
def test_constants_of_metrics_are_folded_with_integers_kept_whole(text, value):
    (threshold,) = parse(text).root.second
    assert threshold.bound == Literal(value)


def test_arithmetic_between_series_has_the_usual_precedence():
    root = parse("5 + ({} | rate()) * 10").root
    assert (root.op, root.left, root.right.op, root.right.right) == ("+", Literal(5), "*", Literal(10))
    root = parse("-2 - 20 / ({} | rate())").root
    assert (root.op, root.left, root.right.op, root.right.left) == ("-", Literal(-2), "/", Literal(20))


@pytest.mark.parametrize(
    ("text", "column", "problem", "expected"),
    [
        ("{ insight.type = 1 }", 3, "unknown identifier: insight", "attribute with its scope"),
        ("{ span.a = }", 12, "unexpected }", "a value"),
        ("({ .a } | count() > 2) && { .b }", 27, "unexpected {", "("),
        ("{ .a } | count()", 17, "unexpected end of query", "a comparison"),
        ("{ .a", 5, "unexpected end of query", "}"),
        ("{ .a } | nonsense()", 10, "unknown identifier: nonsense", ""),
        ("{} | rate() | topk(-1)", 20, "unexpected -", "a whole number"),
        ("{} | topk(3)", 6, "unexpected topk", "a metrics function"),
        ("2 * 3", 6, "unexpected end of query", "a metrics query"),
        ("({} | rate()) > 1 / 0", 19, "division by zero", ""),
        ("coalesce()", 1, "unexpected coalesce", "{"),
        ("{} | 3 > 2", 6, "unexpected 3", "an aggregate"),
        ("(3) > 2", 5, "unexpected >", ""),
        ("{ .a } && ({ .b } | count() > 1)", 11, "a pipeline cannot stand beside a spanset", "a spanset"),
    ],
)
def test_a_syntax_error_says_where_and_what_was_expected(text, column, problem, expected):
    with pytest.raises(QueryError) as caught:
        parse(text)
    error = caught.value
    assert (error.fault, error.line, error.column) == (Fault.SYNTAX, 1, column)
    assert problem in error.problem
    assert expected in error.expected
    assert f"line 1, column {column}: {error.problem}" in str(error)


@pytest.mark.parametrize(
    ("head", "repeated"),
    [
        ("", "("),
        ("{ ", "("),
        ("{ ", "!"),
        ("{ ", "-"),
        ("{ ", ".a ^ "),
        ("{} | max(", "("),
        ("{ true } && ", "("),
        ("{} | by(", "("),
        ("", "(1 + "),
        ("", "({} | rate()) + ("),
        ("", "({} | count() > 1) && ("),
        ("{} | count() > ", "(1 + "),
    ],
)
def test_deep_nesting_is_a_query_error_and_never_exhausts_the_stack(head, repeated):
    with pytest.raises(QueryError, match=r"nests too deeply|too long"):
        parse(head + repeated * 1000)


def chain(count, joint=" && "):
    return "{ " + joint.join(f".a{n} = {n}" for n in range(count)) + " }"


@pytest.mark.parametrize("joint", [" && ", " || "])
def test_a_long_chain_runs_up_to_its_limit_and_is_refused_beyond(joint):
    text = chain(DEPTH_MAX - 1, joint)
    query = parse(text)
    validate(query, text)
    assert parse(str(query)) == query
    assert found(text, [span(attributes={f"a{n}": n for n in range(DEPTH_MAX)})]) == [1]
    with pytest.raises(QueryError, match="too long"):
        parse(chain(DEPTH_MAX + 2, joint))


def test_parentheses_nest_up_to_their_limit():
    assert parse("{ " + "(" * (NESTING_MAX - 1) + ".a" + ")" * (NESTING_MAX - 1) + " }") == parse("{ .a }")
    with pytest.raises(QueryError, match="nests too deeply"):
        parse("{ " + "(" * (NESTING_MAX + 1) + ".a" + ")" * (NESTING_MAX + 1) + " }")


@given(QUERIES)
def test_the_text_of_any_query_parses_to_the_same_query(query):
    assert parse(str(query)) == query


PIECES = """
    { } ( ) | , = != =~ !~ > >= < << >> ~ !> &~ && || + - * / % ^ ! .a span.b resource. parent.c duration span:id status error
    "x" `y` 1 2.5 3s nil true count() max( by( select( coalesce() rate() topk(2) compare( with( insight.type foo
"""


@given(st.one_of(st.lists(st.sampled_from(PIECES.split()), max_size=25).map(" ".join), st.text(max_size=60)))
def test_any_text_is_a_query_or_a_query_error(text):
    for run in (lambda: validate(parse(text), text), lambda: rewrite(text)):
        try:
            run()
        except QueryError as error:
            lines = text.split("\n")
            assert 1 <= error.line <= len(lines)
            assert 1 <= error.column <= len(lines[error.line - 1]) + 1
            assert error.problem
