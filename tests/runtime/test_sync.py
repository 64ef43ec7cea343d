"""The sync twin makes the same calls without await."""

from __future__ import annotations

import pytest

from comity import Agent, SyncNode
from comity.errors import UnavailableError


def test_a_script_can_call_without_await(tmp_path):
    agent = Agent("A")

    @agent.capability("ADD")
    def add(a: int, b: int) -> int:
        return a + b

    with SyncNode([agent], store=tmp_path / "s.db") as node:
        assert node.call("A", "ADD", {"a": 1, "b": 2}, user_id="u").unwrap() == 3
        assert node.call("A", "ADD", {"a": 1}, user_id="u").error.code == "INPUT_VALIDATION_FAILED"
        assert node.audit.verify().ok


def test_a_store_that_cannot_be_opened_is_said_at_the_start(tmp_path):
    (tmp_path / "s.db").write_text("this is not a database, and long enough to be sure of it" * 40)
    with pytest.raises(UnavailableError, match="STORE_UNAVAILABLE"), SyncNode([], store=tmp_path / "s.db"):
        raise AssertionError("never reached")
