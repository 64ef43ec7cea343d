"""Calls, tools, refusals and insights become spans of one trace, across agents and processes."""

import asyncio
import functools
import socket
from contextlib import ExitStack

import pytest
from msgspec.structs import replace

from comity import Agent, Context, Node, Reply, Tool
from comity.contextcore.insights import InsightQuerier
from comity.core.insight.insight import Audience
from comity.core.tracing.span import Link
from comity.core.tracing.telemetry import Settings, settings_from
from comity.engines.otlp.receive import SpanServer
from comity.engines.sqlite.spans.path import spans_path
from comity.engines.sqlite.spans.store import SpanStore
from comity.errors import CallerError, UnavailableError

TRACE, SPAN = "12345678901234567890123456789012", "1234567890123456"
PARENT = f"00-{TRACE}-{SPAN}-01"

boss = Agent("BOSS", tools_allowed=["add"])
work = Agent("WORK")


@boss.capability("ASK")
async def ask(ctx: Context):
    await ctx.call("WORK", "DO")
    await ctx.use_tool("add", a=1, b=2)
    await ctx.call("NOBODY", "X")
    ctx.report_usage(prompt_tokens=3, completion_tokens=4)


@boss.capability("OUT")
async def out(ctx: Context):
    """Return the headers of three requests to elsewhere, and the call's own place."""
    found = []
    for _ in range(3):
        with ctx.span("GET", kind="client") as span:
            found.append(span.headers)
    return {"out": found, "own": [ctx.traceparent, ctx.tracestate]}


@boss.capability("FIND")
async def find(ctx: Context, summary: str = "retries are cheap", confidence: float = 0.9):
    found = ctx.insight(
        "risk", summary=summary, confidence=confidence, evidence=[{"type": "file", "ref": "a.py", "description": summary}]
    )
    return found.id


@boss.capability("BREAK")
async def broken(ctx: Context):
    with ctx.span("chat model", attributes={"gen_ai.request.model": "m", "odd": {1}}) as span:
        span.attributes["gen_ai.usage.input_tokens"] = 7
        raise TimeoutError("too slow")


@work.capability("DO")
async def do():
    return 1


AGENTS = [boss, work]
TOOLS = [Tool(name="add", function=lambda a, b: a + b)]


def live(test):
    """Run a test in real time: stores and collectors have threads of their own."""

    @functools.wraps(test)
    def run(**arguments):
        asyncio.run(test(**arguments))

    return run


def node(tmp_path=None, **more):
    return Node(AGENTS, tools=TOOLS, store=None if tmp_path is None else tmp_path / "n.db", **more)


async def recorded(running, trace_id=None):
    """Everything recorded, by name and target."""
    await running.flush_spans()
    query = "{}" if trace_id is None else f'{{ trace:id = "{trace_id}" }}'
    found = running.spans.search(query, limit=0, spss=0)
    return [match.span for trace in found.traces for spanset in trace.spansets for match in spanset.spans]


@pytest.fixture(params=["memory", "store"])
def anywhere(request, tmp_path):
    return None if request.param == "memory" else tmp_path


@live
async def test_a_tree_of_calls_tools_and_refusals_is_one_trace(anywhere):
    async with node(anywhere) as running:
        await running.call("BOSS", "ASK", user_id="u", session_id="s1")
        spans = await recorded(running)
    root, child, tool, refused = sorted(spans, key=lambda span: (span.parent_id is not None, span.start_ns))
    assert [span.name for span in (root, child, tool, refused)] == [
        "invoke_agent BOSS",
        "invoke_agent WORK",
        "execute_tool add",
        "invoke_agent NOBODY",
    ]
    assert {span.trace_id for span in spans} == {root.trace_id}
    assert root.parent_id is None
    assert {span.parent_id for span in (child, tool, refused)} == {root.span_id}
    assert len({span.span_id for span in spans}) == 4
    assert {span.attributes["gen_ai.conversation.id"] for span in spans} == {"s1"}
    assert refused.attributes["error.type"] == "ROUTING_UNKNOWN_AGENT"
    assert root.attributes["gen_ai.usage.input_tokens"] == 3
    assert root.start_ns <= child.start_ns <= child.end_ns <= tool.start_ns <= tool.end_ns <= root.end_ns


@live
async def test_spans_of_a_node_with_a_store_outlive_it_beside_the_store(tmp_path):
    async with node(tmp_path) as running:
        await running.call("WORK", "DO", user_id="u")
    assert spans_path(tmp_path / "n.db").name == "n.db.spans"
    with SpanStore(spans_path(tmp_path / "n.db")) as store:
        assert store.count() == 1


