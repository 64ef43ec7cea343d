"""Bad input of every kind is a typed refusal that names the path; nothing crashes, runs or is lost."""

from __future__ import annotations

import asyncio
import contextlib
import math
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity import Agent, AsyncHandoffManager, Background, Context, Limits, Node, Status
from comity.core.call.limits import INPUTS_BYTES_MAX, MESSAGE_BYTES_MAX, NESTING_MAX, OBJECTIVE_CHARS_MAX
from comity.errors import ComityError
from comity.testing import VirtualClock, run_virtual

ran: list[Any] = []
agent = Agent("A")


@agent.capability("TYPED")
async def typed(cash_flows: list[float], rate: float, when: datetime | None = None, note: str = "", extra: dict | None = None):
    ran.append(cash_flows)
    return len(cash_flows)


@agent.capability("ANY")
async def anything(value: Any = None):
    ran.append(value)
    return "ok"


GOOD = {"cash_flows": [1, 2], "rate": 0.1}
LOOP: list[Any] = []
LOOP.append(LOOP)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def refusal(inputs: Any, capability: str = "TYPED", **more: Any):
    ran.clear()

    async def go():
        async with Node([agent], clock=VirtualClock(), lag_ms=None) as node:
            reply = await node.call("A", capability, inputs, **{"user_id": "u", **more})
            good = await node.call("A", "TYPED", GOOD, user_id="u")
            assert good.data == 2, "the node must go on"
            assert node.audit.verify().ok
            return reply

    reply = run_virtual(go())
    assert reply.status is Status.REFUSED, reply
    assert ran == [[1, 2]], "what was refused must not have run"
    return reply.error


@pytest.mark.parametrize(
    ("inputs", "paths"),
    [
        ({"cash_flows": ["1", 2], "rate": 0.1}, ["inputs.cash_flows[0]"]),
        ({"cash_flows": [1], "rate": "0.1"}, ["inputs.rate"]),
        ({"cash_flows": [1], "rate": None}, ["inputs.rate"]),
        ({"cash_flows": [1], "rate": [1]}, ["inputs.rate"]),
        ({"cash_flows": {"a": 1}, "rate": 1}, ["inputs.cash_flows"]),
        ({"cash_flows": [True, 1], "rate": 1}, ["inputs.cash_flows[0]"]),
        ({"rate": 1}, ["inputs.cash_flows"]),
        ({}, ["inputs.cash_flows", "inputs.rate"]),
        (None, ["inputs.cash_flows", "inputs.rate"]),
        ({**GOOD, "rates": 2}, ["inputs.rates"]),
        ({**GOOD, "": 2}, ["inputs."]),
        ({**GOOD, "when": "yesterday"}, ["inputs.when"]),
        (
            {"cash_flows": ["a", 1, "b"], "rate": "c", "zzz": 1},
            ["inputs.cash_flows[0]", "inputs.cash_flows[2]", "inputs.rate", "inputs.zzz"],
        ),
        ([1, 2], ["inputs"]),
        ("text", ["inputs"]),
        (7, ["inputs"]),
    ],
)
def test_wrong_types_and_fields_are_all_named(inputs, paths):
    error = refusal(inputs)
    assert error.code == "INPUT_VALIDATION_FAILED"
    assert [problem.path for problem in error.problems] == paths


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("capability", ["TYPED", "ANY"])
def test_numbers_that_are_not_finite_are_refused_wherever_they_hide(value, capability):
    inputs = {"value": {"a": [1, {"b": value}]}} if capability == "ANY" else {**GOOD, "extra": {"a": [1, {"b": value}]}}
    error = refusal(inputs, capability)
    assert error.code == "INPUT_VALIDATION_FAILED"
    assert error.problems[0].path.endswith(".a[1].b")


@pytest.mark.parametrize("text", ["\x00", "a\x1bb", "\x07", "\x7f", "\x08"])
def test_control_characters_are_refused_in_inputs_and_texts(text):
    assert refusal({"value": {"t": [text]}}, "ANY").problems[0].path == "inputs.value.t[0]"
    assert refusal({"value": {text: 1}}, "ANY").code == "INPUT_VALIDATION_FAILED"
    assert refusal(GOOD, message=text).problems[0].path == "message"
    assert refusal(GOOD, objective=text).problems[0].path == "objective"
    assert refusal(GOOD, user_id=f"u{text}").code == "IDENTITY_INVALID"
    assert refusal(GOOD, session_id=f"s{text}").code == "IDENTITY_INVALID"
    assert refusal(GOOD, request_id=f"r{text}").code == "IDENTITY_INVALID"


def test_line_breaks_and_tabs_are_text_not_control_characters(make_node):
    async def go():
        async with make_node([agent]) as node:
            return await node.call("A", "ANY", {"value": "a\tb\r\nc"}, user_id="u", message="two\nlines")

    assert run_virtual(go()).ok


