"""A call tree looks the same live and from the audit."""

import asyncio
import re

import pytest
from rich.console import Console

from comity import Agent, Context, Node, Tool
from comity.cli.ui.tree import CallTree, short

boss = Agent("BOSS")
worker = Agent("WORKER")


@boss.capability("ASK")
async def ask(ctx: Context):
    await ctx.gather(ctx.call("WORKER", "OK"), ctx.call("WORKER", "FAIL"), ctx.call("BOSS", "ASK"))


@worker.capability("OK")
async def ok(ctx: Context):
    ctx.progress({"done": 1})


@worker.capability("FAIL")
async def fail():
    raise TimeoutError("no answer")


def drawn(tree, **more):
    console = Console(width=160, color_system=None, file=None)
    with console.capture() as capture:
        console.print(tree.draw(**more))
    return capture.get()


@pytest.fixture(scope="module")
def seen():
    async def run():
        async with Node([boss, worker]) as node:
            handle = node.start_call("BOSS", "ASK", user_id="u1", request_id="r")
            events = [event async for event in handle.events()]
            await handle.reply()
            return events, node.audit.rows()

    return asyncio.run(run())


def shape(branch):
    return (
        branch.request_id,
        branch.target,
        branch.capability,
        branch.status,
        branch.code,
        [shape(one) for one in branch.children],
    )


def test_events_and_rows_give_the_same_tree(seen):
    events, rows = seen
    live = CallTree()
    for event in events:
        live.take(event)
    stored = CallTree.of_rows(rows)
    assert [shape(root) for root in live.roots] == [shape(root) for root in stored.roots]
    assert shape(stored.roots[0])[5][1:] == [
        ("r.2", "WORKER", "FAIL", "error", "TARGET_TEMPORARY_FAILURE", []),
        ("r.3", "BOSS", "ASK", "refused", "ROUTING_CYCLE_DETECTED", []),
    ]


def test_a_drawing_has_one_line_per_call_and_says_why_one_was_refused(seen):
    text = drawn(CallTree.of_rows(seen[1]))
    lines = [line.rstrip() for line in text.splitlines()]
    assert re.fullmatch(r"BOSS ASK +success +\+0 ms +[\d.]+ ms", lines[0])
    assert re.fullmatch(r"├── WORKER OK +success +\+\d+ ms +[\d.]+ ms", lines[1])
    refused = next(index for index, line in enumerate(lines) if "refused" in line)
    assert lines[refused].startswith("└── BOSS ASK")
    assert "ROUTING_CYCLE_DETECTED" in lines[refused + 1]
    assert len({line.index(" ms") for line in lines if re.search(r"\+\d+ ms", line)}) == 1  # the columns line up


def test_a_call_under_way_shows_its_progress_and_how_long_it_has_been(seen):
    events, _ = seen
    live = CallTree()
    until = next(index for index, event in enumerate(events) if event.kind == "progress")
    for event in events[: until + 1]:
        live.take(event)
    lines = drawn(live, now_ms=events[0].at_ms + 2_500).splitlines()
    assert "running" in lines[0]
    assert "2.50 s" in lines[0]
    assert "done 1" in lines[1]
    for event in events[until + 1 :]:
        live.take(event)
    assert "done 1" not in drawn(live)


async def test_a_call_that_waited_for_a_person_shows_its_whole_time_and_how_much_of_it_was_waiting(make_node):
    clerk, bank = Agent("CLERK"), Agent("BANK", tools_allowed=["pay"])

    @clerk.capability("GO")
    async def go(ctx: Context):
        await asyncio.sleep(1)
        for _ in range(2):
            await ctx.call("BANK", "PAY")
        await ctx.call("BANK", "REST")

    @bank.capability("PAY")
    async def pay(ctx: Context):
        await ctx.use_tool("pay")

    @bank.capability("REST")
    async def rest(): ...

    tool = Tool(name="pay", function=lambda: None, risk="high", run_in="loop")
    async with make_node([clerk, bank], tools=[tool]) as node:
        reply = await node.call("CLERK", "GO", user_id="u")
        for seconds in (14, 5):
            await asyncio.sleep(seconds)
            reply = await node.decide(reply.data["approval_id"], granted=True, by="ann")
        tree = CallTree.of_rows(node.audit.rows())
    (root,) = tree.roots
    first, second, last = root.children
    assert (root.status, root.waited_ms, root.duration_ms) == ("success", 19_000, 22_000)  # three times a second of its own
    assert (first.waited_ms, second.waited_ms, last.waited_ms) == (14_000 + 1_000, 5_000 + 1_000, 0)
    assert last.started_at - root.started_at == root.duration_ms
    assert "22.00 s  waited 19.00 s for a person" in drawn(tree)


def test_rows_whose_parent_is_not_there_stand_for_themselves(seen):
    children = [row for row in seen[1] if row.parent_id is not None]
    assert {root.request_id for root in CallTree.of_rows(children).roots} == {"r.1", "r.2", "r.3"}


def test_a_late_result_is_mentioned_and_changes_nothing(seen):
    settled = next(row for row in seen[1] if row.kind == "settled" and row.request_id == "r.1")
    tree = CallTree.of_rows([*seen[1], settled._replace(kind="late", status="error", error_code="X")])
    assert tree.find("r.1").status == "success"
    assert "a late result was recorded, and not delivered" in drawn(tree)


def test_a_drawing_passes_nothing_on_that_steers_the_terminal(seen):
    tree = CallTree.of_rows([row._replace(target="A\x1b[2J") for row in seen[1]])
    tree.roots[0].note = "b\x07\u202e"
    tree.roots[0].code = "C\x1b"
    assert not set(drawn(tree)) & {"\x1b", "\x07", "\u202e"}


@pytest.mark.parametrize(
    ("data", "line"), [("text", "text"), ({"done": 3, "of": 4}, "done 3, of 4"), ([1], "[1]"), ("x" * 100, "x" * 79 + "…")]
)
def test_progress_is_told_on_one_short_line(data, line):
    assert short(data) == line