@live
async def test_a_call_joins_the_trace_it_came_with_through_every_door(tmp_path):
    document = {"agent_id": "WORK", "message": "hello"}
    async with node(tmp_path) as running:
        await running.call("WORK", "DO", user_id="u", traceparent=PARENT, tracestate="a=1")
        await running.start_call("WORK", "DO", user_id="u", request_id="r1", traceparent=PARENT).reply()
        await running.receive(document, dialect="call_agent", capability="DO", user_id="u", traceparent=PARENT)
        spans = await recorded(running, TRACE)
    assert len(spans) == 3
    assert {span.parent_id for span in spans} == {SPAN}
    assert len({span.span_id for span in spans}) == 3
    assert {span.kind for span in spans} == {"server"}
    assert sorted(span.trace_state for span in spans) == ["", "", "a=1"]


@pytest.mark.parametrize("broken", [f"00-{'0' * 32}-{SPAN}-01", f"ff-{TRACE}-{SPAN}-01", "", "nonsense"])
@live
async def test_a_header_that_cannot_be_read_begins_a_new_trace_and_drops_the_state(broken):
    async with node() as running:
        reply = await running.call("BOSS", "OUT", user_id="u", traceparent=broken, tracestate="a=1")
    assert reply.ok
    own, state = reply.data["own"]
    assert own.startswith("00-")
    assert TRACE not in own
    assert state == ""


@live
async def test_each_request_elsewhere_has_its_own_place_in_the_same_trace():
    async with node() as running:
        reply = await running.call("BOSS", "OUT", user_id="u", traceparent=PARENT, tracestate="a=1,b=2")
        spans = await recorded(running, TRACE)
    own, state = reply.data["own"]
    (call,) = (span for span in spans if span.name == "invoke_agent BOSS")
    assert own == f"00-{TRACE}-{call.span_id}-01"
    assert state == "a=1,b=2"
    assert all(headers["tracestate"] == "a=1,b=2" for headers in reply.data["out"])
    parents = [headers["traceparent"].split("-") for headers in reply.data["out"]]
    assert {trace for _, trace, _, _ in parents} == {TRACE}
    outgoing = {span.span_id: span for span in spans if span.name == "GET"}
    assert {span_id for _, _, span_id, _ in parents} == outgoing.keys()
    assert {(span.parent_id, span.kind) for span in outgoing.values()} == {(call.span_id, "client")}


@live
async def test_a_trace_that_is_not_sampled_is_passed_on_so_and_not_recorded():
    async with node() as running:
        reply = await running.call("BOSS", "OUT", user_id="u", traceparent=f"00-{TRACE}-{SPAN}-02")
        assert await recorded(running) == []
    assert reply.data["own"][0].endswith("-02")


