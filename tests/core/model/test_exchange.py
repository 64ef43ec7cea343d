"""The faults of a model are error codes with a family."""

from __future__ import annotations

import pytest

from comity.core.model.exchange import TRANSIENT, Fault, model_error
from comity.errors import CODES


@pytest.mark.parametrize("fault", Fault)
def test_every_fault_is_in_the_code_table_and_raises_its_family(fault):
    error = model_error(fault, "why", retry_after_ms=5)
    assert type(error) is CODES[fault].family
    assert (error.code, error.message, error.retry_after_ms) == (fault.value, "why", 5)


def test_what_is_transient_can_be_retried_by_the_caller_too():
    assert {fault for fault in Fault if CODES[fault].retryable} == TRANSIENT
