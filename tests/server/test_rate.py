"""How many requests a sender may make: a bucket each, which fills again with time."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from outside_agents import bearer
from served import serving

from comity.core.access import Role
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


def test_a_user_has_one_bucket_for_all_tokens_and_an_address_one_for_wrong_ones():
    async def main() -> None:
        async with serving(rate_per_s=0.001, rate_burst=3) as served:
            state = served.server.app.state

            def token(user_id: str, tenant_id: str) -> str:
                return state.auth.signed.tokens.for_user(
                    user_id, roles=(Role.VIEWER,), tenant_id=tenant_id, now_ms=state.now_ms()
                )

            async def codes(*tokens: str) -> list[int]:
                return [(await served.client.get("/v1/me", headers=bearer(one))).status_code for one in tokens]

            assert await codes(*(token("ann", "acme") for _ in range(5))) == [200, 200, 200, 429, 429]
            assert await codes(token("bob", "acme"), token("ann", "other")) == [200, 200]
            assert await codes(*(f"wrong{number}" for number in range(5))) == [401, 401, 401, 429, 429]
            assert await codes(token("eve", "acme")) == [200]  # of the same address, with a good token

    asyncio.run(main())
