"""Calls by the function that implements a capability: bound at run time as type checkers bind them."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Annotated

import pytest
from pydantic import BaseModel, Field

from comity import Agent, Context, Node, Reply, SyncContext, SyncNode, bind
from comity.core.call.limits import WARNINGS_MAX
from comity.runtime.call.binding import typed
from comity.runtime.call.options import CallOptions, RootOptions


class Quote(BaseModel):
    total: float
    due: datetime.date


@dataclass
class Point:
    x: int


class Pair(BaseModel):
    x: int
    y: int


analyst, lead, maths = Agent("ANL"), Agent("LEAD"), Agent("MATH")


@analyst.capability
async def npv(ctx: Context, cash_flows: list[float], rate: float = 0.1) -> dict[str, float]:
    return {"npv": sum(cash_flows) * rate, "key": float(len(ctx.request.target))}


@analyst.capability()
def plain(ctx: SyncContext, n: int) -> str:
    return ctx.call(double, n=n).unwrap() * "x"


@maths.capability("DOUBLE")
def double(n: int) -> int:
    return 2 * n


@analyst.capability
async def quote(total: float) -> Quote:
    return Quote(total=total, due=datetime.date(2025, 1, 2))


@analyst.capability
async def point() -> Reply[Point]:
    return Reply.partial(Point(x=3), warnings=["about"])


@analyst.capability
async def wrong() -> Reply[int]:
    return Reply.success("text")


@analyst.capability
async def says(message: str, limits: str = "none") -> str:
    return f"{message}/{limits}"


@analyst.capability
async def aimed(target: str, capability: str, user_id: str = "") -> str:
    return f"{target}/{capability}/{user_id}"


@lead.capability
async def everything(ctx: Context) -> dict:
    first, second = await ctx.gather(ctx.call(npv, [1.0, 2.0], rate=2.0), ctx.call(bind(npv, cash_flows=[1.0]), timeout_ms=5))
    return {
        "npv": first.unwrap()["npv"],
        "bound": second.unwrap()["npv"],
        "at": (await ctx.call(bind(npv, [1.0]).at("key"))).unwrap()["key"],
        "plain": (await ctx.call(plain, n=2)).unwrap(),
        "quote": (await ctx.call(quote, 5.0)).unwrap().due.isoformat(),
        "point": (await ctx.call(point)).unwrap().x,
        "says": (await ctx.call(says, message="hi")).unwrap(),
        "says empty": (await ctx.call(says, message="")).unwrap(),
        "aimed": (await ctx.call(bind(aimed, target="a", capability="b"))).unwrap(),
        "wrong": (await ctx.call(wrong)).error.code,
        "refused": (await ctx.call(npv, cash_flows="text")).error.code,
        "missing": (await ctx.call(double)).error.code,
        "none": (await ctx.call(double, None)).error.code,
    }


EVERYTHING = {
    "npv": 6.0, "bound": 0.1, "at": 7.0, "plain": "xxxx", "quote": "2025-01-02", "point": 3, "says": "hi/none", "says empty": "/none",
    "aimed": "a/b/", "wrong": "OUTPUT_VALIDATION_FAILED", "refused": "INPUT_VALIDATION_FAILED", "missing": "INPUT_VALIDATION_FAILED",
    "none": "INPUT_VALIDATION_FAILED",
}  # fmt: skip


async def test_an_agent_calls_by_function(make_node):
    async with make_node([analyst, lead, maths]) as node:
        reply = await node.call(everything, user_id="u")
        assert reply.unwrap() == EVERYTHING


async def test_a_node_calls_by_function_with_its_data_typed(make_node):
    async with make_node([analyst, lead, maths]) as node:
        assert (await node.call(npv, cash_flows=[10.0], user_id="u", session_id="s")).unwrap()["npv"] == 1.0
        assert (await node.call(npv, [10.0], 0.5, user_id="u")).unwrap()["npv"] == 5.0
        reply = await node.call(bind(quote, total=2.0), user_id="u", message="hello")
        assert reply.unwrap() == Quote(total=2.0, due=datetime.date(2025, 1, 2))
        assert (await node.start_call(quote, total=2.0, user_id="u").reply()).unwrap().total == 2.0
        assert (await node.call("ANL", "quote", {"total": 2.0}, user_id="u")).data == {"total": 2.0, "due": "2025-01-02"}
        assert node.audit.rows()[0].session_id == "s"


def test_the_sync_twin_calls_by_function():
    with SyncNode([analyst, lead, maths]) as node:
        assert node.call(quote, total=2.0, user_id="u").unwrap().total == 2.0
        assert node.call(bind(double, 4), user_id="u").unwrap() == 8


def test_a_declared_function_stays_a_plain_function():
    assert double(3) == 6
    assert double.__name__ == "double"
    assert sorted(analyst.capabilities)[:2] == ["aimed", "npv"]


async def test_hidden_personal_data_that_does_not_fit_the_type_is_said(make_node):
    Mail = Annotated[str, Field(pattern="@")]
    shop, asker = Agent("SHOP"), Agent("ASK")

    @shop.capability
    async def contact() -> list[Mail]:
        return ["ann@example.com"]

    @asker.capability
    async def ask(ctx: Context) -> list[str]:
        return list((await ctx.call(contact)).warnings)

    contact.__annotations__["return"] = list[Mail]
    async with make_node([shop, asker]) as node:
        (warning,) = (await node.call(ask, user_id="u")).data
        assert warning.startswith("the data is not of the type that contact declares: data[0]: ")
        assert (await node.call(contact, user_id="u")).unwrap() == ["ann@example.com"]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda node: node.call(len, [1], user_id="u"), "len implements no capability of an agent of this node"),
        (lambda node: node.call(aimed, target="x", user_id="u"), "multiple values|'target'"),
        (lambda node: node.call(aimed, user_id="u"), "'user_id' is an input of aimed and an option of the call"),
        (lambda node: node.call(double, 1, 2, user_id="u"), "double takes 1 inputs, not 2"),
        (lambda node: node.call(double, 1, n=1, user_id="u"), "double is given n twice"),
        (lambda node: node.call(bind(double, 1), "X", user_id="u"), "has its inputs already"),
        (lambda node: node.call("ANL", user_id="u"), "no capability"),
        (lambda node: node.call("MATH", "DOUBLE", {}, 1, user_id="u"), "too much"),
        (lambda node: node.call("ANL", "DOUBLE", {}, user_id="u", nope=1), "an unknown option nope"),
        (lambda node: bind(double, 1, 2), "takes 1 inputs"),
    ],
)
async def test_what_cannot_be_meant_is_said_at_once(make_node, make, says):
    async with make_node([analyst, maths]) as node:
        with pytest.raises(TypeError, match=says):
            make(node)


async def test_a_function_of_two_agents_must_be_called_by_name(make_node):
    other = Agent("OTHER")
    other.capability("TWICE")(double)
    async with make_node([maths, other]) as node:
        with pytest.raises(TypeError, match="double implements MATH DOUBLE and OTHER TWICE; name the agent"):
            node.call(double, n=1, user_id="u")
        late = Agent("LATE")

        @late.capability
        async def later() -> int:
            return 1

        node.add(late)
        assert (await node.call(later, user_id="u")).data == 1


def test_data_is_of_the_declared_type_or_a_warning_names_its_first_problem():
    agent = Agent("A")

    @agent.capability("GET")
    async def get() -> Pair:
        return Pair(x=1, y=2)

    capability = agent.capabilities["GET"]
    assert typed(Reply.success({"x": 1, "y": 2}), capability).data == Pair(x=1, y=2)
    unfit = Reply.success({"x": "a", "y": "b"}, warnings=tuple(map(str, range(WARNINGS_MAX))))
    told = typed(unfit, capability)
    assert (told.data, len(told.warnings), told.warnings[0]) == (unfit.data, WARNINGS_MAX, "1")
    assert told.warnings[-1].startswith("the data is not of the type that GET declares: data.x: ")
    for reply, known in ((unfit, None), (Reply.failure("no", data={"x": 1, "y": 2}), capability)):
        assert typed(reply, known) is reply


def test_the_options_for_type_checkers_are_those_that_calls_take():
    assert set(CallOptions.__annotations__) == set(Context.call.__kwdefaults__)
    assert set(RootOptions.__annotations__) == set(Node.call.__kwdefaults__)


def test_a_fallback_names_its_capability_by_function():
    agent = Agent("A")

    @agent.capability
    def first() -> int:
        raise ConnectionError

    @agent.fallback(first)
    def second() -> int:
        return 2

    with SyncNode([agent]) as node:
        assert node.call(first, user_id="u").data == 2


@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        (Reply.success({"npv": 1.5}, duration_ms=1.25), "Reply(success, {'npv': 1.5}, 1.2 ms)"),
        (Reply.success(0), "Reply(success, 0, 0.0 ms)"),
        (Reply.success(message="two\nlines"), r"Reply(success, 'two\nlines', 0.0 ms)"),
        (Reply.failure("it\nbroke"), "Reply(error, TARGET_FAILED: it broke, 0.0 ms)"),
        (Reply.needs_input("Which?"), "Reply(needs_input, 'Which?', 0.0 ms)"),
        (Reply.success(), "Reply(success, 0.0 ms)"),
    ],
)
def test_a_reply_is_shown_in_one_line(reply, shown):
    assert repr(reply) == shown


def test_a_large_reply_is_shown_short():
    shown = repr(Reply.success({f"key {n}": ["x" * 500] * 500 for n in range(500)}))
    assert len(shown) < 140
    assert "\n" not in shown
