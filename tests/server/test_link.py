"""The way to another node: what its answers mean, what is asked again until when, and what never goes out."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from comity.engines.keys import KeyRing, Tokens
from comity.errors import CallerError, UnavailableError
from comity.remote import link as remote_link
from comity.remote.link import ANSWER_BYTES_MAX, Link, Sending, _Again, _progress, _shortened, now_ms, read_events


def real_time(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Let a test run by the clock of the machine: sockets do."""

    @functools.wraps(test)
    def run(*arguments: Any, **more: Any) -> None:
        asyncio.run(test(*arguments, **more))

    return run


NOW = 1_800_000_000_000
REPLY = b'event: reply\ndata: {"status": "success", "data": 1, "confidence": 1.0}\n\n'


def answer(status: int, body: bytes) -> bytes:
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (status, len(body), body)


@contextlib.asynccontextmanager
async def other(*answers: bytes) -> AsyncIterator[tuple[Link, list[tuple[str, bytes]]]]:
    """A node that answers so, one request after the other, the last answer for ever; and what it was sent."""
    asked: list[tuple[str, bytes]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next((int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
        asked.append((head.decode(), await reader.readexactly(length)))
        writer.write(answers[min(len(asked), len(answers)) - 1])
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    link = Link(
        f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", Tokens(KeyRing(None, now_ms=NOW)), node="b", now_ms=NOW
    )
    try:
        yield link, asked
    finally:
        await link.close()
        server.close()
        await server.wait_closed()


def sending(ms: int = 5_000) -> Sending:
    return Sending("r.1", b'{"a": 1}', lambda: "signed", {"X-Trace": "t"}, now_ms() + ms)


async def ask(link: Link, told: list[Any] | None = None, ms: int = 5_000) -> Any:
    return await link.call(sending(ms), progress=[].append if told is None else told.append, now_ms=now_ms)


@pytest.mark.parametrize(
    ("status", "body", "outcome", "code", "message"),
    [
        (401, {"code": "AUTH_FAILED", "detail": "who?"}, "refused", "AUTH_FAILED", "who?"),
        (403, {"code": "AUTH_FAILED", "detail": "no"}, "refused", "AUTH_FAILED", "no"),
        (404, {"code": "AGENT_UNKNOWN", "detail": "no"}, "error", "AGENT_UNKNOWN", "no"),
        (400, {"code": "AGENT_UNKNOWN"}, "error", "TARGET_FAILED", None),
        (400, {"detail": "no"}, "error", "TARGET_FAILED", None),
        (400, {"code": 5, "detail": "no"}, "error", "TARGET_FAILED", None),
        (400, ["code", "detail"], "error", "TARGET_FAILED", None),
        (302, {}, "error", "TARGET_FAILED", None),
    ],
)
@real_time
async def test_a_request_that_the_other_node_refuses_is_not_repeated_and_its_code_is_the_reply(
    status, body, outcome, code, message
):
    raw = json.dumps(body).encode()
    async with other(answer(status, raw), answer(200, REPLY)) as (link, asked):
        reply = await ask(link)
        told = message or f"{link.url} answered {status}: {raw.decode()}"
        assert (reply.status, reply.error.code, reply.error.message, reply.message) == (outcome, code, told, told)
        assert len(asked) == 1


@pytest.mark.parametrize(
    "first", [*(answer(status, b"") for status in (429, 502, 503, 504)), answer(200, b"event: x\ndata: 1\n\n"), b""]
)
@real_time
async def test_a_node_that_is_busy_or_goes_away_without_a_reply_is_asked_again_under_the_same_id(first):
    async with other(first, answer(200, REPLY)) as (link, asked):
        assert (await ask(link)).data == 1
        assert [body for _, body in asked] == [b'{"a": 1}'] * 2
        for head, _ in asked:
            lines = {line.lower() for line in head.split("\r\n")}
            assert lines > {"post /v1/agent-calls http/1.1", "authorization: bearer signed", "x-trace: t"}
            assert lines > {"content-type: application/json", "accept: text/event-stream"}


@real_time
async def test_a_node_that_gives_no_reply_until_the_deadline_is_unreachable_and_is_not_asked_after_it():
    async with other(answer(503, b"")) as (link, asked):
        began = time.monotonic()
        reply = await ask(link, ms=200)
        assert (reply.status, reply.error.code) == ("error", "NODE_UNREACHABLE")
        assert reply.message == f"{link.url} gave no reply in time: it answered 503"
        assert 0.15 < time.monotonic() - began < 2
        assert 2 <= len(asked) <= 3  # after 50 ms, then 100
        late = await ask(link, ms=0)
        assert late.message == f"{link.url} gave no reply in time: it does not answer"
        assert len(asked) <= 3


@real_time
async def test_no_pause_between_two_requests_outlives_the_deadline(monkeypatch):
    monkeypatch.setattr(remote_link, "RETRY_S_FIRST", 60)
    async with other(answer(503, b"")) as (link, asked), asyncio.timeout(30):
        assert (await ask(link, ms=200)).error.code == "NODE_UNREACHABLE"
        assert len(asked) == 1


@real_time
async def test_what_is_no_reply_is_the_failure_of_the_other_node():
    async with other(answer(200, b'event: reply\ndata: {"status": 5}\n\n')) as (link, asked):
        reply = await ask(link)
        assert (reply.status, reply.error.code, len(asked)) == ("error", "TARGET_FAILED", 1)
        assert "something that is no reply" in reply.message


@real_time
async def test_progress_of_the_call_itself_is_told_and_that_of_calls_below_is_not():
    events = [{"request_id": "r.1", "data": 1}, {"request_id": "r.1.1", "data": 2}, [3], {"request_id": "r.1", "data": 4}]
    body = b"".join(b"event: progress\ndata: %s\n\n" % json.dumps(one).encode() for one in events)
    told: list[Any] = []
    async with other(answer(200, body + REPLY)) as (link, _):
        assert (await ask(link, told)).ok
    assert told == [1, 4]
    assert _progress(b"null", "r.1") is None


@real_time
async def test_a_call_that_is_cancelled_here_is_cancelled_there():
    async with other(b"HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\n", answer(200, b"")) as (link, asked):
        calling = asyncio.ensure_future(ask(link))
        while not asked:
            await asyncio.sleep(0.001)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        await link.close()
        told = [head for head, _ in asked if head.startswith("DELETE")]
        assert [head.split("\r\n")[0] for head in told] == ["DELETE /v1/agent-calls/r.1 HTTP/1.1"]
        assert "Bearer signed" in told[0]


@real_time
async def test_events_are_read_however_they_are_cut_and_one_without_end_is_not():
    async def cut(data: bytes, size: int) -> AsyncIterator[bytes]:
        for begin in range(0, len(data), size):
            yield data[begin : begin + size]

    data = b": hello\n\nevent: a\ndata: {}\n\ndata: 1\n\nid: 3\nevent: b\n\nevent: left"
    for size in (1, 7, 1_000):
        assert [one async for one in read_events(cut(data, size))] == [("a", b"{}"), ("b", b"null")]
    assert [one async for one in read_events(cut(b"x" * ANSWER_BYTES_MAX, ANSWER_BYTES_MAX))] == []
    with pytest.raises(_Again, match="without end"):
        [one async for one in read_events(cut(b"x" * (ANSWER_BYTES_MAX + 1), ANSWER_BYTES_MAX + 1))]


@pytest.mark.parametrize(
    ("url", "insecure", "is_taken"),
    [
        ("http://127.0.0.1:7", False, True),
        ("http://[::1]:7", False, True),
        ("http://localhost:7", False, True),
        ("https://b:7", False, True),
        ("http://b:7", True, True),
        ("http://b:7", False, False),
        ("http://10.0.0.1:7", False, False),
        ("ftp://b", True, False),
        ("https://", True, False),
        ("https://ann@b", True, False),
        ("https://b?x=1", True, False),
        ("https://b#x", True, False),
    ],
)
def test_tokens_go_to_the_address_of_a_node_and_in_clear_to_this_machine_alone(url, insecure, is_taken):
    def made() -> Link:
        return Link(url, Tokens(KeyRing(None, now_ms=NOW)), insecure_http=insecure, now_ms=NOW)

    if is_taken:
        assert made().url == url
    else:
        with pytest.raises(CallerError):
            made()


@pytest.mark.parametrize(
    ("told", "name"), [(b'{"node": "b"}', "b"), (b'{"node": ""}', None), (b'{"node": 5}', None), (b"[]", None), (b"x", None)]
)
@real_time
async def test_the_other_node_says_its_name_unless_it_was_given(told, name):
    async with other(answer(200, told)) as (link, asked):
        await asyncio.to_thread(link.learn_name)
        assert (link.node, asked) == ("b", [])
        link.node = ""
        if name is None:
            with pytest.raises(UnavailableError) as raised:
                await asyncio.to_thread(link.learn_name)
            assert raised.value.retryable is (told == b"x")  # what is no JSON may come from something in between
        else:
            await asyncio.to_thread(link.learn_name)
        assert (link.node, len(asked)) == (name or "", 1)


@pytest.mark.parametrize(("status", "more"), [(404, 0), (500, 0), (200, 1)])
@real_time
async def test_what_the_other_node_does_not_answer_well_or_too_long_is_not_taken(status, more):
    body = b'"%s"' % (b"x" * (ANSWER_BYTES_MAX - 2 + more) if more else b"")
    async with other(answer(status, body)) as (link, _):
        with pytest.raises(UnavailableError, match=f"answered {status}: ") as raised:
            await asyncio.to_thread(link.get, "/x", {})
        assert not raised.value.retryable


def test_of_a_long_answer_two_hundred_bytes_are_told_on_one_line():
    assert _shortened(b"a\n b\t" + b"c" * 300) == "a b " + "c" * 195
