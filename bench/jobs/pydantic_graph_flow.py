"""The workflow job in pydantic-graph: three steps, one after the other or side by side (`parallel`). Prints CPU µs per run."""

import asyncio
import sys
import time

from pydantic_graph import GraphBuilder, StepContext, reduce_sum


def sequence():
    builder = GraphBuilder(input_type=int, output_type=int, auto_instrument=False)

    @builder.step
    async def x(ctx: StepContext[None, None, int]) -> int:
        return ctx.inputs + 1

    @builder.step
    async def y(ctx: StepContext[None, None, int]) -> int:
        return ctx.inputs + 1

    @builder.step
    async def z(ctx: StepContext[None, None, int]) -> int:
        return ctx.inputs + 1

    builder.add(
        builder.edge_from(builder.start_node).to(x),
        builder.edge_from(x).to(y),
        builder.edge_from(y).to(z),
        builder.edge_from(z).to(builder.end_node),
    )
    return builder.build()


def parallel():
    builder = GraphBuilder(input_type=int, output_type=int, auto_instrument=False)

    @builder.step
    async def x(ctx: StepContext[None, None, int]) -> int:
        return ctx.inputs + 1

    @builder.step
    async def y(ctx: StepContext[None, None, int]) -> int:
        return ctx.inputs + 1

    @builder.step
    async def z(ctx: StepContext[None, None, int]) -> int:
        return ctx.inputs + 1

    total = builder.join(reduce_sum, initial=0)
    builder.add(
        builder.edge_from(builder.start_node).to(x, y, z),
        builder.edge_from(x, y, z).to(total),
        builder.edge_from(total).to(builder.end_node),
    )
    return builder.build()


async def main(runs: int, lanes: int, *, is_parallel: bool) -> None:
    graph, expected = (parallel(), 6) if is_parallel else (sequence(), 4)

    async def lane(share: int) -> None:
        for _ in range(share):
            assert await graph.run(inputs=1) == expected

    await asyncio.gather(*(lane(5) for _ in range(lanes)))  # warm up
    cpu = time.process_time()
    await asyncio.gather(*(lane(runs // lanes) for _ in range(lanes)))
    print((time.process_time() - cpu) / (runs // lanes * lanes) * 1e6)


asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), is_parallel="parallel" in sys.argv))