@pytest.mark.parametrize("where", ["value", "message", "objective", "user_id"])
def test_text_that_is_not_utf8_is_refused(where):
    broken = "caf\ud800"
    error = refusal({"value": broken}, "ANY") if where == "value" else refusal(GOOD, **{where: broken})
    assert error.problems[0].path.endswith(where)


def test_sizes_are_bounded():
    assert refusal({"value": "x" * 10_000_000}, "ANY").code == "ENVELOPE_TOO_LARGE"
    assert refusal({"value": "x" * INPUTS_BYTES_MAX}, "ANY").problems[0].path == "inputs"
    assert refusal(GOOD, message="x" * (MESSAGE_BYTES_MAX + 1)).code == "ENVELOPE_TOO_LARGE"
    assert refusal(GOOD, message="é" * (MESSAGE_BYTES_MAX // 2 + 1)).code == "ENVELOPE_TOO_LARGE"
    assert refusal(GOOD, objective="x" * (OBJECTIVE_CHARS_MAX + 1)).problems[0].path == "objective"
    assert refusal({"value": [0] * 200_000}, "ANY").code == "ENVELOPE_TOO_LARGE"


def test_exactly_the_limits_pass(make_node):
    async def go():
        async with make_node([agent]) as node:
            return [
                await node.call("A", "ANY", {}, user_id="u", message="x" * MESSAGE_BYTES_MAX),
                await node.call("A", "ANY", {"value": "x" * (INPUTS_BYTES_MAX - len('{"value":""}'))}, user_id="u"),
                await node.call("A", "ANY", {"value": nested(NESTING_MAX - 1)}, user_id="u"),
            ]

    assert [reply.status for reply in run_virtual(go())] == [Status.SUCCESS] * 3


@pytest.mark.parametrize("depth", [NESTING_MAX, 1_000, 100_000])
def test_deep_nesting_is_refused(depth):
    assert refusal({"value": nested(depth)}, "ANY").problems[0].path.startswith("inputs")


@pytest.mark.parametrize("value", [LOOP, object(), {1, object()}, lambda: 1, {"k": {"deep": object()}}])
def test_what_json_cannot_say_is_refused(value):
    assert refusal({"value": value}, "ANY").code == "INPUT_VALIDATION_FAILED"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("timeout_ms", -1), ("timeout_ms", "soon"), ("timeout_ms", 1.5), ("timeout_ms", True), ("timeout_ms", 10**12),
        ("priority", "urgent"), ("priority", 3), ("priority", []), ("context", {"facts": []}), ("limits", {"depth_max": 9}),
        ("message", b"bytes"), ("objective", None), ("message", 7),
    ],
)  # fmt: skip
def test_wrong_options_are_refused_by_name(field, value):
    assert refusal(GOOD, **{field: value}).problems[0].path == field


@pytest.mark.parametrize("name", ["", "a/b/c\n", None, 7, b"A", "x" * 10_000, "\ud800", ("A",), [], "A/", "/k"])
def test_wrong_names_are_refused(name):
    async def go():
        async with Node([agent], clock=VirtualClock(), lag_ms=None) as node:
            as_target = await node.call(name, "ANY", user_id="u")
            as_capability = await node.call("A", name, user_id="u")
            assert node.audit.verify().ok
            assert all(len(row.target) <= 256 and len(row.capability) <= 256 for row in node.audit.rows())
            return as_target, as_capability

    for reply in run_virtual(go()):
        assert reply.status is Status.REFUSED


@pytest.mark.parametrize(
    ("field", "value"),
    [(field, value) for field in ("user_id", "tenant_id", "request_id") for value in ("", 7, "x" * 1_000, b"u")]
    + [("user_id", None), ("tenant_id", None)],  # no request id means a new one
)
def test_wrong_identities_are_refused(field, value):
    assert refusal(GOOD, **{field: value}).code == "IDENTITY_INVALID"


def test_a_background_that_is_too_large_is_refused():
    assert refusal(GOOD, context=Background(facts=("x" * 2_000_000,))).problems[0].path == "context"
    assert refusal(GOOD, context=Background(prior_outputs={"a": math.nan})).problems[0].path == "context.prior_outputs.a"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.datetimes(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.integers(), inner, max_size=4),
    max_leaves=12,
)


