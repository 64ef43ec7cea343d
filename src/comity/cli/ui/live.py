"""Watching a call: its tree, live on a terminal, as plain lines elsewhere."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from comity import CallHandle, Reply
from comity.cli.ui.output import clean
from comity.cli.ui.tree import CallTree, called, short
from comity.core.units import NS_PER_MS

if TYPE_CHECKING:
    from rich.console import Console

    from comity.runtime.call.events import Event

_REFRESHES_PER_SECOND = 12


async def follow(handle: CallHandle, console: Console, *, stays: bool) -> Reply:
    """Show a call until it has ended and return its reply; what was shown stays only if it is part of the result."""
    tree = CallTree()
    if not console.is_terminal:
        begin: int | None = None
        async for event in handle.events():
            begin = event.at_ms if begin is None else begin
            if stays and (line := _line(event, event.at_ms - begin)):
                console.print(line, soft_wrap=True)
        return await handle.reply()
    from rich.live import Live

    with Live(
        get_renderable=lambda: tree.draw(now_ms=time.time_ns() // NS_PER_MS),
        console=console,
        transient=not stays,
        refresh_per_second=_REFRESHES_PER_SECOND,
    ):
        async for event in handle.events():
            tree.take(event)
        return await handle.reply()


def _line(event: Event, at_ms: int) -> str:
    """Return one event as a line; a call's waiting in line is not worth one."""
    call = f"{at_ms:>6} ms  {called(event.target, event.capability)}"
    what = f"{call}  {event.kind}"
    match event.kind:
        case "queued":
            return ""
        case "settled":
            code = f" {event.data['code']}" if event.data["code"] else ""
            return clean(f"{call}  {event.data['status']}{code}")
        case "refused":
            return clean(f"{what} {event.data['code']}: {event.data['message']}")
        case "progress" | "text":
            return clean(f"{what} {short(event.data)}")
    return clean(what)
