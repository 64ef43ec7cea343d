"""`comity demo`: four agents build a business case, then a loop is refused and a breaker trips, all on a real store."""

from __future__ import annotations

import argparse
import asyncio
import shlex
import time
from pathlib import Path
from typing import Any, NamedTuple

from comity import Node, Reply
from comity.cli.ui import app
from comity.cli.ui.exits import CliError, Exit
from comity.cli.ui.live import follow
from comity.cli.ui.output import Output
from comity.cli.ui.reply import document, exit_of


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--out", metavar="FILE", default="business-case.md", help="where to write the case (./business-case.md)"
    )
    parser.add_argument("--seed", metavar="N", type=int, default=2025, help="random seed (default: 2025)")


class Acts(NamedTuple):
    """What the demo did; the later acts are not there if the case failed."""

    case: Reply
    loop: Reply | None = None
    failures: int = 0
    turned_away: Reply | None = None
    degraded: Reply | None = None


def run(args: argparse.Namespace, out: Output) -> Exit:
    """Run the demo."""
    app.record_content()
    begin = time.perf_counter()
    acts = asyncio.run(_perform(args, out))
    seconds = time.perf_counter() - begin
    if out.is_json:
        out.document(_document(acts, args, seconds))
        return exit_of(acts.case)
    if not acts.case.ok:
        error = acts.case.error
        assert error is not None
        hint = "" if error.code == "INPUT_VALIDATION_FAILED" else error.advice  # its message says what to correct
        raise CliError(exit_of(acts.case), error.message, hint=hint, error_code=error.code)
    _show_next(acts, seconds, out)
    return Exit.OK


async def _perform(args: argparse.Namespace, out: Output) -> Acts:
    from comity.demo import agents
    from comity.demo.team import REQUEST

    async with app.open_node(Node(agents), args.store) as node:
        stage = _Stage(node, args, out)
        stage.say(f"Four agents (ORC, CST, ANL, DOC) and one request: “{REQUEST}”.\n", style="bold")
        inputs = {"request": REQUEST, "seed": args.seed, "out": args.out}
        case = await stage.call("ORC", "ORC_BUSINESS_CASE", inputs)
        if not case.ok:
            return Acts(case)
        _show_case(case, stage)

        stage.say("\nWhat if two agents ask each other for an opinion first?\n", style="bold")
        loop = await stage.call("CST", "CST_OPINION", {"question": "Should we enter?"})
        stage.say(
            "\nThe second call to CST was refused before anything was sent: CST was already waiting for ANL. ANL read why and"
            " answered with what it had, so no call waits for ever and nothing loops."
        )

        stage.say("\nWhat if something an agent depends on is down?\n", style="bold")
        failures = 0
        while (price := await stage.node.call("ANL", "ANL_MARKET_PRICE", user_id=args.user)).status == "error":
            failures += 1
        size = await stage.node.call("ANL", "ANL_MARKET_SIZE", user_id=args.user)
        _show_breaker(failures, price, size, stage)
    return Acts(case, loop, failures, price, size)


class _Stage:
    """Calls that are shown while they run."""

    def __init__(self, node: Node, args: argparse.Namespace, out: Output) -> None:
        self.node = node
        self._args = args
        self._out = out

    async def call(self, target: str, capability: str, inputs: dict[str, Any]) -> Reply:
        """Make a call and let its tree be seen."""
        handle = self.node.start_call(target, capability, inputs, user_id=self._args.user, timeout_ms=self._args.timeout_ms)
        console = self._out.err if self._out.is_json else self._out.out
        return await follow(handle, console, stays=not self._out.is_json)

    def say(self, text: str, style: str = "") -> None:
        """Tell the reader something."""
        if not self._out.is_json:
            self._out.text(text, style=style)


def _show_case(reply: Reply, stage: _Stage) -> None:
    stage.say("")
    for one in reply.data["scenarios"]:
        npv, irr, years = (one[figure] for figure in ("npv", "irr", "payback_years"))
        worth = "n/a" if npv is None else f"{npv:,.2f}"
        rate = "n/a" if irr is None else f"{irr:.1%}"
        back = "n/a" if years is None else f"{years:.1f} years"
        stage.say(f"  {one['name']:<13} NPV {worth:>11}   IRR {rate:>6}   payback {back}")
    stage.say(f"\n{reply.message}")


def _show_breaker(failures: int, turned_away: Reply, degraded: Reply, stage: _Stage) -> None:
    error = turned_away.error
    assert error is not None
    stage.say(f"  ANL ANL_MARKET_PRICE failed {failures} times in a row; its breaker opened. The next call:")
    stage.say(f"  refused  {error.code}  retry_after_ms={error.retry_after_ms}", style="red")
    stage.say("  ANL ANL_MARKET_SIZE depends on the same feed, but has a fallback:")
    stage.say(f"  {degraded.status}  degraded  {degraded.warnings[0]}", style="yellow")
    stage.say("\nA capability that keeps failing is left alone for a while, and callers learn at once how long.")


def _show_next(acts: Acts, seconds: float, out: Output) -> None:
    out.text(
        f"\nThe business case is in {acts.case.data['document']} ({seconds:.1f} s). Every call is in the audit:", style="bold"
    )
    request_id = shlex.quote(acts.case.request_id)
    for command, what in (
        (f"comity show {request_id}", "this call tree"),
        ("comity calls", "all calls so far"),
        ("comity audit verify", "that no row was changed, removed or reordered"),
        ("comity agents --app comity.demo:agents", "who these agents are; try `comity call`"),
    ):
        out.hint(f"  {command}  # {what}", style="", is_copied=True)


def _document(acts: Acts, args: argparse.Namespace, seconds: float) -> dict[str, Any]:
    found: dict[str, Any] = {
        "store": str(Path(args.store).absolute()),
        "seconds": round(seconds, 3),
        "case": document(acts.case),
    }
    if acts.loop is not None and acts.turned_away is not None and acts.degraded is not None:
        found["cycle"] = document(acts.loop)
        found["breaker"] = {
            "failures": acts.failures,
            "turned_away": document(acts.turned_away),
            "fallback": document(acts.degraded),
        }
    found["exit_code"] = int(exit_of(acts.case))
    return found
