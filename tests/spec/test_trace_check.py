"""What a node records is a behaviour of the specification, and a record that is not is found and named."""

from __future__ import annotations

import asyncio
import copy
import shutil

import pytest
from spec_world import (
    RecordingStore,
    acting,
    crossing,
    nested,
    overrun,
    parallel,
    queued,
    refused,
    seats_of,
    trace_check,
)

from comity import Agent, Context, Node
from comity.core.call import admission
from comity.testing import VirtualClock, run_virtual

check = trace_check.check


def kinds(trace) -> list[tuple[str, str]]:
    return [(one["request_id"], one["kind"]) for one in trace]


# --- what a node does is allowed ---


@pytest.mark.parametrize("scenario", [nested, parallel, crossing, overrun, queued, refused, acting])
def test_what_a_node_records_is_a_behaviour_of_the_specification(scenario):
    assert check(scenario(), seats=seats_of(scenario), is_complete=True) is None


def test_the_scenarios_reach_what_they_are_for():
    assert [one["kind"] for one in nested() if one["request_id"] == "r.1.1.1"] == ["admitted", "settled"]
    assert ("r.1", "late") in kinds(overrun())
    codes = [one["code"] for trace in (parallel, crossing, queued, refused) for one in trace() if one["kind"] == "refused"]
    assert codes == [
        "LIMIT_FAN_OUT_EXCEEDED",
        "ROUTING_DEADLOCK_PREVENTED",
        "AGENT_BUSY",
        "ROUTING_CYCLE_DETECTED",
        "LIMIT_DEPTH_EXCEEDED",
        "LIMIT_DEPTH_EXCEEDED",
        "BUDGET_CALLS_EXHAUSTED",
    ]


def test_the_rows_of_the_audit_tell_the_same():
    agent, helper = Agent("A"), Agent("B")

    @agent.capability("GO")
    async def go(ctx: Context):
        await ctx.gather(ctx.call("B", "WAIT"), ctx.call("A", "GO"))

    @helper.capability("WAIT")
    async def wait():
        await asyncio.sleep(60)

    async def main():
        async with Node([agent, helper], clock=VirtualClock(), lag_ms=None) as node:
            await node.call("A", "GO", user_id="u", timeout_ms=1_000)
            return node.audit.rows()

    trace = trace_check.of_rows(run_virtual(main()))
    assert [one["kind"] for one in trace] == ["admitted", "admitted", "refused", "settled", "settled"]
    assert check(trace, is_complete=True) is None
    assert check([one for one in trace if one["kind"] != "settled" or one["parent_id"] is None]).rule == "AuditComplete"


async def live(path, name, agents, work) -> list:
    """Run one life of a store and return what it appended."""
    journal = RecordingStore(path, name)
    async with Node(agents, journal=journal) as node:
        await work(node)
        return list(journal.appends)


def test_a_tree_that_is_resumed_after_a_crash_is_still_one_behaviour(tmp_path):
    """The second life runs on a copy of the store, taken in the middle of the first: what a crash would have left."""
    left_behind = tmp_path / "left" / "work.db"
    left_behind.parent.mkdir()

    def agents(gate):
        boss, helper, slow = Agent("BOSS"), Agent("HELP"), Agent("SLOW")

        @helper.capability("WORK")
        async def work():
            return 1

        @slow.capability("WAIT")
        async def wait():
            await gate.wait()

        @boss.capability("PLAN")
        async def plan(ctx: Context):
            await ctx.call("HELP", "WORK")
            await ctx.call("SLOW", "WAIT")
            return (await ctx.call("HELP", "WORK")).data

        return [boss, helper, slow]

    async def begin(node):
        node.start_call("BOSS", "PLAN", user_id="u", request_id="r", timeout_ms=300_000)
        while "r.2" not in node._path.calls:
            await asyncio.sleep(0)
        await node._path.durable()
        for file in tmp_path.glob("work.db*"):
            if not file.name.endswith("lock"):
                shutil.copy(file, left_behind.parent)
        before_crash.extend(node._journal.appends)

    async def finish(node):
        await node.call("BOSS", "PLAN", user_id="u", request_id="r")

    before_crash: list = []
    opened = asyncio.Event()
    opened.set()
    asyncio.run(live(tmp_path / "work.db", "first", agents(asyncio.Event()), begin))
    after = asyncio.run(live(left_behind, "second", agents(opened), finish))
    first, second = trace_check.of_appends(before_crash), trace_check.of_appends(after)
    assert kinds(first) == [("r", "admitted"), ("r.1", "admitted"), ("r.1", "settled"), ("r.2", "admitted")]
    assert kinds(second) == [
        ("r.2", "resumed"), ("r.2", "settled"), ("r.3", "admitted"), ("r.3", "settled"), ("r", "settled"),
    ]  # fmt: skip
    for one in second:
        one["batch"] += len(before_crash)
    assert check([*first, {"kind": "crash"}, *second], is_complete=True) is None


