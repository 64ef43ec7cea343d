"""Whatever agents do, at random, the trace is a behaviour of the specification; and a damaged one is not."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st
from spec_world import Seat, record, trace_check

from comity import Agent, Context, Limits
from comity.errors import TargetError

check = trace_check.check

AGENTS = ("serial", "narrow", "broad", "other")
SEATS = {"serial": Seat(1, 1), "narrow": Seat(2, 0), "broad": Seat(8, 1), "other": Seat(1, 3)}


def workers() -> list[Agent]:
    """Agents that do as they are told: wait, then make calls one after the other or at once, and answer or fail."""
    agents = []
    for name, seat in SEATS.items():
        agent = Agent(name, concurrency=seat.places, pending_max=seat.pending_max)

        @agent.capability("DO")
        async def do(ctx: Context, plan: dict) -> int:
            await asyncio.sleep(plan["ms"] / 1000)
            ctx.report_usage(completion_tokens=plan["tokens"])

            def ask(one):
                inputs, objective = {"plan": one["plan"]}, one["objective"]
                return ctx.call(one["to"], "DO", inputs, timeout_ms=one["timeout_ms"], objective=objective)

            if plan["at_once"]:
                await ctx.gather(*map(ask, plan["calls"]))
            else:
                for one in plan["calls"]:
                    await ask(one)
            if plan["fails"]:
                raise TargetError("as told")
            return len(plan["calls"])

        agents.append(agent)
    return agents


def plans(depth: int):
    """What an agent is told to do, calls included, down to a depth."""
    calls = st.just([])
    if depth:
        call = {
            "to": st.sampled_from(AGENTS),
            "plan": plans(depth - 1),
            "timeout_ms": st.sampled_from([20, 200, 2_000]),
            "objective": st.sampled_from(["", "this"]),
        }
        calls = st.lists(st.fixed_dictionaries(call), max_size=3)
    plan = {
        "ms": st.sampled_from([0, 0, 10, 100]),
        "tokens": st.sampled_from([0, 0, 7]),
        "at_once": st.booleans(),
        "fails": st.sampled_from([False, False, False, True]),
        "calls": calls,
    }
    return st.fixed_dictionaries(plan)


ROOTS = st.lists(
    st.fixed_dictionaries(
        {
            "to": st.sampled_from(AGENTS),
            "plan": plans(3),
            "after_ms": st.sampled_from([0, 0, 10, 50]),
            "timeout_ms": st.sampled_from([100, 1_000]),
            "limits": st.builds(
                Limits,
                depth_max=st.integers(1, 4),
                fan_out_max=st.integers(1, 3),
                calls_max=st.integers(2, 12),
                tokens_max=st.sampled_from([None, 20]),
            ),
        }
    ),
    min_size=1,
    max_size=4,
)


def do_all(roots) -> list[dict]:
    async def one(node, number, root):
        await asyncio.sleep(root["after_ms"] / 1000)
        user = f"u{number % 2}"
        await node.call(
            root["to"], "DO", {"plan": root["plan"]},
            user_id=user, request_id=f"r{number}", timeout_ms=root["timeout_ms"], limits=root["limits"],
        )  # fmt: skip

    async def work(node):
        await asyncio.gather(*(one(node, number, root) for number, root in enumerate(roots)))

    return record(workers(), work, privacy=None)


@given(ROOTS)
def test_whatever_agents_do_the_trace_is_a_behaviour_of_the_specification(roots):
    assert check(do_all(roots), seats=SEATS, is_complete=True) is None


@given(ROOTS, st.data())
def test_a_lost_or_repeated_record_never_goes_unnoticed(roots, data):
    trace = do_all(roots)
    chosen = data.draw(st.sampled_from([one for one in trace if one["kind"] in {"admitted", "settled"}]))
    assert check([one for one in trace if one is not chosen], seats=SEATS, is_complete=True) is not None
    again = {**chosen, "at_ms": trace[-1]["at_ms"], "batch": len(trace)}
    assert check([*trace, again], seats=SEATS, is_complete=True).rule == "SettledOnce"
