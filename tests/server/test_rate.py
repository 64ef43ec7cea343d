"""How many requests a sender may make: a bucket each, which fills again with time."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from comity.errors import UnavailableError
from comity.server import rate
from comity.server.rate import BUCKETS_MAX, Rates


def test_a_bucket_empties_by_one_and_fills_with_time_up_to_its_burst(monkeypatch):
    clock = SimpleNamespace(now=100.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(rate, "time", clock)
    rates = Rates(SimpleNamespace(rate_per_s=2.0, rate_burst=3))

    def burst(who: str) -> int:
        taken = 0
        while taken < 10:
            try:
                rates.take(who)
            except UnavailableError as error:
                assert (error.code, error.retry_after_ms) == ("HTTP_RATE_LIMITED", 501)
                break
            taken += 1
        return taken

    assert (burst("ann"), burst("bob")) == (3, 3)
    for passed_s, allowed in ((0.0, 0), (0.5, 1), (1.0, 2), (1.5, 3), (2.0, 3), (60.0, 3)):
        clock.now += passed_s
        assert burst("ann") == allowed


def test_a_sender_is_told_when_the_next_request_may_come(monkeypatch):
    monkeypatch.setattr(rate, "time", SimpleNamespace(monotonic=lambda: 100.0))
    rates = Rates(SimpleNamespace(rate_per_s=0.1, rate_burst=1))
    rates.take("ann")
    with pytest.raises(UnavailableError, match=r"more than 0\.1 requests a second") as caught:
        rates.take("ann")
    assert caught.value.retry_after_ms == 10_001


def test_the_oldest_bucket_goes_where_there_are_too_many(monkeypatch):
    monkeypatch.setattr(rate, "time", SimpleNamespace(monotonic=lambda: 100.0))
    rates = Rates(SimpleNamespace(rate_per_s=1.0, rate_burst=1))
    for number in range(BUCKETS_MAX):
        rates.take(str(number))
    with pytest.raises(UnavailableError):
        rates.take("0")
    rates.take("one more")
    rates.take("0")
    with pytest.raises(UnavailableError):
        rates.take("2")
