"""The sync twin makes the same calls without await."""

from __future__ import annotations

import pytest

from comity import Agent, Context, Node, SyncNode, Tool
from comity.core.agent.tool import Risk
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


def test_the_twin_takes_what_a_node_takes_and_does_what_scripts_need(tmp_path):
    agent, later = Agent("A", tools_allowed=["pay"]), Agent("B")

    @agent.capability("GO")
    async def go(ctx: Context, mail: str):
        ctx.session.learn("mail", mail)
        return await ctx.use_tool("pay", mail=mail)

    @later.capability("GO")
    def fine() -> str:
        return "fine"

    tool = Tool(name="pay", function=lambda mail: f"paid {mail}", risk=Risk.HIGH)
    with SyncNode([agent], store=tmp_path / "s.db", tools=[tool], lag_ms=None) as node:
        asked = node.call("A", "GO", {"mail": "ann@example.com"}, user_id="ann", session_id="s")
        (approval,) = node.approvals()
        assert (asked.status, approval.granted) == ("needs_input", None)
        assert [one.inputs["mail"] for one in node.approvals(by="ann")] == ["ann@example.com"]
        assert node.decide(approval.id, granted=True, by="ann").data == "paid ann@example.com"
        assert "ann@example.com" not in node.session("s").facts["mail"].value
        assert node.export_session("s")["facts"]["mail"]["value"] == "ann@example.com"
        assert node.resume_session("s")
        node.add(later)
        document = {"agent_id": "B", "message": "hello"}
        assert "fine" in str(node.receive(document, dialect="call_agent", user_id="ann", capability="GO"))
        node.run(Node.flush_spans)
        assert node.run(_kinds) == ["queued", "started", "settled"]
        assert node.erase_session("s") > 0
        assert node.session("s") is None


async def _kinds(node: Node) -> list[str]:
    return [event.kind async for event in node.start_call("B", "GO", user_id="u").events()]


def test_a_twin_that_does_not_run_says_so():
    node = SyncNode()
    with pytest.raises(UnavailableError, match="with SyncNode"):
        node.call("A", "GO", user_id="u")
    with node:
        assert node.call("A", "GO", user_id="u").error.code == "ROUTING_UNKNOWN_AGENT"
        assert node.failure is None
    assert node.failure.code == "NODE_CLOSED"
    with pytest.raises(UnavailableError, match="NODE_CLOSED"):
        node.session("s")


def test_a_store_that_cannot_be_opened_is_said_at_the_start(tmp_path):
    (tmp_path / "s.db").write_text("this is not a database, and long enough to be sure of it" * 40)
    with pytest.raises(UnavailableError, match="STORE_UNAVAILABLE"), SyncNode([], store=tmp_path / "s.db"):
        raise AssertionError("never reached")


@pytest.mark.parametrize("is_async", [True, False])
def test_an_interrupt_that_no_user_made_is_the_failure_of_the_agent_that_raised_it(is_async):
    """Ctrl-C reaches the main thread alone, and neither the loop of a `SyncNode` nor a plain function runs there."""
    agent = Agent("A")

    async def in_the_loop():
        raise KeyboardInterrupt

    def in_a_thread():
        raise KeyboardInterrupt

    agent.capability("STOP")(in_the_loop if is_async else in_a_thread)
    agent.capability("GO")(lambda: 1)
    with SyncNode([agent]) as node:
        assert node.call("A", "STOP", user_id="u").error.code == "TARGET_CRASHED"
        assert node.call("A", "GO", user_id="u").data == 1


@pytest.mark.parametrize("ending", [KeyboardInterrupt, SystemExit])
def test_the_loop_of_a_sync_node_survives_code_that_ends_programs(ending, caplog):
    agent = Agent("A")
    agent.capability("GO")(lambda: 1)

    async def end(node: Node) -> None:
        raise ending

    with SyncNode([agent]) as node:
        with pytest.raises(ending):
            node.run(end)
        assert node.call("A", "GO", user_id="u").data == 1
    assert "the loop goes on" in caplog.text
