"""The recorded answers of a real Tempo for the tests that compare with them, and how many were met."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tempo_dir() -> Path:
    """The folder with Tempo's own query corpus and recorded answers, which is not part of this repository."""
    default = Path(__file__).parents[4] / "shared" / "tempo"
    folder = Path(os.environ.get("COMITY_TEMPO_DIR", default))
    if not (folder / "answers.json").is_file():
        pytest.skip(f"no recorded answers of Tempo in {folder}; set COMITY_TEMPO_DIR to the folder that has them")
    return folder


_AGREED = pytest.StashKey[list[str]]()


@pytest.fixture
def report_agreement(request: pytest.FixtureRequest):
    """Print `what: n of m` at the end of the run."""

    def report(what: str, agreed: int, total: int) -> None:
        request.config.stash.setdefault(_AGREED, []).append(f"{what}: {agreed} of {total}")

    return report


_FORMS = pytest.StashKey[list[tuple[str, str]]]()


@pytest.fixture
def report_form(request: pytest.FixtureRequest):
    """Print a query of the protocol and its form in Tempo at the end of the run."""

    def report(written: str, strict: str) -> None:
        request.config.stash.setdefault(_FORMS, []).append((written, strict))

    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for written, strict in terminalreporter.config.stash.get(_FORMS, []):
        terminalreporter.write_line(f"{written}\n    {'as it is' if written == strict else strict}")
    if lines := terminalreporter.config.stash.get(_AGREED, []):
        terminalreporter.write_line("Agreement with Tempo: " + ", ".join(lines))
