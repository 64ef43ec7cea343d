"""The calls of the seed work as the seed writes them, in two threads or processes on one store."""

from __future__ import annotations

import asyncio
import threading

import pytest

from comity import HandoffManager, HandoffReceiver
from comity.errors import CallerError, ComityError, RefusedError

PATIENCE_S = 30


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store.db"


async def investigate(inputs):
    return {"root_cause": f"N+1 query in {inputs['app_name']}", "evidence": ["trace-1"], "recommended_fix": "join"}


def test_the_example_of_the_seed(store, monkeypatch):
    """Manager and receiver as in ContextCore's protocol; only the loop is left after the work is done."""
    monkeypatch.setenv("COMITY_STORE", str(store))
    failures = []

    def specialist():
        receiver = HandoffReceiver(agent_id="o11y", capabilities=["investigate_error", "create_dashboard"])

        async def main():
            async for handoff in receiver.watch_handoffs():
                receiver.accept(handoff.id)
                try:
                    result = await investigate(handoff.inputs)
                    receiver.complete(handoff.id, result=result, result_trace_id="trace-result")
                except Exception as error:  # noqa: BLE001  as the seed does
                    failures.append(error)
                    receiver.fail(handoff.id, reason=str(error))
                return

        asyncio.run(main())
        receiver.close()

    thread = threading.Thread(target=specialist)
    thread.start()
    manager = HandoffManager(project_id="checkout-service", agent_id="orchestrator")
    handoff_id = manager.create_handoff(
        to_agent="o11y",
        capability_id="investigate_error",
        task="Find root cause of checkout latency spike",
        inputs={
            "error_context": "P99 latency increased from 200ms to 800ms",
            "time_range": "2h",
            "app_name": "checkout-service",
        },
        expected_output={"type": "analysis_report", "fields": ["root_cause", "evidence", "recommended_fix"]},
        priority="high",
        timeout_ms=300000,
    )
    result = manager.await_result(handoff_id, timeout_ms=PATIENCE_S * 1000)
    assert result.status == "completed", (result, failures)
    assert manager.get_result_from_trace(result.result_trace_id).root_cause == "N+1 query in checkout-service"
    thread.join(PATIENCE_S)
    manager.close()
    assert not list(store.parent.glob("*.bell"))


def test_every_call_has_a_twin_without_await(store):
    with (
        HandoffManager("p", "orchestrator", store=store) as manager,
        HandoffReceiver("o11y", ["look"], store=store) as receiver,
    ):
        first = manager.create_handoff("o11y", "look", handoff_id="first")
        assert [one.id for one in receiver.poll_handoffs()] == [first]
        handoff = next(receiver.handoffs())
        receiver.accept(handoff.id)
        receiver.progress(first, {"percent": 10})
        answers = []
        asking = threading.Thread(target=lambda: answers.append(receiver.request_input(first, "Which?")))
        asking.start()
        kinds = []
        for event in manager.events(first):
            kinds.append(event.kind)
            if event.kind == "input_required":
                manager.provide_input(first, "that one")
                asking.join(PATIENCE_S)
                receiver.complete(first, {"n": 1})
        assert kinds == ["created", "accepted", "progress", "input_required", "in_progress", "completed"]
        assert answers == ["that one"]
        assert manager.get_result(first).n == 1
        with pytest.raises(AttributeError, match="has no field 'm'"):
            _ = manager.get_result(first).m
        manager.create_handoff("o11y", "look", handoff_id="second")
        receiver.take()
        receiver.release("second")
        receiver.take()
        receiver.fail("second", "no")
        manager.create_handoff("o11y", "look", handoff_id="third")
        receiver.reject("third", "not mine")
        manager.create_handoff("o11y", "look", handoff_id="fourth")
        assert manager.cancel("fourth").status == "cancelled"
        message = {"id": "fifth", "from_agent": "orchestrator", "to_agent": "o11y", "capability_id": "look", "task": "t"}
        assert manager.receive(message) == "fifth"
        assert {one.id: one.reason for one in manager.dead_letters()} == {"second": "no", "third": "not mine"}
        assert [one.id for one in manager.list_handoffs(limit=2)] == ["fifth", "fourth"]
        assert manager.get_handoff_status("first").attempts == 1
        with pytest.raises(CallerError):
            manager.get_handoff_status("nothing")
        with pytest.raises(RefusedError):
            receiver.complete("first", "again")


def test_creating_and_awaiting_is_one_call(store):
    with HandoffManager(agent_id="a", store=store) as manager:
        ended = manager.create_and_await("o11y", "look", timeout_ms=50)
    assert (ended.status, ended.reply.error.code) == ("timeout", "CALL_TIMEOUT")


def test_a_manager_that_cannot_open_its_store_leaves_no_thread(tmp_path):
    folder = tmp_path / "a folder"
    folder.mkdir()
    before = threading.enumerate()
    with pytest.raises(ComityError), HandoffManager(agent_id="a", store=folder):
        pass
    assert threading.enumerate() == before
