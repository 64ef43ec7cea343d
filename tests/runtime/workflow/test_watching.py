"""What readers of a run see: each event with its place, once, in order, until the run has ended or the node closes."""

from __future__ import annotations

import asyncio

import pytest

from comity.core.workflow import history
from comity.core.workflow.replay import Moment
from comity.runtime.workflow.watching import RunEvent, Watchers, shown

CALL = history.Call(1, "m[0]/a", "a", "A", "DO", {"n": 1})
AGAIN = history.Call(
    2, "a@2", "a", "A", "DO", {}, "hi", "goal", attempt=2, instruction="do better", question="Which?", answer="b", is_undo=True
)
SUM = history.Aggregate(3, "s", "s", "merge", (("a", {}), ("b", {})), {})
ASK = history.Ask(4, "q", "q", "Go on?", ("yes", "no"))
OK = {"status": "success", "data": 1}
PLACES = {1: ("m[0]/a", "a"), 4: ("q", "q"), 5: ("m[0]/w@2", "w")}


@pytest.mark.parametrize(
    ("event", "told", "left"),
    [
        (history.Started(7, "r", {"n": 1}), RunEvent(9, 7, "started", data={"n": 1}), {1, 4, 5}),
        (history.Settled(7, 1, OK), RunEvent(9, 7, "settled", "m[0]/a", "a", 1, "success", OK), {4, 5}),
        (history.Settled(7, 6, OK), RunEvent(9, 7, "settled", "", "", 6, "success", OK), {1, 4, 5}),
        (history.Fired(7, 5), RunEvent(9, 7, "fired", "m[0]/w@2", "w"), {1, 4}),
        (history.Fired(7, 6), RunEvent(9, 7, "fired"), {1, 4, 5}),
        (history.Answered(7, 4, "no", "ann"), RunEvent(9, 7, "answered", "q", "q", data={"answer": "no", "by": "ann"}), {1, 5}),
        (history.Answered(7, 6, "no"), RunEvent(9, 7, "answered", data={"answer": "no", "by": ""}), {1, 4, 5}),
        (history.Received(7, "paid", 5), RunEvent(9, 7, "received", data={"event": "paid", "data": 5}), {1, 4, 5}),
        (history.Cancelled(7, "late", "ann"), RunEvent(9, 7, "cancelling", data={"reason": "late", "by": "ann"}), {1, 4, 5}),
        (history.Migrated(7, "abc"), RunEvent(9, 7, "migrated", data={"definition": "abc"}), {1, 4, 5}),
    ],
)
def test_an_event_is_shown_with_the_place_it_belongs_to_which_is_then_over(event, told, left):
    places = dict(PLACES)
    assert shown(Moment(9, event, ()), places) == [told]
    assert places == {number: PLACES[number] for number in left}


@pytest.mark.parametrize(
    ("command", "told", "placed"),
    [
        (
            CALL,
            ("scheduled", "m[0]/a", "a", 1, "", {"agent": "A", "capability": "DO", "inputs": {"n": 1}}),
            {1: ("m[0]/a", "a")},
        ),
        (
            AGAIN,
            (
                *("undoing", "a@2", "a", 2, ""),
                {"agent": "A", "capability": "DO", "inputs": {}, "message": "hi", "objective": "goal"}
                | {"instruction": "do better", "question": "Which?", "answer": "b", "attempt": 2},
            ),
            {2: ("a@2", "a")},
        ),
        (SUM, ("scheduled", "s", "s", 3, "", {"strategy": "merge", "parts": ["a", "b"]}), {3: ("s", "s")}),
        (ASK, ("asked", "q", "q", None, "", {"question_id": "4", "text": "Go on?", "options": ["yes", "no"]}), {4: ("q", "q")}),
        (history.Timer(5, 60, "m[0]/w@2"), ("waiting", "m[0]/w@2", "", None, "", {"due_at": 60}), {5: ("m[0]/w@2", "w")}),
        (history.Timer(5, 60), None, {5: ("", "")}),
        (history.Listen(5, "e", "e", "paid"), ("listening", "e", "e", None, "", {"event": "paid"}), {}),
        (history.Cancel(8), ("stopping", "x", "x", 8, "", None), {}),
        (history.Cancel(9), ("stopping", "", "", 9, "", None), {}),
        (history.Drop(8), None, {}),
        (history.Finish("failed", {"status": "failure"}), ("ended", "", "", None, "failed", {"status": "failure"}), {}),
    ],
)
def test_what_follows_from_an_event_is_shown_behind_it_under_its_number_and_time(command, told, placed):
    places = {8: ("x", "x")}
    first, *rest = shown(Moment(9, history.Started(7, "r"), (command,)), places)
    assert (first.kind, rest) == ("started", [] if told is None else [RunEvent(9, 7, *told)])
    assert places == {8: ("x", "x")} | placed


async def test_readers_of_a_run_see_its_past_then_what_happens_until_it_has_ended():
    watchers, seen = Watchers(), []
    watchers.tell("r", 0, history.Started(1, "r"), ())  # no reader: nothing is kept

    async def read(run_id: str) -> None:
        past = iter([Moment(0, history.Started(1, run_id), (CALL,))])
        async for one in watchers.watch(run_id, lambda _: past, has_ended=False):
            seen.append((run_id, one.number, one.kind))  # noqa: PERF401  one at a time

    readers = [asyncio.ensure_future(read(run_id)) for run_id in ("r", "r", "other")]
    await asyncio.sleep(0)
    assert seen == [(run_id, 0, kind) for run_id in ("r", "r", "other") for kind in ("started", "scheduled")]
    seen.clear()
    watchers.tell("r", 1, history.Received(2, "paid"), ())
    await asyncio.sleep(0.01)
    assert (seen, [one.done() for one in readers]) == ([("r", 1, "received")] * 2, [False] * 3)
    watchers.tell("r", 2, history.Settled(3, 1, OK), (history.Finish("completed", OK),))
    await asyncio.sleep(0.01)
    assert seen[2:] == [("r", 2, "settled"), ("r", 2, "ended")] * 2
    assert ([one.done() for one in readers], list(watchers.readers)) == ([True, True, False], ["other"])
    watchers.close()
    await asyncio.wait_for(readers[2], 1)
    assert watchers.readers == {}


async def test_of_a_run_that_has_ended_only_its_past_is_shown_and_a_reader_that_leaves_is_forgotten():
    watchers = Watchers()
    past = [Moment(0, history.Started(1, "r"), ())]
    assert [one.kind async for one in watchers.watch("r", lambda _: iter(past), has_ended=True)] == ["started"]
    assert watchers.readers == {}
    stays, leaves = (watchers.watch("r", lambda _: iter(past), has_ended=False) for _ in range(2))
    for one in (stays, leaves):
        await anext(one)
    await leaves.aclose()
    assert len(watchers.readers["r"]) == 1
    await stays.aclose()
    assert watchers.readers == {}
