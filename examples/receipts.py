"""A receipt: Prime leads, Byte reads the document, Tag says what kind of expense it is.

    python examples/receipts.py                                    follows a script, needs nothing
    COMITY_MODEL=openai:gpt-5-mini python examples/receipts.py     asks a model, needs its key

Limits are those of the protocol the example comes from: two levels, so that Prime may ask Byte but Byte may not ask Tag; 15 s;
and a budget of tokens for the whole tree. In the script Byte tries nevertheless, is refused, and Prime asks Tag itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from pydantic import BaseModel
from stage import model_or, show

from comity import Agent, Limits, Node, Reply
from comity.ports import Model
from comity.testing import tool_call
from comity.testing.scripted import Step

LIMITS = Limits(depth_max=1, fan_out_max=3, timeout_ms=15_000, tokens_max=12_000)
DOCUMENTS = {"receipt.jpg": "CORNER SHOP\n2 x pens 6.20\nTOTAL 12.40 CAD\n2025-10-09"}


class Receipt(BaseModel):
    merchant: str
    total: float
    currency: str
    date: str


class Category(BaseModel):
    category: str
    is_deductible: bool


def read_document(name: str) -> str:
    """Return the text of a document the user uploaded."""
    return DOCUMENTS.get(name, "there is no such document")


RECEIPT = {"merchant": "Corner Shop", "total": 12.4, "currency": "CAD", "date": "2025-10-09"}
SCRIPTS: dict[str, list[Step]] = {
    "prime": [
        tool_call("call_agent", agent_id="byte", message="Extract all fields of receipt.jpg"),
        tool_call("call_agent", agent_id="tag", message="Categorize: Corner Shop, pens, 12.40 CAD"),
        "12.40 CAD at Corner Shop on 2025-10-09, filed under office supplies, deductible.",
    ],
    "byte": [
        tool_call("read_document", name="receipt.jpg"),
        tool_call("call_agent", agent_id="tag", message="Categorize this receipt for me"),
        {"thought": "I may not ask Tag, so I return what I read.", "status": "success", "data": RECEIPT, "message": "Read it."},
    ],
    "tag": [
        {
            "thought": "Pens are office supplies.",
            "status": "success",
            "data": {"category": "office supplies", "is_deductible": True},
            "message": "Office supplies, deductible.",
        }
    ],
}


def team(model_of: Callable[[Iterable[Step], str], Model | str] = model_or) -> list[Agent]:
    """Return Prime, Byte and Tag, each with the model that `model_of` gives for its script and name."""
    prime = Agent(
        "prime",
        description="Talks to the user and delegates",
        model=model_of(SCRIPTS["prime"], "prime"),
        instructions="You look after a user's expenses. Byte reads documents, Tag categorizes expenses. Ask Byte first, "
        "then Tag, then tell the user the result in one sentence.",
        can_call=["byte", "tag"],
        tools_allowed=["read_document"],  # a right must be held by every agent above, so that Byte may use it
    )
    byte = Agent(
        "byte",
        description="Reads receipts and other documents",
        model=model_of(SCRIPTS["byte"], "byte"),
        instructions="You read documents. Return what stands in them and nothing else.",
        tools=[read_document],
        output_type=Receipt,
        can_call=["tag"],
    )
    tag = Agent(
        "tag",
        description="Categorizes expenses",
        model=model_of(SCRIPTS["tag"], "tag"),
        instructions="You say what kind of expense something is.",
        output_type=Category,
        can_call=[],
    )
    return [prime, byte, tag]


async def run(node: Node) -> Reply:
    """Ask Prime."""
    return await node.call("prime", "message", message="I uploaded receipt.jpg. What did I spend, and on what?", user_id="ann")


async def main() -> None:
    async with Node(team(), limits=LIMITS) as node:
        reply = await run(node)
        print(f"{reply.status}: {reply.message}\n")
        show(node)
        print(f"\n{reply.usage.total_tokens} tokens, {reply.usage.calls} calls below the first")


if __name__ == "__main__":
    asyncio.run(main())
