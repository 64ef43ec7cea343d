"""Learn the weights by which `split` tells a next step from a task beside it.

Logistic regression over the signs of neighbouring parts in labelled requests. Prints, for each file, how the weights learnt
from all the others judge it; with --write also learns from all files and writes the table of weights.
"""

from __future__ import annotations

import argparse
import math
import random
from pathlib import Path
from typing import Any

import yaml

from comity.core.orchestration.split.connectives import Link
from comity.core.orchestration.split.evidence import signs
from comity.core.orchestration.split.order import is_order_said
from comity.core.orchestration.split.reference import refers_back
from comity.core.orchestration.split.split import pieces_of

TABLE = Path(__file__).parents[1] / "src/comity/core/orchestration/split/weights.py"
ROUNDS = 60
RATE = 0.1
DECAY = 0.01
LEAST = 0.2  # smaller weights are left out
LINE_MAX = 125  # characters of a line of the table, without its margin
MARGIN = 0.5  # taken off the constant: a task beside another is the more common
Row = tuple[bool, list[str]]


def rows(cases: dict[str, list[Any]]) -> list[Row]:
    """Return the signs of every pair of neighbours in a list that no pronoun ties, and whether the second follows the first."""
    found: list[Row] = []
    for kind in ("sequential", "parallel", "mixed"):
        for text, stages in cases.get(kind, []):
            pieces = pieces_of(text)
            texts = [one.text for one in pieces]
            depth = [next((at for at, words in enumerate(stages) if _has(one, words)), None) for one in texts]
            if len(pieces) != sum(map(len, stages)) or None in depth:
                continue
            for at in range(1, len(pieces)):
                if pieces[at].link is Link.AND and not refers_back(texts[at], "; ".join(texts[:at])):
                    shown = signs(texts, at, is_told=is_order_said(pieces, at))
                    found.append((depth[at] > depth[at - 1], shown))  # type: ignore[operator]
    return found


def _has(text: str, words: list[str]) -> bool:
    return any(str(word).casefold() in text.casefold() for word in words)


def learn(data: list[Row]) -> dict[str, float]:
    """Return the weight of each sign."""
    weights: dict[str, float] = {}
    shuffled, order, rate = list(data), random.Random(1), RATE  # noqa: S311  the same order every time
    share = sum(is_next for is_next, _ in data) / len(data)
    cost = {True: math.sqrt(0.5 / share), False: math.sqrt(0.5 / (1 - share))}
    for _ in range(ROUNDS):
        order.shuffle(shuffled)
        for is_next, names in shuffled:
            likely = 1 / (1 + math.exp(-sum(weights.get(name, 0.0) for name in names)))
            step = (likely - is_next) * cost[is_next]
            for name in names:
                known = weights.get(name, 0.0)
                weights[name] = known - rate * (step + DECAY * known)
        rate *= 0.95
    weights["always"] -= MARGIN
    return weights


def table(weights: dict[str, float]) -> dict[str, float]:
    """Return the weights that are large enough to matter, rounded."""
    return {name: round(weight, 2) for name, weight in weights.items() if abs(weight) >= LEAST}


def judge(weights: dict[str, float], data: list[Row]) -> tuple[int, int, int, int]:
    """Return how many next steps were found of how many, and how many tasks were taken for steps of how many."""
    said = [(is_next, sum(weights.get(name, 0.0) for name in names) > 0) for is_next, names in data]
    steps = [got for is_next, got in said if is_next]
    tasks = [got for is_next, got in said if not is_next]
    return sum(steps), len(steps), sum(tasks), len(tasks)


def main() -> None:
    """Print the figures, and write the table if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, help="labelled requests, as in tests/core/orchestration/split")
    parser.add_argument("--write", action="store_true", help=f"write {TABLE.name}")
    options = parser.parse_args()
    if missing := [str(file) for file in options.files if not file.is_file()]:
        parser.error(f"there is no file {', '.join(missing)}")
    names = sorted(map(str, options.files))
    data = {name: rows(yaml.safe_load(Path(name).read_text())) for name in names}
    total = (0, 0, 0, 0)
    for name in names:
        found = judge(learn([row for other in names if other != name for row in data[other]]), data[name])
        total = tuple(map(sum, zip(total, found, strict=True)))  # type: ignore[assignment]
        print(
            f"{Path(name).stem:<24}next steps {found[0]:>3} of {found[1]:<4} tasks taken for steps {found[2]:>3} of {found[3]}"
        )
    print(f"{'all':<24}next steps {total[0]:>3} of {total[1]:<4} tasks taken for steps {total[2]:>3} of {total[3]}")
    if options.write:
        weights = table(learn([row for name in names for row in data[name]]))
        TABLE.write_text(source(weights))


def source(weights: dict[str, float]) -> str:
    """Return the module with a table of weights, as many in a line as it takes."""
    lines = [""]
    for name, weight in sorted(weights.items()):
        entry = f' "{name}": {weight},'
        if len(lines[-1]) + len(entry) > LINE_MAX:
            lines.append("")
        lines[-1] += entry
    told = '"""Weights of the signs in `evidence`, written by `scripts/fit_split.py`."""'
    table = ["WEIGHTS: Final = {", *(f"   {line}" for line in lines), "}  # fmt: skip"]
    return "\n".join([told, "", "from typing import Final", "", *table, ""])


if __name__ == "__main__":
    main()
