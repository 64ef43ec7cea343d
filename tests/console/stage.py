"""A node for the browser tests: the demo's agents, and small ones that ask a person, stream, hide, hand off and misbehave.

`python tests/console/stage.py FOLDER` serves it on a port and prints the sign-in link, to try the console by hand.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

from comity import Agent, Context, Limits, Node, Prices, Reply, Tool
from comity.contextcore.handoffs.manager import AsyncHandoffManager
from comity.core.access import Role
from comity.core.call.guardrail import Allow, Guardrail, Redact, Rewrite, Verdict
from comity.core.tracing.telemetry import Settings as Telemetry
from comity.demo import agents as demo_agents
from comity.server.auth import Gate
from comity.server.doors import standard_doors
from comity.server.serve import Server
from comity.server.settings import Settings
from comity.server.token_auth import Auth
from comity.testing import Answer, ScriptedModel

TOKEN = "a-token-of-the-browser-tests"
HOSTILE = '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>'
GUIDANCE = {
    "kind": "ProjectContext",
    "metadata": {"name": "stage"},
    "spec": {
        "agentGuidance": {
            "focus": {"areas": ["reduce checkout latency"], "reason": "P99 < 150 ms"},
            "constraints": [{"id": "tests", "rule": "Add a test for every change", "scope": "src/**", "severity": "warning"}],
            "preferences": [{"id": "async", "preference": "Prefer async patterns"}],
            "questions": [{"id": "q-cause", "question": "What causes the P99 latency spike?", "priority": "critical"}],
        }
    },
}

WORKFLOW = """
workflow: publish
description: Write a text, have a person look at it, then edit the file
nodes:
  draft: {call: SCRIBE/SCRIBE_WRITE, input: {about: "{{input.about}}", seconds: 0.05}}
  review: {ask: "Publish {{draft.data.lines}} lines about {{input.about}}?", options: ["yes", "no"], after: [draft]}
  publish: {call: CODER/CODER_EDIT, input: {path: "docs/{{input.about}}.md"}}
  drop: {set: {dropped: true}}
edges:
  - {from: review, to: publish, when: response.data.answer == "yes"}
  - {from: review, to: drop, else: true}
