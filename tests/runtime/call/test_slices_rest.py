"""Long work on the loop rests now and then."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from comity.core.document.slices import Sliced
from comity.runtime.call.pace import BUSY_S, FORGOTTEN, LITTLE_S, REST_S, STAND_BACK, WINDOW_S, Pace
from comity.runtime.call.slices import LOOK_S, STAND_BACK_S, Slices

EVE, BOB = ("default", "eve"), ("default", "bob")


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
            slices.pace.note_call(BOB, 60.0)
        loop.call_later = lambda delay, *given: rests.append(delay) or loop.rest(delay, *given)  # type: ignore[method-assign]
        slices.pace.note_work(EVE, LITTLE_S * 2, -REST_S)  # its rest ends as this begins
        assert await slices.run(work(loop), EVE) == "done"
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
        slices.pace.note_work(EVE, LITTLE_S * 2, loop.time())
        assert await slices.run(work(), EVE) == "done"
        assert delays == [LOOK_S] * looks

    asyncio.run(main())


def test_a_page_does_not_wait_for_the_megabytes_of_another_user():
    def work(loop: HurriedLoop, slices: int) -> Sliced[None]:
        for _ in range(slices):
            loop.computed_s += BUSY_S / 2
            yield

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, HurriedLoop)
        loop.call_later = loop.rest  # type: ignore[method-assign]
        slices = Slices()
        megabytes = [asyncio.ensure_future(slices.run(work(loop, 100), EVE)) for _ in range(8)]
        while slices.pace.has_little(EVE) or slices.count < 30:  # none of them waits as little work any more
            await asyncio.sleep(0)
        before = slices.count
        await slices.run(work(loop, 4), BOB)
        assert slices.count - before <= 10, "four slices of its own, and about one of the megabytes beside each"
        await asyncio.gather(*megabytes)

    with asyncio.Runner(loop_factory=HurriedLoop) as runner:
        runner.run(main())


def test_what_a_user_worked_is_forgotten_by_halves():
    pace = Pace()
    pace.note_work(EVE, LITTLE_S * 7, 0.0)
    pace.note_work(BOB, LITTLE_S, 0.0)
    assert not pace.has_little(EVE)
    assert pace.has_little(BOB)
    for windows, is_little in ((1, False), (2, False), (3, True)):
        pace.note_work(BOB, 0.0, windows * WINDOW_S)
        assert pace.has_little(EVE) is is_little
    pace.note_work(EVE, LITTLE_S * 2**20, 4 * WINDOW_S)
    pace.note_work(BOB, 0.0, 4 * WINDOW_S + FORGOTTEN * WINDOW_S)
    assert pace.has_little(EVE)


def test_little_work_makes_nothing_rest():
    pace = Pace()
    pace.note_call(BOB, 0.0)
    pace.note_work(BOB, LITTLE_S, 0.0)
    assert pace.rest_s(0.0) == 0
    pace.note_work(BOB, BUSY_S, 0.0)
    assert pace.rest_s(0.0) > 0
