"""People's constraints stop calls, tools and steps, and only while they stand."""

import asyncio
import threading

import pytest
import yaml

from comity import Agent, AsyncHandoffReceiver, Context, Node, Risk, Status, Tool
from comity.core.guidance.guidance import Constraint, Focus, Guidance, Severity
from comity.engines.files.guidance import GuidanceFile
from comity.engines.files.watch import FileWatch
from comity.errors import CODES, CallerError, RefusedError, UnavailableError
from comity.runtime.guidance.guidance import LiveGuidance

API = Constraint(id="no-breaking-changes", rule="Do not modify the API", scope="src/api/**", reason="clients depend on it")
TESTS = Constraint(id="tests", rule="Add tests", scope="src/**", severity=Severity.WARNING)
MONEY = Constraint(id="no-refunds", rule="No refunds this week", scope="topic:refunds")


def guided(*constraints):
    return Guidance(constraints=constraints)


def team(edited):
    """LEAD asks CODER to edit a file; CODER edits by itself or with the tool."""
    lead, coder = Agent("LEAD", tools_allowed=["*"]), Agent("CODER", tools_allowed=["*"])

    @lead.capability("PLAN")
    async def plan(ctx: Context, path: str):
        reply = await ctx.call("CODER", "EDIT", {"path": path})
        return {"status": str(reply.status), "code": reply.error.code if reply.error else None, "warnings": reply.warnings}

    @lead.capability("RELEASE")
    async def release(ctx: Context, paths: list[str]):
        """Steps one after the other; what refuses one ends the work."""
        for path in paths:
            reply = await ctx.call("CODER", "EDIT", {"path": path})
            if not reply.ok:
                return {"stopped_at": path, "code": reply.error.code}
        return {"stopped_at": None, "code": None}

    @lead.capability("SPREAD")
    async def spread(ctx: Context, paths: list[str]):
        """The same steps side by side."""
        replies = await ctx.gather(*(ctx.call("CODER", "EDIT", {"path": path}) for path in paths))
        return [str(reply.status) for reply in replies]

    @lead.capability("DELEGATE")
    async def delegate(ctx: Context, path: str):
        """A step for whoever takes it."""
        reply = await ctx.hand_off("CODER", "EDIT", {"path": path}, task="edit it")
        return {"status": str(reply.status), "code": reply.error.code if reply.error else None}

    @coder.capability("EDIT", touches=["$.path"])
    async def edit(path: str = "src/api/default.py"):
        edited.append(path)

    @coder.capability("USE")
    async def use(ctx: Context, path: str):
        return await ctx.use_tool("write", path=path)

    @coder.capability("REFUND", touches=["topic:refunds"])
    async def refund():
        edited.append("refund")

    @coder.capability("LOOK")
    async def look(path: str):
        edited.append(path)

    def save(path):
        edited.append(path)

    return {"agents": [lead, coder], "tools": [Tool(name="write", function=save, touches=["$.path"])]}


def write(path):
    return path


@pytest.fixture
def edited():
    return []


@pytest.fixture
def node(make_node, edited):
    def made(*constraints, **more):
        return make_node(**team(edited), guidance=guided(*constraints), **more)

    return made


# --- a blocking constraint stops a call, a tool and a step, and nothing stops them when it is removed ---


async def test_a_blocking_constraint_stops_a_call_until_it_is_removed(node, edited):
    async with node(API) as held:
        reply = await held.call("CODER", "EDIT", {"path": "src/api/checkout.py"}, user_id="ann")
        (row,) = held.audit.rows()
    assert (reply.status, reply.error.code, edited) == (Status.REFUSED, "GUIDANCE_BLOCKED", [])
    assert "no-breaking-changes" in reply.message
    assert "clients depend on it" in reply.message
    assert CODES["GUIDANCE_BLOCKED"].advice in reply.message
    assert (row.kind, row.error_code) == ("refused", "GUIDANCE_BLOCKED")
    assert row.note.startswith("guidance: blocking no-breaking-changes; constraint no-breaking-changes forbids")
    async with node() as free:
        assert (await free.call("CODER", "EDIT", {"path": "src/api/checkout.py"}, user_id="ann")).ok
    assert edited == ["src/api/checkout.py"]


