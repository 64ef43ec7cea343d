"""The business case as a document: figures in, Markdown out, and the one place that writes it to disk."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from comity.demo.finance import Outlook
from comity.errors import CallerError

# Stands at the end of every document made here, so that no other file is ever replaced.
MARK: Final = "<!-- made by comity demo -->"
# Seed figures: the inputs the protocol document gives, what it prints for them, and what they give.
_SEED_FLOWS: Final = (-100_000.0, 25_000.0, 35_000.0, 45_000.0, 55_000.0)
_SEED_RATE: Final = 0.12
_SEED_PRINTS: Final = 24_156.72


@dataclass(frozen=True, slots=True)
class Assessed:
    """A scenario and what it is worth. A figure that is None does not exist, or is `missing`: no agent could work it out."""

    name: str
    story: str
    cash_flows: list[float]
    npv: float | None
    irr: float | None
    payback_years: float | None
    missing: list[str]


def recommend(scenarios: Sequence[Assessed], outlook: Outlook | None) -> str:
    """Return what the figures say, in two sentences."""
    base = next((one.npv for one in scenarios if one.name == "base"), None)
    worst = min((one.npv for one in scenarios if one.npv is not None), default=None)
    if base is None or worst is None:
        return "Not enough is known to recommend anything. Complete the figures first."
    risk = "" if outlook is None else f" The simulation ends in a loss in {outlook.loss_probability:.0%} of its runs."
    if base < 0:
        return f"Do not enter: even as planned the case loses {-base:,.2f}.{risk}"
    if worst >= 0:
        return f"Enter: every scenario earns more than the capital costs.{risk}"
    return f"Enter in steps, and stop if sales follow the worst scenario, which loses {-worst:,.2f}.{risk}"


def render(
    title: str, request: str, discount_rate: float, scenarios: Sequence[Assessed], outlook: Outlook | None, notes: Sequence[str]
) -> str:
    """Return the business case as Markdown."""
    years = max(len(one.cash_flows) for one in scenarios)
    lines = [
        f"# {_plain(title)}",
        "",
        f"> {_plain(request)}",
        "",
        "## Recommendation",
        "",
        recommend(scenarios, outlook),
        "",
        "## What each scenario is worth",
        "",
        f"Discounted at {_percent(discount_rate)} a year.",
        "",
        "| scenario | NPV | IRR | payback |",
        "|---|---:|---:|---:|",
        *(f"| {one.name} | {_money(one.npv)} | {_percent(one.irr)} | {_payback(one)} |" for one in scenarios),
        "",
        "## Cash flows",
        "",
        f"| scenario | {' | '.join('today' if year == 0 else f'year {year}' for year in range(years))} |",
        f"|---|{'---:|' * years}",
        *(f"| {one.name} | {' | '.join(_money(flow) for flow in one.cash_flows)} |" for one in scenarios),
        "",
        *(f"- *{one.name}*: {one.story}" for one in scenarios),
        "",
    ]
    if outlook is not None:
        lines += ["## How sure this is", "", _certainty(outlook), ""]
    all_notes = [*_seed_note(scenarios, discount_rate), *(_plain(note) for note in notes)]
    if all_notes:
        lines += ["## Notes", "", *(f"- {note}" for note in all_notes), ""]
    return "\n".join([*lines, MARK, ""])


def write(text: str, path: Path) -> None:
    """Write the document in one step; a file that was not made here is left alone."""
    if path.exists() and not _is_ours(path):
        raise CallerError(f"{path} exists and is not a document of this demo; name another file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            Path(draft).chmod(0o644)
            Path(draft).replace(path)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise CallerError(f"{path} cannot be written: {error.strerror or error}") from error


def _is_ours(path: Path) -> bool:
    try:
        return MARK in path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def _certainty(outlook: Outlook) -> str:
    return (
        f"{outlook.trials:,} simulated runs of the base scenario (seed {outlook.seed}): in nine of ten the NPV lies between "
        f"{_money(outlook.low)} and {_money(outlook.high)}, half of them are above {_money(outlook.median)}, and "
        f"{outlook.loss_probability:.1%} end in a loss."
    )


def _seed_note(scenarios: Sequence[Assessed], discount_rate: float) -> list[str]:
    if discount_rate != _SEED_RATE:
        return []
    return [
        f"The {one.name} scenario has the cash flows of the protocol's own example, which prints {_SEED_PRINTS:,.2f} for them. "
        f"{_money(one.npv)} is what these inputs give."
        for one in scenarios
        if tuple(one.cash_flows) == _SEED_FLOWS
    ]


def _plain(text: str) -> str:
    """Return text on one line that cannot become markup of its own."""
    line = " ".join(text.split())
    return "".join(f"\\{character}" if character in "\\`*_[]<>#|" else character for character in line)


def _money(value: float | None) -> str:
    if value is None:
        return "n/a"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def _percent(value: float | None) -> str:
    return "n/a" if value is None else f"{f'{value * 100:.2f}'.rstrip('0').rstrip('.')} %"


def _payback(scenario: Assessed) -> str:
    if scenario.payback_years is not None:
        return f"{scenario.payback_years:.1f} years"
    return "n/a" if "payback" in scenario.missing else "never"
