"""Odd values in every place where an agent or a program hands one in: refused by name, or there again after a restart."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from comity import Agent, Context, Node, Reply, Status, Tool
from comity.core.agent.breaker import Policy
from comity.core.document.payload import Problem
from comity.core.envelope.envelope import Artifact, Error
from comity.core.envelope.usage import Usage
from comity.core.insight.insight import Evidence, Support
from comity.core.tracing.span import Event, Link
from comity.errors import CallerError, ComityError, UnavailableError


class Odd:
    """Nothing that JSON knows."""


class Long(str):
    """A text that nobody wants to see."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Long({len(self)})"


class Mute:
    """Cannot be shown."""

    def __str__(self) -> str:
        raise ValueError("no")

    def __repr__(self) -> str:
        return "Mute()"


def _contains_itself() -> list[Any]:
    items: list[Any] = []
    items.append(items)
    return items


ODD = (
    None, True, 5, -1, 12.5, float("nan"), float("inf"), 2**63, 2**70, 10**400, "", "fine", "\ud800", "a\x00b", "x" * 300,
    Long("y" * 2_000_000), b"\xff", [1], ["\ud800"], {"a": 1}, {"a": Odd()}, {1: 1, "1": 2}, {"\ud800": 1}, (), {1}, Odd(), Mute(), Odd,
    _contains_itself(),
)  # fmt: skip
values = st.sampled_from(ODD) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.binary() | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=5,
)


def raising(kind: type[ComityError], value: Any, field: str) -> Any:
    facts = {field: value}
    raise kind(facts.pop("message", "x"), **facts)


async def stepped(ctx: Context, reply: Any) -> None:
    async def make() -> Any:
        return reply

    await ctx.once("model:m", "complete", make)


def spanned(ctx: Context, name: Any = "s", kind: Any = "internal", attributes: Any = None, **more: Any) -> None:
    with ctx.span(name, kind=kind, attributes=attributes) as span:
        span.error_type = more.get("error_type", "")
        span.events += more.get("events", [])
        span.links += more.get("links", [])


def written(ctx: Context, raw: Any) -> None:
    text = ctx.write()
    text.feed(raw, "")
    text.data()


def changed(ctx: Context, value: Any) -> None:
    ctx.state["x"] = value


