"""The real libraries of three providers, over a real socket, against the scripted provider."""

import asyncio
import json
import sys
from contextlib import aclosing

import msgspec
import pytest

from comity.agents.model.providers import KEY_VARIABLES, openai_compatible, resolve
from comity.core.envelope.usage import Usage
from comity.core.model.exchange import (
    Assistant,
    Completion,
    Finish,
    Prompt,
    Settings,
    System,
    ToolCall,
    ToolDefinition,
    ToolResult,
    User,
)
from comity.errors import CallerError, ComityError, TargetError, UnavailableError
from comity.testing import Answer, Broken, Cut, Failure, Garbage, ModelServer, tool_call

KEY = "sk-very-secret"
ASK = Prompt(messages=(System("You add."), User("Add 1 and 2")))
ADD = ToolDefinition(
    name="add",
    description="Add two numbers",
    parameters={"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]},
)
PROVIDERS = ("openai:gpt-4o", "anthropic:claude-test", "google:gemini-2.5-flash", "compatible")


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    for variables in KEY_VARIABLES.values():
        for variable in variables:
            monkeypatch.delenv(variable, raising=False)


def connect(name, server):
    if name == "compatible":
        return openai_compatible(server.base_url, "local-model")
    return resolve(name, base_url=server.base_url if name.startswith("openai") else server.root_url, api_key=KEY)


async def ask(name, turn, prompt=ASK):
    """Return the pieces, the whole answer and what the provider was asked."""
    async with ModelServer([turn]) as server:
        model = connect(name, server)
        try:
            pieces = [piece async for piece in model.stream(prompt)]
        finally:
            await model.aclose()
        await asyncio.wait_for(server.all_closed(), 60)
        return pieces[:-1], pieces[-1], server.requests


def failures(name, turns):
    """Return for each turn the error, the pieces that came before it, and how often the provider was asked."""

    async def main():
        async with ModelServer(turns) as server:
            model = connect(name, server)
            seen = []
            for _ in turns:
                pieces, error, asked = [], None, len(server.requests)
                try:
                    async for piece in model.stream(ASK):
                        pieces.append(piece)  # noqa: PERF401  kept when the stream raises
                except ComityError as raised:
                    error = raised
                seen.append((error, pieces, len(server.requests) - asked))
            await model.aclose()
            return seen

    return asyncio.run(main())


@pytest.mark.parametrize("name", PROVIDERS)
def test_text_comes_in_pieces_and_last_as_a_whole_with_its_usage(name):
    turn = Answer(text="It is three.", usage=Usage(prompt_tokens=21, completion_tokens=4), piece_chars=4)
    pieces, whole, requests = asyncio.run(ask(name, turn))
    assert len(pieces) > 1
    assert "".join(pieces) == whole.text == "It is three."
    assert whole.usage == Usage(prompt_tokens=21, completion_tokens=4)
    assert whole.finish is Finish.STOP
    assert len(requests) == 1


@pytest.mark.parametrize("name", PROVIDERS)
def test_tool_calls_that_come_in_pieces_are_whole(name):
    turn = Answer(text="", calls=(tool_call("add", a=1, b=2), tool_call("add", a=30, b=40)), piece_chars=3)
    prompt = Prompt(messages=ASK.messages, tools=(ADD,))
    _, whole, requests = asyncio.run(ask(name, turn, prompt))
    assert [call.name for call in whole.calls] == ["add", "add"]
    assert [json.loads(call.arguments) for call in whole.calls] == [{"a": 1, "b": 2}, {"a": 30, "b": 40}]
    assert len({call.id for call in whole.calls}) == 2
    assert whole.finish is Finish.TOOL_CALLS
    assert "Add two numbers" in str(requests[0].body["tools"])


@pytest.mark.parametrize("name", PROVIDERS)
def test_the_whole_conversation_reaches_the_provider(name):
    call = ToolCall(id="call_9", name="add", arguments='{"a": 1, "b": 2}')
    result = ToolResult(call_id="call_9", name="add", text="THREE", is_error=False)
    prompt = Prompt(
        messages=(*ASK.messages, Assistant("I shall add.", (call,)), result, User("And?")),
        tools=(ADD,),
        settings=Settings(max_tokens=77, temperature=0.5, stop=("END",)),
    )
    _, _, requests = asyncio.run(ask(name, "done", prompt))
    sent = str(requests[0].body)
    for text in ("You add.", "Add 1 and 2", "I shall add.", "THREE", "And?", "77", "0.5", "END"):
        assert text in sent, text
    assert sent.index("Add 1 and 2") < sent.index("I shall add.") < sent.index("THREE") < sent.index("And?")


@pytest.mark.parametrize("name", ["openai:gpt-4o", "google:gemini-2.5-flash"])
def test_a_schema_is_enforced_where_the_provider_can(name):
    schema = {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}
    prompt = Prompt(messages=ASK.messages, response_schema=schema)
    _, whole, requests = asyncio.run(ask(name, '{"answer": 3}', prompt))
    assert "'answer'" in str({key: value for key, value in requests[0].body.items() if key not in ("messages", "contents")})
    assert whole.text == '{"answer": 3}'


FAILURES = [
    (Failure(429, "slow down"), "MODEL_RATE_LIMITED", UnavailableError),
    (Failure(503), "MODEL_OVERLOADED", UnavailableError),
    (Failure(529), "MODEL_OVERLOADED", UnavailableError),
    (Failure(500), "MODEL_FAILED", TargetError),
    (Failure(401, f"Incorrect key {KEY}"), "MODEL_MISCONFIGURED", TargetError),
    (Failure(400, "an odd request"), "MODEL_FAILED", TargetError),
    (Broken(Cut.CLOSE), "MODEL_UNREACHABLE", UnavailableError),
    (Broken(Cut.RESET), "MODEL_UNREACHABLE", UnavailableError),
    (Garbage(b"<html>no</html>"), "MODEL_FAILED", TargetError),
    (Garbage(b"<html>no</html>", "text/html"), "MODEL_FAILED", TargetError),
    (Garbage(b"data: {not json\n\n", "text/event-stream"), "MODEL_FAILED", TargetError),
    (Garbage(b"data: [1, 2]\n\ndata: [DONE]\n\n", "text/event-stream"), "MODEL_FAILED", TargetError),
    (Garbage(b"\x00\xff\xfe", "text/event-stream"), "MODEL_FAILED", TargetError),
    (Garbage(b"", "text/event-stream"), "MODEL_FAILED", TargetError),
]


@pytest.mark.parametrize("name", PROVIDERS)
def test_failures_are_typed_and_asked_once(name):
    seen = failures(name, [turn for turn, _, _ in FAILURES])
    for (turn, code, kind), (error, pieces, asked) in zip(FAILURES, seen, strict=True):
        assert isinstance(error, kind), turn
        assert error.code == code, turn
        assert KEY not in str(error)
        assert pieces == []
        assert asked == 1, turn  # the provider's library repeats nothing: the caller's deadline rules


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_rate_limit_says_when_to_come_back(name):
    [(error, _, _)] = failures(name, [Failure(429, "slow down", retry_after="2")])
    assert error.retry_after_ms == 2000
    assert error.retryable


def test_a_prompt_that_is_too_long_is_the_callers_to_shorten():
    turn = Failure(400, "This model's maximum context length is 8192 tokens", "context_length_exceeded")
    [(error, _, _)] = failures("openai:gpt-4o", [turn])
    assert error.code == "MODEL_CONTEXT_TOO_LONG"
    assert isinstance(error, CallerError)


def test_an_empty_account_is_not_a_rate_limit():
    [(error, _, _)] = failures("openai:gpt-4o", [Failure(429, "You exceeded your quota", "insufficient_quota")])
    assert error.code == "MODEL_MISCONFIGURED"


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_cut_stream_is_never_taken_for_the_whole_answer(name):
    answer = Answer(text="The total is 45000", piece_chars=4)
    for error, pieces, _ in failures(name, [Broken(cut, answer, after_events=4) for cut in (Cut.END, Cut.CLOSE, Cut.RESET)]):
        assert error is not None
        assert error.code == "MODEL_FAILED"
        assert "".join(pieces)  # what came before is the caller's to keep
        assert "The total is 45000".startswith("".join(pieces))


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize("finish", [Finish.REFUSED, Finish.LENGTH])
def test_an_answer_that_was_declined_or_cut_short_by_the_provider_is_marked(name, finish):
    _, whole, _ = asyncio.run(ask(name, Answer(text="I", finish=finish)))
    assert whole.finish is finish


@pytest.mark.parametrize("name", PROVIDERS)
def test_cancelling_a_stalled_stream_closes_the_connection_and_leaves_no_task(name):
    async def main():
        async with ModelServer([Broken(Cut.STALL, Answer(text="so far so good", piece_chars=4), after_events=4)]) as server:
            model = connect(name, server)
            pieces: list[str] = []
            has_begun = asyncio.Event()

            async def consume():
                async with aclosing(model.stream(ASK)) as stream:
                    async for piece in stream:
                        pieces.append(piece)
                        has_begun.set()

            before = asyncio.all_tasks()
            consumer = asyncio.create_task(consume())
            await asyncio.wait_for(has_begun.wait(), 60)
            consumer.cancel()
            with pytest.raises(asyncio.CancelledError):
                await consumer
            await asyncio.wait_for(server.all_closed(), 60)  # by the cancellation alone: the model is not closed yet
            left = asyncio.all_tasks() - before
            if left:  # Google's library drops a generator, which the loop closes in a task of its own
                _, left = await asyncio.wait(left, timeout=60)
            await model.aclose()
            return pieces, left

    pieces, left = asyncio.run(main())
    assert "so far so good".startswith("".join(pieces))
    assert pieces
    assert not left


@pytest.mark.parametrize(
    "answer", [Answer(text="x" * 500), Answer(calls=(tool_call("add", a="y" * 500),))], ids=["text", "call"]
)
def test_an_answer_without_end_is_stopped(answer, monkeypatch):
    monkeypatch.setattr("comity.agents.model.pydantic_ai.ANSWER_CHARS_MAX", 200)
    [(error, pieces, _)] = failures("compatible", [msgspec.structs.replace(answer, piece_chars=50)])
    assert error.code == "MODEL_FAILED"
    assert len("".join(pieces)) <= 200


@pytest.mark.parametrize("name", PROVIDERS)
def test_turning_away_from_a_stream_closes_the_connection(name):
    async def main():
        async with ModelServer([Broken(Cut.STALL, "more than anybody wants to read", after_events=5)]) as server:
            model = connect(name, server)
            async with aclosing(model.stream(ASK)) as stream:
                async for piece in stream:
                    assert piece
                    break
            await asyncio.wait_for(server.all_closed(), 60)
            await model.aclose()

    asyncio.run(main())


def test_connections_are_kept_between_requests_and_let_go_by_aclose():
    async def main():
        async with ModelServer(["one", "two"]) as server:
            model = connect("openai:gpt-4o", server)
            answers = []
            for _ in range(2):
                answers += [piece async for piece in model.stream(ASK) if isinstance(piece, Completion)]
            kept = server.connections_open
            await model.aclose()
            await asyncio.wait_for(server.all_closed(), 60)
            return [answer.text for answer in answers], kept

    assert asyncio.run(main()) == (["one", "two"], 1)


def test_a_model_serves_one_event_loop_after_another():
    async def main(model_of):
        async with ModelServer(lambda _received: "yes") as server:
            model = model_of(server)
            [*_, whole] = [piece async for piece in model.stream(ASK)]
            await model.aclose()
            return whole.text, model

    text, model = asyncio.run(main(lambda server: connect("compatible", server)))
    assert text == "yes"

    async def again():
        with pytest.raises(ComityError, match="MODEL_UNREACHABLE"):  # its server is gone, but the loop is no obstacle
            [piece async for piece in model.stream(ASK)]
        await model.aclose()

    asyncio.run(again())


def test_a_server_by_address_is_named_by_its_host_and_never_by_its_password():
    model = openai_compatible("http://ann:secret@models.example:8080/v1", "llama3")
    assert model.name == "models.example:llama3"


def test_a_server_that_counts_nothing_costs_nothing():
    _, whole, _ = asyncio.run(ask("compatible", Answer(text="free", usage=Usage())))
    assert whole.usage == Usage()


def test_the_key_of_openai_is_not_sent_to_another_server(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    _, _, requests = asyncio.run(ask("compatible", "hello"))
    assert KEY not in str(requests[0].headers)


@pytest.mark.parametrize("provider", KEY_VARIABLES)
def test_a_missing_key_is_named_by_its_variable(provider):
    with pytest.raises(TargetError, match=KEY_VARIABLES[provider][0]) as caught:
        resolve(f"{provider}:any")
    assert caught.value.code == "MODEL_MISCONFIGURED"


def test_a_key_in_the_environment_is_enough_and_is_shown_nowhere(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    model = resolve("anthropic:claude-test")
    assert model.name == "anthropic:claude-test"
    assert KEY not in repr(model)


@pytest.mark.parametrize("name", ["gpt-4o", "nobody:gpt-4o", "openai:", "openai-responses:gpt-5", "groq:any"])
def test_a_name_without_a_known_provider_a_key_or_its_packages_is_misconfigured(name):
    with pytest.raises(TargetError) as caught:
        resolve(name)
    assert caught.value.code == "MODEL_MISCONFIGURED"


def test_without_the_extra_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    monkeypatch.delitem(sys.modules, "comity.agents.model.pydantic_ai", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises(TargetError, match=r'pip install "\.\[llm\]"') as caught:
        resolve("openai:gpt-4o")
    assert caught.value.code == "MODEL_MISCONFIGURED"


def test_asking_for_a_model_by_name_is_what_imports_the_library():
    import subprocess

    code = "import sys, comity, comity.agents.model.providers; print('pydantic_ai' in sys.modules or 'openai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False"
