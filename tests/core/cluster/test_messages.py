"""Messages between nodes survive the way, and what cannot be read counts as lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from comity.core.call.ledger import Loan
from comity.core.call.limits import Limits
from comity.core.cluster import messages as wire
from comity.core.cluster.deadlock import Awaited, Fact
from comity.core.envelope.envelope import Reply, Request
from comity.core.journal.terms import Fence

REQUEST = Request("r.1", "B", "DO", "u", Limits(calls_max=7), 9_000, body=Raw(b'{"n":[1,2.5,null]}'), chain=("A",), root_id="r")
MESSAGES: list[wire.Message] = [
    wire.Ask(replace(REQUEST, tools=("pay",)), Fence("A", 3), Loan(4, 100, 1600)),
    wire.Ask(REQUEST),
    wire.Borrow("r.1", Loan(1)),
    wire.Lend("r.1", Loan(2, 3, 4)),
    wire.Lend("r.1", Loan(2, 3, 4), Loan(1)),
    wire.Inquire("r.1"),
    wire.Cancel("r.1", "no more"),
    wire.Taken("r", is_root=True),
    wire.Answer("r.1", Reply.success({"x": [1, "two"]}, request_id="r.1")),
    wire.Paused("r.1", "r.1#1"),
    wire.Happened("r.1", 3, "progress", 17, ("r.1.1", "r.1", "A", "DO"), {"percent": 10}, "half way"),
    wire.Unknown("r.1"),
    wire.Moved("r.1"),
    wire.Unhosted("r.1"),
    wire.Look(5, ("r", "s")),
    wire.Seen(5, (Fact("r", "A", True, True, ("s",), (Awaited("t", "n2"), Awaited("u"))),)),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_comes_out_as_it_went_in(message: wire.Message) -> None:
    read = wire.decode(wire.encode(message))
    assert type(read) is type(message)
    assert wire.encode(read) == wire.encode(message)


def test_every_kind_of_message_is_among_those_tried() -> None:
    assert {type(message) for message in MESSAGES} == set(wire.Message.__args__)


@given(st.sampled_from(MESSAGES), st.integers(0, 10_000), st.integers(0, 255))
def test_a_spoilt_message_is_read_as_something_whole_or_not_at_all(message: wire.Message, place: int, byte: int) -> None:
    raw = bytearray(wire.encode(message))
    raw[place % len(raw)] = byte
    read = wire.decode(bytes(raw))
    assert read is None or isinstance(read, wire.Message)
    assert wire.decode(bytes(raw[: place % len(raw)])) is None
