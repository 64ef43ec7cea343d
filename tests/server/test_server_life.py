"""The life of a server: what a drain does to calls and streams, and what slow clients do to themselves."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import re
import socket

import pytest
from served import TOKEN, echo_agent, serving

from comity import Agent, Limits, Node, Prices, Usage
from comity.server.auth import Gate
from comity.server.connection import LINGER_BYTES_MAX, PIPELINED_MAX
from comity.server.serve import COLLECTIONS, Server, bound
from comity.server.settings import Settings
from comity.server.token_auth import Auth
from comity.testing import Answer, ScriptedModel

LIMITS = len(Limits.__struct_fields__)


async def _raw(url: str, data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(data.replace(b"HOST", url.removeprefix("http://").encode()))
    await writer.drain()
    return reader, writer


def test_a_process_that_serves_collects_garbage_less_often_until_it_ends() -> None:
    before, seen = gc.get_threshold(), []

    def note(server: Server) -> None:
        seen.append(gc.get_threshold())
        server.stop()

    asyncio.run(Server(Node([]), Settings(port=0), Gate(TOKEN, Auth.open(None, now_ms=0))).run(note))
    assert seen == [COLLECTIONS]
    assert gc.get_threshold() == before


def test_an_answer_in_two_parts_does_not_wait_for_the_clients_ack() -> None:
    seen = []

    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    async def go() -> None:
        async with await asyncio.start_server(greet, sock=bound(Settings(port=0))) as server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            await reader.read()
            writer.close()

    asyncio.run(go())
    assert seen == [1]


def test_a_drain_ends_streams_lets_calls_finish_and_settles_the_rest_as_cancelled(tmp_path) -> None:
    store = tmp_path / "work.db"
    gate = asyncio.Event()
    agent = Agent("SLOW", concurrency=200)

    @agent.capability("SOON")
    async def soon() -> dict[str, bool]:
        await gate.wait()
        return {"done": True}

    @agent.capability("NEVER")
    async def never() -> dict[str, bool]:
        await asyncio.Event().wait()
        return {}

    async def go() -> None:
        async with serving(Node([agent], store=store), drain_s=0.5) as served:
            url = served.url
            stream, writer = await _raw(
                url, f"GET /v1/events HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
            )
            assert b"200" in await stream.readline()

            def ask(capability: str, number: int) -> object:
                body = {"target": "SLOW", "capability": capability, "user_id": "u1", "request_id": f"{capability}-{number}"}
                return asyncio.create_task(served.client.post("/v1/calls", json=body))

            finishing = [ask("SOON", number) for number in range(20)]
            stuck = [ask("NEVER", number) for number in range(5)]
            while sum(served.server.node.running().values()) < 25:
                await asyncio.sleep(0.01)
            asyncio.get_running_loop().call_later(0.1, gate.set)
            served.server.app.state.drain()
            assert (await served.client.get("/readyz")).status_code == 503
            refused = await served.call()
            assert (refused.status_code, refused.json()["code"]) == (503, "NODE_CLOSED")
            draining = asyncio.create_task(served.server.drain())
            told = await asyncio.wait_for(stream.read(-1), 10)
            assert b"event: drain" in told
            assert [(await one).status_code for one in finishing] == [200] * 20
            assert {(await one).json()["error"]["code"] for one in stuck} == {"CALL_CANCELLED"}
            await draining
            writer.close()
        async with Node([agent], store=store) as node:
            statuses = [row.status for row in node.audit.rows() if row.kind == "settled"]
            assert sorted(statuses) == ["cancelled"] * 5 + ["success"] * 20

    asyncio.run(go())


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"POST /v1/calls HTTP/1.1\r\nHost: HOST\r\nX-Slow: a",
        b"POST /v1/calls HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer TOKEN\r\nContent-Length: 500\r\n\r\n{",
    ],
)
def test_a_client_that_is_silent_before_its_request_is_complete_is_cut_off(sent) -> None:
    async def go() -> None:
        async with serving(head_s=0.2, body_bytes_per_s_min=1_000_000) as served:
            reader, writer = await _raw(served.url, sent.replace(b"TOKEN", TOKEN.encode()))
            assert await asyncio.wait_for(reader.read(-1), 20) == b""
            writer.close()
            assert (await served.call()).status_code == 200
            assert served.server.connections.cut == 1

    asyncio.run(go())


def test_a_body_that_is_too_large_is_refused_before_it_has_come() -> None:
    async def go() -> None:
        async with serving() as served:
            head = f"POST /v1/calls HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 10485760\r\n\r\n"
            reader, writer = await _raw(served.url, head.encode())
            told = await asyncio.wait_for(reader.read(-1), 20)
            assert told.startswith(b"HTTP/1.1 413")
            assert b"ENVELOPE_TOO_LARGE" in told
            writer.close()
            chunked = (
                b"POST /v1/calls HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer TOKEN\r\nTransfer-Encoding: chunked\r\n\r\n"
            )
            reader, writer = await _raw(served.url, chunked.replace(b"TOKEN", TOKEN.encode()))
            with_size = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
            writer.write(with_size * 4)
            told = await asyncio.wait_for(reader.read(200), 20)
            assert told.startswith(b"HTTP/1.1 413")
            writer.close()

    asyncio.run(go())


@pytest.mark.parametrize(("token", "status"), [(TOKEN, 413), ("forged", 401)])
def test_a_client_that_sends_all_of_a_large_body_before_it_reads_sees_its_answer(token, status) -> None:
    async def go() -> None:
        async with serving() as served:
            headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
            for _ in range(3):
                answer = await served.client.post("/v1/calls", content=b"x" * 10_000_000, headers=headers)
                assert answer.status_code == status

    asyncio.run(go())


async def _pour(writer: asyncio.StreamWriter, most: int) -> int:
    """Send bytes until the server cuts the connection off, or all were sent; return how many were."""
    sent = 0
    with contextlib.suppress(ConnectionError):
        while sent < most:
            writer.write(b"x" * 1_000_000)
            await writer.drain()
            sent += 1_000_000
    return sent


@pytest.mark.parametrize("token", [TOKEN, "forged"])
def test_a_body_without_end_is_thrown_away_up_to_a_bound_and_then_cut_off(token) -> None:
    async def go() -> None:
        async with serving() as served:
            head = (
                f"POST /v1/calls HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer {token}\r\nContent-Length: 1000000000\r\n\r\n"
            )
            _, writer = await _raw(served.url, head.encode())
            sent = await _pour(writer, 20 * LINGER_BYTES_MAX)
            assert LINGER_BYTES_MAX < sent < 20 * LINGER_BYTES_MAX
            assert (await served.call()).status_code == 200

    asyncio.run(go())


def test_a_page_of_another_site_and_a_foreign_host_reach_nothing() -> None:
    async def go() -> None:
        async with serving() as served:
            for headers, status, code in (
                ({"host": "evil.example"}, 421, "HTTP_HOST_UNKNOWN"),
                ({"host": f"evil.example:{served.server.port}"}, 421, "HTTP_HOST_UNKNOWN"),
                ({"origin": "https://evil.example"}, 403, "HTTP_ORIGIN_REFUSED"),
                ({"origin": "null"}, 403, "HTTP_ORIGIN_REFUSED"),
                ({"sec-fetch-site": "cross-site"}, 403, "HTTP_ORIGIN_REFUSED"),
            ):
                for path in ("/v1/agents", "/healthz", "/openapi.json"):
                    answer = await served.client.get(path, headers=headers)
                    assert (answer.status_code, answer.json()["code"]) == (status, code), (headers, path)
                    assert "access-control-allow-origin" not in answer.headers
            own = await served.client.get("/v1/agents", headers={"origin": served.url, "sec-fetch-site": "same-origin"})
            assert own.status_code == 200
            assert "set-cookie" not in own.headers
            nobody = await served.client.get("/v1/agents", headers={"authorization": ""})
            assert (nobody.status_code, nobody.headers["www-authenticate"]) == (401, 'Bearer realm="comity"')

    asyncio.run(go())


def test_an_origin_that_was_allowed_by_name_may_ask_and_no_other() -> None:
    async def go() -> None:
        async with serving(allow_origins=("https://app.example",)) as served:
            asked = {"origin": "https://app.example", "access-control-request-method": "POST"}
            preflight = await served.client.options("/v1/calls", headers=asked | {"authorization": ""})
            assert preflight.status_code == 204
            assert preflight.headers["access-control-allow-origin"] == "https://app.example"
            answer = await served.call(headers={"origin": "https://app.example"})
            assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, "https://app.example")
            assert (await served.call(headers={"origin": "https://other.example"})).status_code == 403

    asyncio.run(go())


def test_a_token_that_asks_too_often_is_told_when_to_come_back() -> None:
    async def go() -> None:
        async with serving(Node([echo_agent()]), rate_per_s=0.001, rate_burst=3) as served:
            answers = [await served.call() for _ in range(4)]
            assert [one.status_code for one in answers] == [200, 200, 200, 429]
            assert int(answers[-1].headers["retry-after"]) > 1

    asyncio.run(go())


def test_a_one_time_code_signs_in_once_and_never_after_its_time() -> None:
    async def go() -> None:
        async with serving() as served:
            gate, now_ms = served.server.app.state.auth, served.server.app.state.now_ms()
            code = gate.code(now_ms)
            told = (await served.client.post("/v1/session", json={"code": code}, headers={"authorization": ""})).json()
            signed_in = {"authorization": f"Bearer {told['token']}"}
            assert (await served.client.get("/v1/me", headers=signed_in)).json()["user_id"] == "operator"
            late = gate.code(now_ms - 120_000)
            for wrong in (code, late, "made-up"):
                answer = await served.client.post("/v1/session", json={"code": wrong})
                assert answer.status_code == 401

    asyncio.run(go())


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "ENVELOPE_MALFORMED"),
        (b'{"target":"ECHO","capability":"SAY","inputs":{"text":"a","text":"b"}}', 400, "ENVELOPE_MALFORMED"),
        # As many colons are written again as stand there: of texts that hide one, and of limits that are written with defaults.
        (b'{"target":"ECHO","capability":"SAY","inputs":{"text":"a","text":"\\u003a"}}', 400, "ENVELOPE_MALFORMED"),
        (
            b'{"target":"ECHO","capability":"SAY","limits":{},"inputs":{%s}}' % b",".join([b'"text":"a"'] * (LIMITS + 1)),
            400,
            "ENVELOPE_MALFORMED",
        ),
        (b'{"target":"ECHO","capability":"SAY","surprise":1}', 400, "ENVELOPE_MALFORMED"),
        (b'{"target":"ECHO","capability":"SAY","inputs":{"text":NaN}}', 400, "ENVELOPE_MALFORMED"),
        (
            b'{"target":"ECHO","capability":"SAY","inputs":{"text":' + b"[" * 200 + b"]" * 200 + b"}}",
            422,
            "INPUT_VALIDATION_FAILED",
        ),
        (b'{"target":"ECHO","capability":"SAY","inputs":{"text":1}}', 422, "INPUT_VALIDATION_FAILED"),
        (b'{"target":"NONE","capability":"SAY"}', 404, "ROUTING_UNKNOWN_AGENT"),
    ],
)
def test_a_body_that_is_wrong_is_told_so_by_its_code(body, status, code) -> None:
    async def go() -> None:
        async with serving() as served:
            answer = await served.client.post("/v1/calls", content=body, headers={"content-type": "application/json"})
            told = answer.json()
            assert (answer.status_code, told.get("code") or told["error"]["code"]) == (status, code)

    asyncio.run(go())


def test_a_client_that_sends_too_many_requests_at_once_is_cut_off_and_costs_others_nothing() -> None:
    async def go() -> None:
        async with serving() as served:
            one = b"GET /healthz HTTP/1.1\r\nHost: HOST\r\n\r\n"
            reader, writer = await _raw(served.url, one * (PIPELINED_MAX * 4))
            told = b""
            with contextlib.suppress(ConnectionError):  # a server that closes before it has read everything resets
                while part := await asyncio.wait_for(reader.read(65_536), 20):
                    told += part
            assert told.count(b"HTTP/1.1 200") < PIPELINED_MAX * 4
            writer.close()
            few, writer = await _raw(served.url, one * (PIPELINED_MAX - 1))
            for _ in range(PIPELINED_MAX - 1):
                assert b"200" in await asyncio.wait_for(few.readuntil(b"\r\n\r\n"), 20)
                await few.readexactly(len(b'{"status":"ok","reason":""}'))
            writer.close()
            assert (await served.call()).status_code == 200

    asyncio.run(go())


def test_a_client_that_takes_nothing_of_its_answer_is_cut_off_and_a_slow_one_is_not(monkeypatch) -> None:
    monkeypatch.setattr("comity.server.connection.SWEEP_S", 0.05)
    agent = Agent("BIG")

    @agent.capability("SAY")
    async def say() -> str:
        return "x" * 800_000  # with the others more than a system keeps for a client

    async def go() -> None:
        async with serving(Node([agent]), stall_s=0.5) as served:
            body = b'{"target":"BIG","capability":"SAY","user_id":"u1"}'
            head = (
                f"POST /v1/calls HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"
            )
            one = head.encode() + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
            reader, writer = await _raw(served.url, b"")
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write((one * 12).replace(b"HOST", served.url.removeprefix("http://").encode()))
            async with asyncio.timeout(20):
                while served.server.connections.open:
                    await asyncio.sleep(0.01)
            writer.close()
            assert served.server.connections.cut == 1
            reader, writer = await _raw(served.url, one * 12)
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            while not any(each.stalled_since for each in served.server.connections.open):
                await asyncio.sleep(0)
            writer.transport.resume_reading()  # type: ignore[attr-defined]
            for _ in range(12):
                assert b"200" in await asyncio.wait_for(reader.readline(), 20)
                length = re.search(rb"content-length: (\d+)", await reader.readuntil(b"\r\n\r\n"))
                await reader.readexactly(int(length[1]))
            assert not any(each.stalled_since for each in served.server.connections.open)
            writer.close()
            assert served.server.connections.cut == 1

    asyncio.run(go())


@pytest.mark.parametrize("bound_by", ["connections_max", "connections_per_address_max"])
def test_a_connection_too_many_is_closed_and_one_that_ends_makes_room(bound_by) -> None:
    one = b"GET /healthz HTTP/1.1\r\nHost: HOST\r\n\r\n"

    async def go() -> None:
        async with serving(**{bound_by: 2}) as served:
            readers, writers = zip(*[await _raw(served.url, one) for _ in range(2)], strict=True)
            for reader in readers:
                assert b"200" in await asyncio.wait_for(reader.readline(), 20)
            with contextlib.suppress(ConnectionError):
                reader, writer = await _raw(served.url, one)
                assert await asyncio.wait_for(reader.read(-1), 20) == b""
                writer.close()
            assert len(served.server.connections.open) == sum(served.server.connections.by_address.values()) == 2
            writers[0].close()
            while len(served.server.connections.open) == 2:
                await asyncio.sleep(0.001)
            reader, writer = await _raw(served.url, one)
            assert b"200" in await asyncio.wait_for(reader.readline(), 20)
            for each in (*writers, writer):
                each.close()
            while served.server.connections.open:
                await asyncio.sleep(0.001)
            assert not served.server.connections.by_address

    asyncio.run(go())


def test_a_client_that_leaves_with_many_requests_under_way_costs_no_failure(caplog) -> None:
    async def go() -> None:
        async with serving() as served:
            body = b'{"target":"ECHO","capability":"SAY","inputs":{"text":"hi"},"user_id":"u1"}'
            head = (
                f"POST /v1/calls HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"
            )
            one = head.encode() + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
            _, writer = await _raw(served.url, one * 50)
            writer.transport.abort()
            assert (await served.call()).status_code == 200

    asyncio.run(go())
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_a_stream_ends_at_once_when_its_client_has_left() -> None:
    async def go() -> None:
        async with serving() as served:
            head = f"GET /v1/events HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
            reader, writer = await _raw(served.url, head.encode())
            assert b"200" in await reader.readline()
            streams = served.server.app.state.streams
            while not streams.open:
                await asyncio.sleep(0.001)
            writer.transport.abort()
            async with asyncio.timeout(5):
                while streams.open or served.server.app.state.metrics.in_flight:
                    await asyncio.sleep(0.001)

    asyncio.run(go())


def test_a_client_that_leaves_while_an_earlier_request_of_it_runs_costs_no_failure(caplog) -> None:
    gate = asyncio.Event()
    agent = Agent("ECHO")

    @agent.capability("SOON")
    async def soon() -> dict[str, bool]:
        await gate.wait()
        return {"done": True}

    async def go() -> None:
        async with serving(Node([agent])) as served:
            body = b'{"target":"ECHO","capability":"SOON","user_id":"u1"}'
            head = f"POST /v1/calls HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n".encode()
            _, writer = await _raw(served.url, 2 * (head + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)))
            while not sum(served.server.node.running().values()):
                await asyncio.sleep(0.001)
            writer.transport.abort()
            while served.server.connections.open:
                await asyncio.sleep(0.001)
            gate.set()
            while served.server.app.state.metrics.in_flight:
                await asyncio.sleep(0.001)

    asyncio.run(go())
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_the_files_of_the_console_are_packed_for_clients_that_can_unpack_them_and_asked_for_once():
    async def main():
        async with serving() as served:
            plain = await served.client.get("/console/app.css", headers={"Accept-Encoding": "identity"})
            packed = await served.client.get("/console/app.css", headers={"Accept-Encoding": "br, gzip"})
            assert "content-encoding" not in plain.headers
            assert packed.headers["content-encoding"] == "gzip"
            assert int(packed.headers["content-length"]) < int(plain.headers["content-length"]) / 2
            assert packed.content == plain.content
            assert packed.headers["etag"] != plain.headers["etag"]
            known = {"Accept-Encoding": "gzip", "If-None-Match": packed.headers["etag"]}
            assert (await served.client.get("/console/app.css", headers=known)).status_code == 304

    asyncio.run(main())


def test_a_browser_keeps_the_files_that_the_page_names_and_asks_for_the_page_alone():
    async def main():
        async with serving() as served:
            page = await served.client.get("/console/")
            assert page.headers["cache-control"] == "no-cache"
            named = re.findall(r'(?:href|src)="([^"]+)"', page.text)
            assert len(named) > 10
            for name in named:
                kept = await served.client.get(f"/console/{name}")
                assert (kept.status_code, "immutable" in kept.headers["cache-control"]) == (200, True)
            folder = named[0].partition("/")[0]
            assert (await served.client.get(f"/console/{'0' * len(folder)}/main.js")).status_code == 404
            assert "immutable" not in (await served.client.get("/console/main.js")).headers["cache-control"]

    asyncio.run(main())


def test_what_a_call_cost_is_in_the_list_the_tree_and_the_metrics():
    async def main():
        used = Usage(prompt_tokens=1_000_000, completion_tokens=500_000)
        agent = Agent("MUSE", model=ScriptedModel([Answer(text="ok", usage=used)], name="a:muse"))
        async with serving(Node([agent], prices=Prices("USD", {"a:muse": (2.0, 4.0)}))) as served:
            body = {"target": "MUSE", "capability": "message", "message": "hi", "user_id": "u"}
            reply = (await served.client.post("/v1/calls", json=body)).json()
            assert reply["usage"]["cost"] == {"amount": 4.0, "currency": "USD"}
            listed = (await served.client.get("/v1/calls")).json()["items"][0]
            for asked, shown in (("min_tokens=1500000", 1), ("min_tokens=1500001", 0), ("min_cost=4", 1), ("min_cost=4.01", 0)):
                assert len((await served.client.get(f"/v1/calls?roots=true&{asked}")).json()["items"]) == shown, asked
            tree = (await served.client.get(f"/v1/calls/{reply['request_id']}/tree")).json()["items"]
            assert [one["cost"]["amount"] for one in (listed, *tree)] == [4.0, 4.0, 4.0]
            told = (await served.client.get("/metrics")).text.splitlines()
            assert 'comity_model_cost_total{agent="MUSE",currency="USD"} 4' in told

    asyncio.run(main())


def test_the_metrics_count_calls_by_agent_and_no_client_can_make_labels_up():
    async def main():
        async with serving() as served:
            bodies = ({"inputs": {"text": "hi"}}, {"inputs": {}}, {"target": "made-up", "inputs": {}})
            for body in bodies:
                await served.client.post("/v1/calls", json={"target": "ECHO", "capability": "SAY", "user_id": "u"} | body)
            told = (await served.client.get("/metrics")).text.splitlines()
            assert 'comity_calls_total{agent="ECHO",status="success"} 1' in told
            assert 'comity_calls_total{agent="ECHO",status="refused"} 1' in told
            assert 'comity_calls_total{agent="(unknown)",status="refused"} 1' in told
            assert 'comity_call_errors_total{agent="ECHO",code="INPUT_VALIDATION_FAILED"} 1' in told
            assert 'comity_call_duration_seconds_count{agent="ECHO"} 1' in told
            assert not any("made-up" in line for line in told)

    asyncio.run(main())
