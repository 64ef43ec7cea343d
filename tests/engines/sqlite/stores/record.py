"""Record a store as the code beside it writes one, to be opened by every later version: `record.py FOLDER`.

Run it with the code of a release, pack the folder (`tar -czf stores/vN.tar.gz -C FOLDER .`) and add what the store holds to
`test_old_stores.py`. The process ends as by a power cut, so one call is left open and the log is not copied into the file.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

from comity import Agent, AsyncHandoffManager, AsyncHandoffReceiver, Context, Node, Risk, Tool

analyst = Agent("ANL", description="Financial analysis", tools_allowed={"pay"})
writer = Agent("DOC", description="Writes")
started = asyncio.Event()


@analyst.capability("ANL_NPV")
async def npv(ctx: Context, cash_flows: list[float], discount_rate: float) -> dict:
    ctx.progress({"done": 1})
    ctx.insight("decision", summary="the discount rate is fixed", confidence=0.9)
    below = await ctx.call("DOC", "DOC_WRITE", {"title": "npv"}, objective="write it down")
    refused = await ctx.call("ANL", "ANL_NPV", {"cash_flows": [], "discount_rate": 0.1})
    assert refused.status == "refused"
    return {"npv": sum(one / (1 + discount_rate) ** year for year, one in enumerate(cash_flows)), "by": below.data}


@analyst.capability("ANL_PAY")
async def pay(ctx: Context, amount: int) -> str:
    return await ctx.use_tool("pay", amount=amount)


@writer.capability("DOC_WRITE")
async def write(ctx: Context, title: str) -> str:
    return f"{title} is written"


@writer.capability("DOC_FAIL")
async def fail(ctx: Context) -> str:
    raise ValueError("no paper")


@writer.capability("DOC_WAIT")
async def wait(ctx: Context) -> str:
    started.set()
    await asyncio.sleep(3600)
    return "never"


class Earlier:
    """The time of a day long gone, so that the deadlines in the store are over wherever it is opened."""

    _gone_by_ns = time.time_ns() - 1_735_689_600_000_000_000  # since the first of January 2025

    def now_ns(self) -> int:
        return time.time_ns() - self._gone_by_ns


async def record(store: Path) -> None:
    tool = Tool(name="pay", function=lambda amount: f"paid {amount}", risk=Risk.HIGH)
    node = Node([analyst, writer], store=store, tools=[tool], clock=Earlier())
    await node.start()
    flows = {"cash_flows": [-100, 60, 70], "discount_rate": 0.1}
    reply = await node.call(
        "ANL", "ANL_NPV", flows, user_id="ann", request_id="npv", session_id="work", message="What is it worth?"
    )
    assert reply.ok, reply
    told = await node.call(
        "DOC", "DOC_WRITE", {"title": "for ann@example.com"}, user_id="ann", request_id="told", session_id="work"
    )
    assert told.ok, told
    await node.call("DOC", "DOC_FAIL", user_id="ann", request_id="failed")
    await node.call("DOC", "DOC_NOTHING", user_id="bob", request_id="refused")
    for name in ("granted", "asked"):
        asked = await node.call("ANL", "ANL_PAY", {"amount": 5}, user_id="bob", request_id=name, session_id=name)
        assert asked.status == "needs_input", asked
    granted = next(one for one in node.approvals() if one.root_id == "granted")
    paid = await node.decide(granted.id, granted=True, by="cat")
    assert paid is not None and paid.ok, paid  # noqa: PT018
    manager = AsyncHandoffManager("checkout", "orchestrator", node=node)
    receiver = AsyncHandoffReceiver("o11y", ("investigate",), node=node)
    work = {"to_agent": "o11y", "capability_id": "investigate"}
    await manager.create_handoff(**work, task="look", inputs={"app": "shop"}, handoff_id="done")
    taken = (await receiver.take(1))[0]
    await receiver.complete(taken.id, result={"found": "nothing"})
    await manager.create_handoff(**work, task="look again", inputs={"app": "till"}, handoff_id="left")
    node.start_call("DOC", "DOC_WAIT", user_id="ann", request_id="running")
    await started.wait()
    await node.flush_spans()
    assert node.spans.count()  # sorted in; those of the next call wait in the inbox
    await node.call("DOC", "DOC_WRITE", {"title": "last"}, user_id="ann", request_id="last")  # durable, and all before it
    await node.flush_spans()
    assert node.audit.verify().ok


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True)
    asyncio.new_event_loop().run_until_complete(record(folder / "store.db"))
    for rest in (*folder.glob("*.lock"), *folder.glob("*.bell"), *folder.glob("*-shm")):
        rest.unlink()
    os._exit(0)