@given(target=json_values, capability=json_values, inputs=json_values, user=json_values, text=json_values, timeout=json_values)
def test_no_input_whatsoever_makes_a_door_raise(target, capability, inputs, user, text, timeout):
    async def go():
        async with Node([agent], clock=VirtualClock(), lag_ms=None) as node:
            replies = [
                await node.call(target, capability, inputs, user_id=user, message=text, timeout_ms=timeout),
                await node.call("A", "ANY", {"value": inputs}, user_id="u"),
                await node.call("A", "TYPED", inputs, user_id="u", objective=text),
            ]
            assert node.audit.verify().ok
            return replies

    for reply in run_virtual(go()):
        assert reply.ok or reply.error.code.isupper()


@given(value=json_values)
def test_no_answer_whatsoever_makes_a_node_raise(value):
    wild = Agent("W")

    @wild.capability("GO")
    async def go_wild(ctx: Context):
        ctx.state["seen"] = 1
        return value

    async def go():
        async with Node([wild], clock=VirtualClock(), lag_ms=None) as node:
            return await node.call("W", "GO", user_id="u")

    reply = run_virtual(go())
    assert reply.ok or reply.error.code == "OUTPUT_VALIDATION_FAILED"


def test_personal_data_in_an_objective_or_user_id_never_enters_the_audit(make_node):
    async def go():
        async with make_node([agent]) as node:
            await node.call("A", "ANY", {"value": "4111 1111 1111 1111"}, user_id="ann@example.com", objective="call Ann Smith")
            await asyncio.sleep(0)
            return node.audit.rows()

    told = repr(run_virtual(go()))
    assert "Ann" not in told
    assert "example.com" not in told
    assert "4111 1111" not in told  # with its space: a hash may hold the digits


@pytest.mark.parametrize("options", [{}, {"privacy": None}], ids=["hides", "does not hide"])
@pytest.mark.parametrize("lost", [{1: 1, "1": 2}, {"a": {1: 1, "1": 2}}, [{1: 1, "1": 2}]])
async def test_keys_that_become_one_lose_nothing_silently_whoever_sends_them(make_node, lost, options):
    agent = Agent("A")

    @agent.capability("TAKE")
    async def take(**named: Any) -> Any:
        return len(named)

    @agent.capability("GIVE")
    async def give() -> Any:
        return lost

    @agent.capability("KEEP")
    async def keep(ctx: Context) -> None:
        ctx.state["kept"] = lost

    async with make_node([agent], **options) as node:
        sent = lost if isinstance(lost, dict) else {"x": lost}
        taken = [await node.call("A", "TAKE", sent, user_id="u") for _ in range(2)]  # its signature is read with the first
        given, kept = await node.call("A", "GIVE", user_id="u"), await node.call("A", "KEEP", user_id="u")
    assert [reply.error.code for reply in taken] == ["INPUT_VALIDATION_FAILED"] * 2
    assert [reply.error.code for reply in (given, kept)] == ["OUTPUT_VALIDATION_FAILED"] * 2
    assert {reply.error.problems[0].message for reply in (*taken, given, kept)} == {"stands twice"}


@pytest.mark.parametrize("name", ["user_id", "tenant_id", "session_id"])
async def test_a_kind_of_text_that_cannot_be_written_is_refused_though_its_like_was_seen_before(make_node, name):
    who = {"user_id": "u", "tenant_id": "t", "session_id": "s"}
    async with make_node([agent]) as node:
        assert (await node.call("A", "ANY", **who)).status == "success"
        reply = await node.call("A", "ANY", **who | {name: type("Text", (str,), {})(who[name])})
        assert (reply.status, reply.error.code) == ("refused", "IDENTITY_INVALID")


# --- objects that do something when they are looked at ---


def boom(*_: Any, **__: Any) -> Any:
    raise LookupError("boom")


def leave(*_: Any, **__: Any) -> Any:
    raise SystemExit


def evil(*names: str, does: Any = boom) -> Any:
    return type("Evil", (), dict.fromkeys(names, does))()


class EvilText(str):
    __slots__ = ()
    __hash__ = str.__hash__
    __eq__ = __str__ = __repr__ = __len__ = __bool__ = isprintable = encode = boom


class EvilDict(dict):
    items = keys = __iter__ = __bool__ = __len__ = boom


class EvilList(list):
    __iter__ = __len__ = __bool__ = __eq__ = boom
    __hash__ = None


class Array:
    """As numpy's: its truth is ambiguous, and comparing it gives another."""

    __hash__ = None
    __bool__ = boom

    def __eq__(self, other: object) -> Any:
        return Array()


