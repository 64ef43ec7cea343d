"""Judge the comparison of values on labelled pairs, `check_conflicts.py FILE`, and list with --verbose what it got wrong.

The file is YAML or JSON: by relation (agree, conflict, unknown, gap, different) a list of [path, one value, other value].
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import yaml

from comity.core.orchestration.conflict import Finding, Relation, compare

Judged = list[tuple[Relation, list[Any], Finding]]


def judged(cases: dict[str, list[list[Any]]]) -> Judged:
    """Return the finding for every pair, beside the relation it was labelled with."""
    return [(Relation(kind), pair, compare(pair[1], pair[2], pair[0])) for kind, pairs in cases.items() for pair in pairs]


def missed(found: Judged) -> int:
    """Return how many conflicts were taken for something else."""
    return sum(label is Relation.CONFLICT and got.relation is not Relation.CONFLICT for label, _, got in found)


def main(arguments: list[str]) -> int:
    """Print how many pairs are right, by relation, and how many conflicts are missed or invented."""
    names = [one for one in arguments if not one.startswith("-")]
    cases = yaml.safe_load(Path(names[0]).read_text())
    began = time.process_time()
    found = judged(cases)
    each_us = 1e6 * (time.process_time() - began) / max(len(found), 1)
    for relation in Relation:
        of_kind = [got.relation is label for label, _, got in found if label is relation]
        if of_kind:
            print(f"{relation:<10}{sum(of_kind):>4} of {len(of_kind):<4}{100 * sum(of_kind) / len(of_kind):>6.1f} %")
    if "--verbose" in arguments:
        for label, pair, got in found:
            if got.relation is not label:
                print(f"    {label}: {pair} → {got}")
    right = sum(got.relation is label for label, _, got in found)
    invented = sum(label is not Relation.CONFLICT and got.relation is Relation.CONFLICT for label, _, got in found)
    print(f"{'all':<10}{right:>4} of {len(found):<4}{100 * right / len(found):>6.1f} %")
    print(f"{missed(found)} conflicts missed, {invented} invented")
    print(f"{each_us:.0f} µs CPU a pair")
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
