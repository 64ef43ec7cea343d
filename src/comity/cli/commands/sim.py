"""`comity sim`: play scenarios in the simulator, one seed with its whole timeline or many with a report."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from comity.cli.ui.app import look_here
from comity.cli.ui.arguments import at_least_one
from comity.cli.ui.exits import CliError, Exit
from comity.cli.ui.output import Output

if TYPE_CHECKING:
    from comity.testing.sim.campaign import Campaign
    from comity.testing.sim.report import Report
    from comity.testing.sim.world import Outcome

SEEDS_SHOWN = 3
IN_TURN = "storm"  # the scenarios of a long run


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    which = f"which one of those that --app names; `list` lists them; {IN_TURN} if not given: each seed plays those of its turn"
    parser.add_argument("--scenario", metavar="NAME", default=IN_TURN, help=which)
    parser.add_argument("--seed", type=int, metavar="N", help="play this seed and show everything that happened")
    parser.add_argument("--faults", metavar="SCHEDULE", help="with --seed: only these firings, as a failure printed them")
    parser.add_argument("--seeds", type=at_least_one, metavar="N", default=100, help="play N seeds and report (100)")
    parser.add_argument("--first", type=int, metavar="N", default=0, help="the first of the seeds (0)")
    parser.add_argument(
        "--complete", action="store_true", help="fail if a fault, mark, refusal or transition was never reached"
    )


def run(args: argparse.Namespace, out: Output) -> Exit:
    """Play."""
    campaign = _campaign(args)
    if args.scenario == "list":
        told = {name: (play.scenario.__doc__ or "").strip().partition("\n")[0] for name, play in campaign.plays.items()}
        if out.is_json:
            out.document({"scenarios": told})
        else:
            for name, line in told.items():
                out.text(f"{name:<48} {line}")
        return Exit.OK
    if args.scenario != IN_TURN and args.scenario not in campaign.plays:
        raise CliError(Exit.USAGE, f"no scenario {args.scenario!r}", hint="`comity sim --scenario list` lists them.")
    if args.faults is not None and args.seed is None:
        raise CliError(Exit.USAGE, "--faults is of one seed", hint="Name it with --seed, as the failure printed it.")
    return _one(args, campaign, out) if args.seed is not None else _many(args, campaign, out)


def _campaign(args: argparse.Namespace) -> Campaign:
    """Return the scenarios that --app names."""
    from comity.loading.registry_file import import_object
    from comity.testing.sim.campaign import Campaign

    hint = "Name a `comity.testing.Campaign` with --app module:attribute; docs/testing.md shows one."
    if not args.app:
        raise CliError(Exit.USAGE, "no scenarios are configured", hint=hint)
    look_here()
    found = import_object(args.app)
    if not isinstance(found, Campaign):
        raise CliError(Exit.USAGE, f"{args.app} is a {type(found).__name__}, not a Campaign", hint=hint)
    return found


def _names(args: argparse.Namespace, campaign: Campaign, seed: int) -> tuple[str, ...]:
    """Return the scenarios that a seed plays."""
    return campaign.in_turn[seed % len(campaign.in_turn)] if args.scenario == IN_TURN else (args.scenario,)


def _one(args: argparse.Namespace, campaign: Campaign, out: Output) -> Exit:
    from comity.testing.sim.faults import parse_schedule, schedule

    try:
        only = None if args.faults is None else parse_schedule(args.faults)
    except ValueError as error:
        raise CliError(Exit.USAGE, f"--faults: {error}") from None
    outcome = campaign.plays[_names(args, campaign, args.seed)[0]].run(args.seed, only=only)
    if out.is_json:
        out.document(
            {
                "seed": outcome.seed,
                "failure": outcome.failure,
                "invariant": outcome.invariant,
                "faults": [str(firing) for firing in outcome.fired],
                "marks": outcome.marks,
                "digest": outcome.trace.digest(),
                "trace": outcome.trace.lines(),
            }
        )
    else:
        for line in outcome.trace.lines():
            out.text(line, is_copied=True)
        out.text(f"seed {outcome.seed}: {outcome.failure or 'nothing wrong'}; trace {outcome.trace.digest()}")
        out.text(f"faults: {schedule(outcome.fired)}", is_copied=True)
    return Exit.OK if outcome.ok else Exit.NO_RESULT


def _many(args: argparse.Namespace, campaign: Campaign, out: Output) -> Exit:
    from comity.testing.sim.faults import schedule
    from comity.testing.sim.report import Report
    from comity.testing.sim.shrink import shrink

    def outcomes(seed: int) -> Iterator[tuple[str, Outcome]]:
        return ((name, campaign.plays[name].run(seed)) for name in _names(args, campaign, seed))

    report = Report()
    with out.busy(f"simulating {args.seeds:,} seeds"):
        report.run(range(args.first, args.first + args.seeds), outcomes)
    missing = _missing(args, campaign, report) if args.complete else []
    failures = []
    for name, outcome in report.failed[:SEEDS_SHOWN]:
        play = campaign.plays[name]
        smallest = shrink(outcome, lambda firings, seed=outcome.seed, play=play: play.run(seed, only=firings))  # type: ignore[misc]
        which = f"--app {shlex.quote(args.app)} --scenario {name} --seed {outcome.seed}"
        command = f"comity sim {which} --faults '{schedule(smallest.fired)}'"
        failures.append({"seed": outcome.seed, "failure": outcome.failure, "command": command})
    if out.is_json:
        out.document({**report.document(), "failures": failures, "missing": missing})
    else:
        _tell(report, failures, missing, out)
    return Exit.OK if not report.failed and not missing else Exit.NO_RESULT


def _tell(report: Report, failures: list[dict[str, Any]], missing: list[str], out: Output) -> None:
    for line in report.lines():
        out.text(line)
    for one in failures:
        out.text(f"\nseed {one['seed']}: {one['failure']}", style="bold red")
        out.text(f"see it again with the fewest faults: {one['command']}", is_copied=True)
    for name in missing:
        out.text(f"never reached: {name}", style="bold red")
    if missing and not failures:
        out.text("\nNothing that must hold was broken; what was never reached was not tested. More seeds reach more.")


def _missing(args: argparse.Namespace, campaign: Campaign, report: Report) -> list[str]:
    """Return what was never reached; of a long run that is every refusal too."""
    is_whole = args.scenario == IN_TURN
    play = campaign.whole if is_whole else campaign.plays[args.scenario]
    return report.missing(
        faults=[fault.kind for fault in play.faults],
        marks=play.marks,
        refusals=campaign.refusals if is_whole else (),
        machines=play.machines,
    )
