"""`comity sim`: play a scenario of the simulator, one seed with its whole timeline or many with a report."""

from __future__ import annotations

import argparse

from comity.cli.exits import Exit
from comity.cli.output import Output

HELP = "simulate agents under faults: one seed with its timeline, or many with a report"
SEEDS_SHOWN = 3


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--scenario", metavar="NAME", default="mesh", help="which one (mesh); `list` lists them")
    parser.add_argument("--seed", type=int, metavar="N", help="play this seed and show everything that happened")
    parser.add_argument("--faults", metavar="SCHEDULE", help="with --seed: only these firings, as a failure printed them")
    parser.add_argument("--seeds", type=int, metavar="N", default=100, help="play so many seeds and report (100)")
    parser.add_argument("--first", type=int, metavar="N", default=0, help="the first of the seeds (0)")
    parser.add_argument("--complete", action="store_true", help="fail if a fault, mark or transition was never reached")


def run(args: argparse.Namespace, out: Output) -> Exit:
    """Play."""
    from comity.cli.exits import CliError
    from comity.testing.scenarios import SCENARIOS

    if args.scenario == "list":
        for name, play in SCENARIOS.items():
            told = (play.scenario.__doc__ or "").strip().partition("\n")[0]
            out.text(f"{name:<48} {told}")
        return Exit.OK
    if args.scenario not in SCENARIOS:
        raise CliError(Exit.USAGE, f"no scenario {args.scenario!r}", hint="`comity sim --scenario list` lists them.")
    return _one(args, out) if args.seed is not None else _many(args, out)


def _one(args: argparse.Namespace, out: Output) -> Exit:
    from comity.testing.faults import parse_schedule, schedule
    from comity.testing.scenarios import SCENARIOS

    only = None if args.faults is None else parse_schedule(args.faults)
    outcome = SCENARIOS[args.scenario].run(args.seed, only=only)
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


def _many(args: argparse.Namespace, out: Output) -> Exit:
    from comity.testing.faults import schedule
    from comity.testing.report import Report
    from comity.testing.scenarios import SCENARIOS
    from comity.testing.shrink import shrink

    play, report = SCENARIOS[args.scenario], Report()
    with out.busy(f"simulating {args.seeds:,} seeds"):
        report.run(range(args.first, args.first + args.seeds), play.run)
    missing = []
    if args.complete:
        missing = report.missing(faults=[fault.kind for fault in play.faults], marks=play.marks, machines=play.machines)
    for line in report.lines():
        out.text(line)
    for outcome in report.failed[:SEEDS_SHOWN]:
        smallest = shrink(outcome, lambda firings, seed=outcome.seed: play.run(seed, only=firings))  # type: ignore[misc]
        out.text(f"\nseed {outcome.seed}: {outcome.failure}", style="bold red")
        command = f"comity sim --scenario {args.scenario} --seed {outcome.seed} --faults '{schedule(smallest.fired)}'"
        out.text(f"see it again with the fewest faults: {command}", is_copied=True)
    for one in missing:
        out.text(f"never reached: {one}", style="bold red")
    return Exit.OK if not report.failed and not missing else Exit.NO_RESULT
