"""How a reply is shown, and which exit code it means."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from comity import Reply, Status
from comity.cli.ui.exits import Exit
from comity.cli.ui.output import Output, clean
from comity.cli.ui.tree import STYLES
from comity.core.envelope.usage import cost_words
from comity.errors import CallerError, family

_UNKNOWN = {"ROUTING_UNKNOWN_AGENT", "ROUTING_UNKNOWN_CAPABILITY"}


def exit_of(reply: Reply) -> Exit:
    """Return the exit code of a reply."""
    if reply.ok:
        return Exit.OK
    code = reply.error.code if reply.error is not None else ""
    if code == "STORE_UNAVAILABLE":
        return Exit.DAMAGED
    if reply.status is not Status.REFUSED:
        return Exit.NO_RESULT
    if code in _UNKNOWN:
        return Exit.NOT_FOUND
    is_input = family(code) is CallerError and not code.startswith("ROUTING_")
    return Exit.USAGE if is_input else Exit.REFUSED


def document(reply: Reply) -> dict[str, Any]:
    """Return a reply as plain data, every field always there."""
    error = reply.error
    return {
        "request_id": reply.request_id,
        "status": str(reply.status),
        "data": reply.data,
        "message": reply.message,
        "confidence": reply.confidence,
        "warnings": list(reply.warnings),
        "degraded": reply.degraded,
        "error": None
        if error is None
        else {
            "code": error.code,
            "message": error.message,
            "retryable": error.retryable,
            "retry_after_ms": error.retry_after_ms,
            "advice": error.advice,
            "problems": [{"path": problem.path, "message": problem.message} for problem in error.problems],
        },
        "usage": {
            "prompt_tokens": reply.usage.prompt_tokens,
            "completion_tokens": reply.usage.completion_tokens,
            "calls": reply.usage.calls,
            "cost": msgspec.to_builtins(reply.usage.cost),
        },
        "duration_ms": reply.duration_ms,
        "exit_code": int(exit_of(reply)),
    }


def show(reply: Reply, out: Output) -> None:
    """Write a reply for people: how it ended, what came out, what to know about it."""
    from rich.text import Text

    line = Text(str(reply.status), f"bold {STYLES[reply.status]}")
    if reply.error is not None:
        line.append(f"  {clean(reply.error.code)}", "red")
    if reply.status is not Status.REFUSED:
        line.append(f"  {reply.duration_ms:,.1f} ms", "dim")
    if reply.confidence is not None:
        line.append(f"  confidence {reply.confidence:g}", "dim")
    if tokens := reply.usage.total_tokens:
        line.append(f"  {tokens:,} tokens, {cost_words(reply.usage.cost, tokens)}", "dim")
    if reply.degraded:
        line.append("  degraded", "yellow")
    out.text(line)
    if reply.error is not None:
        problems = "\n".join(f"{problem.path}: {problem.message}" for problem in reply.error.problems)
        out.text(problems if len(reply.error.problems) > 1 else reply.error.message)
        if reply.error.retry_after_ms is not None:
            out.text(f"Try again after {reply.error.retry_after_ms:,} ms.")
        if reply.error.advice:
            out.text(reply.error.advice, style="italic")
    elif reply.message:
        out.text(reply.message)
    for warning in reply.warnings:
        out.text(Text("warning: ", "yellow") + Text(clean(warning)))
    if reply.data is not None:
        out.text(json.dumps(reply.data, indent=2, ensure_ascii=False), is_copied=True)
