"""The address of a chief executive: a researcher guesses, a validator finds out which guess is right.

    python examples/research.py                                    follows a script, needs nothing
    COMITY_MODEL=openai:gpt-5-mini python examples/research.py     asks a model, needs its key

Both reply in the standard protocol, so that the guesses pass from one to the other as data and not as prose. In the script the
researcher forgets that and puts its reply into a fence with a greeting around it, which does no harm. The models see tokens in
place of addresses; the tool that needs them in clear is the only one that gets them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable

from pydantic import BaseModel
from stage import model_or, show

from comity import Agent, Context, Node, Reply, Tool
from comity.ports import Model
from comity.testing import tool_call
from comity.testing.scripted import Step

MAILBOXES = {"jdoe@acme.example"}


class Guesses(BaseModel):
    ceo_name: str
    domain: str
    guesses: list[str]


class Address(BaseModel):
    valid_email: str


def ping_mailbox(address: str) -> str:
    """Ask the mail server whether a mailbox exists."""
    return "exists" if address in MAILBOXES else "does not exist"


GUESSES = ["john.doe@acme.example", "jdoe@acme.example"]
FOUND = {
    "thought": "The company's page names John Doe; his address is nowhere, so I try the usual forms.",
    "status": "success",
    "data": {"ceo_name": "John Doe", "domain": "acme.example", "guesses": GUESSES},
    "message": "The chief executive is John Doe.",
}
SCRIPTS: dict[str, list[Step]] = {
    "researcher": [f"Certainly! Here is what I found:\n```json\n{json.dumps(FOUND)}\n```\nAnything else?"],
    "validator": [
        [tool_call("ping_mailbox", address=guess) for guess in GUESSES],
        {
            "thought": "Only the second mailbox exists.",
            "status": "success",
            "data": {"valid_email": "jdoe@acme.example"},
            "message": "The address is jdoe@acme.example.",
        },
    ],
}


def team(model_of: Callable[[Iterable[Step], str], Model | str] = model_or) -> list[Agent]:
    """Return the researcher, the validator and the desk that passes data from one to the other."""
    researcher = Agent(
        "researcher",
        description="Finds out who leads a company and guesses their address",
        model=model_of(SCRIPTS["researcher"], "researcher"),
        instructions="You research companies. If an address is not public, guess it in the usual forms.",
        output_type=Guesses,
        failure_criteria=["The company is not known."],
        can_call=[],
    )
    validator = Agent(
        "validator",
        description="Finds out which of several addresses exists",
        model=model_of(SCRIPTS["validator"], "validator"),
        instructions="You are given addresses. Ping each of them and return the one that exists.",
        tools=[Tool.of(ping_mailbox, clear=frozenset({"EMAIL"}))],
        output_type=Address,
        success_criteria=["Exactly one of the addresses exists."],
        can_call=[],
    )
    desk = Agent("desk", description="Takes questions", can_call=["researcher", "validator"], tools_allowed=["ping_mailbox"])

    @desk.capability("FIND", timeout_ms=60_000)
    async def find(ctx: Context, question: str) -> Reply:
        found = await ctx.call("researcher", "message", message=question)
        if not found.ok:
            return found
        return await ctx.call("validator", "message", {"guesses": found.data["guesses"]}, message="Which one exists?")

    return [desk, researcher, validator]


async def run(node: Node) -> Reply:
    """Ask the desk."""
    return await node.call("desk", "FIND", {"question": "Find the email of the CEO of Acme Corp."}, user_id="ann")


async def main() -> None:
    async with Node(team()) as node:
        reply = await run(node)
        print(f"{reply.status}: {reply.message}\n{reply.data}\n")
        show(node)


if __name__ == "__main__":
    asyncio.run(main())
