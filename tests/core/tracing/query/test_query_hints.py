"""A query that cannot be read is told what was probably meant."""

import pytest

from comity.core.tracing.query import QueryError, parse, validate


def refused(text, *, lenient=False):
    with pytest.raises(QueryError) as caught:
        validate(parse(text, lenient=lenient), text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("{ .a == 1 }", "write = for =="),
        ("{ .a==1 }", "write = for =="),
        ("{ .a !== 1 }", "write != for !=="),
        ("{ .a <> 1 }", "write != for <>"),
        ("{ .a => 1 }", "write >= for =>"),
        ('{ .a ~= "x" }', "write =~ for ~="),
        ("{ .a = 1 and .b = 2 }", "write && for and"),
        ("{ .a = 1 OR .b = 2 }", "write || for or"),
        ("{ .a = 1 } and { .b = 2 }", "write && for and"),
        ("{ .a = 1 & .b = 2 }", "write && for and"),
        ("{ .a = 1 | .b = 2 }", "write || for or"),
        ("{ .a = 1, .b = 2 }", "&& for and"),
        ("{ not .a = 1 }", "write ! for not"),
        ('{ .a in ("x", "y") }', '.name =~ "a|b"'),
        ('{ .a like "x" }', "regular expression"),
        ('{ name contains "x" }', "regular expression"),
        ("{ .a =~ /x/ }", "double quotes"),
        ("{ .a = 'x' }", "double quotes"),
        ("{ .a = “x” }", "double quotes"),
        ("{ .a = null }", "write nil for null"),
        ("{ .a = True }", "did you mean true?"),
        ("{ name = checkout }", '"checkout"'),
        ("{ status = eror }", "did you mean error?"),
        ("{ status = ERROR }", "did you mean error?"),
        ("{ status = failed }", "status is one of unset, ok, error"),
        ("{ kind = sever }", "did you mean server?"),
        ("{ stauts = error }", "did you mean status?"),
        ("{ druation > 1s }", "did you mean duration?"),
        ('{ statusmessage = "x" }', "did you mean statusMessage?"),
        ('{ span:nme = "x" }', "did you mean span:name?"),
        ('{ service.name = "x" }', "resource.service.name or .service.name"),
        ('{ foo = "x" }', "span.foo, resource.foo or .foo"),
        ("{ spn.foo = 1 }", "did you mean span.?"),
        ("{ duration > 1sec }", "as in 1s"),
        ("status = error", "in braces"),
        ("span.a = 1", "in braces"),
        ("{ } | count > 2", "write count(…)"),
        ("{ } | rate", "write rate(…)"),
        ("{ } | avrage(duration) > 1s", "did you mean avg?"),
        ("{ } | sum_overtime(.x)", "did you mean sum_over_time?"),
        ("{ } | p95(duration)", "quantile_over_time(duration, 0.95)"),
        ("{ } | select .a", "write select(.a)"),
        ("{ } | group by (.a)", "write by(…)"),
        ("{ } | limit 10", "beside the query"),
        ("# recent\n{ }", "a comment begins with //"),
        ('{ status = "error" }', "write status = error, without quotes"),
        ('{ kind = "server" }', "write kind = server, without quotes"),
        ('{ duration > "1s" }', "duration > 1s"),
        ("{ error = true }", "did you mean status = error?"),
    ],
)
def test_a_common_mistake_is_told_what_to_write_instead(text, hint):
    error = refused(text)
    assert hint in error.hint
    assert error.message.endswith(error.hint)


def test_what_looks_like_nothing_known_is_told_what_was_expected():
    error = refused("{ span.a = }")
    assert error.hint == ""
    assert error.message.endswith("expected a value, an attribute or an intrinsic")


@pytest.mark.parametrize("text", ["{ .a == 1 }", "{ .a = 1 and .b = 2 }", "{ status = eror }"])
def test_a_hint_is_given_at_the_lenient_door_too(text):
    assert refused(text, lenient=True).hint == refused(text).hint != ""
