"""How many of a real Tempo's answers were met, told at the end of a run."""

from __future__ import annotations

import pytest

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
