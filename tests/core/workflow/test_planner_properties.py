"""Random graphs and random replies: what holds for every run, and a planner without memory that must agree with the real one."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from workflow_driver import Run, failed, ok

from comity.core.workflow import history
from comity.core.workflow.check import check_text
from comity.core.workflow.graph import compile_program
from comity.core.workflow.planner import Planner
from comity.core.workflow.read import load
from comity.core.workflow.replay import fold

NAMES = "abcdefgh"


@st.composite
def graphs(draw, *, loops: bool = True, undo: bool = True):
    """A random acyclic graph of up to eight nodes, its edges with conditions over the reply, and perhaps a loop."""
    count = draw(st.integers(2, len(NAMES)))
    lines, edges = [], []
    for place in range(count):
        name = NAMES[place]
        before = draw(st.lists(st.integers(0, place - 1), unique=True, max_size=3)) if place else []
        join = draw(st.sampled_from(["all", "all", "all", "any", 1, 2]))
        if isinstance(join, int) and join > len(before):
            join = "all"
        for one in before:
            kind = draw(
                st.sampled_from(
                    ["", "", "on: always", "when: 'response.data.n > 2'", "when: 'response.data.n <= 2'", "on: error"]
                )
            )
            edges.append(f"  - {{from: {NAMES[one]}, to: {name}{', ' + kind if kind else ''}}}")
        extra = ", undo: {call: U/X}" if undo and draw(st.booleans()) else ""
        verb = draw(st.sampled_from(["call: A/X", "call: A/X", "call: A/X", "set: 1", "wait: 5s"]))
        if "call" not in verb:
            extra = ""
        lines.append(f"  {name}: {{{verb}, join: {join}{extra}}}")
    if loops and count > 2 and draw(st.booleans()):
        to = draw(st.integers(0, count - 2))
        source = draw(st.integers(to, count - 1))
        edges.append(f"  - {{id: back, from: {NAMES[source]}, to: {NAMES[to]}, when: 'response.data.n == 4', max: 2}}")
    for place in range(count):  # no node is left without an edge for some reply
        if any(f"from: {NAMES[place]}," in one for one in edges):
            edges.append(f"  - {{from: {NAMES[place]}, to: end, on: always}}")
    return (
        "workflow: random\nlimits: {steps_max: 500}\nnodes:\n" + "\n".join(lines) + "\nedges:\n" + "\n".join(edges or ["  []"])
    )


@st.composite
def runs(draw, **shape):
    text = draw(graphs(**shape))
    if any("closes none" in str(one) or "never fires" in str(one) for one in check_text(text)):
        text = "workflow: random\nnodes: {a: {call: A/X}}"
    replies = draw(st.lists(st.one_of(st.integers(0, 5), st.none()), min_size=1, max_size=12))
    order = draw(st.lists(st.integers(0, 7), min_size=1, max_size=12))
    return text, replies, order


def played(text, replies, order, until=None):
    seen: Counter[str] = Counter()

    def reply(call: history.Call):
        seen[call.node] += 1
        n = replies[(NAMES.find(call.node) + seen[call.node]) % len(replies)]
        return failed(retryable=False) if n is None and not call.is_undo else ok({"n": n or 0})

    turn = iter(order * 1_000)
    run = Run(text, reply, choose=lambda count: next(turn) % count)
    while run.pending and (until is None or len(run.history) < until):
        run.apply(run.pending.pop(run.choose(len(run.pending))))
    return run


@given(runs())
@settings(deadline=None)
def test_every_run_ends_with_every_edge_settled_and_no_node_twice_in_a_turn(given_run):
    run = played(*given_run)
    assert run.finish is not None, run.planner.waits
    places = [one for one in run.called if not one.startswith("undo ")]
    assert max(Counter(places).values(), default=1) == 1
    scope = run.planner.root
    if run.finish.status == "completed":
        assert None not in [state for edge, state in zip(scope.graph.edges, scope.edges, strict=True) if edge.loop is None]
        assert not any(scope.pending)
    assert not run.planner.waits


@given(
    st.sampled_from(["{from: a, to: b, else: true}", "{from: a, to: b, on: error}", "{from: a, to: b, when: 'true'}"]),
    st.sampled_from(["first", "all"]),
    st.sampled_from(["when: 'response.data.n < 3'", "when: 'response.data.m < 3'", "on: success"]),
    st.integers(1, 4),
    st.lists(st.one_of(st.integers(0, 4), st.none()), min_size=1, max_size=6),
    st.integers(1, 8),
)
@settings(deadline=None)
def test_the_short_way_round_a_loop_of_one_call_leads_where_the_queue_leads(other, route, back, most, replies, steps_max):
    text = (
        f"workflow: again\nlimits: {{steps_max: {steps_max}}}\nnodes:\n  a: {{call: A/X, route: {route}}}\n  b: {{call: A/X}}\n"
        f"edges:\n  - {{from: a, to: a, {back}, max: {most}}}\n  - {other}\n"
    )
    run = played(text, replies, [0])
    assert run.program.graph.nodes[1].again is not None or (route, other) == ("all", "{from: a, to: b, when: 'true'}")
    slow = Planner(run.program, lambda *_: None)
    assert [command for event in run.history for command in slow.apply(event)] == run.commands
    assert (slow.root.edges, slow.root.states, slow.root.loops, slow.root.variables) == (
        run.planner.root.edges, run.planner.root.states, run.planner.root.loops, run.planner.root.variables
    )  # fmt: skip


@given(runs(), st.integers(1, 20))
@settings(deadline=None)
def test_short_ways_of_plain_steps_lead_where_the_queue_leads(given_run, length):
    run = played(*given_run, until=length)
    slow = Planner(run.program, lambda *_: None)  # told of every edge, it takes each by the queue
    assert [command for event in run.history for command in slow.apply(event)] == run.commands
    assert (slow.root.edges, slow.root.states, slow.root.pending, slow.root.taken) == (
        run.planner.root.edges, run.planner.root.states, run.planner.root.pending, run.planner.root.taken
    )  # fmt: skip


@given(runs(loops=False))
@settings(deadline=None)
def test_a_failed_run_takes_back_exactly_what_succeeded_in_reverse_order(given_run):
    run = played(*given_run)
    undone = [one.removeprefix("undo ") for one in run.called if one.startswith("undo ")]
    if run.finish.status == "completed":
        assert undone == []
        return
    steps = {call.step: call for call in run.commands if isinstance(call, history.Call) and not call.is_undo}
    done = [
        steps[event.step].place
        for event in run.history
        if isinstance(event, history.Settled) and event.step in steps and event.reply["status"] == "success"
        and run.program.graph.nodes[1 + list(run.program.graph.definition.nodes).index(steps[event.step].node)].undo is not None
    ]  # fmt: skip
    assert undone == done[::-1]


@given(runs(), st.integers(1, 20))
@settings(deadline=None)
def test_a_planner_made_anew_from_any_prefix_wants_what_the_living_one_wants(given_run, length):
    run = played(*given_run, until=length)
    again = Planner(compile_program(load(given_run[0])))
    made = [command for event in run.history for command in again.apply(event)]
    assert made == run.commands
    assert (again.waits.keys(), again.steps, again.finish) == (run.planner.waits.keys(), run.planner.steps, run.finish)
    assert again.root.edges == run.planner.root.edges
    assert again.root.states == run.planner.root.states
    _, left = fold(run.program, run.history)
    open_steps = {one.step for one in left if isinstance(one, history.Call)}
    settled = {one.step for one in run.history if isinstance(one, history.Settled)}
    assert open_steps == {one.step for one in run.commands if isinstance(one, history.Call)} - settled


@given(runs(loops=False), st.integers(1, 10))
@settings(deadline=None)
def test_cancel_ends_every_run_and_schedules_nothing_but_compensation(given_run, length):
    run = played(*given_run, until=length)
    if run.finish is not None:
        return
    was_failing = run.planner.root.ending is not None  # then it ends as that
    before = len(run.commands)
    run.apply(history.Cancelled(run.now_ms + 1))
    run.go()
    assert run.finish is not None
    assert was_failing or run.finish.status == "cancelled"
    assert all(one.is_undo for one in run.commands[before:] if isinstance(one, history.Call))


@given(runs(loops=False, undo=False))
@settings(deadline=None)
def test_a_graph_without_loops_agrees_with_a_planner_that_knows_nothing_but_the_rules(given_run):
    text, replies, _ = given_run
    run = played(text, replies, [0])
    if run.finish.status == "completed" and "join: any" not in text and "join: 1" not in text and "join: 2" not in text:
        assert sorted(run.called) == sorted(reference(text, replies))


def reference(text: str, replies: list) -> list[str]:
    """Return the calls of a run by the rules alone: a node runs if an edge to it is taken, after all of them are settled."""
    definition = load(text)
    led_to = {edge.target for edge in definition.edges}
    results: dict[str, int | None] = {}
    called = []
    for name, node in definition.nodes.items():  # written in an order in which every edge points down
        incoming = [edge for edge in definition.edges if edge.target == name]
        if name in led_to and not any(_taken(edge, results) for edge in incoming):
            continue
        if node.kind == "call":
            called.append(name)
            results[name] = replies[(NAMES.find(name) + 1) % len(replies)]
        else:
            results[name] = -1
    return called


def _taken(edge, results) -> bool:
    if edge.source not in results:
        return False
    n = results[edge.source]
    if edge.on == "always" and not edge.when:
        return True
    if edge.when:
        return n is not None and n >= 0 and ((n > 2) if ">" in edge.when else (n <= 2))
    return (n is None) if edge.on == "error" else n is not None
