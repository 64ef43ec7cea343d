import pytest
from hypothesis import given
from query_world import QUERIES, found, span

from comity.core.tracing.query import QueryError, parse, rewrite, search

# every query the ContextCore protocol shows, and its form in Tempo
SHOWN = {
    '{ insight.type = "decision" }': '{ span.insight.type = "decision" }',
    '{ insight.type = "decision" && project.id = "checkout" } | select(insight.summary, insight.confidence)': (
        '{ span.insight.type = "decision" && span.project.id = "checkout" } '
        "| select(span.insight.summary, span.insight.confidence)"
    ),
    '{ insight.type = "recommendation" && insight.confidence > 0.85 }': (
        '{ span.insight.type = "recommendation" && span.insight.confidence > 0.85 }'
    ),
    '{ insight.type = "blocker" && insight.audience =~ "agent|both" }': (
        '{ span.insight.type = "blocker" && span.insight.audience =~ "agent|both" }'
    ),
    '{ agent.id = "o11y-specialist" && project.id = "checkout" }': (
        '{ (span.agent.id = "o11y-specialist" || span.gen_ai.agent.id = "o11y-specialist") && span.project.id = "checkout" }'
    ),
    '{ insight.type =~ "decision|recommendation" } | select(insight.summary) | rate() > 0': (
        '{ span.insight.type =~ "decision|recommendation" } | select(span.insight.summary) | rate() > 0'
    ),
    '{ span.gen_ai.agent.id = "o11y-specialist" && span.project.id = "checkout" }': (
        '{ span.gen_ai.agent.id = "o11y-specialist" && span.project.id = "checkout" }'
    ),
    '{ span.gen_ai.conversation.id = "session-abc123" && span.insight.type = "decision" }': (
        '{ span.gen_ai.conversation.id = "session-abc123" && span.insight.type = "decision" }'
    ),
    '{ span.gen_ai.system = "anthropic" && span.insight.type = "recommendation" }': (
        '{ (span.gen_ai.system = "anthropic" || span.gen_ai.provider.name = "anthropic") '
        '&& span.insight.type = "recommendation" }'
    ),
}


# a span that every one of them finds
FOUND_BY_ALL = {
    "insight.type": "decision",
    "insight.confidence": 0.9,
    "insight.audience": "both",
    "project.id": "checkout",
    "gen_ai.agent.id": "o11y-specialist",
    "gen_ai.conversation.id": "session-abc123",
    "gen_ai.provider.name": "anthropic",
}


@pytest.mark.parametrize("written", SHOWN)
def test_every_query_of_the_protocol_runs_and_finds_what_it_means(written):
    kind = next(kind for kind in ("decision", "recommendation", "blocker") if kind in written or "insight.type" not in written)
    spans = [span(1, attributes=FOUND_BY_ALL | {"insight.type": kind}), span(2, 1, attributes={"insight.type": "other"})]
    result = search(rewrite(written).query, [spans])
    assert [m.span.span_id[-1] for m in result.traces[0].spansets[0].spans] == ["1"]


@pytest.mark.parametrize("written", SHOWN)
def test_every_query_of_the_protocol_is_shown_in_its_tempo_form(written, report_form):
    rewritten = rewrite(written)
    report_form(written, rewritten.text)
    assert rewritten.text == SHOWN[written]
    assert rewritten.is_changed is (written != SHOWN[written])
    assert parse(rewritten.text) == rewritten.query


def test_strict_mode_refuses_what_lenient_mode_takes():
    with pytest.raises(QueryError, match="unknown identifier: insight"):
        parse('{ insight.type = "decision" }')


def test_names_kept_on_resources_get_that_scope():
    assert rewrite('{ service.name = "x" }').text == '{ resource.service.name = "x" }'


@pytest.mark.parametrize("system", ["gen_ai.system", "gen_ai.provider.name"])
def test_an_old_name_finds_spans_with_either_name(system):
    spans = [span(1, attributes={system: "anthropic"}), span(2, 1, attributes={system: "other"})]
    query = rewrite('{ gen_ai.system = "anthropic" }').query
    assert [m.span.span_id[-1] for m in search(query, [spans]).traces[0].spansets[0].spans] == ["1"]


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ('{ gen_ai.system != "a" }', [2]),
        ("{ gen_ai.system = nil }", [3]),
        ("{ gen_ai.system != nil }", [1, 2]),
        ('{ "a" = gen_ai.system }', [1]),
        ("{ !(gen_ai.system = nil) || 1 = 2 }", [1, 2]),
    ],
)
def test_absence_must_hold_for_both_names_and_everything_else_for_one(query, ids):
    spans = [span(1, attributes={"gen_ai.provider.name": "a"}), span(2, 1, attributes={"gen_ai.system": "b"}), span(3, 1)]
    assert found(rewrite(query).text, spans) == ids


def test_a_selected_old_name_brings_the_current_one_along():
    assert rewrite("{} | select(gen_ai.system, name)").text == (
        "{ true } | select(span.gen_ai.system, span.gen_ai.provider.name, name)"
    )


def test_rewriting_reaches_into_spansets_metrics_and_arithmetic():
    old, new = 'agent.id = "x"', '{ span.agent.id = "x" || span.gen_ai.agent.id = "x" }'
    assert rewrite(f"{{ {old} }} >> {{ !({old}) }}").text == f"{new} >> {{ !({new[2:-2]}) }}"
    assert rewrite(f"({{ {old} }} | rate()) / ({{}} | rate())").text == f"({new} | rate()) / ({{ true }} | rate())"
    assert rewrite(f"({{ {old} }} | count() > 1) && ({{}})").text == f"({new} | count() > 1) && ({{ true }})"


def test_a_resource_attribute_of_the_same_name_is_left_alone():
    assert not rewrite('{ resource.agent.id = "x" }').is_changed


def test_a_bare_word_stays_an_error_so_that_a_slip_is_noticed():
    with pytest.raises(QueryError, match="unknown identifier: durration"):
        rewrite("{ durration > 1s }")


def test_lenient_queries_must_make_sense_too():
    with pytest.raises(QueryError, match="one type"):
        rewrite("{ name = 1 && insight.type = 2 }")


@given(QUERIES)
def test_rewriting_what_was_rewritten_changes_only_what_was_renamed(query):
    try:
        once = rewrite(str(query))
    except QueryError:
        return
    assert parse(once.text) == once.query
