"""A soak: honest users for a long time, with and without hostile ones beside them on the same node.

Honest users call at a fixed rate, whatever became of earlier calls, so that waiting shows as latency and not as fewer calls.
What they do is mixed, as on a node in use: `HONEST` lists the kinds and their shares.
Phases without and with the hostile alternate, each `--phase` seconds; the first of each kind warms up and does not count. What
the hostile do is listed in `HOSTILE`: each tries to make the others wait or to make the node grow. Prints memory over time, the
p99 of the honest in both kinds of phase, and their ratio; exits 1 if the ratio or the growth of memory is beyond its bound.
Each phase also tells how long the loop and the store waited for a core: where that is much, other programs are measured too.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import random
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path

from comity import Agent, Context, Keep, Node, Reply, Retention, Tool

RATIO_MAX = 1.3
GROWTH_MAX = 1.05  # of memory, between the third quarter of the run and the last: before, what is kept is still being filled
SAMPLE_S = 2.0
DENSE = (
    "write to ann.smith@example.com or +49 151 12345678, card 4111 1111 1111 1111, IBAN DE89 3704 0044 0532 0130 00; " * 200
)[:20_000]
LETTER = (
    "Dear team, the parcel of order 4500123987 has not come. Please call me at +49 151 23456789 or write to "
    "ann.smith@example.com before Friday; the shop said it left on 3 November, and the tracking page has been empty since. "
) * 2
PAGES = "The board met in spring and agreed to the plan of the year, which 14 people had drawn up in 3 weeks. " * 120
LOREM = "lorem ipsum dolor sit amet " * 3_600  # just below the limit of a message

Act = Callable[[Node, int], Awaitable[object]]


def agents() -> list[Agent]:
    desk = Agent("DESK", can_call=["STOCK"], tools_allowed=["look"])
    cart = Agent("CART")
    stock = Agent("STOCK")
    evil = Agent("EVIL", concurrency=16)

    @desk.capability("PLAIN")
    async def plain(ctx: Context, n: int) -> dict:
        return {"n": n}

    @desk.capability("TREE")
    async def tree(ctx: Context, n: int) -> dict:
        replies = await ctx.gather(*(ctx.call("STOCK", "COUNT", {"item": f"i{one}"}) for one in range(3)))
        return {"sum": sum(reply.data for reply in replies)}

    @desk.capability("TALK")
    async def talk(ctx: Context) -> dict:
        ctx.session.learn("asked", ctx.request.message)
        return {"seen": await ctx.use_tool("look", what="x")}

    @desk.capability("READ")
    async def read(ctx: Context, text: str) -> dict:
        ctx.insight("analysis", summary="read a text", confidence=0.9)
        return {"words": text.count(" ")}

    @desk.capability("FAIL")
    async def fail(ctx: Context) -> None:
        raise RuntimeError("the shelf is empty")

    @cart.capability("ADD")
    async def add(ctx: Context, item: str) -> int:
        items = ctx.state.setdefault("items", [])
        items.append(item)
        del items[:-20]
        return len(items)

    @stock.capability("COUNT")
    async def count(ctx: Context, item: str) -> int:
        await asyncio.sleep(0.001)
        return len(item)

    @evil.capability("ECHO")
    async def echo(ctx: Context, text: str) -> str:
        return text

    @evil.capability("REFUSED")
    async def refused(ctx: Context) -> None:
        while True:
            await ctx.gather(*(ctx.call("NOBODY", "NOPE") for _ in range(8)))

    @evil.capability("BOMB")
    async def bomb(ctx: Context) -> Reply:
        return Reply.success({"deep": [[[["x" * 100] * 50] * 10] * 5], "text": "y" * 300_000})

    @evil.capability("WAIT")
    async def wait(ctx: Context) -> None:
        await asyncio.sleep(60)

    @evil.capability("STEAL")
    async def steal(ctx: Context) -> str:
        return ctx.token

    return [desk, cart, stock, evil]


async def look(what: str) -> str:
    return what * 3


async def dense(node: Node, n: int) -> object:
    return await node.call("EVIL", "ECHO", {"text": DENSE}, user_id=f"eve{n % 5}")


async def large(node: Node, n: int) -> object:
    return await node.call("EVIL", "ECHO", {"text": LOREM * 5}, user_id=f"eve{n % 5}")


async def refusals(node: Node, n: int) -> object:
    return await node.call("EVIL", "REFUSED", user_id="eve", timeout_ms=1_000)


async def unknown(node: Node, n: int) -> object:
    return await asyncio.gather(*(node.call(f"NO{n}-{one}", "NOPE", {"n": one}, user_id="eve") for one in range(20)))


async def session_bomb(node: Node, n: int) -> object:
    return await node.call("DESK", "TALK", user_id="eve", session_id="bomb", message=LOREM)


async def reply_bomb(node: Node, n: int) -> object:
    return await node.call("EVIL", "BOMB", user_id="eve")


async def parallel(node: Node, n: int) -> object:
    return await asyncio.gather(*(node.call("EVIL", "WAIT", user_id="eve", timeout_ms=200) for _ in range(50)))


async def stolen(node: Node, n: int) -> object:
    token = (await node.call("EVIL", "STEAL", user_id="alice")).data
    document = {"source_agent": "EVIL", "target_agent": "DESK", "capability_code": "PLAIN", "request_id": f"stolen{n}",
                "inputs_json": {"n": 1}, "context": {"user_id": "alice"}}  # fmt: skip
    return await node.receive(document, dialect="kdap", user_id="eve", tenant_id="evil", token=token)


async def cancels(node: Node, n: int) -> object:
    handles = [node.start_call("EVIL", "WAIT", user_id="eve") for _ in range(20)]
    await asyncio.sleep(0)
    for handle in handles:
        handle.cancel()
    return await asyncio.gather(*(handle.reply() for handle in handles))


async def waiters(node: Node, n: int) -> object:
    tasks = [asyncio.ensure_future(node.call("EVIL", "WAIT", user_id="eve")) for _ in range(20)]
    await asyncio.sleep(0.01)
    for task in tasks:
        task.cancel()
    return await asyncio.gather(*tasks, return_exceptions=True)


Ask = Callable[[Node, int, str], Awaitable[Reply]]


def named(node: Node, n: int, user: str) -> Awaitable[Reply]:
    """Ask twice under one id: every other call gets the stored reply."""
    return node.call("DESK", "PLAIN", {"n": 1}, user_id=user, request_id=f"named-{user}-{n // 80}")


# What honest users do, and the share of each: short calls, trees, conversations, personal texts, documents, state, mistakes.
HONEST: dict[str, tuple[int, Ask]] = {
    "plain": (30, lambda node, n, user: node.call("DESK", "PLAIN", {"n": n}, user_id=user)),
    "tree": (15, lambda node, n, user: node.call("DESK", "TREE", {"n": n}, user_id=user)),
    "talk": (
        15,
        lambda node, n, user: node.call("DESK", "TALK", user_id=user, session_id=f"s{user}-{n // 2000}", message=f"q {n}"),
    ),
    "letter": (10, lambda node, n, user: node.call("DESK", "READ", {"text": f"{n} {LETTER}"}, user_id=user)),
    "pages": (5, lambda node, n, user: node.call("DESK", "READ", {"text": f"{n} {PAGES}"}, user_id=user)),
    "state": (10, lambda node, n, user: node.call(f"CART/{user}", "ADD", {"item": f"i{n}"}, user_id=user)),
    "named": (5, named),
    "refused": (5, lambda node, n, user: node.call("DESK", "NOPE", {"n": n}, user_id=user)),
    "fails": (5, lambda node, n, user: node.call("DESK", "FAIL", user_id=user)),
}
EXPECTED = {"refused": ("ROUTING_UNKNOWN_CAPABILITY",), "fails": ("TARGET_CRASHED", "CAPABILITY_UNAVAILABLE")}

# What each does, and the pause after it in seconds: a user who does nothing but that.
HOSTILE: dict[str, tuple[Act, float]] = {
    "dense": (dense, 0.2),
    "large": (large, 0.2),
    "refusals": (refusals, 0.1),
    "unknown": (unknown, 0.2),
    "session bomb": (session_bomb, 0.5),
    "reply bomb": (reply_bomb, 0.2),
    "parallel": (parallel, 0.1),
    "stolen": (stolen, 0.2),
    "cancels": (cancels, 0.2),
    "waiters": (waiters, 0.2),
}


class Soak:
    def __init__(self, node: Node, hostile: list[str], rate: int, seed: int) -> None:
        self.node = node
        self.enemies = hostile
        self.rate = rate
        self.chance = random.Random(seed)
        self.latencies: list[float] = []
        self.of_kind: dict[tuple[bool, str], list[float]] = defaultdict(list)
        self.wrong: Counter[str] = Counter()
        self.done: Counter[str] = Counter()
        self.n = 0
        self.is_hostile = False

    async def honest(self, n: int) -> None:
        kind = self.chance.choices([*HONEST], [share for share, _ in HONEST.values()])[0]
        user = f"u{n % 40}"
        begun = time.perf_counter()
        reply = await HONEST[kind][1](self.node, n, user)
        took_ms = (time.perf_counter() - begun) * 1000
        self.latencies.append(took_ms)
        self.of_kind[self.is_hostile, kind].append(took_ms)
        self.done[kind] += 1
        code = reply.error.code if reply.error else ""
        if code not in EXPECTED.get(kind, ("",)):
            self.wrong[f"{kind} {reply.status} {code}"] += 1

    async def hostile(self, name: str) -> None:
        act, pause_s = HOSTILE[name]
        n = 0
        while self.is_hostile:
            await act(self.node, n)
            self.done[name] += 1
            n += 1
            await asyncio.sleep(pause_s)

    async def phase(self, seconds: float, *, with_hostile: bool) -> float:
        """Return the p99 of the honest, in milliseconds."""
        self.latencies = []
        self.is_hostile = with_hostile
        enemies = [asyncio.ensure_future(self.hostile(name)) for name in self.enemies] if with_hostile else []
        waiting: set[asyncio.Task[None]] = set()
        begun = time.perf_counter()
        for number in range(int(seconds * self.rate)):
            await asyncio.sleep(max(begun + number / self.rate - time.perf_counter(), 0))
            self.n += 1
            task = asyncio.ensure_future(self.honest(self.n))
            waiting.add(task)
            task.add_done_callback(waiting.discard)
        while waiting:
            await asyncio.wait(waiting)
        # Each finishes what it does: calls that it would leave open would keep the others out of its agent for half a minute.
        self.is_hostile = False
        await asyncio.gather(*enemies)
        return statistics.quantiles(self.latencies, n=100)[98]


def rss_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def waited_s() -> float:
    """Return how long the threads of this process were ready to run and had no core."""
    threads = Path("/proc/self/task").glob("*/schedstat")
    return sum(int(thread.read_text(encoding="ascii").split()[1]) for thread in threads) / 1e9


async def sample(samples: list[tuple[float, float]], stop: asyncio.Event) -> None:
    begun = time.perf_counter()
    while not stop.is_set():
        samples.append((time.perf_counter() - begun, rss_mib()))
        await asyncio.sleep(SAMPLE_S)


def plot(samples: list[tuple[float, float]]) -> None:
    step = max(len(samples) // 30, 1)
    for at, mib in samples[::step]:
        print(f"{at:>7.0f} s {mib:>7.1f} MiB {'#' * round(mib / 8)}")


async def soak(store: Path, hostile: list[str], seconds: float, phase_s: float, rate: int, seed: int) -> int:
    keep = Keep(count=5_000)
    retention = Retention(calls=keep, sessions=Keep(count=500), spans=keep, audit=Keep(count=20_000))
    tools = [Tool(name="look", function=look)]
    samples: list[tuple[float, float]] = []
    tails: dict[bool, list[float]] = {False: [], True: []}
    async with Node(agents(), store=store, tools=tools, retention=retention, lag_ms=None) as node:
        run = Soak(node, hostile, rate, seed)
        stop = asyncio.Event()
        sampling = asyncio.ensure_future(sample(samples, stop))
        begun = time.perf_counter()
        while time.perf_counter() - begun < seconds or min(map(len, tails.values())) < 2:
            with_hostile = len(tails[True]) < len(tails[False])
            waited = waited_s()
            p99 = await run.phase(phase_s, with_hostile=with_hostile)
            waited = waited_s() - waited
            tails[with_hostile].append(p99)
            what = "with the hostile" if with_hostile else "honest alone"
            told = f"p99 {p99:>8.2f} ms  {rss_mib():>7.1f} MiB  waited {waited:>5.2f} s for a core"
            print(f"{time.perf_counter() - begun:>7.0f} s  {what:<17} {told}", flush=True)
        gc.collect()
        stop.set()
        await sampling
    alone, beside = (statistics.median(tails[kind][1:]) for kind in (False, True))
    counted = [mib for _, mib in samples[len(samples) // 2 :]]
    half = max(len(counted) // 2, 1)
    growth = statistics.mean(counted[half:] or counted) / statistics.mean(counted[:half])
    print("\nmemory over time")
    plot(samples)
    print("\nkind       p50 alone  beside    p99 alone  beside  (ms)")
    for kind in HONEST:
        shown = [statistics.quantiles(run.of_kind[is_hostile, kind], n=100) for is_hostile in (False, True)]
        print(f"{kind:<10} {shown[0][49]:>9.2f} {shown[1][49]:>7.2f}    {shown[0][98]:>9.2f} {shown[1][98]:>7.2f}")
    print("\n" + ", ".join(f"{name} {count:,}" for name, count in run.done.most_common()))
    print(f"honest calls that did not succeed: {dict(run.wrong) or 'none'}")
    ratio = beside / alone
    print(f"p99 of the honest: {alone:.2f} ms alone, {beside:.2f} ms with the hostile: ratio {ratio:.2f} (at most {RATIO_MAX})")
    print(f"memory: last quarter over the one before {growth:.2f} (at most {GROWTH_MAX})")
    return int(ratio > RATIO_MAX or growth > GROWTH_MAX or bool(run.wrong))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--phase", type=float, default=15, help="seconds of each phase")
    parser.add_argument("--rate", type=int, default=40, help="honest calls a second")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--only", choices=HOSTILE, action="append", help="some of the hostile alone, to see which of them is felt"
    )
    parser.add_argument("--folder", type=Path, help="where the store is made, and left")
    args = parser.parse_args()
    logging.getLogger("comity").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as made:
        store = (args.folder or Path(made)) / "soak.db"
        return asyncio.run(soak(store, args.only or [*HOSTILE], args.minutes * 60, args.phase, args.rate, args.seed))


if __name__ == "__main__":
    sys.exit(main())
