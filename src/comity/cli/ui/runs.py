"""Runs of workflows on a terminal: their events as lines, their state, the questions that are open."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from comity import Reply
from comity.cli.ui.ids import short
from comity.cli.ui.output import Output, clean, cut
from comity.core.workflow.draw import lines

if TYPE_CHECKING:
    from comity.workflow import Definition, RunEvent, RunHandle, RunRecord

_LOOK_S = 0.05


def states(record: RunRecord, events: list[RunEvent]) -> dict[str, str]:
    """Return what became of each node of a run."""
    found: dict[str, str] = {}
    for event in events:
        if not event.node:
            continue
        match event.kind:
            case "scheduled":
                found[event.node] = "running"
            case "asked" | "listening":
                found[event.node] = "waiting"
            case "settled":
                found[event.node] = "done" if event.status in {"success", "partial", "completed"} else "failed"
            case "answered" | "fired":
                found[event.node] = "done"
    if record.status.has_ended:
        found = {node: "skipped" if state in {"running", "waiting"} else state for node, state in found.items()}
    return found


def line(event: RunEvent, begin_ms: int) -> str:
    """Return one event as a line."""
    at = f"{event.at_ms - begin_ms:>8} ms"
    place = f"  {event.place}" if event.place else ""
    told = f"  {event.status}" if event.status else ""
    if event.kind == "asked":
        told = f"  {event.data['question_id']}: {event.data['text']}"
    elif event.kind == "settled" and isinstance(event.data, Mapping) and event.data.get("message"):
        told += f"  {event.data['message']}"
    return clean(cut(f"{at}  {event.kind:<10}{place}{told}"))


async def follow(handle: RunHandle, out: Output, *, stays: bool) -> Reply[Any] | None:
    """Show a run until it has ended, or only waits for people or events; None if it waits."""
    ended = asyncio.ensure_future(handle.result())
    shown = asyncio.ensure_future(_print(handle, out, stays=stays))
    try:
        while not ended.done():
            await asyncio.wait([ended], timeout=_LOOK_S)
            record = handle.record
            if not ended.done() and record.status == "waiting" and (record.questions or record.waits_for):
                return None
        return ended.result()
    finally:
        for task in (ended, shown):
            task.cancel()
        await asyncio.gather(ended, shown, return_exceptions=True)


async def _print(handle: RunHandle, out: Output, *, stays: bool) -> None:
    begin: int | None = None
    async for event in handle.events():
        begin = event.at_ms if begin is None else begin
        if stays or out.err.is_terminal:
            out.err.print(line(event, begin), soft_wrap=True)


def show_questions(record: RunRecord, out: Output) -> None:
    """Write what a run waits for, and how to answer."""
    for question in record.questions:
        offered = f" ({', '.join(map(str, question.options))})" if question.options else ""
        out.text(clean(f"{question.question_id}  {question.text}{offered}"))
    for event in record.waits_for:
        out.text(clean(f"waits for the event {event}"))
    if record.questions:
        first = record.questions[0].question_id
        out.hint(f"\ncomity workflow answer {shlex.quote(short(record.run_id))} {first} ANSWER", is_copied=True)


def show_record(record: RunRecord, definition: Definition, events: list[RunEvent], out: Output) -> None:
    """Write a run as it stands: its state, its graph with what became of each node, its questions."""
    out.text(clean(f"{record.run_id}  {record.workflow} {record.version}  {record.status}"))
    if record.error_code:
        out.text(clean(f"{record.error_code}: {record.error_message}"))
    out.text(
        f"steps {record.steps}, calls {record.calls}, tokens {record.tokens}"
        + (f", cost {record.cost:g} {record.currency}".rstrip() if record.cost else "")
        + (f", {record.unpriced_tokens:,} tokens without a price" if record.unpriced_tokens else "")
    )
    out.text("\n".join(clean(one) for one in lines(definition, states(record, events))))
    show_questions(record, out)


def plain(value: Any) -> Any:
    """Return a value as plain data."""
    return msgspec.to_builtins(value)
