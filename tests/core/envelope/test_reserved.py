"""Which errors are the platform's own: those that its code raised."""

from __future__ import annotations

import pytest

from comity import Reply, Status
from comity.core.envelope.envelope import Error
from comity.core.envelope.reserved import is_raised_by_platform
from comity.core.session.conversation import read_reference
from comity.errors import ComityError, RefusedError


def test_an_error_that_nobody_raised_is_not_the_platforms():
    assert not is_raised_by_platform(ComityError("no"))


def test_an_error_is_of_the_code_that_raised_it_and_that_of_a_reply_of_whoever_unwraps_it():
    with pytest.raises(ComityError) as unwrapped:
        Reply(status=Status.ERROR, error=Error.of("TARGET_FAILED", "no")).unwrap()
    assert not is_raised_by_platform(unwrapped.value)
    with pytest.raises(RefusedError) as raised:
        raise RefusedError("no", code="LIMIT_DEPTH_EXCEEDED")
    assert not is_raised_by_platform(raised.value)
    with pytest.raises(ComityError) as own:
        read_reference("nothing")
    assert is_raised_by_platform(own.value)
