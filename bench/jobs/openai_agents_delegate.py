"""The delegation job in openai-agents, tracing off: an agent asks another as a tool and answers. Prints CPU µs per job."""

import asyncio
import sys
import time

from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, set_tracing_disabled

set_tracing_disabled(True)


def say(text: str) -> ModelResponse:
    content = [ResponseOutputText(type="output_text", text=text, annotations=[])]
    message = ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=content)
    return ModelResponse(output=[message], usage=Usage(), response_id=None)


class Prime(Model):
    async def get_response(self, system_instructions, input, *args, **kwargs):  # noqa: A002  the framework's name
        if len(input) == 1:
            use = ResponseFunctionToolCall(
                type="function_call", call_id="c", name="ask_byte", arguments='{"input": "Extract the receipt"}'
            )
            return ModelResponse(output=[use], usage=Usage(), response_id=None)
        return say("The receipt is from Corner Shop, 12.40 CAD.")

    def stream_response(self, *args, **kwargs):
        raise NotImplementedError


class Byte(Prime):
    async def get_response(self, *args, **kwargs):
        return say('{"merchant": "Corner Shop", "total": 12.40, "currency": "CAD"}')


byte = Agent("byte", instructions="You read receipts.", model=Byte())
ask_byte = byte.as_tool("ask_byte", "Ask Byte, who reads receipts.")
prime = Agent("prime", instructions="You lead. Ask Byte for receipts.", model=Prime(), tools=[ask_byte])


async def main(jobs: int, lanes: int) -> None:
    config = RunConfig(tracing_disabled=True)

    async def lane(share: int) -> None:
        for _ in range(share):
            assert (await Runner.run(prime, "What did I spend?", run_config=config)).final_output

    await asyncio.gather(*(lane(10) for _ in range(lanes)))  # warm up
    cpu = time.process_time()
    await asyncio.gather(*(lane(jobs // lanes) for _ in range(lanes)))
    print((time.process_time() - cpu) / (jobs // lanes * lanes) * 1e6)


asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
