"""How late another user's timer fires while one request of a megabyte is hostile, and what that costs: `make bench-delay`.

A timer of a millisecond stands for every other user: for a call, a deadline, a heartbeat. Each kind of hostile request is made
once; the table shows how late the timer was at worst, how much of that this process worked itself (other programs may have had
the processor), the processor time of the whole call, and how it ended.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import tempfile
import time
from pathlib import Path
from typing import Any

from comity import Agent, Context, Node, Reply
from comity.core.agent.breaker import Policy

BYTES = 1_000_000
TEXTS = {
    "mail": "a@b.co ",
    "SSN": "219-09-9999 ",
    "IP": "203.0.113.42 ",
    "cards": "4111 1111 1111 1111 ",
    "CPF": "CPF 529.982.247-25 ",
    "masks": "****1234 ",
    "tokens": "[[EMAIL_1_abcdefghij]] ",
    "born": "born 1984-03-12 ",
    "phones": "tel 2345678 ",
    "mixed": "tel 2345678 a@b.co 219-09-9999 born 1984-03-12 4111 1111 1111 1111 ",
    "passwords": "password: hunter2! ",
    "streets": "12 Aa Bb Cc Dd St ",
    "full width": "\uff11\uff12\uff13\uff14\uff15\uff16\uff17 ",
    "prose": "The board met and agreed to the plan of the year. ",
}
# Tokens are longer than what they stand for, so some echoes are too large; all of them are to be measured.
NEVER_OPEN = Policy(failures_max=1_000, rate_calls_min=1_000)
big = Agent("big")


@big.capability("LEN")
async def length(ctx: Context, value: Any = None) -> int:
    """Return how long the value is as text."""
    return len(str(value))


@big.capability("ECHO", breaker_policy=NEVER_OPEN)
async def echo(ctx: Context, value: Any = None) -> Any:
    """Return the value."""
    return {"value": value}


@big.capability("MAKE")
async def make(ctx: Context, kind: str = "") -> Any:
    """Return a hostile value."""
    return {"value": DOCUMENTS[kind]}


@big.capability("SAY")
async def say(ctx: Context) -> Reply:
    """Answer a message."""
    return Reply.success({}, message="ok")


def filled(text: str, size: int = BYTES) -> str:
    """Return a text repeated up to a size in bytes."""
    return text * (size // len(text.encode()))


DOCUMENTS: dict[str, Any] = {name: filled(text) for name, text in TEXTS.items()} | {
    "distinct mail": " ".join(f"user{n}x@ex{n % 97}.com" for n in range(52_000))[:BYTES],
    "list of mail": [f"user{n}@example.com" for n in range(42_000)],
    "records": [{"name": "Ann", "email": f"u{n}@example.com", "ssn": f"219-09-{n % 10_000:04d}"} for n in range(14_000)],
    "phone keys": {f"tel 23{n:05d}": n for n in range(42_000)},
    "numbers": {"ssn": [219_090_000 + n for n in range(85_000)]},
    "nested": [[[[[[[[1]]]]]]]] * 10_000,
    "many values": list(range(99_000)),
    "controls": "\\u0001" * 10_000,
}


async def measured(node: Node, capability: str, **more: Any) -> tuple[float, float, float, Reply]:
    """Return the milliseconds by which a timer was late at worst, of them those of this thread's own work, the seconds of
    processor time in all, and the reply."""
    late = held = 0.0
    is_done = False

    async def other() -> None:
        nonlocal late, held
        while not is_done:
            begun, worked = time.perf_counter(), time.thread_time()
            await asyncio.sleep(0.001)
            late = max(late, (time.perf_counter() - begun - 0.001) * 1000)
            held = max(held, (time.thread_time() - worked) * 1000)

    gc.collect()
    watcher = asyncio.ensure_future(other())
    await asyncio.sleep(0.01)
    late, held, begun = 0.0, 0.0, time.process_time()
    reply = await node.call("big", capability, user_id="eve", timeout_ms=120_000, **more)
    await asyncio.sleep(0.005)
    spent = time.process_time() - begun
    is_done = True
    await watcher
    return late, held, spent, reply


async def main(kinds: list[str]) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        async with Node([big], store=Path(folder) / "delay.db", lag_ms=None) as node:
            await node.call("big", "LEN", {"value": "".join(TEXTS.values())}, user_id="eve")
            print(f"{'kind':16} {'call':6} {'late ms':>8} {'held ms':>8} {'CPU s':>7}  outcome", flush=True)
            for kind, value in DOCUMENTS.items():
                if kinds and kind not in kinds:
                    continue
                calls: list[tuple[str, dict[str, Any]]] = [("LEN", {"inputs": {"value": value}})]
                calls += [("ECHO", {"inputs": {"value": value}}), ("MAKE", {"inputs": {"kind": kind}})]
                if isinstance(value, str):
                    calls.append(("SAY", {"message": value.encode()[:99_999].decode(errors="ignore")}))
                for capability, more in calls:
                    late, held, spent, reply = await measured(node, capability, **more)
                    outcome = reply.status if reply.error is None else f"{reply.status} {reply.error.code}"
                    print(f"{kind:16} {capability:6} {late:8.1f} {held:8.1f} {spent:7.2f}  {outcome}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", help="which kinds of hostile request; all of them without")
    asyncio.run(main(parser.parse_args().kinds))
