"""Whose a run is, what its steps may use at a time and in all, and the timers and schedules it goes on by."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from comity import Agent, Context, Limits, Reply
from comity.core.call.limits import INPUTS_BYTES_MAX
from comity.core.journal.records import Document, Saved
from comity.core.workflow.response import SENT_BACK
from comity.core.workflow.schedule import Schedule
from comity.engines.memory.journal import MemoryJournal
from comity.errors import CallerError, RefusedError, UnavailableError
from comity.runtime.workflow.schedules import STARTED_AGAIN_MS, Schedules, _encode, run_id_of
from comity.runtime.workflow.timers import Timers
from comity.workflow import DefinitionError, load

ASKS = "workflow: asks\nnodes:\n  q: {ask: 'Go on?', options: ['yes', 'no']}\noutput: {n: 1}\n"
OTHER = "workflow: other\nnodes: {w: {wait: 1h}}"


async def waiting(node: Any, **more: Any) -> Any:
    handle = await node.workflows.start("asks", **{"user_id": "ann"} | more)
    while handle.record.status != "waiting":
        await asyncio.sleep(0)
    return handle


@pytest.mark.parametrize("other", [{"user_id": "bob"}, {"tenant_id": "acme"}, {"workflow": "other"}], ids=str)
async def test_a_run_id_is_of_one_user_tenant_and_workflow(make_node, other):
    async with make_node() as node:
        for text in (ASKS, OTHER):
            node.workflows.add(text)
        handle = await waiting(node, run_id="r")
        asked = {"workflow": "asks", "user_id": "ann", "run_id": "r"}
        assert (await node.workflows.start(**asked)).run_id == handle.run_id
        with pytest.raises(CallerError, match="belongs to another run"):
            await node.workflows.start(**asked | other)
        assert len(node.workflows.list()) == 1


async def test_runs_are_listed_by_tenant_workflow_and_status_and_a_fork_stays_in_its_tenant(make_node):
    async with make_node() as node:
        for text in (ASKS, OTHER):
            node.workflows.add(text)
        ours, theirs = await waiting(node), await waiting(node, tenant_id="acme")
        long = await node.workflows.start("other", user_id="ann")
        fork = await node.workflows.fork(theirs.run_id)
        assert (fork.record.tenant_id, fork.record.user_id, fork.record.forked_from) == ("acme", "ann", theirs.run_id)

        def listed(**wanted: Any) -> set[str]:
            return {one.run_id for one in node.workflows.list(**wanted)}

        assert listed(tenant_id="acme") == {theirs.run_id, fork.run_id}
        assert listed(tenant_id="default", workflow="asks") == {ours.run_id}
        assert listed(workflow="other") == {long.run_id}
        assert listed(status="completed") == set()
        assert len(node.workflows.list(limit=3)) == 3


async def test_a_run_moves_to_newer_versions_one_after_the_other_and_only_while_it_waits(make_node):
    agent, go_on = Agent("A"), asyncio.Event()

    @agent.capability("WORK")
    async def work() -> None:
        await go_on.wait()

    def version(name: str) -> Any:
        return load(ASKS.replace("n: 1", f"n: {name}") + "version: '" + name + "'\n")

    busy = load("workflow: busy\nnodes: {a: {call: A/WORK}}")
    async with make_node([agent]) as node:
        node.workflows.add(ASKS)
        handle = await waiting(node)
        began_as = handle.record.definition
        for name in ("2", "3"):
            moved = await node.workflows.migrate(handle.run_id, version(name))
            assert (moved.began_as, moved.version, moved.definition != began_as) == (began_as, name, True)
            assert moved == handle.record
            assert moved.events == len(node.workflows.store.events(handle.run_id))
        await handle.answer(handle.record.questions[0].question_id, "yes")
        assert (await handle.result()).data == {"n": 3}
        running = await node.workflows.start(busy, user_id="ann")
        for known, what in ((running.run_id, "does not wait here"), (handle.run_id, "has ended")):
            with pytest.raises(CallerError, match=what):
                await node.workflows.migrate(known, busy if known == running.run_id else version("4"))
        go_on.set()
        await running.result()


async def test_steps_beyond_what_a_call_may_have_under_way_wait_for_their_turn(make_node):
    agent, now, most = Agent("A", concurrency=100), 0, 0

    @agent.capability("WORK")
    async def work() -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(1)
        now -= 1

    nodes = "\n".join(f"  n{one}: {{call: A/WORK}}" for one in range(5))
    async with make_node([agent], limits=Limits(fan_out_max=2)) as node:
        reply = await node.workflows.run(load(f"workflow: w\nnodes:\n{nodes}"), user_id="ann")
    assert (reply.status, most, now) == ("success", 2, 0)


async def test_a_step_gets_the_tokens_that_the_run_has_left(make_node):
    agent, left = Agent("A"), []

    @agent.capability("THINK")
    async def think(ctx: Context) -> None:
        left.append(ctx.tokens_left)
        ctx.report_usage(prompt_tokens=30, completion_tokens=10)

    text = "workflow: w\nlimits: {tokens_max: 100}\nnodes: {a: {call: A/THINK}, b: {call: A/THINK, after: [a]}}"
    async with make_node([agent]) as node:
        await node.workflows.run(load(text), user_id="ann")
    assert left == [100, 60]


async def test_a_clarification_takes_any_answer_and_a_question_those_of_its_options(make_node):
    agent = Agent("A")

    @agent.capability("ASK")
    async def ask(answer: str = "") -> Reply:
        return Reply.success({"year": answer}) if answer else Reply.needs_input("Which?", data={"options": ["2026", "2027"]})

    async with make_node([agent]) as node:
        node.workflows.add("workflow: asks\nnodes: {a: {call: A/ASK}}")
        handle = await waiting(node)
        await handle.answer(handle.record.questions[0].question_id, "the year before")
        assert (await handle.result()).data == {"year": "the year before"}


# --- timers ---


async def test_a_timer_that_is_due_before_the_others_rings_first_and_one_that_is_set_anew_counts_once(make_node):
    fired: list[tuple[float, str, int]] = []
    async with make_node() as node:
        loop, clock = asyncio.get_running_loop(), node._path.clock
        began, began_ms = loop.time(), clock.now_ns() // 1_000_000
        timers = Timers(clock, loop, lambda run_id, number: fired.append((round(loop.time() - began), run_id, number)))
        for run_id, number, after_s in (("r", 1, 50), ("r", 2, 5), ("q", 1, 20), ("q", 1, 30), ("p", 1, 7)):
            timers.add(run_id, number, began_ms + after_s * 1000)
        timers.discard("p", 1)
        timers.discard("p", 1)
        assert (len(timers), timers.next_of("q"), timers.next_of("p")) == (3, began_ms + 30_000, None)
        await asyncio.sleep(100)
        assert (fired, len(timers)) == ([(5, "r", 2), (30, "q", 1), (50, "r", 1)], 0)
        timers.close()


# --- schedules ---


class Starter:
    """The workflows of a node as its schedules see them; `begin_run` may do something meanwhile."""

    def __init__(self, journal: MemoryJournal) -> None:
        self.journal, self.timers, self.begun, self.now = journal, self, list[str](), 10_000_000
        self.meanwhile = lambda: None
        self.has_agents = True

    def now_ms(self) -> int:
        return self.now

    def add(self, *_: Any) -> None:
        pass

    discard = add

    def version_of(self, *_: Any) -> None:
        pass

    def begin_run(self, _workflow: Any, _data: Any, _user_id: str, _tenant_id: str, run_id: str) -> None:
        self.begun.append(run_id)
        self.meanwhile()

    def is_open(self, _run_id: str) -> bool:
        return False


def scheduled(**more: Any) -> tuple[Starter, Schedules, Schedule]:
    journal = MemoryJournal("n")
    journal.open()
    flows = Starter(journal)
    hourly = {"every_ms": 3_600_000, "created_at": 0, "next_at": flows.now}
    schedule = Schedule(name="hourly", workflow="w", definition="", user_id="u", tenant_id="default", **hourly | more)
    journal.append((Saved(Document.SCHEDULE, "hourly", 1, _encode(schedule)),))
    return flows, Schedules(flows), schedule


@pytest.mark.parametrize("ago_ms", [0, STARTED_AGAIN_MS, STARTED_AGAIN_MS + 1])
def test_what_another_process_has_taken_is_begun_by_a_new_one_at_once_and_by_others_after_a_while(ago_ms):
    flows, schedules, _ = scheduled(starting=(9_000_000,), taken_at=10_000_000 - ago_ms, next_at=20_000_000)
    schedules.look()
    assert flows.begun == [run_id_of("hourly", 9_000_000)]
    flows, schedules, taken = scheduled(next_at=20_000_000)
    schedules.look()  # from now on it is no new one
    left = replace(taken, starting=(9_000_000,), taken_at=10_000_000 - ago_ms)
    flows.journal.append((Saved(Document.SCHEDULE, "hourly", 2, _encode(left)),))
    schedules.look()
    assert len(flows.begun) == (ago_ms > STARTED_AGAIN_MS)


def test_a_schedule_that_is_paused_while_its_run_is_begun_stays_paused():
    flows, schedules, schedule = scheduled(skipped=2)

    def pause() -> None:
        version, _ = flows.journal.load(Document.SCHEDULE, "hourly")
        flows.journal.append((Saved(Document.SCHEDULE, "hourly", version + 1, _encode(replace(schedule, is_paused=True))),))

    flows.meanwhile = pause
    schedules.look()
    found = schedules.get("hourly")
    assert (found.is_paused, found.runs, found.skipped, found.starting) == (True, 1, 2, ())
    assert flows.begun == [found.last_run] == [run_id_of("hourly", 10_000_000)]


def test_of_two_processes_that_find_the_same_time_due_one_takes_it():
    flows, schedules, schedule = scheduled()
    other = replace(schedule, next_at=20_000_000, runs=1)

    class Overtaken(Schedules):
        def _stored(self, name: str) -> tuple[int, Schedule, bytes]:
            found = super()._stored(name)
            flows.journal.append((Saved(Document.SCHEDULE, "hourly", 2, _encode(other)),))
            return found

    Overtaken(flows).look()
    assert (flows.begun, schedules.get("hourly")) == ([], other)


def test_a_run_that_is_due_is_started_for_its_user_and_the_schedule_says_so():
    flows, schedules, _ = scheduled(input={"n": 1}, runs=4, skipped=2, last_at=5, last_run="before", problem="once")
    asked = []
    flows.begin_run = lambda *told: asked.append(told)
    flows.version_of = lambda *told: told
    schedules.look()
    run_id = run_id_of("hourly", 10_000_000)
    assert asked == [(("w", ""), {"n": 1}, "u", "default", run_id)]
    found = schedules.get("hourly")
    assert (found.runs, found.skipped, found.last_at, found.last_run, found.problem) == (5, 2, 10_000_000, run_id, "")
    assert (found.next_at, found.starting, found.taken_at) == (10_800_000, (), 0)
    schedules.look()
    assert len(asked) == 1, "the next time has not come"


def test_a_run_that_is_refused_is_named_and_not_counted_and_one_that_cannot_begin_now_is_begun_later():
    def fail(error: Exception) -> None:
        raise error

    flows, schedules, _ = scheduled()
    flows.meanwhile = lambda: fail(CallerError("no such input"))
    schedules.look()
    found = schedules.get("hourly")
    assert (found.runs, found.problem, found.starting) == (0, "INPUT_VALIDATION_FAILED: no such input", ())
    flows, schedules, _ = scheduled()
    flows.meanwhile = lambda: fail(UnavailableError("not now"))
    schedules.look()
    left = schedules.get("hourly")
    assert (left.runs, left.starting, left.taken_at, left.last_run) == (0, (10_000_000,), 10_000_000, "")
    flows.meanwhile = lambda: None
    flows.now += STARTED_AGAIN_MS
    schedules.look()
    assert schedules.get("hourly") == left
    flows.now += 1
    schedules.look()
    assert (schedules.get("hourly").runs, schedules.get("hourly").last_run) == (1, run_id_of("hourly", 10_000_000))


@pytest.mark.parametrize("more", [{"is_paused": True}, {"next_at": None}, {"next_at": 10_000_001}, {"has_agents": False}])
def test_nothing_is_started_that_is_paused_or_not_due_or_on_a_node_without_agents(more):
    has_agents = more.pop("has_agents", True)
    flows, schedules, schedule = scheduled(**more)
    flows.has_agents = has_agents
    schedules.look()
    schedules.look_at("unknown")
    assert (flows.begun, schedules.get("hourly")) == ([], schedule)


def test_a_time_that_could_not_be_taken_is_taken_when_it_is_looked_for_again():
    flows, schedules, _ = scheduled()
    append, flows.journal.append = flows.journal.append, lambda _records, then, _terms: then(UnavailableError("not now"))
    schedules.look()
    assert flows.begun == []
    flows.journal.append = append
    schedules.look()
    assert len(flows.begun) == 1


async def test_a_schedule_is_paused_resumed_from_now_on_and_removed():
    flows, schedules, _ = scheduled()

    async def durable() -> None:
        pass

    flows.durable = durable
    assert (await schedules.pause("hourly")).is_paused
    assert await schedules.pause("hourly") == schedules.get("hourly")
    flows.now += 5_000_000
    resumed = await schedules.resume("hourly")
    assert (resumed, resumed.is_paused, resumed.next_at) == (schedules.get("hourly"), False, 18_000_000)
    version, _ = flows.journal.load(Document.SCHEDULE, "hourly")
    assert await schedules.resume("hourly") == resumed
    assert flows.journal.load(Document.SCHEDULE, "hourly")[0] == version, "nothing is written that changes nothing"
    await schedules.remove("hourly")
    for gone in (schedules.remove("hourly"), schedules.pause("hourly"), schedules.resume("hourly")):
        with pytest.raises(CallerError) as raised:
            await gone
        assert raised.value.code == "WORKFLOW_UNKNOWN"


async def test_a_run_is_forked_for_its_own_user_alone(make_node):
    async with make_node() as node:
        node.workflows.add(ASKS)
        run = await waiting(node)
        with pytest.raises(RefusedError, match="another user") as refused:
            await node.workflows.fork(run.run_id, user_id="eve")
        assert refused.value.code == "IDENTITY_MISMATCH"
        assert (await node.workflows.fork(run.run_id, user_id="ann")).record.user_id == "ann"


async def test_a_workflow_that_runs_another_needs_it_on_the_node(make_node):
    async with make_node() as node:
        with pytest.raises((CallerError, DefinitionError), match="gone"):
            await node.workflows.start(load("workflow: w\nnodes: {n: {run: gone}}"), user_id="ann")
        assert node.workflows.list() == []


async def test_an_input_that_cannot_be_sent_begins_no_run(make_node):
    async with make_node() as node:
        node.workflows.add(OTHER)
        for given in ({"a": object()}, {"a": "x" * INPUTS_BYTES_MAX}):
            with pytest.raises(CallerError) as refused:
                await node.workflows.start("other", given, user_id="ann")
            assert refused.value.code in {"INPUT_VALIDATION_FAILED", "ENVELOPE_TOO_LARGE"}
        assert node.workflows.list() == []


async def test_work_that_is_sent_back_is_done_again_with_the_instruction_in_words_and_as_an_input(make_node):
    seen, writer = [], Agent("W")

    @writer.capability("WRITE")
    async def write(ctx: Context, instruction: str = "") -> str:
        seen.append((instruction, ctx.request.message))
        return "text"

    @writer.capability("CHECK")
    async def check() -> Reply:
        return Reply.success("good") if len(seen) > 1 else Reply.failure("shorter", code=SENT_BACK)

    text = "workflow: w\nnodes: {write: {call: W/WRITE}, check: {call: W/CHECK, after: [write]}}\n"
    text += "edges: [{from: check, to: write, on: retry, max: 2}, {from: check, to: end}]"
    async with make_node([writer]) as node:
        assert (await node.workflows.run(load(text), user_id="ann")).ok
    assert seen == [("", ""), ("shorter", "shorter")]


@pytest.mark.parametrize(
    ("at_ms", "end"),
    [(1_800_000_000_000, "20270115T080000Z"), (1_800_000_000_250, "20270115T080000250Z"), (999, "19700101T000000999Z")],
)
def test_the_run_of_a_schedule_is_named_for_its_time(at_ms, end):
    assert run_id_of("daily", at_ms).endswith(f"daily-{end}")
