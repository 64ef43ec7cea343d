"""What Comity weighs: import time, memory per registered agent, memory per session. Each measured in its own process."""

from __future__ import annotations

import subprocess
import sys

IMPORT = "import resource; {statement}; print(sum(resource.getrusage(resource.RUSAGE_SELF)[:2]))"

AGENTS = """
import resource
from comity import Agent, Context, Node

def rss_mb():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() / 2**20

def make(index):
    agent = Agent(f"agent-{index}", description="one of many", tags=["bench"])
    @agent.capability("WORK", timeout_ms=15_000)
    async def work(ctx: Context, cash_flows: list[float], discount_rate: float, periods: str = "annual") -> dict:
        return {}
    return agent

before = rss_mb()
node = Node([make(index) for index in range(10_000)])
print(rss_mb() - before)
"""

SESSIONS = """
import asyncio, resource
from comity import Agent, Node

def rss_mb():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() / 2**20

agent = Agent("A")

@agent.capability("GO")
async def go(n: int) -> int:
    return n

async def main():
    async with Node([agent]) as node:
        for n in range(20_000):  # fills what a node keeps anyway
            await node.call("A", "GO", {"n": n}, user_id="u", session_id="one")
        before = rss_mb()
        for n in range(10_000):
            await node.call("A", "GO", {"n": n}, user_id=f"u{n}", session_id=f"s{n}")
        print(rss_mb() - before)

asyncio.run(main())
"""


def run(code: str) -> float:
    return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


def least(code: str, times: int = 7) -> float:
    return min(run(code) for _ in range(times))


def main() -> None:
    bare = least(IMPORT.format(statement="pass"))
    full = least(IMPORT.format(statement="import comity"))
    print(f"import comity             {full - bare:6.3f} s of CPU (at most 0.25), beyond {bare:.3f} s for Python itself")
    print(f"10,000 registered agents  {least(AGENTS, 3):6.1f} MB (at most 60)")
    print(f"10,000 sessions           {least(SESSIONS, 3):6.1f} MB")


if __name__ == "__main__":
    main()
