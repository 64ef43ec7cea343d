"""The simulated loop: time jumps, a seed decides the order, and a process can be cut off without knowing."""

from __future__ import annotations

import asyncio
import gc
import random

import pytest

from comity.testing.sim.loop import Life, LivelockError, SimLoop, StuckError, kill


def loop(seed=0, *, is_shuffled=False, steps_max=10_000):
    return SimLoop(random.Random(seed), is_shuffled=is_shuffled, steps_max=steps_max)


def run(work, **more):
    sim = loop(**more)
    try:
        return sim.run_until_complete(work(sim))
    finally:
        sim.bury()


def test_an_hour_passes_at_once():
    async def work(sim):
        await asyncio.sleep(3_600)
        return sim.time()

    assert run(work) == 3_600


def order_of(seed, *, is_shuffled):
    seen = []

    async def one(number):
        await asyncio.sleep(0)
        seen.append(number)

    async def work(_):
        await asyncio.gather(*map(one, range(8)))

    run(work, seed=seed, is_shuffled=is_shuffled)
    return tuple(seen)


def test_the_seed_decides_the_order_of_tasks():
    assert order_of(1, is_shuffled=True) == order_of(1, is_shuffled=True)
    assert len({order_of(seed, is_shuffled=True) for seed in range(10)}) > 5
    assert order_of(1, is_shuffled=False) == tuple(range(8))


def test_sets_of_tasks_have_one_order_whatever_lay_in_memory_before():
    async def work(_):
        async def nothing():
            pass

        tasks = [asyncio.ensure_future(nothing()) for _ in range(20)]
        done, _ = await asyncio.wait(tasks)
        return [task.get_name() for task in done]

    litter = [bytearray(random.randrange(1, 5_000)) for _ in range(200)]
    first = run(work)
    del litter[::2]
    assert run(work) == first


def test_a_killed_process_runs_nothing_more_not_even_its_finally():
    seen = []

    async def victim():
        try:
            await asyncio.sleep(1)
            seen.append("went on")
        finally:
            seen.append("cleaned up")

    async def work(sim):
        life = Life("n", 1)
        task = sim.create_task(victim(), context=life.context.copy())
        await asyncio.sleep(0.5)
        kill(life)
        sim.keep_dead(life)
        del task
        await asyncio.sleep(5)
        return list(seen)

    assert run(work) == []


@pytest.mark.filterwarnings("error")
def test_a_generator_is_closed_by_the_loop_where_its_process_lives_and_is_just_gone_where_it_was_killed():
    seen = []

    async def numbers(name):
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(0)
            seen.append(name)

    async def leave(name):
        async for _ in numbers(name):
            break
        await asyncio.sleep(1)

    async def stay(name):
        async for _ in numbers(name):
            await asyncio.sleep(1)

    async def work(sim):
        await leave("left")
        life = Life("n", 1)
        dropped = numbers("dropped")
        sim.create_task(stay("killed"), context=life.context.copy())
        await asyncio.sleep(0.5)
        await anext(dropped)
        kill(life)
        sim.keep_dead(life)
        life.context.run(sim._asyncgen_finalizer_hook, dropped)  # as when a dead process's memory goes
        sim.create_task(stay("over"))
        await asyncio.sleep(0.5)
        return list(seen)

    assert run(work) == ["left"]
    gc.collect()
    assert seen == ["left"]


def test_what_a_process_started_dies_with_it():
    seen = []

    async def child():
        await asyncio.sleep(1)
        seen.append("child")

    async def parent():
        asyncio.get_running_loop().call_later(1, seen.append, "timer")
        await child()

    async def work(sim):
        life = Life("n", 1)
        sim.create_task(parent(), context=life.context.copy())
        await asyncio.sleep(0.5)
        kill(life)
        sim.keep_dead(life)
        await asyncio.sleep(5)

    run(work)
    assert seen == []


def test_a_paused_process_goes_on_where_it_was_and_later():
    async def work(sim):
        life, seen = Life("n", 1), []

        async def process():
            await asyncio.sleep(1)
            seen.append(sim.time())

        sim.create_task(process(), context=life.context.copy())
        await asyncio.sleep(0.5)
        life.is_paused = True
        await asyncio.sleep(10)
        assert seen == []
        sim.go_on(life)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return seen

    assert run(work) == [10.5]


def test_a_process_can_be_cut_off_after_any_number_of_steps():
    async def work(sim):
        life, seen = Life("n", 1), []

        async def process():
            for step in range(10):
                seen.append(step)
                await asyncio.sleep(0)

        life.steps_left = 3
        sim.on_cut = kill
        sim.create_task(process(), context=life.context.copy())
        await asyncio.sleep(1)
        return seen

    assert run(work) == [0, 1, 2]


def test_a_livelock_fails_instead_of_hanging_and_names_who_goes_round():
    async def work(_):
        while True:
            await asyncio.sleep(0)

    with pytest.raises(LivelockError, match=rf"steps and no end; the last was of work, .*{__name__}\.py:\d+$"):
        run(work)


def test_waiting_for_what_never_comes_fails_instead_of_hanging():
    async def work(sim):
        await sim.create_future()

    with pytest.raises(StuckError):
        run(work)


def test_work_for_a_thread_is_done_as_a_step():
    async def work(_):
        return await asyncio.to_thread(lambda: 7)

    assert run(work) == 7


def test_what_unwinds_when_the_run_is_over_finds_its_own_loop_and_makes_no_other():
    found = []

    async def waits(sim):
        try:
            await asyncio.sleep(60)
        finally:
            found.append(asyncio.gather().get_loop() is sim)

    async def work(sim):
        sim.waiting = sim.create_task(waits(sim))
        await asyncio.sleep(1)

    run(work)
    assert found == [True]
    with pytest.raises(RuntimeError, match="no running event loop"):
        asyncio.get_running_loop()
