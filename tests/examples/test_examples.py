"""The examples run as they are, and say what they say they do."""

import asyncio
from pathlib import Path

import pytest

from comity.testing import ModelServer

EXAMPLES = Path(__file__).parents[2] / "examples"
MODELS = ("COMITY_MODEL", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY")


def test_the_receipt_is_read_by_one_agent_and_filed_by_another_and_no_deeper(run_script):
    said = run_script(EXAMPLES / "receipts.py")
    assert "success: 12.40 CAD at Corner Shop" in said
    assert "\n    byte → tag: refused LIMIT_DEPTH_EXCEEDED\n" in said
    assert "\n  prime → tag: success" in said


def test_the_researchers_guesses_reach_the_validator_as_data(run_script):
    said = run_script(EXAMPLES / "research.py")
    assert "{'valid_email': 'jdoe@acme.example'}" in said
    assert said.count("validator → tool:ping_mailbox: success") == 2


def test_with_a_key_the_example_asks_the_provider(monkeypatch, run_script):
    monkeypatch.syspath_prepend(EXAMPLES)
    from receipts import SCRIPTS

    steps = {name: iter(script) for name, script in SCRIPTS.items()}
    words = {"You look after": "prime", "You read documents": "byte", "You say what kind": "tag"}

    def rule(received):
        told = received.body["messages"][0]["content"]
        [name] = [name for begin, name in words.items() if told.startswith(begin)]
        return next(steps[name])

    async def main():
        async with ModelServer(rule) as server:
            monkeypatch.setenv("OPENAI_API_KEY", "k")
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            return await asyncio.to_thread(run_script, EXAMPLES / "receipts.py"), server.requests

    said, requests = asyncio.run(main())
    assert "success: 12.40 CAD at Corner Shop" in said
    assert len(requests) == 7
    assert requests[0].headers["authorization"] == "Bearer k"


@pytest.mark.parametrize(
    ("environment", "chosen"),
    [
        ({}, "script"),
        ({"COMITY_MODEL": "groq:any", "OPENAI_API_KEY": "k"}, "groq:any"),
        ({"OPENAI_API_KEY": "k"}, "openai:"),
        ({"ANTHROPIC_API_KEY": "k"}, "anthropic:"),
        ({"GOOGLE_API_KEY": "k"}, "google:"),
    ],
)
def test_a_key_chooses_a_real_model(environment, chosen, monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    for variable in MODELS:
        monkeypatch.delenv(variable, raising=False)
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    from stage import model_or

    model = model_or(["hello"], "any")
    assert (model if isinstance(model, str) else model.name).startswith(chosen)