async def test_a_blocking_constraint_stops_a_tool_until_it_is_removed(node, edited):
    async with node(API) as held:
        reply = await held.call("CODER", "USE", {"path": "src/api/checkout.py"}, user_id="ann")
        rows = [(row.kind, row.target, row.error_code) for row in held.audit.rows() if row.target == "tool:write"]
    assert (reply.error.code, edited) == ("GUIDANCE_BLOCKED", [])
    assert rows == [("refused", "tool:write", "GUIDANCE_BLOCKED")]
    async with node() as free:
        assert (await free.call("CODER", "USE", {"path": "src/api/checkout.py"}, user_id="ann")).ok
    assert edited == ["src/api/checkout.py"]


async def test_a_blocking_constraint_stops_a_step_until_it_is_removed(node, edited):
    """A step of a larger piece of work is a call by the agent that does the work."""
    async with node(API) as held:
        reply = await held.call("LEAD", "PLAN", {"path": "src/api/checkout.py"}, user_id="ann")
        assert (reply.data["status"], reply.data["code"], edited) == ("refused", "GUIDANCE_BLOCKED", [])
    async with node() as free:
        reply = await free.call("LEAD", "PLAN", {"path": "src/api/checkout.py"}, user_id="ann")
        assert (reply.data["status"], edited) == ("success", ["src/api/checkout.py"])


PATHS = ["docs/a.md", "src/api/checkout.py", "docs/b.md"]


async def test_of_several_steps_the_blocked_one_is_stopped_and_those_after_it_until_it_is_removed(node, edited):
    async with node(API) as held:
        reply = await held.call("LEAD", "RELEASE", {"paths": PATHS}, user_id="ann")
        refused = [row.target for row in held.audit.rows() if row.error_code == "GUIDANCE_BLOCKED"]
    assert (reply.data, edited) == ({"stopped_at": "src/api/checkout.py", "code": "GUIDANCE_BLOCKED"}, ["docs/a.md"])
    assert refused == ["CODER"]
    edited.clear()
    async with node() as free:
        reply = await free.call("LEAD", "RELEASE", {"paths": PATHS}, user_id="ann")
    assert (reply.data["stopped_at"], edited) == (None, PATHS)


async def test_of_steps_side_by_side_only_the_blocked_one_is_stopped_until_it_is_removed(node, edited):
    async with node(API) as held:
        reply = await held.call("LEAD", "SPREAD", {"paths": PATHS}, user_id="ann")
    assert (reply.data, sorted(edited)) == (["success", "refused", "success"], ["docs/a.md", "docs/b.md"])
    edited.clear()
    async with node() as free:
        reply = await free.call("LEAD", "SPREAD", {"paths": PATHS}, user_id="ann")
    assert (reply.data, sorted(edited)) == (["success"] * 3, PATHS[:1] + PATHS[2:] + PATHS[1:2])


async def test_a_blocking_constraint_stops_a_step_that_is_handed_off_until_it_is_removed(node, edited):
    async def delegated(running):
        receiver = AsyncHandoffReceiver("CODER", node=running)
        serving = asyncio.ensure_future(receiver.serve(lambda handoff: edited.append(handoff.inputs["path"])))
        reply = await running.call("LEAD", "DELEGATE", {"path": "src/api/checkout.py"}, user_id="ann")
        serving.cancel()
        return reply.data

    async with node(API) as held:
        assert await delegated(held) == {"status": "refused", "code": "GUIDANCE_BLOCKED"}
    assert edited == []
    async with node() as free:
        assert await delegated(free) == {"status": "success", "code": None}
    assert edited == ["src/api/checkout.py"]


