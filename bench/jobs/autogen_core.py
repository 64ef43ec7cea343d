"""The benchmark job in autogen-core: one agent is sent the message and answers. Prints CPU µs per call.

With `between` as further word another agent sends the messages, otherwise the program does.
"""

import asyncio
import sys
import time
from dataclasses import dataclass
from typing import Any

from autogen_core import AgentId, MessageContext, RoutedAgent, SingleThreadedAgentRuntime, message_handler


@dataclass
class Request:
    source_agent: str
    target_agent: str
    capability_code: str
    request_id: str
    priority: str
    timeout_ms: int
    inputs_json: dict[str, Any]
    context: dict[str, Any]


@dataclass
class Response:
    request_id: str
    status: str
    confidence_level: str
    result_json: dict[str, Any]
    metadata: dict[str, Any]


REQUEST = {
    "source_agent": "CST",
    "target_agent": "ANL",
    "capability_code": "ANL_NPV",
    "request_id": "sess-789-20250118-143022",
    "priority": "NORMAL",
    "timeout_ms": 15000,
    "inputs_json": {"cash_flows": [-100000, 25000, 35000, 45000, 55000], "discount_rate": 0.12, "periods": "annual"},
    "context": {"session_id": "sess-789", "user_id": "user-456", "engagement_type": "business_case"},
}
RESULT = {"npv": 17206.82, "currency": "USD", "discount_rate": 0.12, "periods": 5}


class Analyst(RoutedAgent):
    @message_handler
    async def on_request(self, message: Request, ctx: MessageContext) -> Response:
        return Response(message.request_id, "SUCCESS", "HIGH", RESULT, {"processing_time_ms": 1, "capability_version": "1.0"})


@dataclass
class Ask:
    times: int


class Consultant(RoutedAgent):
    @message_handler
    async def on_ask(self, message: Ask, ctx: MessageContext) -> None:
        for _ in range(message.times):
            await self.send_message(Request(**REQUEST), ANALYST)


ANALYST = AgentId("analyst", "default")
CONSULTANT = AgentId("consultant", "default")


async def main(calls: int, lanes: int, *, between: bool) -> None:
    runtime = SingleThreadedAgentRuntime()
    await Analyst.register(runtime, "analyst", lambda: Analyst("analyst"))
    await Consultant.register(runtime, "consultant", lambda: Consultant("consultant"))
    runtime.start()

    async def lane(share: int) -> None:
        if between:
            for start in range(0, share, 50):
                await runtime.send_message(Ask(min(share - start, 50)), CONSULTANT)
        else:
            for _ in range(share):
                await runtime.send_message(Request(**REQUEST), ANALYST)

    await asyncio.gather(*(lane(10) for _ in range(lanes)))  # warm up
    cpu = time.process_time()
    await asyncio.gather(*(lane(calls // lanes) for _ in range(lanes)))
    print((time.process_time() - cpu) / (calls // lanes * lanes) * 1e6)
    await runtime.stop()


asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), between=sys.argv[3:] == ["between"]))
