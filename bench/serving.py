"""What a governed call costs over HTTP, against a Starlette echo of the same server, by CPU of the server's process.

Each server runs in a process of its own; 64 connections ask it from this one. Rounds of all servers alternate, so that a busy
machine slows them alike, and the median counts. `--idle 1000` measures the memory of idle subscribers, `--hostile` what slow
and greedy clients do to the waiting time of others.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import signal
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvloop

TOKEN = "a-token-of-the-benchmark"  # noqa: S105  it protects nothing
CONNECTIONS = 64
HERTZ = os.sysconf("SC_CLK_TCK")
FLOWS = [-100_000, *range(20_000, 30_000, 110)]
DOCUMENT = {
    "target": "ANL",
    "capability": "ANL_NPV",
    "user_id": "user-456",
    "session_id": "sess-789",
    "inputs": {"cash_flows": FLOWS, "discount_rate": 0.12, "periods": "annual"},
}
BODY = json.dumps(DOCUMENT, separators=(",", ":")).encode()


# --- the servers, each in a process of its own ---


def serve_echo(port: int, _store: str) -> None:
    """Serve a Starlette route that reads and writes JSON by msgspec."""
    import msgspec
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    async def echo(request: Request) -> Response:
        document = msgspec.json.decode(await request.body())
        return Response(msgspec.json.encode(document), media_type="application/json")

    app = Starlette(routes=[Route("/v1/calls", echo, methods=["POST"])])
    uvicorn.run(app, host="127.0.0.1", port=port, loop="uvloop", http="httptools", access_log=False, log_level="error")


def serve_node(port: int, store: str) -> None:
    """Serve a node, in memory or on a store."""
    from comity import Agent, Node
    from comity.server.auth import Gate
    from comity.server.serve import Server
    from comity.server.settings import Settings
    from comity.server.token_auth import Auth

    agent = Agent("ANL", concurrency=256)

    @agent.capability("ANL_NPV")
    async def npv(cash_flows: list[float], discount_rate: float, periods: str) -> dict[str, Any]:
        return {"cash_flows": cash_flows, "discount_rate": discount_rate, "periods": periods}

    async def main() -> None:
        settings = Settings(port=port, rate_per_s=1e9, rate_burst=10**9, head_s=2.0, stall_s=2.0, heartbeat_s=15.0)
        gate = Gate(TOKEN, Auth.open(None, now_ms=time.time_ns() // 1_000_000))
        await Server(Node([agent], store=store or None), settings, gate).run()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


def serve_refusals(port: int, _store: str) -> None:
    """Read a little of what a client sends, refuse it, hang up: what that does to others is the machine's share."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65_536)
        writer.write(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(refuse, "127.0.0.1", port)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, lambda: os._exit(0))
        await server.serve_forever()

    run(main())


class Process:
    """A server in a forked process, and what it has used so far."""

    def __init__(self, serve: Callable[[int, str], None], store: str = "") -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                serve(self.port, store)
            finally:
                os._exit(0)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.05)
        raise TimeoutError(f"the server on port {self.port} did not start")

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / HERTZ

    def memory_kb(self) -> int:
        text = Path(f"/proc/{self.pid}/status").read_text()
        return int(text.partition("VmRSS:")[2].split()[0])

    def stop(self) -> float:
        """End it as an operator would, and return how many seconds that took."""
        begun = time.monotonic()
        os.kill(self.pid, signal.SIGTERM)
        give_up = begun + 30
        while time.monotonic() < give_up:
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                return time.monotonic() - begun
            time.sleep(0.02)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        raise TimeoutError("the server did not end on SIGTERM")


# --- the clients ---