DOORS: dict[str, Callable[[Context, Any], Any]] = {
    "state": changed,
    "usage": lambda ctx, v: ctx.report_usage(prompt_tokens=v),
    "usage 2": lambda ctx, v: ctx.report_usage(completion_tokens=v),
    "note": lambda ctx, v: ctx.note(v),
    "progress": lambda ctx, v: ctx.progress(v),
    "write": written,
    "say": lambda ctx, v: ctx.session.say(v),
    "say as": lambda ctx, v: ctx.session.say("x", role=v),
    "learn": lambda ctx, v: ctx.session.learn("x", v),
    "learn key": lambda ctx, v: ctx.session.learn(v, 1),
    "learn source": lambda ctx, v: ctx.session.learn("y", 1, source=v),
    "learn confidence": lambda ctx, v: ctx.session.learn("z", 1, confidence=v),
    "decide": lambda ctx, v: ctx.session.decide(v),
    "assume": lambda ctx, v: ctx.session.assume(v),
    "constrain": lambda ctx, v: ctx.session.constrain("x", v),
    "constrain key": lambda ctx, v: ctx.session.constrain(v, 1),
    "place": lambda ctx, v: ctx.session.place(v),
    "produce": lambda ctx, v: ctx.session.produce("x", v),
    "produce key": lambda ctx, v: ctx.session.produce(v, 1),
    "keep": lambda ctx, v: ctx.session.keep(v),
    "summarise": lambda ctx, v: ctx.session.summarise(v),
    "span": spanned,
    "span kind": lambda ctx, v: spanned(ctx, kind=v),
    "span attributes": lambda ctx, v: spanned(ctx, attributes=v),
    "span attribute": lambda ctx, v: spanned(ctx, attributes={"a": v}),
    "span error": lambda ctx, v: spanned(ctx, error_type=v),
    "span event": lambda ctx, v: spanned(ctx, events=[v, Event(name=v, time_ns=1), Event(name="e", time_ns=v, attributes={"a": v})]),
    "span link": lambda ctx, v: spanned(ctx, links=[v, Link(trace_id=v, span_id="1")]),
    "insight": lambda ctx, v: ctx.insight("risk", summary=v, confidence=0.5),
    "insight type": lambda ctx, v: ctx.insight(v, summary="x", confidence=0.5),
    "insight confidence": lambda ctx, v: ctx.insight("risk", summary="x", confidence=v),
    "insight evidence": lambda ctx, v: ctx.insight("risk", summary="x", confidence=0.5, evidence=[v]),
    "insight evidences": lambda ctx, v: ctx.insight("risk", summary="x", confidence=0.5, evidence=v),
    "insight ref": lambda ctx, v: ctx.insight("risk", summary="x", confidence=0.5, evidence=[Evidence(type="doc", ref=v)]),
    "insight links": lambda ctx, v: ctx.insight("risk", summary="x", confidence=0.5, links=[Support(trace_id=v, span_id=v)]),
    "insight applies": lambda ctx, v: ctx.insight("risk", summary="x", confidence=0.5, applies_to=v),
    "insight expires": lambda ctx, v: ctx.insight("risk", summary="x", confidence=0.5, expires_at=v),
    "insight project": lambda ctx, v: ctx.insight("risk", summary="x", confidence=0.5, project_id=v, category=v),
    "insight rationale": lambda ctx, v: ctx.insight("risk", summary="x", confidence=0.5, rationale=v, supersedes=v),
    "call": lambda ctx, v: ctx.call(v, v, {"a": v}),
    "call inputs": lambda ctx, v: ctx.call("other", "HI", {"a": v}, objective=v, message=v),
    "call limits": lambda ctx, v: ctx.call("other", "HI", timeout_ms=v, priority=v, context=v, limits=v, history=v),
    "tool": lambda ctx, v: ctx.use_tool(v),
    "tool inputs": lambda ctx, v: ctx.use_tool("look", a=v),
    "step": stepped,
    "step data": lambda ctx, v: stepped(ctx, Reply.success(v)),
    "step usage": lambda ctx, v: stepped(ctx, Reply.success(1, usage=Usage(prompt_tokens=v))),
    "error": lambda ctx, v: raising(UnavailableError, v, "message"),
    "error code": lambda ctx, v: raising(UnavailableError, v, "code"),
    "error retryable": lambda ctx, v: raising(UnavailableError, v, "retryable"),
    "error after": lambda ctx, v: raising(UnavailableError, v, "retry_after_ms"),
    "error problems": lambda ctx, v: raising(CallerError, (v, Problem(v, v)), "problems"),
    "reply": lambda ctx, v: v,
    "reply message": lambda ctx, v: Reply.success(1, message=v),
    "reply confidence": lambda ctx, v: Reply.success(1, confidence=v),
    "reply warnings": lambda ctx, v: Reply(status=Status.PARTIAL, data=1, confidence=0.5, warnings=v),
    "reply warning": lambda ctx, v: Reply.partial(1, warnings=[v]),
    "reply status": lambda ctx, v: Reply(status=v, data=1, confidence=1.0, error=Error.of("X", "x")),
    "reply usage": lambda ctx, v: Reply.success(1, usage=v),
    "reply artifacts": lambda ctx, v: Reply.success(1, artifacts=v),
    "reply artifact": lambda ctx, v: Reply.success(1, artifacts=(Artifact(type=v, value=v),)),
    "reply sources": lambda ctx, v: Reply.success(1, sources=v, new_facts=v),
    "reply metadata": lambda ctx, v: Reply.success(1, metadata=v),
    "reply words": lambda ctx, v: Reply.success(1, summary=v, thought=v, next_step_hint=v),
    "reply flags": lambda ctx, v: Reply.success(1, degraded=v, requires_followup=v, version=v),
    "failure": lambda ctx, v: Reply.failure(v),
    "failure code": lambda ctx, v: Reply.failure("x", code=v),
    "failure error": lambda ctx, v: Reply(status=Status.ERROR, error=v),
    "failure after": lambda ctx, v: Reply(status=Status.ERROR, error=Error(code="X", message="x", retry_after_ms=v, problems=(v,))),
    "question": lambda ctx, v: Reply.needs_input(v, data=v),
}  # fmt: skip

