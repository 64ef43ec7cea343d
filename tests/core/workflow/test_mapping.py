"""Templates and rules: values from replies, with their types, and nothing taken for a template that is data."""

from __future__ import annotations

from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.core.expression import Expression, MissingError
from comity.core.workflow.jsonpath import PATTERN_CHARACTERS_MAX, pattern_test
from comity.core.workflow.mapping import MappingError, TemplateError, compiled, read_path, size_of, templates_of
from comity.core.workflow.rules import expression_of

VALUES = {
    "node_A": {
        "data": {"extracted_names": ["Alice", "Bob"], "n": {"k": [{"z": 1.5}]}, "on": True, "a key": 3},
        "message": "hi",
    },
    "input": {"text": "{{node_A.message}}"},
}


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("{{node_A.data.extracted_names}}", ["Alice", "Bob"]),
        ("{{node_A.message}}", "hi"),
        ("{{ node_A.data.n.k[0].z }}", 1.5),
        ('{{node_A.data["a key"]}}', 3),
        ("{{node_A.data.on}}", True),
        ("to {{node_A.data.extracted_names[1]}}, {{node_A.data.n.k[0].z}} and {{node_A.data.on}}", "to Bob, 1.5 and true"),
        ("{{$.node_A.data.extracted_names[*]}}", ["Alice", "Bob"]),
        ("{{$.node_A.data.n.k[0].z}}", 1.5),
        ("{{size(node_A.data.extracted_names) + 1}}", 3),
        ("{{node_A.data.none ?? 'x'}}", "x"),
        ("{{node_A.data.none ?? node_A.message}}", "hi"),
        ("{{node_A.data.n | json}}", '{"k":[{"z":1.5}]}'),
        ('{{"{{"}} and }}', "{{ and }}"),
        ("{{ {'a': '}}'}.a }}", "}}"),
        ({"deep": ["{{node_A.message}}", {"x": "{{node_A.data.on}}"}]}, {"deep": ["hi", {"x": True}]}),
    ],
)
def test_a_template_gives_the_value_with_its_type(template, value):
    assert compiled(template)(VALUES) == value


def test_data_that_looks_like_a_template_stays_as_it_is():
    assert compiled("{{input.text}}")(VALUES) == "{{node_A.message}}"
    assert compiled("say {{input.text}}")(VALUES) == "say {{node_A.message}}"


@pytest.mark.parametrize("template", ["{{node_A.data.none}}", "{{node_A.data.extracted_names[2]}}", "{{$.node_A.none}}", "{{node_B.x}}", "{{node_A.message[0]}}"])  # fmt: skip
def test_a_missing_path_is_an_error(template: str):
    with pytest.raises(MissingError):
        compiled(template)(VALUES)


def test_a_list_inside_text_is_refused_and_says_how_to_write_it():
    with pytest.raises(MappingError, match=r"\| json"):
        compiled("names: {{node_A.data.extracted_names}}")(VALUES)


@pytest.mark.parametrize("template", ["{{", "{{}}", "{{a..b}}", "{{$.a[}}", "{{f(1)}}", "x {{a"])
def test_a_template_that_cannot_be_read_is_refused(template: str):
    with pytest.raises(TemplateError):
        compiled(template)


@given(st.text(max_size=50))
def test_any_text_compiles_or_is_refused(text: str):
    try:
        found = compiled(text)
    except TemplateError:
        return
    if "{{" not in text:
        assert found is None
        assert list(templates_of(text)) == []


@given(st.lists(st.one_of(st.from_regex(r"[a-z_][a-z0-9_]{0,5}", fullmatch=True), st.integers(0, 9)), min_size=1, max_size=6))
def test_a_path_is_read_as_it_is_written(steps):
    if isinstance(steps[0], int) or steps[0] in {"true", "false", "null"}:
        return
    text = "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in steps)[1:]
    assert read_path(text) == tuple(steps)


