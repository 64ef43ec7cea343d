"""The workflow job in Comity: three governed steps, one after the other or side by side. Prints CPU µs per run.

Further words: `parallel` for three steps side by side, `durable` for a node on the store, `hand` for the same calls made by an
agent.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from workflows import PARALLEL, SEQUENCE, team

from comity import Node


async def main(runs: int, lanes: int, folder: str | None, words: list[str]) -> None:
    name = "parallel" if "parallel" in words else "sequence"
    expected = 6 if name == "parallel" else 4
    async with Node(team(), store=Path(folder) / "bench.db" if folder else None, lag_ms=None) as node:
        node.workflows.add(SEQUENCE, PARALLEL)

        async def lane(share: int) -> None:
            for _ in range(share):
                if "hand" in words:
                    reply = await node.call("BOSS", name.upper(), {"n": 1}, user_id="u")
                else:
                    reply = await node.workflows.run(name, {"n": 1}, user_id="u")
                assert reply.unwrap() == {"n": expected}

        await asyncio.gather(*(lane(5) for _ in range(lanes)))  # warm up
        cpu = time.process_time()
        await asyncio.gather(*(lane(runs // lanes) for _ in range(lanes)))
        print((time.process_time() - cpu) / (runs // lanes * lanes) * 1e6)


with tempfile.TemporaryDirectory() as place:
    said = sys.argv[3:]
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), place if "durable" in said else None, said))
