"""The scripted provider, asked by a plain HTTP client: what it says, how it breaks, and what it remembers."""

import asyncio
import http.client
import json

import pytest

from comity.core.envelope.usage import Usage
from comity.testing import Answer, Broken, Cut, Failure, Garbage, ModelServer, tool_call

USED = Usage(prompt_tokens=7, completion_tokens=3)
CHAT = "/v1/chat/completions"
MESSAGES = "/v1/messages"
GENERATE = "/v1beta/models/gem:generateContent"
GENERATE_STREAM = "/v1beta/models/gem:streamGenerateContent"


def ask(server, path=CHAT, timeout=5, **body):
    """Ask on a connection of its own and return status, headers and body."""
    client = http.client.HTTPConnection(server.root_url.removeprefix("http://"), timeout=timeout)
    try:
        client.request("POST", path, json.dumps({"model": "m"} | body), {"Authorization": "Bearer k"})
        response = client.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    finally:
        client.close()


async def asked(script, path=CHAT, **body):
    async with ModelServer(script) as server:
        return await asyncio.to_thread(ask, server, path, **body)


def events(raw):
    """Return the data of each event."""
    lines = [line.removeprefix("data: ") for line in raw.decode().split("\n") if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def test_a_whole_chat_answer_has_text_tool_calls_and_usage():
    _, _, raw = asyncio.run(asked([Answer(text="hi", calls=(tool_call("add", a=1),), usage=USED)]))
    body = json.loads(raw)
    [choice] = body["choices"]
    assert choice["message"]["content"] == "hi"
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a": 1}'}
    assert choice["finish_reason"] == "tool_calls"
    assert body["usage"] == {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


def test_a_streamed_chat_answer_comes_in_pieces_that_join_to_the_whole():
    answer = Answer(text="twelve chars", calls=(tool_call("add", amount=12345),), usage=USED, piece_chars=5)
    _, headers, raw = asyncio.run(asked([answer], stream=True, stream_options={"include_usage": True}))
    chunks = events(raw)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    texts = [delta["content"] for delta in deltas if delta.get("content")]
    arguments = [delta["tool_calls"][0]["function"]["arguments"] for delta in deltas if "tool_calls" in delta]
    assert texts == ["twelv", "e cha", "rs"]
    assert len(arguments) > 2
    assert json.loads("".join(arguments)) == {"amount": 12345}
    assert chunks[-1]["usage"]["total_tokens"] == 10
    assert headers["Content-Type"] == "text/event-stream"
    assert raw.endswith(b"data: [DONE]\n\n")


def test_a_chat_stream_counts_tokens_only_for_those_who_ask():
    _, _, raw = asyncio.run(asked([Answer(text="hi", usage=USED)], stream=True))
    assert not any("usage" in chunk for chunk in events(raw))


@pytest.mark.parametrize(
    ("path", "body", "text"),
    [
        (MESSAGES, {}, lambda body: body["content"][0]["text"]),
        (GENERATE, {}, lambda body: body["candidates"][0]["content"]["parts"][0]["text"]),
    ],
)
def test_other_providers_are_answered_in_their_own_words(path, body, text):
    _, _, raw = asyncio.run(asked(["hello"], path, **body))
    assert text(json.loads(raw)) == "hello"


def test_streams_of_other_providers_join_to_the_whole():
    answer = Answer(text="hello there", calls=(tool_call("add", a=1),))
    _, _, raw = asyncio.run(asked([answer], MESSAGES, stream=True))
    deltas = [event["delta"] for event in events(raw) if event["type"] == "content_block_delta"]
    assert "".join(delta.get("text", "") for delta in deltas) == "hello there"
    assert json.loads("".join(delta.get("partial_json", "") for delta in deltas)) == {"a": 1}
    _, _, raw = asyncio.run(asked([answer], GENERATE_STREAM))
    parts = [part for event in events(raw) for part in event["candidates"][0]["content"]["parts"]]
    assert "".join(part.get("text", "") for part in parts) == "hello there"
    assert parts[-1]["functionCall"] == {"name": "add", "args": {"a": 1}}


def test_a_rate_limit_says_when_to_come_back():
    status, headers, raw = asyncio.run(asked([Failure(429, "slow down", "rate_limit_exceeded", retry_after="2")]))
    assert (status, headers["Retry-After"]) == (429, "2")
    assert json.loads(raw)["error"]["code"] == "rate_limit_exceeded"


def test_garbage_is_sent_as_it_is():
    status, headers, raw = asyncio.run(asked([Garbage(b"<html>", "text/html", 200)]))
    assert (status, headers["Content-Type"], raw) == (200, "text/html", b"<html>")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("cut", "after", "error"),
    [
        (Cut.CLOSE, 2, http.client.IncompleteRead),
        (Cut.CLOSE, 0, http.client.RemoteDisconnected),
        (Cut.RESET, 0, ConnectionResetError),
        (Cut.STALL, 2, TimeoutError),
    ],
)
def test_an_answer_breaks_off_as_asked(cut, after, error, stream):
    async def main():
        async with ModelServer([Broken(cut, "a long answer", after)]) as server:
            with pytest.raises(error):
                await asyncio.to_thread(ask, server, timeout=0.3 if cut is Cut.STALL else 5, stream=stream)
            await asyncio.wait_for(server.all_closed(), 60)  # the server noticed that the client left

    asyncio.run(main())


def test_the_first_byte_may_be_slow():
    async def main():
        async with ModelServer([Answer(text="at last", delay_ms=60_000)]) as server:
            with pytest.raises(TimeoutError):
                await asyncio.to_thread(ask, server, timeout=0.1)

    asyncio.run(main())


def test_an_answer_may_end_early_in_good_order():
    _, _, raw = asyncio.run(asked([Broken(Cut.END, "a long answer", 2)], stream=True))
    assert len(events(raw)) == 2
    assert b"[DONE]" not in raw


def test_a_rule_sees_the_request_and_requests_are_kept():
    async def main():
        async with ModelServer(lambda received: f"{received.model} {received.streams}") as server:
            _, _, raw = await asyncio.to_thread(ask, server, GENERATE)
            return raw, server.requests

    raw, requests = asyncio.run(main())
    assert json.loads(raw)["candidates"][0]["content"]["parts"][0]["text"] == "m False"
    assert requests[0].path == GENERATE
    assert requests[0].headers["authorization"] == "Bearer k"


def test_a_script_that_ran_out_says_so():
    status, _, raw = asyncio.run(asked([]))
    assert status == 400
    assert "no answer left" in json.loads(raw)["error"]["message"]


def test_a_rule_that_raises_fails_the_test():
    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        async with ModelServer(lambda received: received.body["absent"]) as server:
            with pytest.raises(http.client.RemoteDisconnected):
                await asyncio.to_thread(ask, server)

    with pytest.raises(KeyError, match="absent"):
        asyncio.run(main())


def test_open_connections_are_counted_and_one_connection_serves_many_requests():
    def twice(server, counts):
        client = http.client.HTTPConnection(server.root_url.removeprefix("http://"), timeout=60)
        for _ in range(2):
            client.request("POST", CHAT, json.dumps({"model": "m"}))
            client.getresponse().read()
            counts.append(server.connections_open)
        client.close()

    async def main():
        async with ModelServer(["1", "2"]) as server:
            counts: list[int] = []
            await asyncio.to_thread(twice, server, counts)
            await asyncio.wait_for(server.all_closed(), 60)
            return counts, server.connections_open

    assert asyncio.run(main()) == ([1, 1], 0)
