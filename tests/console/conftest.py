"""Fixtures of the browser tests (`browse_*.py`, run by `make test-console`): a served node, and pages of a real Chromium."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page
    from tests.console.stage import Stage

ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WAIT_MS = 60_000  # far beyond what a page needs, so that a busy machine fails no test
AXE = Path(__file__).parents[2] / "scripts/console/node_modules/axe-core/axe.min.js"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Return a Chromium of the system's packages."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=WAIT_MS)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=os.environ["COMITY_CHROMIUM"], args=ARGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Return a served node with a store of its own."""
    from tests.console.stage import Stage

    with Stage(tmp_path_factory.mktemp("stage")) as served:
        yield served


class Faults(list[str]):
    """What a page complained about: exceptions, and messages of the content policy."""


@pytest.fixture
def new_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Return a function that opens a page of a new browser profile; a page that raised fails its test."""
    contexts, faults = [], Faults()

    def make(expects: str = "", **options: Any) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, "timezone_id": "Europe/Berlin"} | options)
        context.set_default_timeout(WAIT_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        if not expects:
            page.on("console", lambda said: faults.append(said.text) if "Content Security" in said.text else None)
        return page

    yield make
    for context in contexts:
        context.close()
    assert not faults


@pytest.fixture
def page(new_page: Callable[..., Page], stage: Stage) -> Page:
    """Return a page that has signed in by a printed link."""
    signed_in = new_page()
    sign_in(signed_in, stage)
    return signed_in


def sign_in(page: Page, stage: Stage) -> None:
    """Open a sign-in link and wait until the frame is there."""
    page.goto(stage.link())
    page.get_by_role("navigation", name="Views").wait_for()