DEEP = nested(100_000)
ODD = [
    *(
        "",
        "\ud800",
        "a\x00b",
        "a" * 10**6,
        0,
        -1,
        10**5000,
        1.5,
        math.nan,
        True,
        b"x",
        [],
        {},
        set(),
        object(),
        LOOP,
        DEEP,
        [DEEP],
    ),
    *(Array(), EvilText("x"), EvilDict(a=1), EvilList("a"), evil("__class__"), evil("__getattribute__"), evil("__eq__")),
    *(evil("__bool__"), evil("__len__"), evil("__hash__", "__eq__"), evil("__str__", "__repr__"), (one for one in ())),
    *(evil("__bool__", "__eq__", "__class__", "__getattribute__", does=leave), Ellipsis, 1j, range(3), memoryview(b"x")),
    *(
        {"value": odd}
        for odd in (Array(), DEEP, 10**5000, "\ud800", EvilText("x"), evil("__class__"), evil("__getattribute__"))
    ),
    *({1: 2, "1": 3}, {("a",): 1}, {EvilText("value"): 1}, {"value": EvilDict(a=1)}, {"value": EvilList("a")}),
]
FIELDS = [
    *(
        "target",
        "capability",
        "inputs",
        "user_id",
        "session_id",
        "request_id",
        "timeout_ms",
        "objective",
        "message",
        "priority",
    ),
    *("limits", "tenant_id", "parent_session_id", "context", "tools", "history", "traceparent", "tracestate", "correlation_id"),
]


def among(field: str, odd: Any) -> dict[str, Any]:
    more = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"} if field == "tracestate" else {}
    return {"target": "A", "capability": "ANY", "inputs": None, "user_id": "u"} | more | {field: odd}


@pytest.mark.parametrize("field", FIELDS)
async def test_a_door_answers_every_object_whatever_it_does_when_it_is_looked_at(make_node, field):
    async with make_node([agent]) as node:
        for odd in ODD:
            for reply in (await node.call(**among(field, odd)), await node.start_call(**among(field, odd)).reply()):
                assert reply.status in {Status.REFUSED, Status.SUCCESS}
        assert node.audit.verify().ok
        assert not node._path.calls


@pytest.mark.parametrize("field", ["document", "dialect", "user_id", "tenant_id", "session_id", "capability", "token"])
async def test_the_door_for_documents_answers_every_object(make_node, field):
    document = {"target_agent": "A", "capability_code": "ANY", "request_id": "r", "inputs_json": {}}
    async with make_node([agent]) as node:
        for odd in ODD:
            given = {"document": document, "dialect": "kdap", "user_id": "u"} | {field: odd}
            assert isinstance(await node.receive(given.pop("document"), **given), dict)
        assert node.audit.verify().ok


async def test_a_result_that_cannot_be_looked_at_is_an_error_of_its_agent(make_node):
    other, results = Agent("B"), [evil("__getattribute__"), evil("__class__"), {"value": [None, EvilList("a")]}]

    @other.capability("GO")
    async def go() -> Any:
        return results.pop()

    async with make_node([other]) as node:
        while results:
            reply = await node.call("B", "GO", user_id="u")
            assert reply.status is Status.ERROR


@pytest.mark.parametrize("field", ["target", "capability", "inputs", "objective", "message", "history", "priority", "tools"])
async def test_an_agent_that_calls_with_odd_objects_is_answered_too(make_node, field):
    caller = Agent("B")

    @caller.capability("GO")
    async def go(ctx: Context) -> list[str]:
        found = []
        for odd in ODD:
            given = among(field, odd)
            del given["user_id"]
            found.append(str((await ctx.call(**given)).status))
        return sorted(set(found))

    async with make_node([caller, agent], limits=Limits(calls_max=1000, fan_out_max=1000)) as node:
        reply = await node.call("B", "GO", user_id="u")
    assert set(reply.data) <= {"refused", "success"}


async def raises_only_ours(awaitable: Any) -> None:
    with contextlib.suppress(ComityError):
        await awaitable


@pytest.mark.parametrize(
    "field", ["to_agent", "capability_id", "task", "inputs", "expected_output", "priority", "timeout_ms", "handoff_id"]
)
async def test_what_hands_off_odd_objects_is_told_so_by_an_error_of_ours(make_node, field):
    async with make_node([agent]) as node:
        manager = AsyncHandoffManager(project_id="p", agent_id="b", node=node)
        for odd in ODD:
            await raises_only_ours(
                manager.create_handoff(**{"capability_id": "work", "task": "t", "inputs": {}} | {field: odd})
            )
        assert node.audit.verify().ok


async def test_what_is_asked_of_a_node_by_odd_names_is_told_so_by_an_error_of_ours(make_node):
    async with make_node([agent]) as node:
        for odd in ODD:
            await raises_only_ours(node.decide(odd, granted=True, by="ann"))
            await raises_only_ours(node.decide("q", granted=True, by=odd))
            await raises_only_ours(node.erase_session(odd))
            for look in (node.session, node.session_for, node.memory, node.resume_session, node.export_session):
                with contextlib.suppress(ComityError):
                    look(odd)
            with contextlib.suppress(ComityError):
                node.history(odd, user_id="u")
