"""What a run makes of its data is bounded: texts, values of nodes, and all that one graph holds."""

from __future__ import annotations

import pytest

from comity.core.expression import EvaluationError, Expression
from comity.core.workflow import ending, planner
from comity.core.workflow.graph import compile_program
from comity.core.workflow.history import Started
from comity.core.workflow.mapping import TEXT_CHARS_MAX, size_of
from comity.core.workflow.model import content_hash
from comity.core.workflow.planner import Planner
from comity.core.workflow.read import load

TURNS = """
edges:
  - {from: b, to: a, when: 'response.status == "success"', max: 60}
  - {from: b, to: end, else: true}
"""
GROW = {  # each doubles what it has in every turn
    "text": "a: {set: '{{a.data ?? input.s}}{{a.data ?? input.s}}'}\n  b: {decide: 'a.data', after: [a]}",
    "list": "a: {set: ['{{a.data ?? input.s}}', '{{a.data ?? input.s}}']}\n  b: {decide: 'a.data', after: [a]}",
    "join": "a: {set: '{{b.data ?? input.s}}'}\n  c: {set: '{{a.data}}', after: [a]}\n  d: {set: '{{a.data}}', after: [a]}\n"
    "  b: {join: all, after: [c, d]}",
}


def ended(text: str):
    definition = load(text)
    planner = Planner(compile_program(definition, {}, content_hash(definition.document)))
    planner.apply(Started(0, "r", {"s": "x" * 1_000, "l": [1] * 1_000}))
    assert planner.finish is not None
    return planner.finish


@pytest.mark.parametrize("kind", ["text", "list", "join"])
def test_a_loop_that_doubles_its_data_fails_at_the_bound_and_names_the_node(kind):
    error = ended(f"workflow: w\nnodes:\n  {GROW[kind]}{TURNS}").reply["error"]
    assert error["code"] == "WORKFLOW_MAPPING_FAILED"
    bound = TEXT_CHARS_MAX if kind == "text" else ending.VALUE_BYTES_MAX
    assert f"more than {bound}" in error["message"]
    assert f"a mapping of {'b' if kind == 'join' else 'a'} " in error["message"]


def test_all_that_a_graph_holds_is_bounded_and_a_value_that_is_replaced_does_not_count(monkeypatch):
    monkeypatch.setattr(ending, "SCOPE_BYTES_MAX", 3_500)
    nodes = [f"n{one}: {{set: '{{{{input.s}}}}'}}" for one in range(4)]
    few, many = ("workflow: w\noutput: 1\nnodes:\n  " + "\n  ".join(nodes[:count]) for count in (3, 4))
    assert ended(few).status == "completed"
    error = ended(many).reply["error"]
    assert "a mapping of n3 has no value: with it, w would hold more than 3500 bytes" in error["message"]
    again = "a: {set: '{{input.s}}'}\n  b: {decide: 'a.data', after: [a]}"
    assert ended(f"workflow: w\noutput: 1\nnodes:\n  {again}{TURNS}").status == "completed"


@pytest.mark.parametrize(("value", "size"), [("abc", 6), ([], 2), ([1, "a"], 12), ({"k": [None]}, 2 + 5 + 3 + 4), (("a",), 7)])
def test_the_size_of_a_value_is_about_that_of_its_json(value, size):
    assert size_of(value, 1_000) == size


def test_counting_stops_at_the_bound_also_for_what_stands_in_it_again_and_again():
    value: object = "x" * 100
    for _ in range(200):
        value = [value, value]
    assert 1_000 < size_of(value, 1_000) < 2_000


def test_lists_that_an_expression_adds_are_bounded_as_texts_are():
    with pytest.raises(EvaluationError, match="a value may be 1000000 long"):
        Expression("l + l").value({"l": [0] * 500_001})


@pytest.mark.parametrize(("most", "end"), [(9, "WORKFLOW_LIMIT_REACHED"), (10, "completed")])
def test_a_run_that_goes_on_without_a_call_or_a_wait_ends_at_a_bound(monkeypatch, most, end):
    """Dies where the turns that one event leads to are not counted and compared."""
    monkeypatch.setattr(planner, "TURNS_MAX", most)
    finish = ended(
        "workflow: w\nnodes:\n  a: {set: 1}\n  b: {set: 2, after: [a]}\n  c: {set: 3, after: [b]}\n  d: {set: 4, after: [c]}"
    )
    assert (finish.status if finish.status == "completed" else finish.reply["error"]["code"]) == end
