"""What a model is told stays under its cap, and what matters most is told last of all to be left out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.core.guidance.guidance import (
    Constraint,
    Focus,
    Guidance,
    Note,
    Preference,
    Priority,
    Question,
    QuestionStatus,
    Severity,
)
from comity.core.guidance.prompt import CONTEXT_TOKENS_MAX, GUIDANCE_TOKENS_MAX, LINE_CHARS_MAX, briefing, guidance_prompt
from comity.core.insight.insight import Insight, Type
from comity.core.insight.views import Settings
from comity.core.model.tokens import estimate

NOW_MS = 1_000_000
GUIDANCE = Guidance(
    focus=Focus(areas=("speed", "cost"), reason="Q1 target", until=NOW_MS + 1),
    constraints=(
        Constraint(id="tests", rule="Add tests", scope="src/**", severity=Severity.WARNING),
        Constraint(id="api", rule="Leave the API\nalone", scope="src/api/**", reason="clients"),
    ),
    preferences=(Preference(id="p", preference="Prefer async", reason="ADR-015"),),
    questions=(
        Question(id="q1", question="Why?", priority=Priority.LOW),
        Question(id="q2", question="How?", priority=Priority.CRITICAL, context="since Monday"),
        Question(id="q3", question="Who?", status=QuestionStatus.ANSWERED),
    ),
    context=(Note(topic="Architecture", content="Payments are async", source="docs"),),
)


def test_guidance_is_told_in_order_of_weight_one_line_each():
    assert guidance_prompt(GUIDANCE, now_ms=NOW_MS).splitlines()[1:] == [
        "- Must not (api): Leave the API alone [src/api/**] (clients)",
        "- Focus: speed, cost (Q1 target)",
        "- Mind (tests): Add tests [src/**]",
        "- Prefer: Prefer async (ADR-015)",
        "- Open question (q2, critical): How? (since Monday)",
        "- Open question (q1, low): Why?",
        "- Architecture: Payments are async (docs)",
    ]


def test_a_focus_whose_time_is_over_is_not_told():
    assert "Focus" not in guidance_prompt(GUIDANCE, now_ms=NOW_MS + 1)


def test_no_guidance_is_no_text():
    assert guidance_prompt(Guidance(), now_ms=NOW_MS) == ""


@pytest.mark.parametrize("count_tokens", [estimate, len, lambda text: len(text.split())])
def test_the_least_important_goes_first_and_the_cap_is_never_exceeded(count_tokens):
    whole = guidance_prompt(GUIDANCE, now_ms=NOW_MS, tokens_max=10_000, count_tokens=count_tokens)
    kept = []
    for cap in range(count_tokens(whole), -1, -1):
        text = guidance_prompt(GUIDANCE, now_ms=NOW_MS, tokens_max=cap, count_tokens=count_tokens)
        assert count_tokens(text) <= cap or text == ""
        lines = [line for line in text.splitlines()[1:] if "left out" not in line]
        assert lines == whole.splitlines()[1 : len(lines) + 1]
        if 0 < len(lines) < 7:
            assert f"{7 - len(lines)} more" in text
        kept.append(len(lines))
    assert kept == sorted(kept, reverse=True)
    assert {7, 4, 1, 0} <= set(kept)


def test_a_very_long_text_does_not_push_out_the_others():
    long = Guidance(constraints=(Constraint(id="long", rule="x" * 5000), Constraint(id="short", rule="y")))
    lines = guidance_prompt(long, now_ms=NOW_MS).splitlines()
    assert [len(line) for line in lines[1:]] == [LINE_CHARS_MAX, len("- Must not (short): y")]


def insight(number, kind):
    return Insight(
        id=f"i{number}",
        type=kind,
        summary="Latency rises with load " * 4,
        confidence=0.9,
        project_id="p",
        agent_id="a",
        created_at=NOW_MS - 1,
    )


def brief(guidance, insights, cap):
    return briefing(guidance, insights, settings=Settings(max_context_tokens=cap), now_ms=NOW_MS, window_ms=NOW_MS)


@given(st.integers(1, 4000), st.integers(0, 60), st.integers(0, 40))
def test_guidance_and_insights_together_stay_under_the_cap(cap, constraints, others):
    guidance = Guidance(constraints=tuple(Constraint(id=f"c{n}", rule="Do not " * 9) for n in range(constraints)))
    text = brief(guidance, [insight(number, Type.DECISION) for number in range(others)], cap)
    assert estimate(text) <= min(cap, CONTEXT_TOKENS_MAX)


def test_guidance_leaves_room_for_insights_and_blockers_are_among_them():
    guidance = Guidance(constraints=tuple(Constraint(id=f"c{n}", rule="Do not " * 9) for n in range(200)))
    insights = [insight(0, Type.BLOCKER), *(insight(number, Type.DECISION) for number in range(1, 500))]
    text = brief(guidance, insights, 2000)
    told, _, found = text.partition("\n\n")
    assert estimate(told) <= GUIDANCE_TOKENS_MAX
    assert '"i0"' in found
    assert "omitted: {blockers: 0" in found


def test_without_insights_or_guidance_there_is_the_other():
    assert brief(GUIDANCE, [], 2000).startswith(guidance_prompt(GUIDANCE, now_ms=NOW_MS))
    assert brief(Guidance(), [insight(1, Type.DECISION)], 2000).startswith("audience")
