import pytest
from hypothesis import given
from query_world import CONDITIONS, traces

from comity.core.tracing.query import ast, parse
from comity.core.tracing.query.ast import Attribute, Binary, Literal, Scope
from comity.core.tracing.query.evaluate import Compiler
from comity.core.tracing.query.fetch import Condition, Request
from comity.core.tracing.query.normalize import normalize
from comity.core.tracing.query.trace import Trace


def normal(text, **options):
    (stage,) = parse(f"{{ {text} }}").root.stages
    return str(normalize(stage.expression, **options))


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("1 + 2 = 3", "true"),
        ('"a" = "b" || .a = 1 + 1', "false || .a = 2"),
        ("duration > 10 * 1s", "duration > 10000000000.0"),
        ("!true", "false"),
        ("5 < .a", "5 < .a"),
        ("5 != .a", ".a != 5"),
        ("nil = .a", ".a = nil"),
        (".a && .b = 1", ".a && .b = 1"),
        (".a", ".a"),
        ("!.a", "!.a"),
        ("status = ok || status = error", "status = ok || status = error"),
        (".a = 1 || .b = 1", ".a = 1 || .b = 1"),
        (".a = 1 || .a = 1.5", ".a = 1 || .a = 1.5"),
        (".a = 1 && .a = 2", ".a = 1 && .a = 2"),
    ],
)
def test_an_expression_is_brought_to_executable_form(text, result):
    assert normal(text) == result


@pytest.mark.parametrize(
    ("text", "op", "values"),
    [
        ('.a = "x" || .a = "y" || .a = "z"', "=", ("x", "y", "z")),
        (".a != 1 && .a != 2", "!=", (1, 2)),
        ('.a =~ "x" || .a =~ "y"', "=~", ("x", "y")),
        ('.a !~ "x" && .a !~ "y"', "!~", ("x", "y")),
    ],
)
def test_alternatives_for_one_field_become_one_comparison(text, op, values):
    (stage,) = parse(f"{{ {text} }}").root.stages
    assert normalize(stage.expression) == Binary(op, Attribute(Scope.NONE, "a"), Literal(values))
    assert normalize(stage.expression, join=False) == stage.expression


@given(CONDITIONS, traces(spans_max=2))
def test_joining_alternatives_changes_the_truth_of_nothing(expression, spans):
    # Every attribute is fetched whatever it holds, so only the expression decides.
    everything = [Condition(Attribute(scope, name)) for scope in Scope for name in "xy"]
    compiler = Compiler(Request(conditions=everything, is_conjunction=False))
    joined, apart = (compiler.filter_of(normalize(expression, join=join)) for join in (True, False))
    trace = Trace(spans)
    assert [joined(span, trace) for span in spans] == [apart(span, trace) for span in spans]


def test_a_literal_keeps_its_place_out_of_comparison():
    assert ast.Literal(1, at=3) == ast.Literal(1, at=9)
    assert ast.Literal(1) != ast.Literal(True)
    assert ast.Literal(1) != ast.Literal(1.0)
