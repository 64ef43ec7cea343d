"""Which index entries a query starts from, and what it asks of a row."""

import pytest

from comity.core.tracing.query import parse, prefilter
from comity.core.tracing.query.builder import either, spans, where
from comity.core.tracing.query.conditions import ANYTHING
from comity.engines.sqlite.spans.plan import LEAVES_MAX, VALUES_MAX, choose, lookups, row_condition
from comity.engines.sqlite.spans.rows import INDEXED, KEY_OF_NAME, KEY_OF_TRACE

TYPE, PROJECT, AGENT = INDEXED["insight.type"], INDEXED["project.id"], INDEXED["agent.id"]


def span_condition(text):
    return prefilter(parse(text)).span


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('{ span.insight.type = "risk" }', [((TYPE, "risk"),)]),
        ('{ span.insight.type =~ "risk|lesson" }', [((TYPE, "risk"), (TYPE, "lesson"))]),
        ('{ span.insight.type = "risk" && span.project.id = "p" }', [((TYPE, "risk"),), ((PROJECT, "p"),)]),
        ('{ span.agent.id = "a" || span.gen_ai.agent.id = "a" }', [((AGENT, "a"),)]),
        ('{ span.agent.id = "a" || span.other = "a" }', []),
        ('{ name = "x" }', [((KEY_OF_NAME, "x"),)]),
        ('{ trace:id = "00a" }', [((KEY_OF_TRACE, "a".rjust(32, "0")),)]),
        ('{ event.insight.type = "risk" }', []),
        ('{ span.insight.type != "risk" }', []),
        ('{ span.other = "risk" }', []),
        ('{ span.insight.type > "a" }', []),
    ],
)
def test_a_condition_names_the_index_entries_it_can_start_from(query, expected):
    assert lookups(span_condition(query)) == expected


def test_a_long_text_is_looked_up_by_its_beginning():
    (((_, value),),) = lookups(span_condition(f'{{ span.project.id = "{"x" * 500}" }}'))
    assert value == "x" * 128


def test_more_values_than_the_limit_are_not_looked_up_one_by_one():
    for count, expected in ((VALUES_MAX, 1), (VALUES_MAX + 1, 0)):
        pattern = "|".join(f"v{number}" for number in range(count))
        assert len(lookups(span_condition(f'{{ span.project.id =~ "{pattern}" }}'))) == expected


def test_the_cheapest_of_several_spansets_is_chosen_and_every_alternative_is_kept():
    both = prefilter(parse("{ span.a = 1 } && { span.b = 1 }")).trace
    either = prefilter(parse("{ span.a = 1 } || { span.b = 1 }")).trace
    a, b = span_condition("{ span.a = 1 }"), span_condition("{ span.b = 1 }")
    assert choose(both, {a: 5.0, b: 2.0}.__getitem__) == [b]
    assert choose(either, {a: 5.0, b: 2.0}.__getitem__) == [a, b]
    assert choose(ANYTHING, lambda _: 0.0) == [ANYTHING]


def test_a_test_has_one_parameter_for_each_mark_and_no_value_in_its_text():
    query = """{ span.a = "x'y" && resource.b = 1 && (.c = 2.5 || duration > 1s) && kind = client && span.d > 3 && span.e != "z" }"""
    test = row_condition(span_condition(query))
    assert test.sql.count("?") == len(test.parameters)
    assert "x'y" not in test.sql
    assert "z" not in test.sql


def test_an_alternative_sql_cannot_answer_lets_every_row_through():
    test = row_condition(span_condition("{ span.a = 1 || span.b + span.c = 2 }"))
    assert test.sql is None
    assert test.parameters == []


def test_a_condition_too_large_for_one_statement_lets_every_row_through():
    for count in (LEAVES_MAX, LEAVES_MAX + 1):
        leaves = [where(f"span.x{number}", "=", 1) for number in range(count)]
        assert (row_condition(prefilter(spans(either(*leaves)).build()).span).sql is None) is (count > LEAVES_MAX)
