"""The way of every call on a node alone is one value that keeps nothing."""

from __future__ import annotations

import pytest

from comity.runtime.call.way import LOCAL, Way


def test_what_an_end_adds_to_sessions_is_noted_at_once_unless_a_store_may_refuse_that_end():
    noted = []
    LOCAL.at_end((lambda: noted.append("alone"),))
    assert noted == ["alone"]
    leased = Way()
    leased.at_end((lambda: noted.append("leased"),))
    assert noted == ["alone"]
    leased.note_end()
    leased.note_end()
    assert noted == ["alone", "leased"]


def test_the_way_that_all_calls_of_a_node_alone_share_cannot_change():
    LOCAL.note_moved()
    LOCAL.note_end()
    assert not LOCAL.is_moved
    with pytest.raises(AttributeError):
        LOCAL.is_moved = True
