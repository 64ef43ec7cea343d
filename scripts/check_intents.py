"""Train and judge the default intent classifier on the data sets in a folder: `check_intents.py FOLDER [SET:SHOTS …]`.

A set is `NAME.json` with `train` and `test` (or `dev`) by intent, and `oos_test` (or `oos_train`, `oos_dev`) where there are
texts that no intent serves. `business.json` has capabilities with `description` and `examples`; its `test` texts stand in each
capability or in `business_test.json` by capability.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from comity.core.orchestration.intent import Classifier, Intent, Ranking

BINS = 15
ALL = (
    "business:4",
    "clinc150:1",
    "clinc150:5",
    "clinc150:10",
    "clinc150:100",
    "banking77:5",
    "banking77:10",
    "hwu64:5",
    "hwu64:10",
)
Cases = list[tuple[str, str]]  # text and its intent


def calibration_error(answers: list[tuple[float, bool]]) -> float:
    """Return the mean distance, in per cent, of confidence and share of right answers in bins of equal width."""
    bins: list[list[tuple[float, bool]]] = [[] for _ in range(BINS)]
    for confidence, is_right in answers:
        bins[min(BINS - 1, int(confidence * BINS))].append((confidence, is_right))
    gaps = (abs(sum(one for one, _ in held) - sum(right for _, right in held)) for held in bins)
    return 100 * sum(gaps) / max(len(answers), 1)


def read(folder: Path, name: str, shots: int) -> tuple[list[Intent], Cases, list[str]]:
    """Return the intents to learn from the first `shots` examples, the texts to judge by, and those out of scope."""
    data: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
    if "train" not in data:
        return _read_capabilities(folder, name, data, shots)
    intents = [Intent(intent, "", tuple(texts[:shots])) for intent, texts in sorted(data["train"].items())]
    judged: dict[str, list[str]] = data.get("test") or data["dev"]
    outside: list[str] = data.get("oos_test") or [*data.get("oos_train", ()), *data.get("oos_dev", ())]
    return intents, [(text, intent) for intent, texts in judged.items() for text in texts], outside


def _read_capabilities(folder: Path, name: str, data: dict[str, Any], shots: int) -> tuple[list[Intent], Cases, list[str]]:
    apart = folder / f"{name}_test.json"
    tests: dict[str, Any] = json.loads(apart.read_text()) if apart.exists() else {}
    entries = {code: entry for code, entry in sorted(data.items()) if isinstance(entry, dict) and "examples" in entry}
    intents = [Intent(code, one.get("description", ""), tuple(one["examples"][:shots])) for code, one in entries.items()]
    told = {code: tests.get(code) or one.get("test") or [] for code, one in entries.items()}
    outside: list[str] = tests.get("oos_test") or data.get("oos_test") or []
    return intents, [(text, code) for code, texts in told.items() for text in texts], outside


def judge(name: str, shots: int, intents: list[Intent], cases: Cases, outside: list[str]) -> None:
    """Learn, answer every text, print one row."""
    began = time.process_time()
    classifier = Classifier(intents)
    learnt_s = time.process_time() - began
    times: list[float] = []
    answers: list[tuple[Ranking, str]] = []
    for text, intent in cases:
        before = time.process_time()
        answers.append((classifier.rank(text), intent))
        times.append(1000 * (time.process_time() - before))
    total = max(len(answers), 1)
    right = [found.best[:1] == (intent,) for found, intent in answers]
    in_scope = sum(one and found.is_in_scope for one, (found, _) in zip(right, answers, strict=True))
    among_three = sum(intent in found.best for found, intent in answers)
    caught = sum(not classifier.rank(text).is_in_scope for text in outside)
    rejected = caught + sum(not found.is_in_scope for found, _ in answers)
    error = calibration_error([(found.confidence, one) for (found, _), one in zip(answers, right, strict=True)])
    times.sort()
    print(
        f"{name:<10}{shots:>5}{len(cases):>7}{100 * sum(right) / total:>8.1f}{100 * among_three / total:>9.1f}"
        f"{100 * in_scope / total:>10.1f}{_share(caught, len(outside)):>8}{_share(caught, rejected if outside else 0):>10}"
        f"{error:>8.1f}{times[len(times) // 2]:>8.2f}{times[len(times) * 99 // 100]:>7.2f}{learnt_s:>9.1f}",
        flush=True,
    )


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else "-"


def main(arguments: list[str]) -> int:
    """Judge every set of the folder that is asked for."""
    folder = Path(arguments[0])
    print("set       shots  texts   first   of 3    in scope  recall precision  calib  p50 ms p99 ms  learn s")
    for asked in arguments[1:] or ALL:
        name, _, shots = asked.partition(":")
        if not (folder / f"{name}.json").exists():
            print(f"{name:<10} no {name}.json in {folder}")
            continue
        intents, cases, outside = read(folder, name, int(shots or 5))
        if cases:
            judge(name, int(shots or 5), intents, cases, outside)
        else:
            print(f"{name:<10} has no texts to judge by")
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