@live
async def test_two_nodes_write_one_trace(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    async with node(tmp_path / "a") as here, node(tmp_path / "b") as there:
        reply = await here.call("BOSS", "OUT", user_id="u")
        headers = reply.data["out"][1]
        await there.call("BOSS", "ASK", user_id="u", traceparent=headers["traceparent"])
        trace_id, span_id = headers["traceparent"].split("-")[1:3]
        ours, theirs = await recorded(here, trace_id), await recorded(there, trace_id)
    (entered,) = (span for span in theirs if span.name == "invoke_agent BOSS")
    assert entered.parent_id == span_id
    assert span_id in {span.span_id for span in ours}
    assert len(theirs) == 4


@live
async def test_an_insight_hangs_under_the_call_that_found_it(anywhere):
    async with node(anywhere, telemetry=Settings(project_id="shop")) as running:
        reply = await running.call("BOSS", "FIND", user_id="u", session_id="s1")
        spans = await recorded(running)
        (found,) = InsightQuerier(running.spans).query(project_id="shop", insight_type="risk", agent_id="BOSS")
    (call,) = (span for span in spans if span.name == "invoke_agent BOSS")
    (insight,) = (span for span in spans if span.name == "insight.risk")
    assert (insight.trace_id, insight.parent_id) == (call.trace_id, call.span_id)
    assert insight.resource == call.resource
    assert (found.id, found.summary, found.session_id) == (reply.data, "retries are cheap", "s1")
    assert found.audience is Audience.BOTH
    assert [one.ref for one in found.evidence] == ["a.py"]


@live
async def test_an_insight_hides_personal_data_from_those_who_read_it():
    async with node() as running:
        await running.call("BOSS", "FIND", {"summary": "ask ada.lovelace@example.org again"}, user_id="u", session_id="s1")
        (found,) = InsightQuerier(running.spans).query()
    assert "ada.lovelace" not in found.summary + found.evidence[0].description
    assert found.project_id == "default"


@live
async def test_an_insight_that_is_none_is_an_error_of_the_agent_that_wrote_it():
    async with node() as running:
        reply = await running.call("BOSS", "FIND", {"confidence": 7}, user_id="u")
    assert reply.error.code == CallerError.default_code
    assert "confidence" in reply.error.message


@live
async def test_a_span_of_an_agents_own_is_failed_by_what_went_through_it():
    async with node() as running:
        await running.call("BOSS", "BREAK", user_id="u")
        (span,) = (one for one in await recorded(running) if one.name == "chat model")
    assert (span.status, span.attributes["error.type"]) == ("error", "TimeoutError")
    assert span.attributes["gen_ai.usage.input_tokens"] == 7
    assert span.attributes["gen_ai.usage.prompt_tokens"] == 7
    assert span.attributes["odd"] == "{1}"


@live
async def test_recording_that_is_switched_off_keeps_insights_only(anywhere):
    async with node(anywhere, telemetry=settings_from({"OTEL_SDK_DISABLED": "true"})) as running:
        await running.call("BOSS", "FIND", user_id="u")
        await running.call("BOSS", "ASK", user_id="u")
        assert [span.name for span in await recorded(running)] == ["insight.risk"]


@live
async def test_a_step_that_fails_while_recording_is_switched_off_fails_as_itself():
    agent = Agent("A")

    @agent.capability("STEP")
    async def step(ctx: Context) -> None:
        async def breaks() -> Reply:
            raise UnavailableError("the feed is down", retryable=False)

        await ctx.once("FEED", "READ", breaks)

    async with Node([agent], telemetry=settings_from({"OTEL_SDK_DISABLED": "true"})) as running:
        reply = await running.call("A", "STEP", user_id="u")
    assert "the feed is down" in reply.error.message


@live
async def test_erasing_a_session_erases_its_spans(anywhere):
    async with node(anywhere) as running:
        await running.call("BOSS", "FIND", user_id="u", session_id="s1")
        await running.call("BOSS", "FIND", user_id="u", session_id="s2")
        await running.erase_session("s1")
        spans = await recorded(running)
    assert {span.attributes["gen_ai.conversation.id"] for span in spans} == {"s2"}
    assert len(spans) == 2


@live
async def test_the_environment_decides_how_a_node_records(tmp_path, monkeypatch):
    with SpanStore(tmp_path / "collected.db") as collected, SpanServer(collected, port=0) as server:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.endpoint)
        monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")
        monkeypatch.setenv("CONTEXTCORE_OTEL_MODE", "otel")
        async with node(tmp_path) as running:
            await running.call("BOSS", "ASK", user_id="u", session_id="s1")
            spans = await recorded(running)
        assert collected.count() == 4
        trace_id = spans[0].trace_id
        sent = {span.span_id: span for span in collected.trace(trace_id)}
        assert sent == {span.span_id: span for span in spans}
        assert {span.resource["service.name"] for span in spans} == {"shop"}
        assert not any("agent.id" in span.attributes for span in spans)


@live
async def test_a_collector_that_is_away_is_seen_and_its_losses_are_kept(tmp_path):
    settings = Settings(endpoint="http://127.0.0.1:9/v1/traces", timeout_ms=50, queue_max=2)
    async with node(tmp_path, telemetry=settings) as running:
        await running.call("BOSS", "ASK", user_id="u")
        await running.flush_spans()
        assert (running.export.waiting, running.export.dropped) == (2, 2)
    with SpanStore(spans_path(tmp_path / "n.db")) as store:
        assert store.count() == 4
        ((why, lost, _),) = store.losses()
    assert (why, lost) == ("the collector could not be reached in time", 4)