"""

clerk = Agent("CLERK", description="Takes requests of people to the bank", can_call=("BANK",))
bank = Agent("BANK", description="Pays, once a person has agreed", tools_allowed=["pay"])
coder = Agent("CODER", description="Changes files")
writer = Agent("SCRIBE", description="Writes while you watch")
wide = Agent("WIDE", description="Calls many at once", can_call=("LEAF",))
leaf = Agent("LEAF", description="Answers at once", concurrency=500, pending_max=10_000)
muse = Agent(
    "MUSE",
    description="Talks, and asks the leaf",
    model=ScriptedModel(
        lambda prompt: Answer(text=f"You said: {prompt.messages[-1].text[:40]}, and I agree.", piece_chars=6, piece_delay_ms=5),
        name="stage:muse",
    ),
)
odd = Agent("ODD", description=f"Says hostile things {HOSTILE}")


@clerk.capability("CLERK_SETTLE")
async def settle(ctx: Context, amount: int = 40, to: str = "ACME") -> Reply:
    """Have an invoice paid."""
    return await ctx.call("BANK", "BANK_PAY", {"amount": amount, "to": to}, objective="pay the invoice")


@bank.capability("BANK_PAY")
async def pay_out(ctx: Context, amount: int, to: str) -> dict[str, Any]:
    """Pay, by a tool of high risk."""
    return {"receipt": await ctx.use_tool("pay", amount=amount, to=to)}


def pay(amount: int, to: str) -> str:
    """Move money."""
    return f"paid {amount} to {to}"


@coder.capability("CODER_EDIT", touches=["$.path"])
async def edit(path: str = "src/app.py", text: str = "") -> dict[str, Any]:
    """Change one file."""
    return {"path": path, "bytes": len(text)}


@writer.capability("SCRIBE_WRITE")
async def write(ctx: Context, about: str = "comity", seconds: float = 0.6) -> dict[str, Any]:
    """Write a few lines, one after the other."""
    for number in range(3):
        ctx.progress(f"line {number + 1} about {about}")
        await asyncio.sleep(seconds / 3)
    return {"lines": 3, "about": about}


going_on = threading.Event()  # set by a test, once it has seen what it wants to see while a call runs


@writer.capability("SCRIBE_HOLD")
async def hold(ctx: Context) -> dict[str, bool]:
    """Wait for the test, so that what a page shows meanwhile is shown live."""
    ctx.progress("holding the line")
    await asyncio.to_thread(going_on.wait, 60)
    return {"held": True}


@writer.capability("SCRIBE_CONTACT")
async def contact(ctx: Context, note: str) -> dict[str, Any]:
    """Say back a note that may hold personal data."""
    return {"note": note}


@writer.capability("SCRIBE_REPORT")
async def report(ctx: Context, finding: str = "We enter the market in three steps") -> dict[str, Any]:
    """Say what was found, as insights."""
    ctx.insight("decision", summary=finding, confidence=0.92, rationale="the conservative scenario still pays back")
    ctx.insight("risk", summary="One source of prices is stale", confidence=0.7, audience="human")
    return {"told": 2}


@writer.capability("SCRIBE_QUOTE")
async def quote(ctx: Context, product: str = "engine") -> Reply:
    """Name a price, which a guardrail withholds."""
    return Reply.success({"product": product}, message=f"our price is 9, you said {ctx.request.message}")


@wide.capability("WIDE_FAN", timeout_ms=60_000)
async def fan(ctx: Context, count: int = 20, at_once: int = 100) -> dict[str, Any]:
    """Make many calls."""
    for begin in range(0, count, at_once):
        size = min(at_once, count - begin)
        await ctx.gather(*[ctx.call("LEAF", "LEAF_SAY", {"number": begin + one}) for one in range(size)])
    return {"count": count}


@leaf.capability("LEAF_SAY")
async def say(number: int) -> dict[str, int]:
    """Say a number back."""
    return {"number": number}


@odd.capability("ODD_SAY")
async def say_odd(text: str = HOSTILE) -> Reply:
    """Answer with markup, which must stay text."""
    return Reply.partial({"text": HOSTILE, HOSTILE: text}, message=HOSTILE, warnings=[HOSTILE])


def _ask_politely(request: Any) -> Verdict:
    return Rewrite("Please be brief") if request.message == "Be brief!" else Allow()


def _keep_the_price(_request: Any, reply: Reply) -> Verdict:
    return Redact() if "our price is" in reply.message else Allow()


manners = Guardrail(name="manners", inbound=_ask_politely, outbound=_keep_the_price, streams=True)


def stage_node(folder: Path, limits: Limits) -> Node:
    """Return the node, with a store and a guidance file in a folder."""
    guidance = folder / "guidance.yaml"
    if not guidance.exists():
        guidance.write_text(json.dumps(GUIDANCE))
    return Node(
        [*demo_agents, clerk, bank, coder, writer, wide, leaf, muse, odd],
        store=folder / "stage.db",
        limits=limits,
        tools=[Tool(name="pay", function=pay, risk="high")],
        guidance=guidance,
        guardrails=[manners],
        telemetry=Telemetry(captures_content=True),
        prices=Prices("USD", {"stage:muse": (2.0, 8.0)}),
    )


class Stage:
    """A server in a thread of its own, with its own event loop, so that a test can drive a browser beside it."""

    def __init__(self, folder: Path, port: int = 0, limits: Limits = Limits(), **settings: Any) -> None:  # noqa: B008  frozen
        self.folder = folder
        self._limits = limits
        self._settings = settings
        self._ready = threading.Event()
        self._port = port
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="stage", daemon=True)

    def __enter__(self) -> Stage:
        self._thread.start()
        assert self._ready.wait(120)
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.call_soon_threadsafe(self._over.set)
        self._thread.join(30)

    async def _serve(self) -> None:
        self.loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        self.node = stage_node(self.folder, self._limits)
        self.auth = Gate(TOKEN, Auth.open(None, now_ms=_now()))
        settings = Settings(port=self._port, drain_s=0.5, rate_per_s=100_000, rate_burst=100_000, **self._settings)
        self.server = Server(self.node, settings, self.auth, standard_doors(settings))
        async with self.server.listening():
            self.url = self.server.url
            self.node.workflows.add(WORKFLOW)
            self._ready.set()
            await self._over.wait()

    def link(self) -> str:
        """Return a sign-in link, as `comity serve` prints it."""
        return f"{self.url}/console/#code={self.auth.code(_now())}"

    def user_token(self, user_id: str, *roles: str) -> str:
        """Return a signed token of a user with these roles."""
        return self.auth.signed.sign_in(user_id, roles=tuple(map(Role, roles)), now_ms=_now())

    def hand_off(self, to_agent: str, capability: str, task: str) -> str:
        """Hand work off to an agent that no node runs; return its id."""
        manager = AsyncHandoffManager(node=self.node, user_id="ann")
        work = manager.create_handoff(to_agent, capability, task, {"why": task}, timeout_ms=600_000)
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    def handoff(self, handoff_id: str) -> Any:
        """Return a handoff as it stands."""
        manager = AsyncHandoffManager(node=self.node, user_id="ann")
        return asyncio.run_coroutine_threadsafe(manager.get_handoff_status(handoff_id), self.loop).result(60)

    def call(self, target: str, capability: str, inputs: dict[str, Any] | None = None, **more: Any) -> Reply:
        """Make a call in the server's loop and return its reply."""
        work = self.node.call(target, capability, inputs or {}, **({"user_id": "ann"} | more))
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    def rows(self) -> list[Any]:
        """Return the rows of the audit."""

        async def read() -> list[Any]:
            return list(self.node.audit.rows())

        return asyncio.run_coroutine_threadsafe(read(), self.loop).result(60)

    def flush_spans(self) -> None:
        """Have every span that was made so far in the store."""
        asyncio.run_coroutine_threadsafe(self.node.flush_spans(), self.loop).result(60)


def _now() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    place = Path(sys.argv[1])
    place.mkdir(parents=True, exist_ok=True)
    with Stage(place, int(sys.argv[2]) if len(sys.argv) > 2 else 8765) as stage:
        print(stage.link(), flush=True)  # noqa: T201
        threading.Event().wait()
