"""Short words for tests of model agents."""

from __future__ import annotations

import json

from msgspec.structs import replace

from comity import Agent, Node
from comity.core.model.exchange import ToolResult
from comity.core.model.quoting import without_codes
from comity.testing import ScriptedModel, VirtualClock, run_virtual, tool_call


def said(message="done", status="success", **data):
    return json.dumps({"thought": "because", "status": status, "data": data, "message": message})


def ask(agent_id, message="go", **more):
    return tool_call("call_agent", agent_id=agent_id, message=message, **more)


def thinker(agent_id, *steps, **more):
    """An agent with a script, or with one function as its script."""
    script = steps[0] if len(steps) == 1 and callable(steps[0]) else steps
    return Agent(agent_id, model=ScriptedModel(script, name=f"scripted-{agent_id}"), **{"can_call": []} | more)


def talk(agents, message="hello", *, to=None, look=None, node=None, **more):
    """Send a message to the first agent in virtual time and return its reply, or what `look` finds in the node."""

    async def main():
        async with Node(agents, clock=VirtualClock(), lag_ms=None, **node or {}) as running:
            reply = await running.call(to or agents[0].id, "message", message=message, **{"user_id": "u1"} | more)
            return reply if look is None else (reply, look(running))

    return run_virtual(main())


def prompts(agent):
    return agent.mind.model.prompts


def results(agent):
    """What its tools told an agent, as it stood in its last prompt."""
    return [plain(one) for one in prompts(agent)[-1].messages if isinstance(one, ToolResult)]


def plain(message):
    """A message with the codes taken out of its marks, which are another node's in every run."""
    return replace(message, text=without_codes(message.text))


def inside(message):
    """What stands between the marks of a message that is one quotation."""
    first, *lines, last = plain(message).text.split("\n")
    assert last == f"[end of {first[1:]}"
    return "\n".join(lines)


def offered(agent):
    return [tool.name for tool in prompts(agent)[0].tools]
