import pytest

from comity.core.tracing.query import parse
from comity.core.tracing.query.ast import Attribute, Literal, Scope, quote
from comity.core.tracing.query.lexer import tokenize


@pytest.mark.parametrize(
    "text",
    [
        "{ .a = 1 && .b = 2 && .c = 3 }",
        "{ .a = 1 && (.b = 2 || .c = 3) }",
        "{ (.a = 1 || .b = 2) && .c = 3 }",
        "{ .a + 1 > 2 * .b }",
        "{ (.a + 1) * 2 > 3 }",
        "{ .a - (.b - .c) = 0 }",
        "{ .a ^ .b ^ .c = 0 }",
        "{ (.a ^ .b) ^ .c = 0 }",
        "{ .a > -1 && !.b && !(.c = 1) }",
        "{ (-.a) * 2 = 1 }",
        '{ span."a b" = "line\\nbreak" }',
        "{ duration > 1h30m0s && .f = 2.0 && .n = minInt }",
        "{ .a } >> ({ .b } && { .c })",
        "({ .a } > { .b }) | count() > 2 | select(.x, name)",
        "({ .a } | count() > 1) && ({ .b })",
        "{ .a } | quantile_over_time(duration, 0.5, 0.9) by (name) | topk(5) > 1.5 with(sample=0.1)",
        "{ .a } | compare({ status = error }, 5, 10, 20)",
        "(({ .a } | rate()) / ({ .b } | rate())) * 100 > 5",
    ],
)
def test_a_query_prints_as_a_person_would_write_it(text):
    assert str(parse(text)) == text


@pytest.mark.parametrize(
    ("attribute", "text"),
    [
        (Attribute(Scope.SPAN, "http.method"), "span.http.method"),
        (Attribute(Scope.NONE, "a-b/c"), ".a-b/c"),
        (Attribute(Scope.NONE, "5xx"), '."5xx"'),
        (Attribute(Scope.SPAN, "5xx"), "span.5xx"),
        (Attribute(Scope.RESOURCE, "a=b"), 'resource."a=b"'),
        (Attribute(Scope.EVENT, 'say "x"\\'), 'event."say \\"x\\"\\\\"'),
        (Attribute(Scope.NONE, "span.x", parent=True), 'parent."span.x"'),
        (Attribute(Scope.SPAN, "x", parent=True), "parent.span.x"),
    ],
)
def test_a_name_is_quoted_only_where_it_must_be(attribute, text):
    assert str(attribute) == text
    assert tokenize(text)[0].value == attribute


def test_a_text_is_quoted_so_that_nothing_in_it_ends_the_text():
    assert quote('a"b\\\n\t\x00\U000e0001é') == '"a\\"b\\\\\\n\\t\\u0000\\U000e0001é"'


def test_literals_are_equal_by_type_and_value():
    assert len({Literal(1), Literal(1.0), Literal(True), Literal("1"), Literal(1, at=9)}) == 4