# --- what it must not do is found ---


def at(trace, request_id, kind):
    return next(one for one in trace if one["request_id"] == request_id and one["kind"] == kind)


def change(request_id, kind, /, **values):
    def mutate(trace):
        at(trace, request_id, kind).update(values)

    return mutate


def limit(*only, **values):
    """Set limits of the calls named, or of all."""

    def mutate(trace):
        for one in trace:
            if one["kind"] == "admitted" and (not only or one["request_id"] in only):
                one["limits"].update(values)

    return mutate


def drop(request_id, kind):
    return lambda trace: trace.remove(at(trace, request_id, kind))


def repeat(request_id, kind):
    return lambda trace: trace.append({**at(trace, request_id, kind), "batch": 999, "at_ms": trace[-1]["at_ms"]})


def admit(request_id):
    """Let a call that was refused be made."""

    def mutate(trace):
        at(trace, request_id, "refused").update(kind="admitted", status=None)

    return mutate


def split(request_id):
    """Let a call end in an append of its own, after the call above it."""

    def mutate(trace):
        moved = at(trace, request_id, "settled")
        trace.remove(moved)
        trace.append({**moved, "batch": 999, "at_ms": trace[-1]["at_ms"]})

    return mutate


def late_first(trace):
    late = at(trace, "r.1", "late")
    trace.remove(late)
    trace.insert(2, {**late, "batch": 999, "at_ms": trace[1]["at_ms"]})


MUTATIONS = [
    (nested, drop("r.1", "admitted"), "r.1.1", "AuditComplete"),
    (nested, drop("r", "admitted"), "r.1", "AuditComplete"),
    (nested, repeat("r.1", "admitted"), "r.1", "SettledOnce"),
    (nested, repeat("r.1", "settled"), "r.1", "SettledOnce"),
    (nested, change("r.1", "admitted", request_id="x.1"), "x.1", "AcceptCall"),
    (nested, change("r.1", "admitted", chain=()), "r.1", "AcceptCall"),
    (nested, change("r.1", "admitted", target="A0"), "r.1", "NoCycle"),
    (nested, change("r.1", "admitted", user_id="mallory"), "r.1", "IsolationHolds"),
    (nested, change("r.1", "admitted", session_id="other"), "r.1", "IsolationHolds"),
    (nested, change("r.1", "admitted", deadline_at=2 * 10**12), "r.1", "LimitsOnlyShrink"),
    (nested, limit("r.1.1", calls_max=10**6), "r.1.1", "LimitsOnlyShrink"),
    (nested, limit("r", tokens_max=100), "r.1", "LimitsOnlyShrink"),
    (nested, limit(depth_max=2), "r.1.1.1", "DepthBounded"),
    (nested, limit(calls_max=3), "r.1.1.1", "BudgetConserved"),
    (nested, change("r.1.1", "settled", tokens=5), "r.1.1", "BudgetConserved"),
    (nested, split("r.1.1.1"), "r.1.1", "AuditComplete"),
    (nested, change("r", "settled", at_ms=2 * 10**12), "r", "NoLateSuccess"),
    (nested, change("r", "settled", status="timeout"), "r", "TimeOut"),
    (nested, change("r.1", "settled", at_ms=0), "r.1", "Tick"),
    (nested, drop("r", "settled"), None, "EveryCallEnds"),
    (parallel, limit(fan_out_max=1), "r.2", "FanOutBounded"),
    (parallel, admit("r.3"), "r.3", "FanOutBounded"),
    (parallel, limit(fan_out_max=3), "r.3", "RefuseCall"),
    (parallel, change("r.3", "refused", code="ROUTING_CYCLE_DETECTED"), "r.3", "RefuseCall"),
    (parallel, change("r.3", "refused", code="LIMIT_DEADLINE_PASSED"), "r.3", "RefuseCall"),
    (crossing, admit("rA.1"), "rA.1", "NoDeadlock"),
    (overrun, late_first, "r.1", "NoLateSuccess"),
    (overrun, repeat("r.1", "late"), "r.1", "RecordLate"),
    (overrun, split("r.1"), "r", "AuditComplete"),
    (overrun, change("r.1", "settled", status="success"), "r.1", "RecordLate"),
    (queued, admit("r2"), "r2", "BoundedPendingCalls"),
    (refused, admit("r.1"), "r.1", "NoCycle"),
    (refused, admit("r.2.1"), "r.2.1", "DepthBounded"),
    (refused, admit("r.4"), "r.4", "BudgetConserved"),
    (refused, limit(calls_max=9), "r.4", "RefuseCall"),
    (acting, drop("r#1", "admitted"), "r#1", "AuditComplete"),
    (acting, repeat("r#1", "settled"), "r#1", "SettledOnce"),
    (acting, drop("r#1", "settled"), "r", "AuditComplete"),
    (acting, change("r#1", "admitted", user_id="mallory"), "r#1", "IsolationHolds"),
]


