"""SIGTERM to a real `comity serve` under load: every call that was accepted ends once, in the store and at its client.

The suite ends one server; `make drain` ends COMITY_DRAINS of them with more clients.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import sys
from collections import Counter
from pathlib import Path

from comity.engines.sqlite.audit_rows import read_rows, verify_chain
from comity.engines.sqlite.connecting import connect
from comity.server.auth import stored_token, token_file

DRAINS = int(os.environ.get("COMITY_DRAINS", "0"))
CLIENTS = 64 if DRAINS else 8
STREAMS = 20 if DRAINS else 3
STUCK = 3
HERE = Path(__file__).parent


class Told:
    """What clients sent and were answered."""

    def __init__(self) -> None:
        self.sent = 0
        self.answers: dict[str, tuple[int, str]] = {}  # status and code by request id
        self.unanswered: set[str] = set()
        self.enough = asyncio.Event()


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str, body: dict) -> tuple[int, dict]:
    port = writer.get_extra_info("peername")[1]
    written = json.dumps(body).encode()
    head = f"POST /v1/calls HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
    writer.write(f"{head}Content-Type: application/json\r\nContent-Length: {len(written)}\r\n\r\n".encode() + written)
    status = int((await reader.readuntil(b"\r\n")).split()[1])
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    return status, json.loads(await reader.readexactly(int(head.partition(b"content-length:")[2].split()[0])))


async def _client(port: int, token: str, name: str, told: Told, until: int) -> None:
    """Ask over one connection until it is closed, or the server says that it stops."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        while True:
            told.sent += 1
            target, capability = ("BOSS", "ASK") if told.sent % 2 else ("WORKER", "WORK")
            request_id = f"{name}-{told.sent}"
            told.unanswered.add(request_id)
            body = {"target": target, "capability": capability, "inputs": {"number": told.sent}, "user_id": "u1"}
            status, answer = await _ask(reader, writer, token, body | {"request_id": request_id})
            told.unanswered.discard(request_id)
            told.answers[request_id] = status, answer.get("code") or (answer.get("error") or {}).get("code", "")
            if len(told.answers) >= until:
                told.enough.set()
            if status == 503:
                return
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def _stuck(port: int, token: str, request_id: str) -> tuple[int, dict]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = {"target": "WORKER", "capability": "NEVER", "user_id": "u1", "request_id": request_id}
    with contextlib.closing(writer):
        return await _ask(reader, writer, token, body)


async def _subscriber(port: int, token: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    assert b"200" in await reader.readuntil(b"retry: 2000")
    return reader, writer


async def drain_once(store: Path, chance: random.Random) -> Told:
    """Serve, load, send SIGTERM at a moment of chance, and check what every client and the store were told."""
    command = [sys.executable, "-m", "comity", "serve", "drained_app:agents", "--store", str(store), "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    out = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, "--drain-s", "0.5", "--json", stdout=out, stderr=out, env=environment
    )
    try:
        port = int(json.loads(await process.stdout.readline())["url"].rpartition(":")[2])
        token = stored_token(token_file(store))
        told, until = Told(), chance.randint(CLIENTS, CLIENTS * 10)
        streams = [await _subscriber(port, token) for _ in range(STREAMS)]
        stuck = [asyncio.create_task(_stuck(port, token, f"stuck-{number}")) for number in range(STUCK)]
        clients = [asyncio.create_task(_client(port, token, f"c{number}", told, until)) for number in range(CLIENTS)]
        await told.enough.wait()
        process.send_signal(signal.SIGTERM)
        ends = [await reader.read(-1) for reader, _ in streams]
        await asyncio.gather(*clients)
        waited = [await one for one in stuck]
        _, logged = await process.communicate()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    for _, writer in streams:
        writer.close()
    assert process.returncode == 0, logged
    assert all(b"event: drain" in one for one in ends)
    assert {(status, answer["error"]["code"]) for status, answer in waited} == {(409, "CALL_CANCELLED")}
    _check(store, told)
    return told


def _check(store: Path, told: Told) -> None:
    with contextlib.closing(connect(store, read_only=True)) as connection:
        assert verify_chain(connection).ok
        rows = read_rows(connection)
    ends = Counter(row.request_id for row in rows if row.kind == "settled")
    admitted = {row.request_id for row in rows if row.kind == "admitted"}
    assert set(ends) == admitted  # every call that was accepted has ended,
    assert set(ends.values()) == {1}  # once
    roots = {row.request_id: row.status for row in rows if row.kind == "settled" and row.parent_id is None}
    successes = {request_id for request_id, (status, _) in told.answers.items() if status == 200}
    assert successes == {one for one, status in roots.items() if status == "success"}
    assert not told.unanswered & admitted  # and its client got its reply
    assert {pair for pair in told.answers.values() if pair[0] != 200} <= {(503, "NODE_CLOSED"), (409, "CALL_CANCELLED")}
    assert len(successes) >= CLIENTS


def test_sigterm_under_load_loses_no_call_and_ends_every_stream(tmp_path) -> None:
    async def go() -> None:
        for number in range(max(DRAINS, 1)):
            told = await drain_once(tmp_path / f"work-{number}.db", random.Random(number))
            if DRAINS:
                late = sum(status != 200 for status, _ in told.answers.values())
                line = f"{number + 1}: {told.sent:,} sent, {len(told.answers):,} answered, {late} of them that the server stops"
                sys.stdout.write(f"{line}; {len(told.unanswered)} were never accepted; 0 lost\n")

    asyncio.run(go())
