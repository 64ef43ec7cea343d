"""Definitions and guidance that people send are bounded, and read away from the event loop."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from served import serving

from comity import Agent, Node
from comity.errors import UnavailableError
from comity.server import guidance, workflows
from comity.server.sources import SOURCE_BYTES_MAX, WAITING_MAX, Aside

ROUTES = (("POST", "/v1/workflows/check"), ("POST", "/v1/guidance/preview"), ("PUT", "/v1/guidance"))


def node(folder: Any) -> Node:
    (folder / "g.yaml").write_text("kind: ProjectContext\nspec: {agentGuidance: {}}\n")
    return Node([Agent("A")], guidance=folder / "g.yaml", lag_ms=None)


def test_a_source_beyond_its_bound_is_refused_with_the_bound_and_one_at_the_bound_is_read(tmp_path):
    async def main() -> None:
        async with serving(node(tmp_path)) as served:
            for method, path in ROUTES:
                for sign in ("#", "é"):  # bytes are counted, not characters
                    longest = "#" + sign * ((SOURCE_BYTES_MAX - 1) // len(sign.encode()))
                    read = await served.client.request(method, path, json={"source": longest})
                    refused = await served.client.request(method, path, json={"source": longest + sign})
                    assert (read.status_code, refused.status_code) == (200, 413), path
                    assert (refused.json()["code"], "65,536 bytes" in refused.text) == ("ENVELOPE_TOO_LARGE", True)

    asyncio.run(main())


@pytest.mark.parametrize("handler", [workflows.check, guidance.preview, guidance.put, guidance.show])
def test_the_event_loop_turns_while_a_source_is_read(tmp_path, handler):
    async def main() -> None:
        constraints = "".join(f"  - {{id: c{number}, rule: leave it}}\n" for number in range(100))
        async with serving(node(tmp_path)) as served:
            assert (await served.client.put("/v1/guidance", json={"source": f"constraints:\n{constraints}"})).status_code == 200
            ask: Any = SimpleNamespace(
                state=served.server.app.state, body=SimpleNamespace(source=f"constraints:\n{constraints}"), params={}
            )
            task, turns = asyncio.ensure_future(handler(ask)), 0
            while not task.done():
                await asyncio.sleep(0)
                turns += 1
            await task
            assert turns > 2  # a handler that reads on the loop is done after one; the end of a thread alone takes two more

    asyncio.run(main())


def test_few_texts_wait_to_be_read_and_further_ones_are_told_to_come_again():
    async def main() -> None:
        aside, go = Aside(), threading.Event()
        waiting = [asyncio.ensure_future(aside.run(go.wait)) for _ in range(WAITING_MAX)]
        await asyncio.sleep(0)
        with pytest.raises(UnavailableError) as refused:
            await aside.run(go.wait)
        assert refused.value.code == "AGENT_BUSY"
        go.set()
        assert await asyncio.gather(*waiting) == [True] * WAITING_MAX
        assert await aside.run(lambda: "read") == "read"

    asyncio.run(main())
