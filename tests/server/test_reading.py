"""When the index of calls is caught up."""

from __future__ import annotations

import math

import pytest

from comity.engines.memory.journal import MemoryJournal
from comity.server.reading import ASKED_S, BUSY_ROWS_PER_S, MISSING_ROWS_MAX, is_due
from comity.testing.contracts.records import accepted, settled


@pytest.mark.parametrize(
    ("missing", "rows_per_s", "unasked_s", "due"),
    [
        (10, 0, math.inf, True),  # a node at rest
        (10, BUSY_ROWS_PER_S, math.inf, False),
        (10, BUSY_ROWS_PER_S, ASKED_S - 1, True),  # lists are asked for
        (MISSING_ROWS_MAX + 1, BUSY_ROWS_PER_S, math.inf, True),  # however busy it is
    ],
)
def test_an_index_waits_while_its_node_is_busy_and_no_list_asks_for_it(missing, rows_per_s, unasked_s, due):
    assert is_due(missing, rows_per_s, unasked_s) is due


def test_how_far_the_audit_in_memory_has_grown_is_told_without_sealing_its_rows():
    """A server asks every few seconds: sealing 20,000 rows at once would hold the loop for a tenth of a second."""
    journal = MemoryJournal()
    journal.append([accepted("r"), settled("r")])
    assert journal.head_id == 2
    assert len(journal._unsealed) == 2
    assert [one.id for one in journal.rows()] == [1, 2]
    assert journal.head_id == 2
