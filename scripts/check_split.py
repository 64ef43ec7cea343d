"""Judge the splitter on labelled requests, `check_split.py FILE`, and list with --verbose what it got wrong.

The file is YAML or JSON: by kind a list of texts or of [text, stages], each stage a list of words that name its parts. A text
alone is judged by its kind: `single` is one part, `sequential` parts one after the other, `parallel` parts that wait for none.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

from comity.core.orchestration.split import Plan, split

Stages = list[list[str]]


def is_right(plan: Plan, stages: Stages) -> bool:
    """Return whether a plan has the stages asked for, each part recognised by its word."""
    if [len(stage) for stage in plan.stages] != [len(stage) for stage in stages]:
        return False
    for places, words in zip(plan.stages, stages, strict=True):
        texts = [plan.parts[at].text.casefold() for at in places]
        if any(sum(str(word).casefold() in text for text in texts) != 1 for word in words):
            return False
    return True


def is_of_kind(plan: Plan, kind: str) -> bool:
    """Return whether a plan has the shape of its kind; any other kind has several parts, some of which wait for others."""
    sizes = [len(stage) for stage in plan.stages]
    if kind == "single":
        return sizes == [1]
    if kind == "sequential":
        return len(sizes) > 1 and max(sizes) == 1
    return sizes[0] > 1 and len(sizes) == 1 if kind == "parallel" else len(sizes) > 1 and max(sizes) > 1


def judged(cases: dict[str, list[Any]]) -> dict[str, list[tuple[str, Plan, bool]]]:
    """Return the plan of every case and whether it is right, by kind."""
    found: dict[str, list[tuple[str, Plan, bool]]] = {}
    for kind, listed in cases.items():
        for case in listed:
            text, stages = (case, None) if isinstance(case, str) else (str(case[0]), case[1])
            plan = split(text)
            is_good = is_of_kind(plan, kind) if stages is None else is_right(plan, stages)
            found.setdefault(kind, []).append((text, plan, is_good))
    return found


def main(arguments: list[str]) -> int:
    """Print the share of right plans by kind."""
    is_verbose = "--verbose" in arguments
    names = [one for one in arguments if not one.startswith("-")]
    found = judged(yaml.safe_load(Path(names[0]).read_text()))
    for kind, cases in found.items():
        right = sum(is_good for _, _, is_good in cases)
        print(f"{kind:<12}{right:>4} of {len(cases):<4}{100 * right / len(cases):>6.1f} %")
        for text, plan, is_good in cases:
            if is_verbose and not is_good:
                print(f"    {text!r}\n        {[(part.text, part.after) for part in plan.parts]}")
    total = [is_good for cases in found.values() for _, _, is_good in cases]
    print(f"{'all':<12}{sum(total):>4} of {len(total):<4}{100 * sum(total) / len(total):>6.1f} %")
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
