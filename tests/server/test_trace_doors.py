"""W3C Trace Context at every door: work joins the trace of readable headers, and no header changes what a request is answered.

The doors come from the table of routes and from the dialects, so that a new one cannot be left out.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from typing import Any

import pytest
from outside_agents import agent_token, bearer, document, node
from threaded import served_in_thread

from comity.core.access import Right
from comity.dialects import DIALECTS
from comity.server.doors import standard_doors
from comity.server.table import ROUTES

SPAN = "b7ad6b7169203331"
PLACE = "{trace}-b7ad6b7169203331"
# What a client sends, and whether its trace is joined.
HEADERS = {
    "joined": ([f"00-{PLACE}-01"], True),
    "a later version with more": ([f"cc-{PLACE}-01-what-the-future-will-be-like"], True),
    "unknown flags": ([f"00-{PLACE}-ff"], True),
    "version 00 with more": ([f"00-{PLACE}-01-more"], False),
    "version ff": ([f"ff-{PLACE}-01"], False),
    "no trace": ([f"00-{'0' * 32}-{SPAN}-01"], False),
    "no parent": ([f"00-{{trace}}-{'0' * 16}-01"], False),
    "large letters": ([f"00-{'A' * 32}-{SPAN}-01"], False),
    "short": ([f"00-{{trace}}-{SPAN[1:]}-01"], False),
    "not hexadecimal": ([f"00-{'.' * 32}-{SPAN}-01"], False),
    "empty": ([""], False),
    "two of them": ([f"00-{PLACE}-01", f"00-{PLACE}-01"], False),
}
STATES = {
    "as it is": (["vendor=1,other=a b"], "vendor=1,other=a b"),
    "of several headers": (["vendor=1", "other=2"], "vendor=1,other=2"),
    "a member that is wrong": (["vendor=1,no equals sign"], ""),
    "too many": ([",".join(f"k{number}=1" for number in range(33))], ""),
    "a key twice": (["vendor=1,vendor=2"], "vendor=1"),
}
ROUTE_DOORS = ("create_call", "create_handoff", "start_run")
SPOKEN = tuple(name for name, one in sorted(DIALECTS.items()) if one.decode_request is not None)
DOORS = (*ROUTE_DOORS, "agent call", "delegation path", "contextcore handoff", *(f"dialect {name}" for name in SPOKEN))
WORKFLOW = "workflow: one\nnodes:\n  only: {call: researcher/message}\n"
EXAMPLES = {
    "kdap": "request_npv",
    "delegation": "request_simple",
    "call_agent": "request_default",
    "contextcore": "request_create",
}
HANDED: dict[str, Any] = {"capability": "dig", "to_agent": "away", "task": "dig"}


@pytest.fixture(scope="module")
def served():
    with served_in_thread(node, doors=standard_doors(), rate_per_s=1e6, rate_burst=10**6) as one:

        async def know() -> None:
            one.node.workflows.add(WORKFLOW)

        one.run(know())
        yield one


def test_the_table_names_every_route_that_begins_work() -> None:
    rights = {Right.CALLS_CREATE, Right.HANDOFFS_WRITE, Right.WORKFLOWS_RUN}
    begins = {
        route.name
        for route in ROUTES
        if route.method == "POST" and route.right in rights and re.fullmatch(r"/v1/(\w+|workflows/\{name\}/runs)", route.path)
    }
    assert begins == set(ROUTE_DOORS)
    assert set(EXAMPLES) == set(SPOKEN)


def ask(served: Any, door: str, headers: list[tuple[str, str]]) -> Any:
    """Begin work through a door, under an id of its own; return the answer."""
    new_id = secrets.token_hex(8)
    agent = bearer(agent_token(served, "CST", user_id="user-456", session_id="sess-789"))
    path, body, token = {
        "create_call": ("/v1/calls", {"target": "researcher", "capability": "message", "request_id": new_id}, {}),
        "create_handoff": ("/v1/handoffs", HANDED | {"handoff_id": new_id, "user_id": "u1"}, {}),
        "start_run": ("/v1/workflows/one/runs", {"run_id": new_id, "user_id": "u1"}, {}),
        "agent call": (
            "/v1/agent-calls",
            {"target": "researcher", "capability": "message", "request_id": new_id},
            agent,
        ),
        "delegation path": (
            served.state.settings.delegation_path,
            document("delegation", "request_simple") | {"request_id": new_id},
            bearer(agent_token(served, "prime-boss", user_id="user-1", session_id="uuid-of-prime-session")),
        ),
        "contextcore handoff": ("/v1/contextcore/handoffs", {"capability_id": "dig", "to_agent": "away", "id": new_id}, {}),
    }.get(door) or (f"/v1/dialects/{door.split()[1]}", _document(door.split()[1], new_id), _token(served, door))
    answer = served.client.post(path, json=body, headers=[*served.client.headers.items(), *token.items(), *headers])
    assert answer.status_code in {200, 201}, (door, answer.text)
    return answer


def _document(name: str, new_id: str) -> dict[str, Any]:
    named = {"call_agent": {}, "contextcore": {"id": new_id}}.get(name, {"request_id": new_id})
    return document(name, EXAMPLES[name]) | named


def _token(served: Any, door: str) -> dict[str, str]:
    if door.endswith("delegation"):
        return bearer(agent_token(served, "prime-boss", user_id="user-1", session_id="uuid-of-prime-session"))
    sender = "orchestrator" if door.endswith("contextcore") else "CST"
    return bearer(agent_token(served, sender, user_id="user-456", session_id="sess-789"))


def found(served: Any, trace_ids: Iterable[str]) -> dict[str, str]:
    """Return which of these traces the node has work in, each with its state."""

    async def look() -> dict[str, str]:
        await served.node.flush_spans()
        handed = (await served.state.reading.ask(lambda reader: reader.handoffs_page(limit=1_000))).items
        known = {one.request.trace_id: one.tracestate for one in handed}
        for trace_id in trace_ids:
            for span in served.node.spans.trace(trace_id):
                known.setdefault(trace_id, span.trace_state)
        return {one: known[one] for one in trace_ids if one in known}

    return served.run(look())


@pytest.mark.parametrize("door", DOORS)
def test_work_joins_the_trace_of_headers_that_can_be_read_and_no_other(served, door) -> None:
    sent = {}
    for what, (parents, is_joined) in HEADERS.items():
        trace_id = secrets.token_hex(16)
        sent[trace_id] = (what, is_joined)
        ask(served, door, [("traceparent", one.format(trace=trace_id)) for one in parents])
    states = {}
    for what, (given, expected) in STATES.items():
        trace_id = secrets.token_hex(16)
        states[trace_id] = (what, expected)
        ask(served, door, [("traceparent", f"00-{trace_id}-{SPAN}-01"), *(("tracestate", one) for one in given)])
    known = found(served, [*sent, *states])
    assert {what for trace_id, (what, _) in sent.items() if trace_id in known} == {what for what, yes in sent.values() if yes}
    assert {what: known.get(trace_id) for trace_id, (what, _) in states.items()} == dict(states.values())


def test_no_header_of_a_trace_changes_the_status_of_an_answer(served) -> None:
    slow = {"verify_audit", "show_system"}  # they measure and walk; their headers are read as all others
    quick = [route for route in ROUTES if route.media_type != "text/event-stream" and route.name not in slow]
    wrong = [("traceparent", "-" * 300), ("traceparent", "00"), ("tracestate", "=" * 9_000)]
    for route in quick:
        path = re.sub(r"\{\w+\}", "nothing", route.path)
        plain, traced = (
            served.client.request(route.method, path, headers=[*served.client.headers.items(), *more]) for more in ([], wrong)
        )
        assert traced.status_code == plain.status_code < 500, route.name
