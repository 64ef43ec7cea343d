"""A tree of calls over three processes on one store: watched, put aside for a person, cancelled, handed off."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from tree_process import agent, started

HERE = Path(__file__).parent


class Process:
    """A process that hosts one agent, and what it has said."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.said: list[str] = []

    @classmethod
    async def begin(cls, store: Path, *names: str) -> Process:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        pipe, script = asyncio.subprocess.PIPE, str(HERE / "tree_process.py")
        return cls(await asyncio.create_subprocess_exec(
            sys.executable, script, str(store), *names, stdin=pipe, stdout=pipe, env=environment,
        ))  # fmt: skip

    async def hear(self, words: str) -> None:
        """Wait until it says something."""
        while words not in self.said:
            line = await self._process.stdout.readline()
            assert line, f"{self.said}, and then it ended"
            self.said.append(line.decode().strip())

    async def end(self) -> None:
        self._process.stdin.close()
        self.said += (await self._process.stdout.read()).decode().split("\n")
        assert await self._process.wait() == 0


def test_a_tree_over_three_processes_is_watched_waits_for_a_person_and_is_cancelled_as_one(tmp_path: Path) -> None:
    store = tmp_path / "work.db"

    async def main() -> None:
        async with AsyncExitStack() as stack:
            processes = []
            for names in (("B", "C"), ("C",)):
                processes.append(await Process.begin(store, *names))
                stack.push_async_callback(processes[-1].end)
                await processes[-1].hear("ready")
            node = await started(str(store), agent("A", "B"))
            stack.push_async_callback(node.close)
            middle, leaf = processes
            named = {"user_id": "u", "timeout_ms": 100_000}

            handle = node.start_call("A", "DO", {"what": "work"}, request_id="w", **named)
            seen = [event.data async for event in handle.events() if event.kind == "progress"]
            assert (await handle.reply()).unwrap() == leaf._process.pid
            assert seen == [f"{name} does work" for name in "ABC"]
            await middle.hear("went on")
            middle.said.clear()

            asked = await node.call("A", "DO", {"what": "pay"}, request_id="p", **named)
            assert (str(asked.status), middle.said) == ("needs_input", [])
            (approval,) = node.approvals()
            reply = await node.decide(approval.id, granted=True, by="boss")
            assert reply is not None
            assert reply.data == 7
            await leaf.hear("paid")
            await middle.hear("went on")  # not before

            handle = node.start_call("A", "DO", {"what": "hang"}, request_id="h", **named)
            await leaf.hear("hangs")
            assert handle.cancel()
            assert str((await handle.reply()).status) == "cancelled"
            await leaf.hear("stopped")

            assert (await node.call("A", "HAND", **named)).unwrap() == leaf._process.pid
        assert leaf.said.count("paid") == 1

    asyncio.run(main())
