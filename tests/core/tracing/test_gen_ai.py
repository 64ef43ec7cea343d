"""OpenTelemetry's words for generative AI."""

import json

import pytest
from opentelemetry.semconv._incubating.attributes.gen_ai_attributes import GenAiProviderNameValues

from comity.core.model.exchange import Completion, Finish, Prompt, ToolCall, ToolResult, User
from comity.core.tracing.gen_ai import WELL_KNOWN, Asked, ModelFacts, chat_content, facts_of_name, finish_reason, provider_name


@pytest.mark.parametrize(
    ("name", "provider", "model"),
    [
        ("openai:gpt-4o", "openai", "gpt-4o"),
        ("openai-responses:gpt-4o", "openai", "gpt-4o"),
        ("google:gemini-2.0-flash", "gcp.gemini", "gemini-2.0-flash"),
        ("google-vertex:gemini-2.0-flash", "gcp.vertex_ai", "gemini-2.0-flash"),
        ("anthropic:claude-x", "anthropic", "claude-x"),
        ("bedrock:eu.anthropic.claude:0", "aws.bedrock", "eu.anthropic.claude:0"),
        ("mistral:large", "mistral_ai", "large"),
        ("grok:grok-4", "x_ai", "grok-4"),
        ("own-provider:m", "own-provider", "m"),
        ("scripted", "comity", "scripted"),
    ],
)
def test_the_name_of_a_model_says_its_provider_as_the_conventions_call_it(name, provider, model):
    assert facts_of_name(name) == ModelFacts(provider, model)


def test_every_name_that_is_translated_becomes_one_of_the_conventions():
    assert set(WELL_KNOWN.values()) <= {known.value for known in GenAiProviderNameValues}
    assert provider_name("deepseek") == "deepseek"


def test_every_way_to_stop_has_a_word_of_the_conventions():
    assert {finish_reason(finish) for finish in Finish} == {"stop", "tool_call", "length", "content_filter"}


def test_results_of_tools_and_arguments_that_are_no_json_are_parts_of_messages():
    prompt = Prompt(messages=(User("go"), ToolResult("c1", "rate", "0.5")))
    answer = Completion(text="so", calls=(ToolCall(id="c2", name="pay", arguments="{oops"),), finish=Finish.TOOL_CALLS)
    system, said, output = chat_content(Asked(facts=ModelFacts(), prompt=prompt), answer)
    assert system == ""
    assert json.loads(said)[1] == {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "0.5"}]}
    (found,) = json.loads(output)
    assert found["parts"] == [
        {"type": "text", "content": "so"},
        {"type": "tool_call", "id": "c2", "name": "pay", "arguments": "{oops"},
    ]
