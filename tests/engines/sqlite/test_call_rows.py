"""Stored calls are read one by one; what cannot be read is passed over, and still known by its session where it says one."""

from __future__ import annotations

import msgspec
import pytest

from comity.core.call.limits import Limits
from comity.core.envelope.envelope import Reply, Request
from comity.core.journal.records import Settled, StoredCall, stored
from comity.engines.sqlite.call_rows import is_of_session, readable


def body(request_id: str, **wrong) -> bytes:
    request = Request(request_id, "A", "GO", "u", Limits(), 1, tenant_id="t", session_id="s", root_id=request_id)
    fields = msgspec.to_builtins(stored(Settled(request, Reply.success(1), 2), "node"))
    for name, value in wrong.items():
        fields[StoredCall.__struct_fields__.index(name)] = value
    return msgspec.json.encode(fields)


def test_a_call_that_cannot_be_read_is_named_and_the_others_are_there(caplog):
    rows = [(None, body("a")), (None, body("b", settled_at="soon")), ("other", body("c")), (None, b"\xff{")]
    assert [(call.request_id, call.node_id) for call in readable(rows)] == [("a", "node"), ("c", "other")]
    assert ["the call b cannot" in line for line in caplog.messages] == [True, False]


@pytest.mark.parametrize(
    ("raw", "is_theirs"),
    [
        (body("a"), True),
        (body("a", settled_at="soon"), True),
        (body("a", session_id="other"), False),
        (body("a", tenant_id="other"), False),
        (b'["s"', True),  # whoever it was: nobody can read it
        (b'["s"]', True),
    ],
)
def test_what_is_erased_with_a_session_is_all_of_it_that_says_so_and_what_says_nothing(raw, is_theirs):
    assert is_of_session(raw, "t", "s") is is_theirs
