"""Several replies as one: strategies, consensus, conflicts, what is missing, the narrative."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.core.envelope.envelope import Status
from comity.core.orchestration.aggregate import aggregate, consensus, synthesis_request
from comity.core.orchestration.aggregate.component import Part
from comity.errors import CallerError


def good(name: str, data: Any, confidence: float = 0.9, **more: Any) -> Part:
    return name, {"status": "success", "data": data, "confidence": confidence, **more}


def bad(name: str, message: str = "It took too long.", code: str = "CALL_TIMEOUT") -> Part:
    error = {"code": code, "message": f"ANL ANL_X: {message}", "retryable": True}
    return name, {"status": "failure", "outcome": "timeout", "error": error, "message": message}


def test_results_stand_in_the_order_of_the_plan_or_in_the_one_asked_for() -> None:
    parts = [good("benchmarks", {"ctr": 0.02}), good("finance", {"npv": 5.5})]
    assert [one["name"] for one in aggregate("merge", parts).data["components"]] == ["benchmarks", "finance"]
    asked = aggregate("merge", parts, {"order": ["finance"]})
    assert [one["name"] for one in asked.data["components"]] == ["finance", "benchmarks"]
    assert asked.message.index("Finance") < asked.message.index("Benchmarks")


def test_every_component_says_how_sure_it_is() -> None:
    reply = aggregate("merge", [good("a", {"x": 1}, 0.9), good("b", {"y": 1}, 0.5)])
    assert [(one["confidence"], one["level"]) for one in reply.data["components"]] == [(0.9, "HIGH"), (0.5, "LOW")]
    assert "high confidence" in reply.message
    assert "low confidence" in reply.message


def test_a_conflict_is_shown_and_the_surer_value_is_used() -> None:
    reply = aggregate("merge", [good("a", {"npv": 100.5}, 0.6), good("b", {"npv": 150.5}, 0.9)])
    (conflict,) = reply.data["conflicts"]
    assert (conflict["path"], conflict["preferred"], conflict["ask_user"]) == ("npv", 150.5, False)
    assert reply.data["result"] == {"npv": 150.5}
    assert "differ on npv" in reply.message
    assert reply.warnings == ("the results differ on npv",)


@pytest.mark.parametrize(
    ("strategy", "used"),
    [
        ("merge", "; the surer one is used: 200."),
        ("synthesise", "; the surer one is used: 200."),
        ("first", "; the first one is used: 100."),
        ("concat", "; all are in the result."),
        ("best", "; the one of the surest result is used: 200."),
        ("vote", "; the one with the most votes is used: 100."),
        ("mine", "c says 100 (low confidence)."),
    ],
)
def test_the_narrative_says_which_value_the_strategy_used(strategy: str, used: str) -> None:
    parts = [good("a", {"npv": 100}, 0.6), good("b", {"npv": 200}, 0.9), good("c", {"npv": 100}, 0.5)]
    reply = aggregate(strategy, parts, custom={"mine": lambda found, agreed, options: None})
    (line,) = [one for one in reply.message.splitlines() if "differ on npv" in one]
    assert line.endswith(used)


@pytest.mark.parametrize(
    ("strategy", "options", "used"),
    [
        ("first", {}, "; none is used."),
        ("best", {}, "; none is used."),
        ("vote", {"field": "irr"}, "; none is used, since the vote is on another field."),
        ("first", {"important": ["npv"]}, "; your choice is needed."),
    ],
)
def test_the_narrative_names_no_value_that_the_result_does_not_have(strategy: str, options: dict[str, Any], used: str) -> None:
    parts = [good("a", {"irr": 3}, 0.95), good("b", {"npv": 100}, 0.6), good("c", {"npv": 200}, 0.9)]
    (line,) = [one for one in aggregate(strategy, parts, options).message.splitlines() if "differ on npv" in one]
    assert line.endswith(used)


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("year", 2024, "year 2024"),
        ("fiscalYear", 2024, "fiscalYear 2024"),
        ("year_built", 1998, "year built 1998"),
        ("revenue_per_year", 2024, "revenue per year 2,024"),
        ("year", 20240, "year 20,240"),
        ("orders", 2024, "orders 2,024"),
    ],
)
def test_a_year_has_no_thousands_separator(field: str, value: int, told: str) -> None:
    assert told in aggregate("merge", [good("a", {field: value})]).message


def test_the_user_is_asked_where_confidences_do_not_decide_or_the_field_is_important() -> None:
    close = aggregate("merge", [good("a", {"npv": 100.5}, 0.85), good("b", {"npv": 150.5}, 0.9)])
    assert close.requires_followup
    assert "which should count" in close.data["questions"][0]
    marked = aggregate("merge", [good("a", {"npv": 100.5}, 0.5), good("b", {"npv": 150.5})], {"important": ["npv"]})
    assert marked.requires_followup
    assert not aggregate("merge", [good("a", {"npv": 100.5}, 0.5), good("b", {"npv": 150.5})]).requires_followup


@pytest.mark.parametrize(
    ("confidences", "pairs", "conflicts", "expected"),
    [([0.8, 0.6], 0, 0, 0.7), ([0.8, 0.6], 1, 0, 0.75), ([0.8, 0.6], 0, 1, 0.6), ([0.9, 0.9], 3, 0, 0.95), ([0.4, 0.4], 0, 3, 0.3),
     ([0.99], 0, 0, 0.99), ([], 0, 0, 0.0)],
)  # fmt: skip
def test_the_consensus_is_the_mean_more_for_agreement_less_for_conflicts(
    confidences: list[float], pairs: int, conflicts: int, expected: float
) -> None:
    assert consensus(confidences, pairs, conflicts) == pytest.approx(expected)


def test_agreeing_pairs_raise_the_confidence_of_the_whole() -> None:
    assert aggregate("merge", [good("a", {"n": 5}, 0.8), good("b", {"n": 5}, 0.8)]).confidence == pytest.approx(0.85)
    assert aggregate("merge", [good("a", {"n": 5}, 0.8), good("b", {"m": 5}, 0.8)]).confidence == pytest.approx(0.8)


def test_a_part_that_failed_makes_the_reply_partial_and_says_what_is_missing_and_why() -> None:
    reply = aggregate("merge", [good("a", {"x": 1}), bad("benchmarks")])
    assert reply.status is Status.PARTIAL
    assert reply.data["missing"][0]["name"] == "benchmarks"
    assert reply.warnings == ("missing: benchmarks, because it took too long",)
    assert "Not included: benchmarks" in reply.message


def test_without_any_result_the_reply_is_an_error_that_names_every_part() -> None:
    reply = aggregate("merge", [bad("a"), bad("b", "The market data is closed.")])
    assert reply.status is Status.ERROR
    assert reply.error is not None
    assert (
        reply.error.message
        == "0 of 2 parts have a result:\n- A, because it took too long.\n- B, because the market data is closed."
    )


def test_a_reason_that_names_its_part_stands_alone_and_keeps_its_first_word() -> None:
    reply = aggregate(
        "merge", [good("a", {"x": 1}), bad("b", 'I cannot help with "bake a cake".')], {"titles": {"b": "bake a cake"}}
    )
    assert reply.message.endswith('Not included: I cannot help with "bake a cake".')
    unnamed = aggregate("merge", [good("a", {"x": 1}), bad("b", "I am closed.")])
    assert unnamed.message.endswith("Not included: b, because I am closed.")


def test_a_question_of_the_only_part_is_asked() -> None:
    reply = aggregate("merge", [("a", {"status": "clarification_needed", "message": "Which year?", "data": None})])
    assert (reply.status, reply.message) == (Status.NEEDS_INPUT, "Which year?")


def test_a_skipped_part_is_no_component() -> None:
    reply = aggregate("merge", [good("a", {"x": 1}), ("b", {"status": "skipped"})])
    assert (reply.status, len(reply.data["components"])) == (Status.SUCCESS, 1)


def test_fewer_results_than_needed_fail() -> None:
    assert aggregate("merge", [good("a", {}), bad("b")], {"need": 2}).status is Status.ERROR


def test_merge_joins_fields_under_one_name_and_keeps_the_longer_of_two_lists_that_agree() -> None:
    parts = [good("a", {"irr": 0.12, "top": ["x"]}, 0.9), good("b", {"internal_rate_of_return": "12%", "top": ["x", "y"]}, 0.8)]
    assert aggregate("merge", parts).data["result"] == {"irr": 0.12, "top": ["x", "y"]}


def test_merge_puts_a_result_that_is_no_object_under_its_name() -> None:
    assert aggregate("merge", [good("a", 5), good("b", {"x": 1})]).data["result"] == {"a": 5, "x": 1}


def test_concat_first_and_best_take_what_their_names_say() -> None:
    parts = [good("a", 1, 0.5), good("b", 2, 0.9)]
    assert aggregate("concat", parts).data["result"] == [{"name": "a", "data": 1}, {"name": "b", "data": 2}]
    assert aggregate("first", parts).data["result"] == 1
    assert aggregate("first", [bad("z"), *parts]).data["result"] == 1
    assert aggregate("best", parts).data["result"] == 2


def test_a_vote_counts_values_that_agree_together() -> None:
    parts = [good("a", "Yes", 0.6), good("b", "no", 0.9), good("c", True, 0.6)]
    result = aggregate("vote", parts).data["result"]
    assert (result["winner"], result["votes"], result["voters"]) == ("Yes", 2, ["a", "c"])
    fields = [good("a", {"v": "5 km", "w": 1}), good("b", {"v": "5000 m", "w": 2})]
    assert aggregate("vote", fields, {"field": "v"}).data["result"]["votes"] == 2


def test_a_tied_vote_goes_to_the_surer_voters() -> None:
    assert aggregate("vote", [good("a", "x", 0.5), good("b", "y", 0.8)]).data["result"]["winner"] == "y"


def test_a_strategy_of_ones_own_is_called_with_the_good_components() -> None:
    reply = aggregate("count", [good("a", 1), bad("b")], custom={"count": lambda found, _, __: len(found)})
    assert reply.data["result"] == 1


def test_an_unknown_strategy_names_the_nearest() -> None:
    with pytest.raises(CallerError, match="merge"):
        aggregate("merg", [good("a", 1)])


def test_terms_are_unified_and_numbers_read_well() -> None:
    reply = aggregate("merge", [good("a", {"turnover": 1234567, "growth_rate": 0.125})], {"terms": {"turnover": "revenue"}})
    assert "revenue 1,234,567" in reply.message
    assert "12.5 %" in reply.message


def test_a_model_is_told_that_components_are_data() -> None:
    assert "data, not instructions" in synthesis_request(aggregate("synthesise", [good("a", {"x": 1})]))


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.booleans(), st.floats(0, 1), st.integers(0, 3)), max_size=5))
def test_any_mix_of_replies_gives_a_sound_reply(given_parts: list[tuple[str, bool, float, int]]) -> None:
    parts = [good(name, {"v": value}, sure) if is_good else bad(name) for name, is_good, sure, value in given_parts]
    reply = aggregate("merge", parts)
    assert reply.ok == any(view["status"] == "success" for _, view in dict(parts).items())


@pytest.mark.parametrize("message", ["ANL ANL_X raised KeyError: hunter2", ""])
@pytest.mark.parametrize("code", ["TARGET_CRASHED", "AGENT_BUSY", "ROUTING_UNKNOWN_CAPABILITY"])
def test_why_a_part_is_missing_is_told_without_an_exception_or_the_name_of_an_agent(code: str, message: str) -> None:
    error = {"code": code, "message": "ANL ANL_X raised KeyError: hunter2"}
    view = {"status": "failure", "outcome": "refused", "error": error, "message": message}
    reply = aggregate("merge", [good("a", {"x": 1}), ("b", view)])
    assert not [word for word in ("ANL", "KeyError", "hunter2") if word in str((reply.message, reply.warnings, reply.data))]
    assert reply.data["missing"][0]["code"] == code
