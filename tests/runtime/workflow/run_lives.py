"""One life of a node that drives a run, for the test that kills it: `run_lives.py STORE EFFECTS`."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from comity import Agent, Context, Node, Tool
from comity.errors import CallerError
from comity.workflow import load

TWELVE = """
workflow: twelve
nodes:
  a: {call: W/PAY, input: {n: 1}}
  b: {call: W/PAY, after: [a], input: {n: 2}}
  c: {call: W/PAY, after: [a], input: {n: 3}}
  d: {call: W/PAY, after: [b], input: {n: 4}}
  e: {call: W/PAY, after: [c], input: {n: 5}}
  t: {wait: 200ms, after: [d]}
  q: {ask: "Go on?", options: [yes, no], after: [e]}
  f: {call: W/PAY, after: [t], input: {n: 6}}
  g: {call: W/PAY, after: [q], input: {n: 7}}
  h: {call: W/PAY, after: [f, g], input: {n: 8}}
  i: {call: W/PAY, after: [h], input: {n: 9}}
  s: {set: {sum: "{{a.data.n + i.data.n}}"}, after: [i]}
output: {sum: "{{s.data.sum}}", answer: "{{q.data.answer}}"}
"""


async def main(store: Path, effects: Path) -> None:
    """Drive one run to its end, answering its question; say when the node is up and what came of the run."""
    worker = Agent("W", tools_allowed=["pay"])

    async def pay(idempotency_key: str, n: int) -> int:
        with effects.open("a") as file:  # what the world outside hears, once per key
            file.write(f"{idempotency_key} {n}\n")
            file.flush()
            os.fsync(file.fileno())
        await asyncio.sleep(0.01)
        return n

    @worker.capability("PAY")
    async def work(ctx: Context, n: int) -> dict:
        return {"n": await ctx.use_tool("pay", n=n)}

    tool = Tool(name="pay", function=pay, takes_key=True, idempotent=True)
    async with Node([worker], store=store, tools=[tool], lag_ms=None, privacy=None) as node:
        node.workflows.add(load(TWELVE))
        handle = await node.workflows.start("twelve", user_id="u", run_id="run")
        print("up", flush=True)  # noqa: T201
        while not (record := handle.record).status.has_ended:
            for question in record.questions:
                try:
                    await handle.answer(question.question_id, "yes")
                except CallerError:  # answered in an earlier life
                    continue
            await asyncio.sleep(0.01)
        reply = await handle.result()
        print("ended", reply.data, flush=True)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
