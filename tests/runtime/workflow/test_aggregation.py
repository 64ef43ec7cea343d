"""Where replies are compared: few values in the event loop, many in a thread."""

from __future__ import annotations

import asyncio
import re
import threading
from pathlib import Path
from typing import Any

import pytest

from comity import Agent, Node, Reply
from comity.runtime.workflow.aggregation import aggregated
from comity.testing.virtual import run_virtual


class _Seen(dict[str, Any]):
    """Data that says which threads have looked at its values."""

    threads: set[int]

    def __iter__(self) -> Any:
        self.threads.add(threading.get_ident())
        return super().__iter__()


def _parts(data: dict[str, Any]) -> tuple[_Seen, list[tuple[str, dict[str, Any]]]]:
    seen = _Seen(data)
    seen.threads = set()
    replies = (("one", seen), ("two", {**data, "x": 1}))
    return seen, [(name, {"status": "success", "data": one, "confidence": 0.9}) for name, one in replies]


@pytest.mark.parametrize(
    ("data", "is_in_loop"),
    [
        ({"price": "5 EUR"}, True),
        ({"steps": [{"name": f"step {at}"} for at in range(9)]}, False),
        ({f"field_{at}": at for at in range(40)}, False),
        ({"report": "The board met. " * 400}, False),
        ({"a": {"b": [[[[{}] * 99] * 99] * 99] * 99}}, False),  # no value at all
    ],
)
def test_only_a_few_values_are_compared_in_the_event_loop(data: dict[str, Any], is_in_loop: bool) -> None:
    seen, parts = _parts(data)
    assert asyncio.run(aggregated("merge", parts, {})).ok
    assert (seen.threads == {threading.get_ident()}) is is_in_loop


def test_virtual_time_waits_for_a_comparison_in_a_thread() -> None:
    _, parts = _parts({f"field_{at}": at for at in range(40)})
    assert run_virtual(aggregated("merge", parts, {})).ok


@pytest.mark.parametrize(
    ("quotes", "winner"), [([7, 7, 9], 7), ([7, None, 7], 7), ([7, None, None], None), ([None, None, None], None)]
)
async def test_the_example_of_the_guide_votes_where_enough_parts_have_a_result(
    quotes: list[int | None], winner: int | None
) -> None:
    guide = (Path(__file__).parents[3] / "docs" / "orchestrator.md").read_text()
    (example,) = re.findall(r"^```yaml\n(workflow: three-quotes.*?)^```", guide, re.DOTALL | re.MULTILINE)
    agents = [_quoting(name, price) for name, price in zip(("NORTH", "SOUTH", "WEST"), quotes, strict=True)]
    async with Node(agents=agents, workflows=[example]) as node:
        reply = await node.workflows.run("three-quotes", user_id="u1")
    assert (reply.ok, reply.data if reply.ok else None) == (winner is not None, winner)


def _quoting(name: str, price: int | None) -> Agent:
    agent = Agent(name)

    @agent.capability("QUOTE")
    async def quote() -> Any:
        return Reply.failure("no quote") if price is None else {"price": price}

    return agent
