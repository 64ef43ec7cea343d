"""Long work that can pause, and the one step of it that cannot be cut."""

from __future__ import annotations

import gc

import pytest

from comity.core.document.slices import in_one_go


@pytest.mark.parametrize("is_on", [True, False])
def test_the_collector_is_as_it_was_after_a_step_in_one_go_that_returned_or_failed(is_on):
    try:
        if not is_on:
            gc.disable()
        assert in_one_go(lambda raw: (raw, gc.isenabled()), 7) == (7, False)
        assert gc.isenabled() is is_on
        with pytest.raises(ZeroDivisionError):
            in_one_go(lambda raw: 1 // raw, 0)
        assert gc.isenabled() is is_on
    finally:
        gc.enable()
