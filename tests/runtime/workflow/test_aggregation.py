"""Where replies are compared: few values in the event loop, many in a thread."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

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