handed: Any = None
agent, other = Agent("agent", tools_allowed=["look"]), Agent("other")


@agent.capability("TRY", breaker_policy=Policy(failures_max=10_000))
async def attempt(ctx: Context, door: str) -> Any:
    outcome = DOORS[door](ctx, handed)
    if asyncio.iscoroutine(outcome):
        outcome = await outcome
    return outcome if door.startswith(("reply", "fail", "question")) else None


@agent.capability("READ")
async def read(ctx: Context) -> Any:
    return len(str([ctx.state, ctx.session.facts, ctx.session.decisions, ctx.session.constraints, ctx.session.private]))


@other.capability("HI")
async def hi(a: Any = None) -> Any:
    return a


def look(a: Any) -> Any:
    return a


def node_on(store: Path) -> Node:
    return Node([agent, other], store=store, tools=[Tool(name="look", function=look)], lag_ms=None)


async def call_all(node: Node) -> dict[str, Reply]:
    calls = (
        node.call(f"agent/{door}", "TRY", {"door": door}, user_id="u", session_id="s", request_id=door, timeout_ms=60_000)
        for door in DOORS
    )
    return dict(zip(DOORS, await asyncio.gather(*calls), strict=True))


async def hand_in(store: Path) -> dict[str, Reply]:
    async with node_on(store) as node:
        replies = await call_all(node)
        assert node.failure is None
    return replies


async def read_back(store: Path) -> dict[str, Reply]:
    async with node_on(store) as node:
        again = await call_all(node)
        assert (await node.call("agent/state", "READ", user_id="u", session_id="s")).ok
        assert node._journal is not None
        assert len(node._journal.calls(limit=1_000)) == len(DOORS) + 1
        await node.flush_spans()
        found = node.spans.find('{ name = "invoke_agent agent" }')
        assert {span.attributes["comity.request.id"] for span in found} >= DOORS.keys()
        assert (node.export.unstored, node.spans.losses()) == (0, [])
        assert node.audit.verify().ok
        assert node.export_session("s")["id"] == "s"
        assert await node.erase_session("s") > len(DOORS)
        assert node.failure is None
    return again


def outcomes(replies: dict[str, Reply]) -> dict[str, tuple[Any, ...]]:
    return {door: (reply.status, reply.data, reply.error) for door, reply in replies.items()}


@settings(max_examples=max(settings.default.max_examples // 3, 1))  # one is two lives of a node and 150 calls
@given(value=values)
@example(value=12.5)
@example(value=float("nan"))
@example(value="\ud800")
@example(value={"a": Odd()})
@example(value=2**70)
@example(value=Mute())
def test_whatever_an_agent_hands_in_is_refused_by_name_or_read_again_after_a_restart(value):
    global handed  # noqa: PLW0603  what JSON cannot say cannot be an input
    handed = value
    with tempfile.TemporaryDirectory() as place:
        store = Path(place) / "s.db"
        replies = asyncio.run(hand_in(store))
        again = asyncio.run(read_back(store))
    assert outcomes(again) == outcomes(replies)
    assert not [door for door, reply in replies.items() if reply.status is Status.TIMEOUT]
    assert "STORE_UNAVAILABLE" not in {reply.error.code for reply in replies.values() if reply.error is not None}
