"""The delegation job in pydantic-ai: an agent asks another through a tool and answers. Prints CPU µs per job."""

import asyncio
import sys
import time

from pydantic_ai import Agent, ModelMessage, ModelResponse, RunContext, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel


def prime_says(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    if len(messages) == 1:
        return ModelResponse([ToolCallPart("ask_byte", {"message": "Extract the receipt"})])
    return ModelResponse([TextPart("The receipt is from Corner Shop, 12.40 CAD.")])


def byte_says(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    return ModelResponse([TextPart('{"merchant": "Corner Shop", "total": 12.40, "currency": "CAD"}')])


prime = Agent(FunctionModel(prime_says), instructions="You lead. Ask Byte for receipts.")
byte = Agent(FunctionModel(byte_says), instructions="You read receipts.")


@prime.tool
async def ask_byte(ctx: RunContext[None], message: str) -> str:
    """Ask Byte, who reads receipts."""
    return (await byte.run(message, usage=ctx.usage)).output


async def main(jobs: int, lanes: int) -> None:
    async def lane(share: int) -> None:
        for _ in range(share):
            assert (await prime.run("What did I spend?")).output

    await asyncio.gather(*(lane(10) for _ in range(lanes)))  # warm up
    cpu = time.process_time()
    await asyncio.gather(*(lane(jobs // lanes) for _ in range(lanes)))
    print((time.process_time() - cpu) / (jobs // lanes * lanes) * 1e6)


asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