def request(port: int, body: bytes = BODY) -> bytes:
    head = (
        f"POST /v1/calls HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Client(asyncio.Protocol):
    """One connection that asks the same again and again."""

    def __init__(self, wanted: bytes, count: int, done: asyncio.Future[list[float]]) -> None:
        self._wanted, self._left, self._done = wanted, count, done
        self._buffer = b""
        self.took: list[float] = []

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._ask()

    def _ask(self) -> None:
        self._at = time.perf_counter()
        self._transport.write(self._wanted)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, mark, rest = self._buffer.partition(b"\r\n\r\n")
        if not mark:
            return
        length = int(head.lower().partition(b"content-length:")[2].split()[0])
        if len(rest) < length:
            return
        assert head.startswith(b"HTTP/1.1 200"), self._buffer[:400]
        self._buffer = b""
        self.took.append(time.perf_counter() - self._at)
        self._left -= 1
        if self._left:
            self._ask()
        elif not self._done.done():
            self._transport.close()
            self._done.set_result(self.took)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(exc or ConnectionError("the server closed the connection"))


async def load(port: int, count: int, connections: int = CONNECTIONS) -> list[float]:
    """Ask `count` times over as many connections and return how long each took."""
    loop = asyncio.get_running_loop()
    wanted, done = request(port), [loop.create_future() for _ in range(connections)]
    for one in done:
        await loop.create_connection(lambda one=one: Client(wanted, count // connections, one), "127.0.0.1", port)
    return [took for taken in await asyncio.gather(*done) for took in taken]


def run(work: Any) -> Any:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


# --- what is measured ---


def cost(rounds: int, count: int) -> bool:
    """Print the CPU of a request on each server, and the ratio to the echo."""
    folder = tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)  # noqa: S108
    servers = {
        "echo": Process(serve_echo),
        "memory": Process(serve_node),
        "durable": Process(serve_node, f"{folder}/work.db"),
    }
    spent: dict[str, list[float]] = {name: [] for name in servers}
    rates: dict[str, list[float]] = {name: [] for name in servers}
    try:
        for server in servers.values():
            run(load(server.port, 1_024))
        for _ in range(rounds):
            for name, server in servers.items():
                before, begun = server.cpu_s(), time.perf_counter()
                run(load(server.port, count))
                rates[name].append(count / (time.perf_counter() - begun))
                spent[name].append((server.cpu_s() - before) / count * 1e6)
    finally:
        for server in servers.values():
            server.stop()
    echo = statistics.median(spent["echo"])
    print(f"{CONNECTIONS} connections, {rounds} rounds of {count:,} requests of {len(BODY)} B, load {os.getloadavg()[0]:.1f}")
    for name in servers:
        each = statistics.median(spent[name])
        print(f"{name:<8} {each:7.1f} µs CPU a request {echo / each:5.2f} of the echo {statistics.median(rates[name]):8,.0f}/s")
    ok = True
    for name, least in (("memory", 0.45), ("durable", 0.35)):
        ratio = echo / statistics.median(spent[name])
        if ratio < least:
            print(f"{name}: {ratio:.2f} is below {least}")
            ok = False
    return ok


async def _subscribe(port: int, count: int) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    held = []
    for _ in range(count):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
        held.append((reader, writer))
    for reader, _ in held:
        line = await reader.readline()
        assert b"200" in line, line
    return held


def idle(count: int) -> bool:
    """Print what idle subscribers cost in memory, and how long the server takes to end with them connected."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(count + 512, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
    server = Process(serve_node)

    async def main() -> tuple[int, float]:
        (one,) = await _subscribe(server.port, 1)
        await load(server.port, 256)
        before = server.memory_kb()
        held = await _subscribe(server.port, count)
        await asyncio.sleep(1)
        grown = server.memory_kb() - before
        took = await asyncio.to_thread(server.stop)
        for _, writer in (one, *held):
            writer.close()
        return grown, took

    grown, took = run(main())
    print(f"{count:,} idle subscribers: {grown / 1024:.1f} MB ({grown / count:.1f} KB each); SIGTERM ends it in {took:.2f} s")
    return grown / 1024 < 30 * count / 1_000


# --- hostile clients ---


async def _slow_head(port: int) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for byte in b"POST /v1/calls HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: " + b"a" * 100:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.2)
    except OSError:
        pass
    finally:
        writer.close()


async def _slow_body(port: int) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request(port)[: -len(BODY)])
        for byte in BODY:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.2)
    except OSError:
        pass
    finally:
        writer.close()


async def _never_reads(port: int) -> None:
    with socket.socket() as mute:
        mute.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        mute.setblocking(False)
        loop = asyncio.get_running_loop()
        try:
            await loop.sock_connect(mute, ("127.0.0.1", port))
            for _ in range(200):
                await asyncio.wait_for(loop.sock_sendall(mute, request(port)), 1)
        except (OSError, TimeoutError):
            pass
        await asyncio.sleep(3)


# Written once: what the attacker computes is no part of what it does to the server.
GREEDY = b'{"target":"ANL","capability":"ANL_NPV","inputs":{"periods":"' + b"x" * (10 * 1024 * 1024) + b'"}}'


async def _greedy(port: int) -> None:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request(port, b"").replace(b"Length: 0", b"Length: %d" % len(GREEDY)))
        writer.write(GREEDY)
        await writer.drain()
        await reader.read(100)
        writer.close()
    except OSError:
        pass
    await asyncio.sleep(0.2)


def _attacker(attack: Any, clients: int, port: int) -> int:
    """Start hostile clients in a process of their own, so that what they spend does not delay the clock of honest ones."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:

        async def go_on() -> None:
            while True:
                await attack(port)

        async def main() -> None:
            await asyncio.gather(*(go_on() for _ in range(clients)), return_exceptions=True)

        try:
            os.nice(5)  # it is another machine: the server's processor is not its own
            run(main())
        finally:
            os._exit(0)
    time.sleep(0.5)
    return pid


def hostile(rounds: int, count: int) -> bool:
    """Print the p99 of honest clients alone, beside hostile ones, and beside the same hostile ones of another server.

    Attackers need processor and memory of this machine, on which a real one would not be: the last figure is what that costs.
    """
    server, other = Process(serve_node), Process(serve_refusals)
    ratios: dict[str, list[float]] = {}
    elsewhere: dict[str, list[float]] = {}

    def beside(attack: Any, clients: int, port: int = server.port) -> float:
        attacker = _attacker(attack, clients, port) if clients else 0
        try:
            took = sorted(run(load(server.port, count, 16)))
        finally:
            if attacker:
                os.kill(attacker, signal.SIGKILL)
                os.waitpid(attacker, 0)
        return took[int(len(took) * 0.99)]

    attacks = {
        "slow head": (_slow_head, 64),
        "slow body": (_slow_body, 64),
        "never reads": (_never_reads, 8),
        "10 MB": (_greedy, 2),
    }
    try:
        run(load(server.port, 1_024))
        for _ in range(rounds):
            for name, (attack, clients) in attacks.items():
                alone = beside(attack, 0)
                under = beside(attack, clients)
                again = beside(attack, 0)
                ratios.setdefault(name, []).append(under / ((alone + again) / 2))
                elsewhere.setdefault(name, []).append(beside(attack, clients, other.port) / ((alone + again) / 2))
        took = server.stop()
    except BaseException:
        os.kill(server.pid, signal.SIGKILL)
        raise
    finally:
        other.stop()
    print(f"p99 of 16 honest connections beside hostile ones, over alone; median of {rounds}, load {os.getloadavg()[0]:.1f}")
    for name, found in ratios.items():
        each, others = ", ".join(f"{one:.2f}" for one in found), statistics.median(elsewhere[name])
        print(f"{name:<12} {statistics.median(found):5.2f}×   ({each}); of another server {others:.2f}×")
    print(f"SIGTERM ended the server in {took:.2f} s")
    return all(statistics.median(found) < 1.2 for found in ratios.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=6_400)
    parser.add_argument("--idle", type=int, default=0, metavar="N")
    parser.add_argument("--hostile", action="store_true")
    args = parser.parse_args()
    if args.idle:
        return 0 if idle(args.idle) else 1
    if args.hostile:
        return 0 if hostile(args.rounds, args.count) else 1
    return 0 if cost(args.rounds, args.count) else 1


if __name__ == "__main__":
    sys.exit(main())
