"""The delegation job in Comity, fully governed; with `durable` as third word, on the store. Prints CPU µs per job."""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from comity import Agent, Node
from comity.core.envelope.usage import Usage
from comity.core.model.exchange import Completion, Finish, Prompt, ToolCall


class Prime:
    name = "instant"

    async def stream(self, prompt: Prompt):
        if len(prompt.messages) == 2:
            ask = ToolCall(id="c", name="call_agent", arguments='{"agent_id": "byte", "message": "Extract the receipt"}')
            yield Completion(calls=(ask,), usage=Usage(prompt_tokens=50, completion_tokens=20), finish=Finish.TOOL_CALLS)
        else:
            text = "The receipt is from Corner Shop, 12.40 CAD."
            yield Completion(text=text, usage=Usage(prompt_tokens=90, completion_tokens=15))


class Byte:
    name = "instant"

    async def stream(self, prompt: Prompt):
        text = '{"merchant": "Corner Shop", "total": 12.40, "currency": "CAD"}'
        yield Completion(text=text, usage=Usage(prompt_tokens=40, completion_tokens=25))


prime = Agent("prime", model=Prime(), instructions="You lead. Ask Byte for receipts.", can_call=["byte"])
byte = Agent("byte", description="Reads receipts", model=Byte(), instructions="You read receipts.", can_call=[])


async def main(jobs: int, lanes: int, folder: str | None) -> None:
    async with Node([prime, byte], store=Path(folder) / "bench.db" if folder else None) as node:

        async def lane(share: int) -> None:
            for _ in range(share):
                reply = await node.call("prime", "message", message="What did I spend?", user_id="u1")
                assert reply.ok
                assert reply.usage.total_tokens == 240

        await asyncio.gather(*(lane(10) for _ in range(lanes)))  # warm up
        cpu = time.process_time()
        await asyncio.gather(*(lane(jobs // lanes) for _ in range(lanes)))
        print((time.process_time() - cpu) / (jobs // lanes * lanes) * 1e6)


if sys.argv[3:] == ["durable"]:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), folder))
else:
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), None))