@live
async def test_a_node_without_a_store_loses_nothing_below_the_queue_while_the_collector_is_away(tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = Settings(endpoint=f"http://127.0.0.1:{port}/v1/traces", timeout_ms=5_000, queue_max=8)
    with SpanStore(tmp_path / "collected.db") as collected, ExitStack() as later:
        async with node(telemetry=settings) as running:
            for _ in range(2):
                await running.call("BOSS", "ASK", user_id="u")
            known = {span.span_id: span for span in await recorded(running)}
            assert (len(known), running.export.waiting, running.export.dropped) == (8, 8, 0)
            later.enter_context(SpanServer(collected, port=port))
        assert {span.span_id: span for span in collected.find("{}")} == known


@live
async def test_what_a_node_without_a_store_cannot_queue_is_counted_and_still_known_to_it():
    settings = Settings(endpoint="http://127.0.0.1:9/v1/traces", timeout_ms=50, queue_max=3)
    async with node(telemetry=settings) as running:
        await running.call("BOSS", "ASK", user_id="u")
        assert len(await recorded(running)) == 4
        assert (running.export.waiting, running.export.dropped) == (3, 1)


@live
async def test_spans_leave_after_a_moment_without_being_asked_for():
    arrived, loop = asyncio.get_running_loop().create_future(), asyncio.get_running_loop()

    class Sink:
        def ingest(self, spans):
            loop.call_soon_threadsafe(arrived.set_result, [span.name for span in spans])
            return len(spans)

    with SpanServer(Sink(), port=0) as server:
        async with node(telemetry=Settings(endpoint=f"{server.endpoint}/v1/traces")) as running:
            await running.call("WORK", "DO", user_id="u")
            assert await asyncio.wait_for(arrived, 60) == ["invoke_agent WORK"]


@live
async def test_a_ratio_keeps_whole_traces_or_nothing_of_them(tmp_path):
    settings = replace(Settings(), ratio=0.5)
    async with node(tmp_path, telemetry=settings) as running:
        for _ in range(40):
            await running.call("BOSS", "ASK", user_id="u")
        spans = await recorded(running)
    sizes = {}
    for span in spans:
        sizes[span.trace_id] = sizes.get(span.trace_id, 0) + 1
    assert set(sizes.values()) == {4}
    assert 0 < len(sizes) < 40


@live
async def test_a_node_whose_spans_cannot_be_opened_does_not_start_and_lets_go_of_its_store(tmp_path):
    spans_path(tmp_path / "n.db").write_text("this is no database, and long enough to be taken for one" * 20)
    with pytest.raises(UnavailableError, match=r"n\.db\.spans"):
        async with node(tmp_path):
            pass
    spans_path(tmp_path / "n.db").unlink()
    async with node(tmp_path) as running:
        assert (await running.call("WORK", "DO", user_id="u")).ok


@live
async def test_who_waits_for_spans_learns_once_that_some_are_lost(tmp_path):
    async with node(tmp_path / "store.db") as running:
        await running.flush_spans()
        running.spans._writer.execute("PRAGMA max_page_count = 1")  # as on a disk that is full
        for _ in range(10):
            await running.call("BOSS", "FIND", {"summary": "x" * 10_000}, user_id="u")
        with pytest.raises(UnavailableError, match=r"20 spans are lost: .* disk is full") as lost:
            await running.flush_spans()
        assert (lost.value.code, lost.value.retryable, running.export.unstored) == ("STORE_UNAVAILABLE", False, 20)
        await running.flush_spans()


# --- links ---

linker = Agent("LINK")


@linker.capability("GO")
async def go(ctx: Context, bad: bool):
    with ctx.span("step") as span:
        span.add_link({"trace_id": TRACE, "span_id": SPAN, "relationship": "cause"})
        if bad:
            span.links.append(Link(trace_id="trace-xyz", span_id="1"))
    if bad:
        ctx.insight("risk", summary="s", confidence=0.5, links=[{"trace_id": "trace-xyz", "span_id": "1"}])
    return 1


@linker.capability("ADD")
async def add_link(ctx: Context):
    with ctx.span("step") as span:
        span.add_link("trace-xyz")


@live
async def test_a_bad_link_is_refused_to_its_maker_and_costs_no_other_span(tmp_path):
    with SpanStore(tmp_path / "there.db") as there, SpanServer(there, port=0) as server:
        settings = Settings(endpoint=f"{server.endpoint}/v1/traces")
        async with Node([linker], store=tmp_path / "w.db", telemetry=settings) as running:
            replies = [await running.call("LINK", "GO", {"bad": number == 7}, user_id="u") for number in range(20)]
            refused = await running.call("LINK", "ADD", user_id="u")
        _check_links(there)
    assert "32 hex digits" in replies[7].error.message
    assert [reply.ok for reply in replies].count(False) == 1
    assert refused.error.code == "INPUT_VALIDATION_FAILED"


def _check_links(there):
    assert len(there.find('{ name = "invoke_agent LINK" }')) == 21
    steps = there.find('{ name = "step" }')
    assert len(steps) == 21
    assert {link.trace_id for span in steps for link in span.links} == {TRACE}
    assert there.find('{ name = "insight.risk" }') == []