@pytest.mark.parametrize(("scenario", "mutate", "request_id", "rule"), MUTATIONS)
def test_a_record_that_no_action_allows_is_named_with_the_rule_it_breaks(scenario, mutate, request_id, rule):
    trace = copy.deepcopy(scenario())
    mutate(trace)
    breach = check(trace, seats=seats_of(scenario), is_complete=True)
    assert breach is not None
    assert breach.rule == rule, breach
    found = trace[breach.position]["request_id"] if breach.position < len(trace) else None
    assert found == request_id, breach


@pytest.mark.parametrize(
    ("left_out", "scenario", "request_id", "rule"),
    [
        (admission.depth, refused, "r.2.1", "DepthBounded"),
        (admission.cycle, refused, "r.1", "NoCycle"),
        (admission.deadlock, crossing, "rA.1", "NoDeadlock"),
        (admission.fan_out, parallel, "r.3", "FanOutBounded"),
        (admission.pending, queued, "r2", "BoundedPendingCalls"),
        (admission.budget, refused, "r.4", "BudgetConserved"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_node_without_one_of_its_rules_is_found_out(monkeypatch, left_out, scenario, request_id, rule):
    for name in ("RULES", "RULES_WITHOUT_FAULTS", "RULES_FOR_USERS"):
        monkeypatch.setattr(admission, name, tuple(one for one in getattr(admission, name) if one is not left_out))
    trace = scenario()
    breach = check(trace, seats=seats_of(scenario))
    assert breach is not None
    assert (trace[breach.position]["request_id"], breach.rule) == (request_id, rule)


def test_every_rule_the_checker_has_is_shown_to_catch_something():
    caught = {rule for _, _, _, rule in MUTATIONS}
    assert caught >= {name for name, _ in trace_check.ADMITTED}
    assert caught >= {"SettledOnce", "NoLateSuccess", "EveryCallEnds", "TimeOut", "RecordLate", "RefuseCall", "Tick"}


def test_a_child_may_end_in_an_append_of_its_own_before_its_caller_does():
    trace = copy.deepcopy(overrun())
    at(trace, "r.1", "settled")["batch"] = 998
    assert check(trace, is_complete=True) is None


def test_a_result_within_the_grace_of_a_late_timer_is_a_success():
    trace = copy.deepcopy(nested())
    end = at(trace, "r", "settled")
    end["at_ms"] = end["deadline_at"] + trace_check.GRACE_MS
    assert check(trace) is None
    end["at_ms"] += 1
    assert check(trace).rule == "NoLateSuccess"


def test_clocks_of_several_nodes_may_differ_by_what_is_said():
    trace = copy.deepcopy(nested())
    at(trace, "r.1", "settled")["at_ms"] -= 5
    assert check(trace, skew_ms=5) is None
    assert check(trace, skew_ms=4).rule == "Tick"


def test_without_a_crash_nobody_stops_counting_what_is_open():
    trace = copy.deepcopy(parallel())
    third = at(trace, "r.3", "refused")
    third.update(kind="admitted", status=None)
    here = trace.index(third)
    assert check(trace[: here + 1]).rule == "FanOutBounded"
    assert check([*trace[:here], {"kind": "crash"}, third]) is None


def test_a_tree_that_waits_for_a_person_is_put_aside_as_a_whole():
    trace = nested()[:4]
    pause = [{**one, "kind": "paused", "batch": 999} for one in trace]
    assert check([*trace, *pause], is_complete=True) is None
    assert check([*trace, *pause[:2]], is_complete=True).rule == "AuditComplete"
    ended = {**at(nested(), "r.1.1.1", "settled"), "batch": 1000}
    assert check([*trace, *pause, ended, {**pause[3], "batch": 1001}]).rule == "SettledOnce"
