"""Walk one call in memory, from `node.call` to its reply, and draw the walk into docs/architecture.md; `--check` compares."""

from __future__ import annotations

import asyncio
import sys
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from comity import Agent, Node
from comity.testing import VirtualClock

PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"
ROOT = Path(__file__).parent.parent / "src" / "comity"
MARKS = ("<!-- walk: drawn by scripts/walk_call.py -->\n", "<!-- end of walk -->")


class Walk(NamedTuple):
    """What one call went through: each function as it was called, with its file."""

    steps: list[tuple[str, str]]

    @property
    def stays(self) -> list[tuple[str, list[str]]]:
        """Each stay in a file, with the functions called there."""
        return [(file, [name for _, name in run]) for file, run in groupby(self.steps, key=lambda step: step[0])]

    @property
    def files(self) -> int:
        """How many different files."""
        return len({file for file, _ in self.steps})


async def _called() -> list[tuple[str, str]]:
    agent, steps = Agent("A"), []

    @agent.capability("GO")
    async def go(n: int) -> int:
        return n

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(ROOT)) and not code.co_name.startswith("<"):
            steps.append((str(Path(code.co_filename).relative_to(ROOT)), code.co_qualname))

    async with Node([agent], clock=VirtualClock(), lag_ms=None) as node:
        for n in range(3):
            await node.call("A", "GO", {"n": n}, user_id="u")
        sys.setprofile(note)
        try:
            await node.call("A", "GO", {"n": 4}, user_id="u")
        finally:
            sys.setprofile(None)
    return [step for step in steps if "virtual" not in step[0]]


def walk() -> Walk:
    """Return the walk of one warm call on a node without a store."""
    return Walk(asyncio.run(_called()))


def drawn(found: Walk) -> str:
    """Return the walk as a table."""
    lines = [
        f"{len(found.steps)} function calls, {len(found.stays) - 1} switches between files, {found.files} files.",
        "",
        "| | file | functions |",
        "|---|---|---|",
    ]
    for number, (file, names) in enumerate(found.stays, 1):
        lines.append(f"| {number} | `{file}` | {', '.join(f'`{name}`' for name in dict.fromkeys(names))} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Draw the walk, or compare it."""
    page = PAGE.read_text()
    head, _, rest = page.partition(MARKS[0])
    _, _, tail = rest.partition(MARKS[1])
    new = head + MARKS[0] + drawn(walk()) + MARKS[1] + tail
    if "--check" in sys.argv:
        return int(new != page)
    PAGE.write_text(new)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
