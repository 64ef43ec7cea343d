"""The workflow job in langgraph: three steps, one after the other or side by side (`parallel`). Prints CPU µs per run."""

import asyncio
import operator
import sys
import time
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    n: int


class Wide(TypedDict):
    n: int
    found: Annotated[list[int], operator.add]


async def add(state: State) -> dict:
    return {"n": state["n"] + 1}


async def find(state: Wide) -> dict:
    return {"found": [state["n"] + 1]}


async def total(state: Wide) -> dict:
    return {"n": sum(state["found"])}


def sequence():
    graph = StateGraph(State)
    for name in "xyz":
        graph.add_node(name, add)
    graph.add_edge(START, "x")
    graph.add_edge("x", "y")
    graph.add_edge("y", "z")
    graph.add_edge("z", END)
    return graph.compile()


def parallel():
    graph = StateGraph(Wide)
    for name in "xyz":
        graph.add_node(name, find)
        graph.add_edge(START, name)
    graph.add_node("j", total)
    graph.add_edge(["x", "y", "z"], "j")
    graph.add_edge("j", END)
    return graph.compile()


async def main(runs: int, lanes: int, *, is_parallel: bool) -> None:
    graph = parallel() if is_parallel else sequence()
    given, expected = ({"n": 1, "found": []}, 6) if is_parallel else ({"n": 1}, 4)

    async def lane(share: int) -> None:
        for _ in range(share):
            assert (await graph.ainvoke(given))["n"] == expected

    await asyncio.gather(*(lane(5) for _ in range(lanes)))  # warm up
    cpu = time.process_time()
    await asyncio.gather(*(lane(runs // lanes) for _ in range(lanes)))
    print((time.process_time() - cpu) / (runs // lanes * lanes) * 1e6)


asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), is_parallel="parallel" in sys.argv))