REPLY = {"response": {"status": "success", "data": {"score": 0.9, "tags": ["a", "b"], "name": "Ann", "none": None}}}


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        ({"field": "data.score", "operator": "gt", "value": 0.8}, True),
        ({"field": "data.score", "operator": "lt", "value": 0.8}, False),
        ({"field": "response.status", "operator": "eq", "value": "success"}, True),
        ({"field": "status", "operator": "neq", "value": "success"}, False),
        ({"field": "data.tags", "operator": "contains", "value": "b"}, True),
        ({"field": "data.name", "operator": "contains", "value": "nn"}, True),
        ({"field": "data.score", "operator": "exists"}, True),
        ({"field": "data.other", "operator": "exists"}, False),
        ({"field": "data.other", "operator": "not_exists"}, True),
        ({"field": "data.other", "operator": "neq", "value": 1}, False),  # missing is false, not unequal
        ({"field": "data.name", "operator": "in", "value": ["Ann", "Bob"]}, True),
        ({"field": "data.score", "operator": "gte", "value": 0.9}, True),
        ({"field": "data.name", "operator": "starts_with", "value": "A"}, True),
        ({"rules": [{"field": "status", "operator": "eq", "value": "x"}, {"field": "data.score", "operator": "gt", "value": 0}], "logic": "OR"}, True),
        ({"rules": [{"field": "status", "operator": "eq", "value": "x"}, {"field": "data.score", "operator": "gt", "value": 0}], "logic": "AND"}, False),
        ({"and": [{"or": [{"field": "status", "operator": "eq", "value": "success"}]}, "response.data.score > 0.5"]}, True),
        ({"type": "json_contains", "field": "data.tags", "value": "a"}, True),
    ],
)  # fmt: skip
def test_a_rule_means_the_same_as_its_expression(rule, holds):
    assert Expression(expression_of(rule)).holds(REPLY) is holds


@pytest.mark.parametrize("rule", [{"field": "a b", "operator": "eq", "value": 1}, {"field": "a", "operator": "like", "value": 1}, {"field": "a", "operator": "gt"}, {"rules": []}, {"rules": [1]}, 5, {"field": "a", "operator": "eq", "value": 1, "x": 1}])  # fmt: skip
def test_a_rule_that_is_none_is_refused(rule):
    with pytest.raises(ValueError, match=r"\w"):
        expression_of(rule)


def test_the_size_of_a_value_is_about_that_of_its_json():
    value = {"text": "abc", "list": [1, 2.5, True, None], "inner": {"k": "v"}}
    assert size_of(value, 1_000) == 66
    assert size_of(MappingProxyType(value), 1_000) == 66
    assert size_of(tuple([value] * 1_000), 100) == 1_002


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("$.l[?search(@, 'b.d')]", ["abcd"]),
        ("$.l[?match(@, 'a.*')]", ["abcd"]),
        ("$.l[?match(@, 'a')]", []),
        ("$.l[?match(@, $.p)]", ["[x]"]),
        ("$.l[?match(@, 'x.y')]", []),  # a line break is no character that a dot stands for
        ("$.l[?search(@, '(')]", []),
        ("$.l[?search(@, 7)]", []),
        ("$.l[?search(@, '(a|aa)+$')]", []),
    ],
)
def test_a_pattern_of_a_query_takes_time_that_is_linear_in_the_text(query, found):
    variables = {"l": ["abcd", "a" * 50_000 + "b", "[x]", "x\ny", 7], "p": r"[\[x\]]+"}
    kept = compiled(f"{{{{{query}}}}}")(variables)
    assert [one for one in kept if len(one) < 10] == found


def test_a_pattern_that_is_larger_than_the_engine_takes_matches_nothing():
    assert not pattern_test("(a{1000}){1000}", is_whole=False)("a" * 10)
    assert not pattern_test("a" * (PATTERN_CHARACTERS_MAX + 1), is_whole=False)("a" * 2_000)
