import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.core.tracing.query.ast import Attribute, IntrinsicField, Scope
from comity.core.tracing.query.errors import QueryError
from comity.core.tracing.query.lexer import TEXT_CHARACTERS_MAX, TOKENS_MAX, Lex, tokenize
from comity.core.tracing.query.parse import parse
from comity.core.tracing.query.values import DURATION_PART, Duration
from comity.core.tracing.span import INT64_MAX, INT64_MIN, Kind, Status


def value_of(text):
    token, end = tokenize(text)
    assert end.kind is Lex.END
    assert token.text == text
    return token.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("9223372036854775807", INT64_MAX),
        ("1.5", 1.5),
        (".99", 0.99),
        ("3.", 3.0),
        ("1e3", 1000.0),
        ("2.5E-1", 0.25),
        ("true", True),
        ("nil", None),
        ("minInt", INT64_MIN),
        ("maxInt", INT64_MAX),
        ("error", Status.ERROR),
        ("consumer", Kind.CONSUMER),
        ("100ms", Duration(100 * 10**6)),
        ("1h30m", Duration(5400 * 10**9)),
        ("1.5s", Duration(1_500_000_000)),
        ("2us", Duration(2000)),
        ("2µs", Duration(2000)),
        ("1d", Duration(86_400 * 10**9)),
        ('"a b"', "a b"),
        ('"\\"\\\\\\n\\x41\\u00e9\\101"', '"\\\nAéA'),
        ('`raw \\n "text"`', 'raw \\n "text"'),
    ],
)
def test_a_literal_has_the_type_and_value_it_is_written_with(text, value):
    found = value_of(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        (".a", Attribute(Scope.NONE, "a")),
        ("span.http.status-code", Attribute(Scope.SPAN, "http.status-code")),
        ("resource.a/b", Attribute(Scope.RESOURCE, "a/b")),
        ("event.x", Attribute(Scope.EVENT, "x")),
        ("link.x", Attribute(Scope.LINK, "x")),
        ("instrumentation.x", Attribute(Scope.INSTRUMENTATION, "x")),
        ("parent.x", Attribute(Scope.NONE, "x", parent=True)),
        ("parent.resource.x", Attribute(Scope.RESOURCE, "x", parent=True)),
        ('span."a b"', Attribute(Scope.SPAN, "a b")),
        ('span.a."b c".d', Attribute(Scope.SPAN, "a.b c.d")),
        ('."a\\"\\\\b"', Attribute(Scope.NONE, 'a"\\b')),
        ("duration", IntrinsicField("duration")),
        ("span:duration", IntrinsicField("span:duration")),
        ("trace:rootService", IntrinsicField("trace:rootService")),
        ("parent", IntrinsicField("parent")),
    ],
)
def test_a_field_is_one_token_whatever_its_name_holds(text, field):
    assert value_of(text) == field


def test_an_attribute_name_ends_at_the_first_operator_bracket_or_space():
    assert [token.text for token in tokenize('{span.a="x"&&.b=~"y"||.c>1}')] == [
        "{", "span.a", "=", '"x"', "&&", ".b", "=~", '"y"', "||", ".c", ">", "1", "}", "",
    ]  # fmt: skip


def test_the_longest_operator_is_taken():
    text = "&>> &<< !>> !<< && || >> << != !~ =~ >= <= !> !< &> &< &~ > < ~ ! ="
    assert [token.text for token in tokenize(text)][:-1] == text.split()


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("{ # }", 3, "unexpected '#'"),
        ('{ "abc', 3, "not closed"),
        ("{ `abc", 3, "not closed"),
        ('{ "a\\q" }', 5, "not an escape"),
        ('{ "\\ud800" }', 4, "not an escape"),
        ("{ span. }", 3, "names no attribute"),
        ('{ span."a', 8, "not closed"),
        ("{ trace:status }", 3, "trace:status is not an intrinsic"),
        ("99999999999999999999", 1, "too large"),
        ("1e999", 1, "too large"),
        ("99999999999h", 1, "too long a duration"),
    ],
)
def test_what_is_no_token_is_an_error_at_its_column(text, column, problem):
    with pytest.raises(QueryError, match=problem) as caught:
        tokenize(text)
    assert (caught.value.line, caught.value.column) == (1, column)


