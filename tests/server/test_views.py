"""What the console is shown of a definition, and which connection counts as stalled."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from comity.server.connection import Connection
from comity.server.workflows import _definition
from comity.workflow import load

TEXT = """
workflow: all
description: Everything
nodes:
  a: {call: A/DO}
  r: {run: part}
  q: {ask: 'Go on with all of this, and then with the rest of it, which is long enough to be cut off somewhere?'}
  g: {aggregate: merge, after: [a, r]}
  w: {wait: 1s}
edges:
  - {id: one, from: w, to: q, when: 'response.data.n > 1'}
  - {id: two, from: w, to: a, else: true}
  - {id: three, from: a, to: q, on: error}
  - {id: four, from: r, to: w}
"""


def test_a_definition_is_shown_with_what_each_node_does_and_when_each_edge_is_taken():
    shown = _definition(load(TEXT))
    assert (shown.name, shown.description) == ("all", "Everything")
    labels = {one.id: (one.kind, one.label) for one in shown.nodes}
    assert labels["q"][1] == "Go on with all of this, and then with the rest of it, which is long enough to be cut off"[:80]
    del labels["q"]
    assert labels == {"a": ("call", "A DO"), "r": ("run", "part"), "g": ("aggregate", "merge"), "w": ("wait", "wait")}
    edges = {one.id: (one.source, one.target, one.label) for one in shown.edges if one.id in ("one", "two", "three", "four")}
    assert edges == {
        "one": ("w", "q", "response.data.n > 1"),
        "two": ("w", "a", "else"),
        "three": ("a", "q", "on error"),
        "four": ("r", "w", ""),
    }


def at(**more: Any) -> SimpleNamespace:
    return SimpleNamespace(
        **{"lingers_until": 0.0, "stalled_since": 0.0, "reading_since": 0.0, "body_bytes": -1, "flow": None} | more
    )


@pytest.mark.parametrize(
    ("connection", "is_so"),
    [
        (at(), False),
        (at(lingers_until=100.0), False),
        (at(lingers_until=99.9), True),
        (at(lingers_until=101.0, stalled_since=1.0), False),
        (at(stalled_since=90.0), False),
        (at(stalled_since=89.9), True),
        (at(reading_since=95.0), False),
        (at(reading_since=94.9), True),
        (at(reading_since=93.0, body_bytes=200), False),
        (at(reading_since=92.9, body_bytes=200), True),
        (at(reading_since=92.9, body_bytes=200, flow=SimpleNamespace(read_paused=False)), True),
        (at(reading_since=92.9, body_bytes=200, flow=SimpleNamespace(read_paused=True)), False),
    ],
)
def test_a_client_that_is_too_slow_to_send_or_to_take_its_answer_is_stalled(connection, is_so):
    assert (
        Connection.is_stalled(connection, 100.0, SimpleNamespace(stall_s=10.0, head_s=5.0, body_bytes_per_s_min=100)) is is_so
    )
