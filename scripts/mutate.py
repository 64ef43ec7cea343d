"""Plant small defects in the files that carry promises, one at a time, and print which of them no test notices.

A sample of the defects, the same for the same seed, is tried: for each, the tests that reach its block run, the nearest and
quickest first, until one fails or `--cpu` seconds of them have passed. Defects that change nothing that a caller or an operator
can see are argued in `tests/mutants.toml`, and do not count. The first run sees what each test reaches, which takes as long as
the tests do; later runs do so only for test files that changed.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from collections import Counter
from typing import NamedTuple

from mutation.defects import Mutant, sampled
from mutation.forked import Outcome, try_all
from mutation.reach import ROOT, reach


class Settings(NamedTuple):
    """What `tests/mutants.toml` says: the files, the folders of their tests, and the defects that change nothing."""

    files: list[str]
    tests: list[str]
    argued: set[tuple[str, str, str]]


def settings() -> Settings:
    told = tomllib.loads((ROOT / "tests/mutants.toml").read_text())
    argued = {(one["file"], one["before"], after) for one in told["argued"] for after in one["after"]}
    return Settings(sorted(told["files"]), told["tests"], argued)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=150, help="how many defects are tried (150)")
    parser.add_argument("--seed", type=int, default=1, help="which sample")
    parser.add_argument("--files", default="", help="only files whose path has a match of this pattern")
    parser.add_argument("--operators", default="", help="only operators whose name has a match of this pattern")
    parser.add_argument("--lines", default="", help="only lines that have a match of this pattern")
    parser.add_argument("--cpu", type=float, default=15, help="seconds of tests for one defect at most (15)")
    options = parser.parse_args()
    told = settings()
    reached = reach(told.files, told.tests)
    files = [file for file in told.files if re.search(options.files, file)]
    sample = sampled(files, options.sample, options.seed, operators=options.operators, lines=options.lines)
    tried = [mutant for mutant in sample if (mutant.file, mutant.before, mutant.after) not in told.argued]
    words: Counter[str] = Counter()
    spent: list[float] = []

    def tell(number: int, mutant: Mutant, outcome: Outcome) -> None:
        words[outcome.word] += 1
        spent.append(outcome.cpu_s)
        if outcome.word != "killed":
            print(f"{number:4} {outcome.word} {outcome.tests} tests, {outcome.cpu_s:.1f} s: {mutant.file}:{mutant.line}")
            print(f"       - {mutant.before}\n       + {mutant.after}", flush=True)
        elif number % 10 == 0:
            print(f"{number:4} tried", flush=True)

    try_all(tried, reached, options.cpu, tell)
    killed = len(tried) - words["survived"]
    print(
        f"killed {killed} of {len(tried)} ({killed / max(len(tried), 1):.1%}), {words['hung']} of them by hanging; "
        f"{len(sample) - len(tried)} argued; {sum(spent) / max(len(spent), 1):.1f} s of CPU a defect"
    )


if __name__ == "__main__":
    main()
