"""What a request over HTTP becomes of a call: its options, its id, whom it is for, and which event it has seen last."""

from __future__ import annotations

import hashlib
from types import SimpleNamespace
from typing import Any

import pytest

from comity import Limits
from comity.core.access.principal import Kind, Principal
from comity.core.envelope.envelope import Priority
from comity.errors import CallerError, RefusedError
from comity.server.auth import session_of, tenant_of, user_of
from comity.server.calls import CallBody, Started, after_of, options_of, rehearse, started
from comity.server.web import Heads

ANN = Principal(Kind.USER, "ann", "ann", "acme")
PLAIN = {"user_id": "ann", "tenant_id": "acme", "session_id": None, "request_id": None}


@pytest.mark.parametrize(
    ("more", "options"),
    [
        ({}, {}),
        ({"user_id": "ann", "tenant_id": "acme", "session_id": "s"}, {"session_id": "s"}),
        ({"request_id": "r"}, {"request_id": "r"}),
        ({"timeout_ms": 0}, {"timeout_ms": 0}),
        ({"objective": "o", "message": "m", "correlation_id": "c"}, {"objective": "o", "message": "m", "correlation_id": "c"}),
        (
            {"limits": Limits(), "parent_session_id": "", "tools": []},
            {"limits": Limits(), "parent_session_id": "", "tools": []},
        ),
        ({"history": 0}, {"history": 0}),
        ({"priority": Priority.HIGH}, {"priority": Priority.HIGH}),
        ({"priority": Priority.NORMAL}, {}),
        ({"history": "full"}, {}),
    ],
)
def test_a_call_has_the_options_that_its_body_names_and_no_others(more: dict[str, Any], options: dict[str, Any]):
    assert options_of(ANN, CallBody("A", "DO", **more), Heads()) == PLAIN | options


def test_a_call_stands_in_the_trace_of_its_headers():
    heads = Heads(traceparent=(b"a", b"b"), tracestate=(b"c",))
    assert options_of(ANN, CallBody("A", "DO"), heads) == PLAIN | {"traceparent": ["a", "b"], "tracestate": ["c"]}
    assert options_of(ANN, CallBody("A", "DO"), Heads(tracestate=(b"c",))) == PLAIN


@pytest.mark.parametrize("key", [b"", b'""', b" ", b"x" * 256, b"a\x00b", b"a\x7fb"])
def test_a_key_that_is_none_is_refused(key: bytes):
    with pytest.raises(CallerError, match="1 to 255"):
        options_of(ANN, CallBody("A", "DO"), Heads(idempotency_key=key))


def test_a_key_is_an_id_within_the_name_space_of_its_user_and_tenant():
    def id_of(key: bytes, principal: Principal = ANN, **more: Any) -> str:
        return options_of(principal, CallBody("A", "DO", **more), Heads(idempotency_key=key))["request_id"]

    assert id_of(b"k") == f"key-{hashlib.sha256(b'acme' + bytes([31]) + b'ann' + bytes([31]) + b'k').hexdigest()[:40]}"
    others = [Principal(Kind.USER, "ann", "ann", "evil"), Principal(Kind.USER, "eve", "eve", "acme")]
    assert len({id_of(b"k"), id_of(b"l"), id_of(b"x" * 255), *(id_of(b"k", one) for one in others)}) == 5
    assert id_of(b' "k" ') == id_of(b"k")
    assert id_of(b"r", request_id="r") == "r"
    with pytest.raises(CallerError, match="differ"):
        id_of(b"k", request_id="r")


@pytest.mark.parametrize(("asks", "own"), [(user_of, "ann"), (tenant_of, "acme")])
def test_a_token_speaks_for_its_own_user_and_tenant_alone(asks, own):
    assert asks(ANN, None) == asks(ANN, own) == own
    for other in ("", "eve"):
        with pytest.raises(RefusedError) as raised:
            asks(ANN, other)
        assert raised.value.code == "IDENTITY_MISMATCH"


def test_a_token_that_is_bound_to_a_session_names_no_other():
    bound = Principal(Kind.USER, "ann", "ann", "acme", session_id="s")
    assert (session_of(bound, None), session_of(bound, "s"), session_of(ANN, None), session_of(ANN, "t")) == (
        "s",
        "s",
        None,
        "t",
    )
    with pytest.raises(RefusedError):
        session_of(bound, "t")


@pytest.mark.parametrize(("told", "query", "after"), [(None, 3, 3), (None, -3, 0), (b"7", 3, 7), (b"9" * 18, 0, int("9" * 18))])
def test_a_stream_goes_on_after_the_last_event_that_a_client_has_seen(told, query, after):
    ask = SimpleNamespace(heads=Heads(last_event_id=told), query=SimpleNamespace(after=query))
    assert after_of(ask) == after


@pytest.mark.parametrize("told", [b"", b"x", b"-1", b"9" * 19])
def test_an_event_that_no_stream_gave_is_refused(told):
    with pytest.raises(CallerError, match="Last-Event-ID"):
        after_of(SimpleNamespace(heads=Heads(last_event_id=told), query=SimpleNamespace(after=0)))


async def test_a_call_that_is_only_rehearsed_has_neither_an_id_nor_a_trace():
    asked: list[Any] = []

    def rehearsed(*told: Any, **options: Any) -> Any:
        asked.append((told, options))
        return SimpleNamespace(error=None, passed=("known",), rule="")

    principal = SimpleNamespace(
        user_id="ann", tenant_id="acme", check_user=lambda: None, check_call=lambda *told: asked.append(told)
    )
    heads = Heads(traceparent=(b"a",), tracestate=(b"c",))
    state = SimpleNamespace(node=SimpleNamespace(rehearse=rehearsed))
    found = await rehearse(
        SimpleNamespace(body=CallBody("A", "DO", {"n": 1}, request_id="r"), principal=principal, heads=heads, state=state)
    )
    assert asked == [("A", "DO"), (("A", "DO", {"n": 1}), {"user_id": "ann", "tenant_id": "acme", "session_id": None})]
    assert (found.admitted, found.passed, found.rule, found.error) == (True, ("known",), "", None)


def test_a_call_that_was_begun_says_where_it_can_be_looked_at_and_followed():
    assert started("r") == Started("r", "running", "/v1/calls/r", "/v1/calls/r/events")