def test_a_constraint_set_while_a_person_thought_about_it_stops_what_was_then_granted(tmp_path, edited):
    agent = Agent("A", tools_allowed=["*"])

    @agent.capability("GO")
    async def go(ctx: Context):
        return await ctx.use_tool("write", path="src/api/x.py")

    def save(path):
        edited.append(path)

    async def asked_and_granted(*constraints):
        tool = Tool(name="write", function=save, touches=["$.path"], risk=Risk.HIGH)
        async with Node([agent], tools=[tool], store=tmp_path / "s.db", lag_ms=None) as node:
            asked = await node.call("A", "GO", user_id="ann")
        async with Node([agent], tools=[tool], store=tmp_path / "s.db", guidance=guided(*constraints), lag_ms=None) as node:
            return await node.decide(asked.data["approval_id"], granted=True, by="boss")

    assert asyncio.run(asked_and_granted(API)).error.code == "GUIDANCE_BLOCKED"
    assert edited == []
    assert asyncio.run(asked_and_granted()).ok
    assert edited == ["src/api/x.py"]


# --- what is judged, and what is not ---


async def test_a_default_touches_what_it_names(node, edited):
    async with node(API) as held:
        assert (await held.call("CODER", "EDIT", user_id="ann")).error.code == "GUIDANCE_BLOCKED"
    assert edited == []


async def test_a_topic_is_constrained_as_a_path_is(node, edited):
    async with node(MONEY) as held:
        assert (await held.call("CODER", "REFUND", user_id="ann")).error.code == "GUIDANCE_BLOCKED"
        assert (await held.call("CODER", "EDIT", {"path": "refunds"}, user_id="ann")).ok


async def test_what_declares_nothing_and_what_touches_something_else_pass(node, edited):
    async with node(API) as held:
        look = await held.call("CODER", "LOOK", {"path": "src/api/x.py"}, user_id="ann")
        elsewhere = await held.call("CODER", "EDIT", {"path": "docs/x.md"}, user_id="ann")
    assert (look.ok, elsewhere.ok, look.warnings, elsewhere.warnings) == (True, True, (), ())


async def test_wrong_inputs_are_named_before_constraints(node):
    async with node(API) as held:
        assert (await held.call("CODER", "EDIT", {"path": 5}, user_id="ann")).error.code == "INPUT_VALIDATION_FAILED"


async def test_an_agent_can_read_the_refusal_of_a_tool(make_node):
    agent = Agent("A", tools_allowed=["*"])

    @agent.capability("GO")
    async def go(ctx: Context):
        try:
            await ctx.use_tool("write", path="src/api/x.py")
        except RefusedError as error:
            return error.code

    async with make_node([agent], tools=[Tool(name="write", function=write, touches=["$.path"])], guidance=guided(API)) as node:
        assert (await node.call("A", "GO", user_id="ann")).data == "GUIDANCE_BLOCKED"


# --- warnings ---


async def test_other_constraints_warn_in_the_reply_and_in_the_audit(node, edited):
    async with node(TESTS) as held:
        reply = await held.call("CODER", "EDIT", {"path": "src/web/x.py"}, user_id="ann")
        notes = [(row.kind, row.note) for row in held.audit.rows()]
    assert (reply.status, edited) == (Status.SUCCESS, ["src/web/x.py"])
    assert reply.warnings == ("constraint tests applies to touching src/web/x.py: Add tests",)
    assert notes == [("admitted", "guidance: warning tests"), ("settled", "")]


async def test_a_warned_tool_warns_in_the_reply_of_the_call_that_used_it(node):
    async with node(TESTS) as held:
        reply = await held.call("CODER", "USE", {"path": "src/web/x.py"}, user_id="ann")
        notes = [row.note for row in held.audit.rows() if row.target == "tool:write"]
    assert reply.warnings == ("constraint tests applies to touching src/web/x.py: Add tests",)
    assert notes == ["guidance: warning tests", ""]


# --- guidance in force ---


