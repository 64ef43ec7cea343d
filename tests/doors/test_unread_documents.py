"""A document that cannot be read is answered in its own dialect and leaves an audit row; no door raises, whatever comes in."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comity import Agent, Context, Node
from comity.core.document.slices import ONE_GO_BYTES
from comity.dialects import DIALECTS
from comity.testing import VirtualClock, run_virtual

KDAP = {"source_agent": "USER", "target_agent": "ANL", "capability_code": "X", "request_id": "r1", "inputs_json": {}}
HANDOFF = {"id": "r4", "from_agent": "user", "to_agent": "ANL", "capability_id": "X", "task": "t"}


class Odd:
    def __repr__(self) -> str:
        raise ValueError


def analyst() -> Agent:
    agent = Agent("ANL")

    @agent.capability("X")
    @agent.capability("message")
    async def x() -> dict:
        return {}

    return agent


@pytest.mark.parametrize(
    ("dialect", "document", "answer"),
    [
        ("kdap", {"request_id": "r1", "source_agent": "USER"}, {"request_id": "r1", "status": "ERROR"}),
        ("kdap", KDAP | {"timeout": 5}, {"request_id": "r1", "status": "ERROR", "error_code": "ENVELOPE_MALFORMED"}),
        ("kdap", "REQUEST\n\nrequest_id: r1\n", {"request_id": "r1", "status": "ERROR", "result_json": None}),
        ("delegation", {"request_id": "r2"}, {"request_id": "r2", "status": "failed"}),
        ("delegation", {"request_id": "r2", "version": "7"}, {"request_id": "r2", "status": "failed"}),
        ("contextcore", {"id": "r4"}, {"id": "r4", "status": "rejected"}),
        ("sacp", {"request_id": "r5"}, {"status": "failure"}),
        ("nosuch", {"request_id": "r6"}, {"status": "refused"}),
    ],
)
async def test_it_gets_the_error_reply_of_its_dialect_and_an_audit_row(make_node, dialect, document, answer):
    async with make_node([analyst()]) as node:
        given_back = await node.receive(document, dialect=dialect, user_id="u")
        [row] = node.audit.rows()
        assert node.audit.verify().ok
        assert len(node.spans.find("{ }")) == 1
    assert given_back.items() >= answer.items()
    assert (row.kind, row.user_id, row.origin) == ("refused", "u", None)
    assert row.note.startswith(f"unreadable: {dialect}")
    if "request_id" in answer:
        assert row.request_id == answer["request_id"]


async def test_every_problem_is_named_with_its_path_and_no_value(make_node):
    async with make_node([analyst()]) as node:
        answer = await node.receive(KDAP | {"timeout": "my secret", "priority": "URGENT"}, dialect="kdap", user_id="u")
    assert "timeout: is not a field here" in answer["error_message"]
    assert "priority: must be one of" in answer["error_message"]
    assert "my secret" not in str(answer)


async def test_a_document_with_an_input_twice_runs_nothing(make_node):
    twice = b'{"target_agent":"ANL","capability_code":"X","inputs_json":{"rate":1,"rate":1000}}'
    async with make_node([analyst()]) as node:
        answer = await node.receive(twice, dialect="kdap", user_id="u")
        assert [row.kind for row in node.audit.rows()] == ["refused"]
    assert "inputs_json.rate: stands twice" in answer["error_message"]


async def test_what_an_agent_sends_with_its_token_is_refused_under_its_user(make_node):
    answers: list[dict] = []
    agent = analyst()

    @agent.capability("GO")
    async def go(ctx: Context) -> None:
        answers.append(await node.receive({"request_id": "r"}, dialect="kdap", user_id="ann", token=ctx.token))
        answers.append(await node.receive({"request_id": "r"}, dialect="kdap", user_id="ann", token=ctx.token[:-2]))

    async with make_node([agent]) as node:
        await node.call("ANL", "GO", user_id="ann")
        rows = [(row.user_id, row.error_code) for row in node.audit.rows() if row.kind == "refused"]
    assert rows == [("ann", "ENVELOPE_MALFORMED"), ("ann", "IDENTITY_FORGED")]
    assert [answer["error_code"] for answer in answers] == ["ENVELOPE_MALFORMED", "IDENTITY_FORGED"]


async def test_an_id_that_a_node_makes_is_quoted_in_the_audit_and_given_back_as_it_was(make_node):
    async with make_node([analyst()]) as node:
        answer = await node.receive({"request_id": "x.1"}, dialect="kdap", user_id="u")
        forged = await node.receive(KDAP | {"request_id": "y#1", "source_agent": "ORC"}, dialect="kdap", user_id="u")
        assert [row.request_id for row in node.audit.rows()] == ["'x.1'", "'y#1'"]
    assert (answer["request_id"], forged["request_id"]) == ("x.1", "y#1")


@pytest.mark.parametrize("dialect", [*DIALECTS, Odd()], ids=lambda one: one if isinstance(one, str) else "odd")
async def test_what_cannot_even_be_shown_is_answered(make_node, dialect):
    async with make_node([analyst()]) as node:
        for document in (Odd(), {"request_id": Odd()}, [Odd()], {Odd(): 1}):
            assert await node.receive(document, dialect=dialect, user_id="u")
        assert [row.kind for row in node.audit.rows()] == ["refused"] * 4


VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=20),
        st.binary(max_size=20),
        st.sampled_from([{1}, object, "\ud800", "x.1", 10**400, "USER", "ANL", "message", "pending"]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=6,
)
FIELDS = sorted(
    {word.partition(".")[0] for one in DIALECTS.values() for word in one.request_names.values()}
    | {"constraints", "handoff_data"}
)
SOUND = st.sampled_from([KDAP, HANDOFF, {"agent_id": "ANL", "message": "m"}])


@settings(max_examples=60)
@given(
    documents=st.lists(
        st.one_of(
            VALUES,
            st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=8),
            st.builds(
                lambda sound, more: {**sound, **more}, SOUND, st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=2)
            ),
        ),
        min_size=1,
        max_size=5,
    ),
    dialect=st.one_of(st.sampled_from([*DIALECTS]), st.text(max_size=9), st.none(), st.just([])),
    who=st.fixed_dictionaries(
        {}, optional={"session_id": VALUES, "tenant_id": VALUES, "capability": VALUES, "token": VALUES, "traceparent": VALUES}
    ),
    user_id=st.one_of(st.just("u"), VALUES),
)
def test_no_document_no_dialect_and_no_sender_makes_the_door_raise(documents: list[Any], dialect: Any, who: Any, user_id: Any):
    async def go() -> None:
        async with Node([analyst()], clock=VirtualClock(), lag_ms=None) as node:
            for document in documents:
                before = len(node.audit.rows())
                answer = await node.receive(document, dialect=dialect, user_id=user_id, **who)
                assert isinstance(answer, dict)
                assert answer
                rows = node.audit.rows()[before:]
                is_known = any(row.request_id == (answer.get("request_id") or answer.get("id")) for row in node.audit.rows())
                assert rows or is_known, "what came in leaves a row, or is the same as before"
            assert node.audit.verify().ok

    run_virtual(go())


@pytest.mark.parametrize(("size", "is_aside"), [(10, False), (ONE_GO_BYTES, True)])
async def test_a_long_document_is_read_beside_the_loop(make_node, size, is_aside):
    sound = msgspec.json.encode(KDAP | {"inputs_json": {"t": "x" * size}})
    async with make_node([analyst()]) as node:
        answer = await node.receive(sound, dialect="kdap", user_id="u")
        assert answer["request_id"] == "r1"
        answer = await node.receive(f"REQUEST\n\nsource_agent: {'x' * size}\n", dialect="kdap", user_id="u")
        assert answer["status"] == "ERROR"
        # The second is read twice: to find its id, too.
        assert node._runtime.path.slices.aside.count == (3 if is_aside else 0)
