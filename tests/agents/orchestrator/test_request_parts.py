"""A request of several parts is a run of a workflow: visible, replayable, cancellable, resumed with an answer or after a crash."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from death import die
from msgspec import to_builtins
from msgspec.structs import replace
from office import FLOWS, Office

from comity import Agent, Context, Node, Reply, Status
from comity.agents.orchestrator import Orchestrator
from comity.agents.orchestrator.parts import (
    DONE,
    PART,
    REFUSED,
    TOLD,
    PartsRun,
    ancestors,
    bound,
    definition,
    run_id_of,
    view_reply,
)
from comity.agents.orchestrator.settings import Settings
from comity.agents.orchestrator.work import _names, _stage, as_own
from comity.core.envelope.envelope import Background
from comity.core.orchestration.intent import Ranking
from comity.core.orchestration.split.plan import Part, Plan
from comity.runtime.call.draft import Draft

TWO = "Forecast our costs and then draft a memo about it"


async def ask(node: Node, text: str, inputs: dict[str, Any] | None = None, **more: Any) -> Reply[Any]:
    given = {"text": text, **({"inputs": inputs} if inputs else {})}
    return await node.call("ORC", "ORC_ROUTE", given, user_id="u1", session_id="s1", **more)


@pytest.mark.parametrize(("more", "is_aside"), [("", False), (" please" * 100, True)])
async def test_a_long_request_is_split_beside_the_loop_and_others_have_their_turn_between_its_parts(more, is_aside) -> None:
    async with Node(agents=Office().agents) as node:
        slices = node._runtime.path.slices
        reply = await ask(node, TWO + more, request_id="r")
    assert reply.data["run_id"] == "comity:run-r"
    assert (slices.aside.count >= 2, slices.count >= 1) == (is_aside, True)


async def test_the_parts_are_the_steps_of_a_run_and_each_step_is_a_call_of_the_specialist() -> None:
    office = Office()
    async with Node(agents=office.agents) as node:
        reply = await ask(node, TWO, request_id="r")
        (record,) = node.workflows.list()
        session = node.session("s1")
        moments = node.workflows.replay(record.run_id)
        rows = [row for row in node.audit.rows() if row.kind == "settled" and row.parent_id == record.run_id]
    assert session is not None
    assert "comity.workflow" not in session.prior_agents
    assert reply.data["run_id"] == record.run_id == "comity:run-r"
    assert (record.status, record.user_id, record.session_id, record.steps) == ("completed", "u1", "s1", 2)
    assert [row.target for row in rows] == ["ANL", "DOC"]
    assert len(moments) == record.events
    assert office.seen["DOC_GENERATE"].context.prior_agents == ("ORC", "ANL")
    assert office.codes == ["ANL_PROJECTION", "DOC_GENERATE"]


async def test_a_part_waits_for_the_answer_to_its_question_and_gets_it() -> None:
    office = Office()
    async with Node(agents=office.agents) as node:
        first = await ask(node, "Calculate the net present value, then draft a memo about it", {"discount_rate": 0.12})
        assert office.codes == []
        assert "cash flows" in first.message
        office_text = "Segment our customers and then calculate the net present value"
        second = await ask(node, office_text, {"discount_rate": 0.12})
        (record,) = node.workflows.list(status="waiting")
        assert office.codes == ["AUD_SEGMENT_BUILD"]
        assert "cash flows" in second.message
        third = await ask(node, "[-100000, 25000, 35000, 45000, 55000]")
        assert node.workflows.get(record.run_id).status == "completed"
    assert office.calls[-1] == ("ANL_NPV", FLOWS)
    assert third.data["result"].keys() >= {"npv", "segments"}
    assert office.codes == ["AUD_SEGMENT_BUILD", "ANL_NPV"]


def test_an_orchestrator_waits_for_a_run_that_another_node_holds(tmp_path: Path) -> None:
    async def main() -> PartsRun:  # a store on a disk, so the time is not virtual
        store, text = tmp_path / "s.db", "Segment our customers and then calculate the net present value"
        async with Node(agents=Office().agents, store=store) as first, Node(agents=Office().agents, store=store) as second:
            await ask(first, text, {"discount_rate": 0.12})
            (record,) = first.workflows.list()
            path = SimpleNamespace(workflows=second._path.workflows, charge=lambda call, usage: None)
            ctx = SimpleNamespace(_path=path, _call=None, request=SimpleNamespace(user_id="u1"))
            run = PartsRun(Settings(), ctx)
            told = run.answer(record.run_id, record.questions[0].question_id, [-100, 60, 70], lambda event: None)
            answered = asyncio.create_task(told)
            while not answered.done():
                await asyncio.wait([answered], timeout=0.1)
                first.workflows.hear()  # as its periodic work does
            await answered
            return run

    run = asyncio.run(main())
    assert (run.questions, run.views["part_2"]["status"]) == ((), "success")


async def test_the_answer_to_a_specialist_reaches_it_in_the_run() -> None:
    office, heard = Office(), []

    @office.writer.capability("DOC_SEND", description="Send the newsletter", utterances=("send the newsletter",))
    async def send(ctx: Context, answer: str = "") -> Reply[Any]:
        heard.append(answer)
        return Reply.success({"sent": answer}) if answer else Reply.needs_input("To which list?")

    async with Node(agents=office.agents) as node:
        first = await ask(node, "Forecast our costs and then send the newsletter")
        second = await ask(node, "customers")
        given = {"text": "send the newsletter"}
        assert (await node.call("ORC", "ORC_ROUTE", given, user_id="u1")).status is Status.NEEDS_INPUT
        counts = (await node.call("ORC", "ORC_MONITOR", user_id="u1")).data["totals"]
    assert counts.get("failed", 0) == 0  # a question is no failure
    assert "to which list?" in first.message
    assert heard == ["", "customers", ""]
    assert second.data["result"]["sent"] == "customers"


async def test_a_run_that_waits_already_is_followed_to_its_last_event() -> None:
    office = Office()

    @office.writer.capability("DOC_SEND", description="Send the newsletter", utterances=("send the newsletter",))
    async def send(ctx: Context) -> Reply[Any]:
        return Reply.needs_input("To which list?")

    async with Node(agents=office.agents) as node:
        await ask(node, "Forecast our costs and then send the newsletter")
        (record,) = node.workflows.list()
        run = PartsRun(Settings(), SimpleNamespace(_path=node._path))
        await run._follow(node.workflows.handle(record.run_id), lambda event: None)
    assert [one.text for one in run.questions] == ["To which list?"]
    assert list(run.views) == ["part_1", "part_2"]


async def test_a_cancelled_request_stops_the_specialists_of_its_run() -> None:
    office, seen = Office(), asyncio.Queue[str]()

    @office.audience.capability("AUD_SLOW", description="Interview every customer", utterances=("interview every customer",))
    async def slow(ctx: Context) -> Reply[Any]:
        seen.put_nowait("begun")
        try:
            await asyncio.Event().wait()
        finally:
            seen.put_nowait("stopped")
        raise AssertionError

    async with Node(agents=office.agents) as node:
        text = {"text": "Interview every customer and then draft a memo"}
        handle = node.start_call("ORC", "ORC_ROUTE", text, user_id="u1", session_id="s1", request_id="r")
        assert await seen.get() == "begun"
        handle.cancel()
        assert (await handle.reply()).status is Status.CANCELLED
        assert await seen.get() == "stopped"
        assert (await node.workflows.result("comity:run-r")).status is Status.CANCELLED
    assert "DOC_GENERATE" not in office.codes


async def test_an_agent_above_the_orchestrator_is_not_called_again_below_its_run() -> None:
    office = Office()
    boss = Agent("BOSS")

    @boss.capability("BOSS_PLAN", description="Decide on the budget", utterances=("decide on the budget",))
    async def plan(ctx: Context) -> Reply[Any]:
        return await ctx.call("ORC", "ORC_ROUTE", {"text": "Forecast our costs and then decide on the budget"})

    async with Node(agents=[*office.agents, boss]) as node:
        reply = await node.call("BOSS", "BOSS_PLAN", user_id="u1")
    assert reply.status is Status.PARTIAL
    assert reply.data["missing"][0]["code"] == "ROUTING_CYCLE_DETECTED"


async def test_an_orchestrator_that_takes_one_call_at_a_time_does_all_parts() -> None:
    office = Office(concurrency=1)
    async with Node(agents=office.agents) as node:
        reply = await ask(node, TWO, timeout_ms=20_000)
    assert reply.ok
    assert office.codes == ["ANL_PROJECTION", "DOC_GENERATE"]


def test_a_request_whose_node_was_killed_goes_on_and_no_finished_part_runs_again(tmp_path: Path) -> None:
    async def main() -> None:
        office, reached = Office(), asyncio.Event()

        @office.audience.capability(
            "AUD_SLOW", description="Interview every customer", utterances=("interview every customer",)
        )
        async def slow(ctx: Context) -> Reply[Any]:
            if reached.is_set():
                return Reply.success({"interviews": 3}, confidence=0.9)
            reached.set()
            await asyncio.Event().wait()
            raise AssertionError

        first = Node(agents=office.agents, store=tmp_path / "s.db")
        await first.start()
        text = {"text": "Forecast our costs and then interview every customer"}
        first.start_call("ORC", "ORC_ROUTE", text, user_id="u1", session_id="s1", request_id="r")
        await reached.wait()
        await die(first)
        async with Node(agents=office.agents, store=tmp_path / "s.db") as second:
            reply = await second.call("ORC", "ORC_ROUTE", text, user_id="u1", session_id="s1", request_id="r")
        assert reply.data["result"]["interviews"] == 3
        assert office.codes == ["ANL_PROJECTION"]

    asyncio.run(main())


@pytest.mark.parametrize("raised", [ValueError("hunter2 at 10.0.0.5"), ConnectionError("hunter2 at 10.0.0.5")])
async def test_users_read_no_exception_and_no_agent_where_a_specialist_fails(raised: Exception) -> None:
    payer = Agent("PAYER_1")

    @payer.capability("PAY_IT", description="Pay the invoice", utterances=("pay the invoice",))
    async def pay() -> None:
        raise raised

    @payer.capability("SAY_IT", description="Weather forecast", utterances=("what is the weather",))
    async def weather() -> Reply[Any]:
        return Reply.failure("The station is closed.")

    async with Node(agents=[*Office().agents, payer]) as node:
        alone = await ask(node, "pay the invoice")
        among = await ask(node, "segment our customers and pay the invoice")
        meant = await ask(node, "what is the weather")
    for reply in (alone, among):
        told = str((reply.message, reply.warnings, (reply.data or {}).get("missing")))
        assert not [word for word in ("PAYER_1", "PAY_IT", "hunter2", type(raised).__name__) if word in told], told
    assert alone.error is not None
    assert "hunter2" in alone.error.message
    assert (alone.status, among.status) == (Status.ERROR, Status.PARTIAL)
    assert meant.message == "The station is closed."


async def test_each_thing_of_a_list_that_a_capability_of_its_own_serves_is_done() -> None:
    analyst, orchestrator = Agent("FIN"), Orchestrator()
    did: list[str] = []

    def offer(code: str, description: str, *utterances: str) -> None:
        async def work(ctx: Context) -> dict[str, Any]:
            did.append(ctx.request.capability)
            return {code.lower(): 1}

        analyst.capability(code, description=description, utterances=utterances)(work)

    offer("NPV", "Net present value of yearly cash flows")
    offer("IRR", "Internal rate of return of yearly cash flows")
    offer("PAYBACK", "Years until the investment is back")
    offer("SIMULATION", "Simulate the net present value")
    offer("BOOKS", "Profit and loss of a year", "profit and loss", "revenue and cost statement")
    served = {
        "npv and irr": ["NPV", "IRR"],
        "compute the npv, the irr and the payback": ["NPV", "IRR", "PAYBACK"],
        "what is the npv": ["NPV"],
        "profit and loss": ["BOOKS"],  # an example, which is never cut
        "npv and colour": ["NPV"],  # nothing serves one of the things: a list of nouns stays whole
    }
    async with Node(agents=[orchestrator, analyst]) as node:
        for text, codes in served.items():
            did.clear()
            reply = await node.call("ORC", "ORC_ROUTE", {"text": text, "again": True}, user_id="u1")
            assert (reply.status, sorted(did)) == (Status.SUCCESS, sorted(codes)), (text, reply.message)


async def test_a_thing_that_is_unclear_is_asked_about_and_the_others_are_done() -> None:
    office = Office(ranker=Ranks({"npv": ("ANL/ANL_NPV", "DOC/DOC_GENERATE"), "segments": ("AUD/AUD_SEGMENT_BUILD",)}))
    async with Node(agents=office.agents) as node:
        reply = await ask(node, "show me the npv and the segments", FLOWS)
    assert (reply.status, office.codes) == (Status.PARTIAL, ["AUD_SEGMENT_BUILD"])
    assert 'several things for "show me the npv"' in reply.message


async def test_a_list_stays_whole_where_an_unclear_thing_may_be_what_another_asks_for() -> None:
    office = Office(ranker=Ranks({"npv": ("ANL/ANL_NPV", "AUD/AUD_SEGMENT_BUILD"), "segments": ("AUD/AUD_SEGMENT_BUILD",)}))
    async with Node(agents=office.agents) as node:
        reply = await ask(node, "show me the npv and the segments", FLOWS)
    assert (reply.status, office.codes) == (Status.SUCCESS, ["AUD_SEGMENT_BUILD"])


class Ranks:
    """A ranker that knows the intents of words: one is clear, several are close; the last word that a text has counts."""

    def __init__(self, known: dict[str, tuple[str, ...]]) -> None:
        self._known = known

    async def rank(self, ctx: Context, text: str, intents: object, lessons: object) -> Ranking:
        best = [keys for word, keys in self._known.items() if word in text][-1]
        return Ranking(best, 0.9 if len(best) == 1 else 0.5, is_in_scope=True, scores=(1.0,) * len(best))


def test_a_part_builds_on_the_parts_before_those_that_it_waits_for() -> None:
    plan = Plan((Part("a"), Part("b", (0,)), Part("c", (1,)), Part("d"), Part("e", (2, 1))))
    assert [ancestors(plan, at) for at in range(5)] == [[], [0], [0, 1], [], [0, 1, 2]]


@pytest.mark.parametrize(
    ("view", "status", "code", "message", "data"),
    [
        ({"status": "success", "data": 1, "message": "m"}, Status.SUCCESS, None, "m", 1),
        ({"status": "completed"}, Status.SUCCESS, None, "", None),
        ({"status": "partial", "data": 1}, Status.PARTIAL, None, "", 1),
        ({"status": "clarification_needed", "data": 1, "message": "Which?"}, Status.NEEDS_INPUT, None, "Which?", 1),
        ({"status": "failure", "message": "stuck", "data": 1}, Status.ERROR, "TARGET_FAILED", "stuck", 1),
        ({"status": "failure", "error": {"code": "X_Y", "message": "no"}}, Status.ERROR, "X_Y", "no", None),
        ({"status": "success", "error": {"code": "X_Y", "message": "no"}}, Status.ERROR, "X_Y", "no", None),
        ({"status": "failure", "outcome": "timeout", "message": "late"}, Status.TIMEOUT, "TARGET_FAILED", "late", None),
    ],
)
def test_what_a_part_gave_is_a_reply(view: Any, status: Status, code: str | None, message: str, data: Any) -> None:
    reply = view_reply(view, "DOC")
    assert (reply.status, reply.error and reply.error.code, reply.message, reply.data) == (status, code, message, data)
    assert (reply.status is Status.PARTIAL) == bool(reply.warnings)
    assert reply.source == ("" if status is Status.NEEDS_INPUT else "DOC")


@pytest.mark.parametrize(("said", "told"), [({}, ("a part of the result is missing",)), ({"warnings": ["half"]}, ("half",))])
def test_a_part_that_gave_less_than_all_says_what_is_missing_and_how_sure_it_is(said: Any, told: Any) -> None:
    assert view_reply({"status": "partial", "data": 1} | said, "DOC").warnings == told
    for status in ("partial", "success"):
        assert view_reply({"status": status, "data": 1}, "DOC").confidence == 1.0
        assert view_reply({"status": status, "data": 1, "confidence": 0.25}, "DOC").confidence == 0.25
    for retryable in (False, True):
        failed = {"status": "failure", "error": {"code": "X_Y", "message": "no", "retryable": retryable}}
        assert view_reply(failed, "DOC").error.retryable is retryable  # type: ignore[union-attr]


def _given(key: str, text: str, **more: Any) -> dict[str, Any]:
    """Return the inputs of a part as a run gives them."""
    part = {"key": key, "text": text, "position": "Step 2 of 2", "agents": ["AUD"], "asked": {}, "results": {}}
    known = {"given": {}, "stated": {}, "facts": {}, "constraints": {}, "context": to_builtins(Background())}
    return {"part": part | more.pop("part", {}), "known": known | more.pop("known", {}), **more}


async def test_a_part_that_is_called_and_not_bound_calls_its_specialist_or_asks_for_what_it_lacks() -> None:
    office = Office()
    async with Node(agents=office.agents) as node:
        lacks = await node.call("ORC", PART, _given("ANL/ANL_NPV", "calculate the npv"), user_id="u1")
        given = _given("DOC/DOC_GENERATE", "draft a memo", earlier={"part_1": {"costs": 7}})
        done = await node.call("ORC", PART, given, user_id="u1")
    assert (lacks.status, lacks.data) == (Status.NEEDS_INPUT, {"missing": ["cash_flows", "discount_rate"]})
    assert (done.data, done.message) == ({"document": "On draft a memo"}, "The memo is ready")
    request = office.seen["DOC_GENERATE"]
    assert (request.objective, request.context.workflow_position) == ("draft a memo", "Step 2 of 2")
    assert request.context.prior_outputs == {"part_1": {"costs": 7}}
    assert request.history == "full"


def test_a_part_whose_capability_is_gone_fails_with_its_name() -> None:
    gone = bound(Settings(), Office().agents, _given("DOC/DOC_SING", "sing"))
    assert isinstance(gone, Reply)
    assert gone.error is not None
    assert (gone.error.code, gone.error.message) == ("ROUTING_UNKNOWN_CAPABILITY", "DOC/DOC_SING is not offered any more")
    may_not = bound(Settings(can_call=frozenset({"ANL"})), Office().agents, _given("DOC/DOC_GENERATE", "draft a memo"))
    assert isinstance(may_not, Reply)


def test_a_part_takes_the_last_result_first_and_tells_the_specialist_what_was_done() -> None:
    results = {"part_1": {"years": 1, "npv": 5}, "part_2": {"years": 2}}
    given = _given(
        "ANL/ANL_PROJECTION",
        "project it",
        part={"results": results, "asked": {"part_1": "one", "part_2": "two"}},
        known={"context": to_builtins(Background(prior_agents=("ORC", "AUD"), prior_outputs={"x": 1}))},
        earlier={"part_3": {"years": 3}},
    )
    draft = bound(Settings(), Office().agents, given)
    assert isinstance(draft, Draft)
    assert (draft.target, draft.capability, draft.inputs, draft.message) == ("ANL", "ANL_PROJECTION", {"years": 3}, "")
    assert (draft.objective, draft.history) == ("project it", "full")
    assert draft.context is not None
    assert draft.context.prior_agents == ("ORC", "AUD")
    assert draft.context.prior_outputs == {"x": 1, **results, "part_3": {"years": 3}}
    stated = bound(Settings(), Office().agents, _given("ANL/ANL_PROJECTION", "project it", known={"stated": {"years": 9}}))
    assert isinstance(stated, Draft)
    assert stated.inputs == {"years": 9}


FEW = {"cash_flows": [1.0], "discount_rate": 0.5}


@pytest.mark.parametrize(
    ("known", "answer", "inputs", "missing"),
    [
        (FEW, None, FEW, None),
        ({"cash_flows": [1.0]}, None, None, ["discount_rate"]),
        ({"cash_flows": [1.0]}, "50 %", FEW, None),  # the only missing input
        ({}, FEW, FEW, None),
        ({}, {"discount_rate": 0.5}, None, ["cash_flows"]),  # what it gave is not asked for again
        ({}, "0.5", None, ["cash_flows", "discount_rate"]),  # which of the two is not said
        ({}, {TOLD: {"cash_flows": [1.0]}, REFUSED: False, "answer": "0.5"}, FEW, None),
        ({}, {TOLD: {"cash_flows": [1.0]}, REFUSED: False, "answer": "none"}, None, ["discount_rate"]),
    ],
)
def test_the_answer_to_the_question_of_a_part_gives_the_inputs_that_it_lacks(
    known: Any, answer: Any, inputs: Any, missing: Any
) -> None:
    made = bound(Settings(), Office().agents, _given("ANL/ANL_NPV", "npv", known={"given": known}, answer=answer))
    if isinstance(made, Draft):
        assert (made.inputs, made.message, missing) == (inputs, "", None)
    else:
        assert (made.status, made.data, inputs) == (Status.NEEDS_INPUT, {"missing": missing}, None)


@pytest.mark.parametrize(
    ("answer", "told", "inputs"),
    [
        ("customers", "customers", {"answer": "customers"}),
        (7, "7", {"answer": 7}),
        ({TOLD: {}, "answer": "customers"}, "customers", {"answer": "customers"}),
    ],
)
def test_the_answer_to_a_specialists_own_question_is_its_message_and_the_input_of_that_name(
    answer: Any, told: str, inputs: Any
) -> None:
    writer = Agent("DOC")

    @writer.capability("SEND")
    async def send(answer: Any = None) -> None: ...

    @writer.capability("PRINT")
    async def print_it() -> None: ...

    for code, taken in (("SEND", inputs), ("PRINT", {})):
        made = bound(Settings(), [writer], _given(f"DOC/{code}", "do it", answer=answer))
        assert isinstance(made, Draft)
        assert (made.message, made.inputs) == (told, taken)


async def test_an_open_question_whose_capability_is_gone_is_not_answered() -> None:
    for text in ("calculate the net present value", "Segment our customers and then calculate the net present value"):
        office = Office()
        async with Node(agents=office.agents) as node:
            asked = await ask(node, text, {"discount_rate": 0.12})
            assert "cash flows" in asked.message
            office.analyst.status = office.analyst.status.RETIRED
            reply = await ask(node, "[-100000, 25000, 35000, 45000, 55000]")
        assert reply.error is not None
        assert (reply.error.code, "ANL_NPV" in office.codes) == ("ROUTING_INTENT_UNKNOWN", False)


async def test_a_request_that_answers_no_question_of_a_run_is_a_request_of_its_own() -> None:
    office = Office()
    async with Node(agents=office.agents) as node:
        await ask(node, "Segment our customers and then calculate the net present value", {"discount_rate": 0.12})
        reply = await ask(node, "draft a memo")
        (record,) = node.workflows.list(status="waiting")
        late = await ask(node, "[-100000, 25000]")
    assert (reply.status, office.codes) == (Status.SUCCESS, ["AUD_SEGMENT_BUILD", "DOC_GENERATE"])
    assert len(record.questions) == 1
    assert not late.ok  # the question is no longer the one that the next request answers


async def test_an_answer_to_a_run_that_was_cancelled_is_a_request_of_its_own() -> None:
    office = Office()
    async with Node(agents=office.agents) as node:
        await ask(node, "Segment our customers and then calculate the net present value", {"discount_rate": 0.12})
        (record,) = node.workflows.list()
        await node.workflows.cancel(record.run_id)
        reply = await ask(node, "[-100000, 25000]")
    assert reply.error is not None
    assert (reply.error.code, office.codes) == ("ROUTING_INTENT_UNKNOWN", ["AUD_SEGMENT_BUILD"])


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", "a", "a"], ["a", "a_2", "a_3"]),
        (["a_2", "a", "a"], ["a_2", "a", "a_3"]),
        (["a", "b", "b", "a"], ["a", "b", "b_2", "a_2"]),
        (["a", "ab", "a"], ["a", "ab", "a_2"]),
        ([], []),
    ],
)
def test_parts_of_one_intent_have_names_that_differ(wanted: list[str], names: list[str]) -> None:
    assert _names(wanted) == names


def test_the_stage_of_a_part_is_behind_those_it_waits_for() -> None:
    plan = Plan((Part("a"), Part("b", (0,)), Part("c"), Part("d", (1,))))
    assert [_stage(plan, at) for at in range(4)] == [1, 2, 1, 3]


@pytest.mark.parametrize(
    ("reply", "status", "code", "retryable"),
    [
        (Reply.needs_input("Which?", data={"a": 1}), Status.NEEDS_INPUT, None, None),
        (Reply.failure("It is stuck.", code="TARGET_FAILED", retryable=True), Status.ERROR, "TARGET_FAILED", True),
        (Reply.failure("no", code="INPUT_VALIDATION_FAILED"), Status.ERROR, "INPUT_VALIDATION_FAILED", False),
    ],
)
def test_the_reply_of_the_only_part_is_the_orchestrators_own(reply: Any, status: Status, code: Any, retryable: Any) -> None:
    own = as_own(replace(reply, request_id="below", source="DOC"))
    assert (own.status, own.data, own.request_id, own.source) == (status, reply.data, "", "")
    assert (own.error and own.error.code, own.error and own.error.retryable) == (code, retryable)
    assert own.message == reply.message


@pytest.mark.parametrize(
    ("calls", "tokens", "limits"),
    [(7, None, (7, None)), (0, 0, (1, 1)), (-1, 1, (1, 1)), (2, 9, (2, 9))],
)
def test_the_run_of_a_request_may_use_what_the_request_has_left(calls: int, tokens: int | None, limits: Any) -> None:
    nodes = (("part_1", (), ()), ("part_2", ("part_1",), ("part_1",)))
    made = definition("ORC", nodes, calls, tokens)
    assert (made.limits.calls_max, made.limits.tokens_max) == limits
    assert made.name == "ORC-request"
    assert list(made.nodes) == ["part_1", "part_2", DONE]


def test_the_run_of_a_request_has_an_id_of_its_own_that_is_the_same_again() -> None:
    assert run_id_of("r") == "comity:run-r"
    dotted, dashed = run_id_of("r.1"), run_id_of("r-1")
    assert dashed == "comity:run-r-1"
    assert dotted.startswith("comity:run-r-1-")
    assert dotted == run_id_of("r.1") != run_id_of("r#1")
