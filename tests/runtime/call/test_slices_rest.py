"""Long work on the loop rests now and then."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from comity.core.document.slices import Sliced
from comity.runtime.call.pace import BUSY_S, STAND_BACK
from comity.runtime.call.slices import LOOK_S, STAND_BACK_S, Slices


class HurriedLoop(asyncio.SelectorEventLoop):
    """A loop whose clock moves on when a test says so, as if something had been computed."""

    computed_s = 0.0

    def time(self) -> float:
        return self.computed_s

    def rest(self, delay_s: float, *given: Any) -> asyncio.Handle:
        self.computed_s += delay_s
        return self.call_soon(*given)


@pytest.mark.parametrize(("is_pressed", "times"), [(True, STAND_BACK), (False, 0)])
def test_the_loop_rests_from_long_work_several_times_as_long_while_a_user_with_few_calls_waits(is_pressed, times):
    def work(loop: HurriedLoop) -> Sliced[str]:
        for _ in range(20):
            loop.computed_s += BUSY_S / 2
            yield
        return "done"

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, HurriedLoop)
        slices, rests = Slices(), []
        if is_pressed:
            slices.pace.note_call(("default", "bob"), 60.0)
        loop.call_later = lambda delay, *given: rests.append(delay) or loop.rest(delay, *given)  # type: ignore[method-assign]
        assert await slices.run(work(loop)) == "done"
        assert slices.count == 20
        assert sum(rests) == pytest.approx(10 * times * BUSY_S), "after every second of these slices"

    with asyncio.Runner(loop_factory=HurriedLoop) as runner:
        runner.run(main())


@pytest.mark.parametrize(("awaited", "looks"), [(3, 3), (10_000, round(STAND_BACK_S / LOOK_S))])
def test_a_slice_stands_back_while_calls_wait_for_the_store_but_not_for_ever(awaited, looks):
    def work() -> Sliced[str]:
        yield
        return "done"

    async def main() -> None:
        loop = asyncio.get_running_loop()
        asked = iter(range(awaited))
        slices, delays, call_later = Slices(lambda: next(asked, None) is not None), [], loop.call_later
        loop.call_later = lambda delay, *given: delays.append(delay) or call_later(delay, *given)  # type: ignore[method-assign]
        assert await slices.run(work()) == "done"
        assert delays == [LOOK_S] * looks

    asyncio.run(main())