async def test_an_agent_sees_the_guidance_in_force(make_node):
    agent = Agent("A")

    @agent.capability("GO")
    async def go(ctx: Context):
        return list(ctx.guidance.focus.areas) if ctx.guidance.focus else None

    async with make_node([agent], guidance=Guidance(focus=Focus(areas=("speed",)))) as node:
        assert (await node.call("A", "GO", user_id="ann")).data == ["speed"]
    async with make_node([agent]) as node:
        assert (await node.call("A", "GO", user_id="ann")).data is None
        assert node.guidance is None


def document(*constraints):
    return yaml.safe_dump({"spec": {"agentGuidance": {"constraints": list(constraints)}}})


BLOCK = {"id": "no-breaking-changes", "rule": "Do not modify the API", "scope": "src/api/**", "severity": "blocking"}


class Followed:
    """A file whose watcher tells the test after the node has taken a change."""

    def __init__(self, path):
        self.file, self.taken = GuidanceFile(path), threading.Semaphore(0)
        self.path, self.read, self.change = path, self.file.read, self.file.change

    def watch(self, changed):
        def tell():
            changed()
            self.taken.release()

        return FileWatch(self.path, tell).close

    async def write(self, text):
        self.path.write_text(text)
        assert await asyncio.to_thread(self.taken.acquire, timeout=60)


def test_a_running_node_takes_up_what_people_change_and_keeps_the_last_good_when_it_is_broken(tmp_path, edited):
    source = Followed(tmp_path / "g.yaml")

    async def refused(node):
        reply = await node.call("CODER", "EDIT", {"path": "src/api/x.py"}, user_id="ann")
        return reply.status is Status.REFUSED

    async def go():
        async with Node(**team(edited), guidance=source, lag_ms=None) as node:
            assert not await refused(node)
            await source.write(document(BLOCK))
            assert await refused(node)
            for broken, why in (("spec: [", "YAML"), (document(BLOCK | {"severity": "fatal"}), "severity")):
                await source.write(broken)
                assert await refused(node)
                assert why in node.guidance.failure
            source.path.unlink()
            assert await asyncio.to_thread(source.taken.acquire, timeout=60)
            assert await refused(node)
            assert "gone" in node.guidance.failure
            await source.write(document())
            assert not await refused(node)
            assert node.guidance.failure == ""

    asyncio.run(go())
    assert not [one for one in threading.enumerate() if one.name.startswith("watch ")]


def test_a_node_does_not_start_on_guidance_it_cannot_read(tmp_path):
    path = tmp_path / "g.yaml"
    path.write_text(document(BLOCK | {"severity": "fatal"}))

    async def go():
        async with Node(guidance=path):
            pass

    with pytest.raises(CallerError, match="severity must be one of blocking"):
        asyncio.run(go())
    assert not [one for one in threading.enumerate() if one.name.startswith("watch ")]


def test_a_node_that_cannot_start_stops_watching(tmp_path):
    (tmp_path / "g.yaml").write_text(document(BLOCK))
    (tmp_path / "s.db").write_text("no database, and long enough to be taken for one" * 100)

    async def go():
        async with Node(guidance=tmp_path / "g.yaml", store=tmp_path / "s.db"):
            pass

    with pytest.raises(UnavailableError):
        asyncio.run(go())
    assert not [one for one in threading.enumerate() if one.name.startswith("watch ")]


def test_a_source_that_fails_in_its_own_way_does_not_end_the_watch():
    class Source:
        def read(self):
            raise ZeroDivisionError("oh")

    live = LiveGuidance(Source(), guided(API))
    live.refresh()
    assert live.failure == "ZeroDivisionError: oh"
    assert live.current == guided(API)


def test_a_node_elsewhere_keeps_its_guidance(tmp_path, edited):
    async def go():
        node = Node(**team(edited), guidance=guided(API)).elsewhere(tmp_path / "s.db")
        async with node:
            return await node.call("CODER", "EDIT", {"path": "src/api/x.py"}, user_id="ann")

    assert asyncio.run(go()).error.code == "GUIDANCE_BLOCKED"