def test_an_error_on_a_later_line_names_that_line():
    with pytest.raises(QueryError) as caught:
        tokenize("{\n  true &&\n  # }")
    assert (caught.value.line, caught.value.column) == (3, 3)


def test_a_name_without_a_scope_is_an_identifier_and_only_lenient_an_attribute():
    assert tokenize("insight")[0].kind is Lex.UNKNOWN
    assert tokenize("insight.type", lenient=True)[0].value == Attribute(Scope.SPAN, "insight.type")
    assert tokenize("service.name", lenient=True)[0].value == Attribute(Scope.RESOURCE, "service.name")
    assert tokenize("name.first", lenient=True)[0].value == Attribute(Scope.SPAN, "name.first")
    assert tokenize("insight", lenient=True)[0].kind is Lex.UNKNOWN


def test_text_and_tokens_are_bounded():
    with pytest.raises(QueryError, match="characters"):
        tokenize(" " * (TEXT_CHARACTERS_MAX + 1))
    with pytest.raises(QueryError, match="too long"):
        tokenize("(" * (TOKENS_MAX + 1))


@given(st.text())
def test_any_text_is_tokens_or_a_query_error(text):
    for lenient in (False, True):
        try:
            tokens = tokenize(text, lenient=lenient)
        except QueryError:
            continue
        assert tokens[-1].kind is Lex.END
        assert all(text.startswith(token.text, token.at) for token in tokens)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ('// decisions\n{ span.insight.type = "decision" }', '{ span.insight.type = "decision" }'),
        ("{ span.a = 1 /* one */ }", "{ span.a = 1 }"),
        ("{ span.a = 1 } // to the end", "{ span.a = 1 }"),
        ("/* over\ntwo lines */{ span.a = /**/ 1 }", "{ span.a = 1 }"),
        ('{ span.a = "// no /* comment" }', '{ span.a = "// no /* comment" }'),
        ("{ span.a = `/* text */` }", "{ span.a = `/* text */` }"),
        ("{ 6 //* not a division\n / 2 = span.a }", "{ 6 / 2 = span.a }"),
        ("{ } //", "{ }"),
    ],
)
def test_comments_are_read_as_go_reads_them_and_text_in_quotes_is_no_comment(text, same):
    assert [(one.kind, one.value) for one in tokenize(text) if one.kind is not Lex.FIELD] == [
        (one.kind, one.value) for one in tokenize(same) if one.kind is not Lex.FIELD
    ]
    assert parse(text) == parse(same)


def test_what_looks_like_a_comment_within_an_attributes_name_belongs_to_the_name():
    """Tempo reads a name up to the first character that cannot be part of one, and a slash can."""
    assert tokenize("span.a//b")[0].value == Attribute(Scope.SPAN, "a//b")
    assert tokenize("./*b*/c")[0].value == Attribute(Scope.NONE, "/*b*/c")


def test_the_place_of_an_error_is_that_in_the_text_with_its_comments():
    with pytest.raises(QueryError) as caught:
        parse("// one\n/* two */ { .a = }")
    assert (caught.value.line, caught.value.column) == (2, 18)


def test_a_comment_without_an_end_is_an_error_where_it_begins():
    with pytest.raises(QueryError) as caught:
        parse("{ .a = 1 } /* and")
    assert (caught.value.problem, caught.value.column) == ("the comment is not closed", 12)


@pytest.mark.parametrize("digits", ["1" * 1_000_000, "1" * 500_000 + "." + "1" * 500_000])
def test_no_digit_of_a_long_number_is_read_twice(digits):
    assert DURATION_PART.match(digits) is None  # never, if each digit began a duration of its own


def test_a_duration_of_more_digits_than_a_number_may_have_is_a_mistake():
    with pytest.raises(QueryError, match="too long a duration"):
        parse(f"{{ duration > {'1' * 5_000}s }}")
