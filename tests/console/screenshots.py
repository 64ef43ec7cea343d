"""Make the pictures of the console in docs/images: each view, filled, light or dark. Run by `make screenshots`.

`python tests/console/screenshots.py FOLDER` makes the pictures of a review instead: every view, light and dark and as wide as a phone,
empty, full, while it loads, and with an API that fails. The lists of 100,000 calls are drawn by `tests.console.measure`.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from playwright.sync_api import Browser, Page, Route, sync_playwright  # noqa: E402
from tests.console.conftest import ARGS  # noqa: E402
from tests.console.stage import TOKEN, Stage  # noqa: E402

IMAGES = ROOT / "docs" / "images"
DRAWN_MS = 1_200
WIDE, PHONE = {"width": 1200, "height": 720}, {"width": 390, "height": 800}
# Takes the name of the folder, which is of this machine, out of every text of the page.
WITHOUT_FOLDER = """(folder) => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replaceAll(folder, '');
}"""
QUERY = "%7B%20name%20%3D%20%22invoke_agent%20ORC%22%20%7D"
FAILURE = {
    "title": "Service Unavailable",
    "status": 503,
    "code": "STORE_UNAVAILABLE",
    "detail": "the store cannot be read: disk full",
}
NOTHING = dict.fromkeys(("case", "loop", "handoff", "model"), "none")


def fill(stage: Stage) -> dict[str, str]:
    """Make calls that succeed, are refused, fail and wait for a person; return the ids that pictures open."""
    case = [stage.call("ORC", "ORC_BUSINESS_CASE", {"out": "business-case.md"}).request_id for _ in range(3)]
    loops = [stage.call("CST", "CST_OPINION", {"question": "Should we enter?"}).request_id for _ in range(4)]
    for _ in range(7):
        stage.call("ANL", "ANL_MARKET_PRICE")
    stage.call("CLERK", "CLERK_SETTLE", {"amount": 1200, "to": "ACME"}, message="Please pay the ACME invoice")
    stage.call(
        "SCRIBE", "SCRIBE_CONTACT", {"note": "write to ann@example.com"}, session_id="s-contact",
        message="My mail is ann@example.com, please write to bob@example.com",
    )  # fmt: skip
    stage.call("SCRIBE", "SCRIBE_REPORT", session_id="s-contact", message="What did you find?")
    stage.call("WIDE", "WIDE_FAN", {"count": 12})
    handed = [
        stage.hand_off("o11y", "investigate", task) for task in ("Find the cause of the latency spike", "Check the disks")
    ]
    stage.call("SCRIBE", "SCRIBE_QUOTE", {"product": "pump"}, session_id="s-contact", message="Be brief!")
    model = stage.call("MUSE", "message", message="Shall we enter the market?").request_id
    stage.flush_spans()
    return {"case": case[0], "loop": loops[0], "handoff": handed[0], "model": model}


def places(ids: dict[str, str]) -> dict[str, str]:
    """Return the address of every view that a review looks at, by its name."""
    return {
        "map": "#/map",
        "calls": "#/calls?all=1",
        "call": f"#/call/{ids['case']}",
        "call-why": f"#/call/{ids['loop']}?tab=why",
        "call-audit": f"#/call/{ids['case']}?tab=audit",
        "call-code": f"#/call/{ids['case']}?tab=code",
        "call-compare": f"#/call/{ids['case']}?tab=compare&with={ids['loop']}",
        "call-model": f"#/call/{ids['model']}?at={ids['model']}%231",
        "sessions": "#/sessions/s-contact",
        "handoffs": f"#/handoffs/{ids['handoff']}",
        "workflows": "#/workflows",
        "definitions": "#/workflows?tab=definitions&name=publish",
        "insights": "#/insights",
        "query-table": f"#/insights?tab=query&as=table&q={QUERY}",
        "query-tree": f"#/insights?tab=query&as=tree&q={QUERY}",
        "query-chart": "#/insights?tab=query&as=chart&q=%7B%20%7D%20%7C%20rate()%20by%20(name)",
        "guidance": "#/guidance",
        "guidance-edit": "#/guidance?tab=edit",
        "approvals": "#/approvals",
        "audit": "#/audit",
        "playground": "#/playground/ORC%20ORC_BUSINESS_CASE",
        "chat": "#/playground/MUSE%20message",
        "system": "#/system",
    }


def open_page(browser: Browser, scheme: str, size: dict[str, int]) -> Page:
    """Return a page of a new profile that is signed in."""
    context = browser.new_context(color_scheme=scheme, viewport=size)
    context.add_init_script(f"sessionStorage.setItem('comity.token', {json.dumps(TOKEN)})")
    return context.new_page()


def start_run(page: Page, stage: Stage) -> None:
    """Start the workflow of the stage from its page, and wait for its question."""
    page.goto(f"{stage.url}/console/#/workflows?tab=definitions&name=publish")
    page.get_by_label("input, JSON").fill('{"about": "bees"}')
    page.get_by_role("button", name="Start").click()
    page.get_by_role("form", name="Question").wait_for()


def take(page: Page, path: Path, folder: Path) -> None:
    """Write a picture of the page, without the folder of this machine."""
    page.wait_for_timeout(DRAWN_MS)
    page.evaluate(WITHOUT_FOLDER, f"{folder}/")
    page.screenshot(path=path, type="jpeg", quality=72)


def document(stage: Stage, browser: Browser, folder: Path) -> None:
    """Write the pictures of the documentation."""
    IMAGES.mkdir(exist_ok=True)
    ids = fill(stage)
    every = places(ids)
    pictures = {
        "map": ("light", every["map"]),
        "calls": ("dark", every["calls"]),
        "call": ("light", every["call"]),
        "refused": ("dark", every["call-why"]),
        "playground": ("light", every["playground"]),
        "chat": ("dark", every["chat"]),
        "handoffs": ("light", every["handoffs"]),
        "approvals": ("light", every["approvals"]),
        "sessions": ("dark", every["sessions"]),
        "audit": ("light", "#/audit?verify=1"),
        "insights": ("light", every["query-tree"]),
        "guidance": ("dark", every["guidance-edit"]),
        "workflows": ("light", ""),
        "system": ("light", every["system"]),
    }
    for name, (scheme, place) in pictures.items():
        page = open_page(browser, scheme, WIDE)
        if name == "workflows":
            start_run(page, stage)
        else:
            page.goto(f"{stage.url}/console/{place}")
        if name == "playground":
            page.get_by_role("button", name="Run", exact=True).click()
            page.get_by_role("link", name="Open the call").wait_for()
        if name == "chat":
            page.get_by_role("textbox", name="Message").fill("Shall we enter the market?")
            page.keyboard.press("Enter")
            page.locator(".turn.agent .chip", has_text="success").wait_for()
        take(page, IMAGES / f"console-{name}.jpg", folder)
        page.context.close()
    total = sum(path.stat().st_size for path in IMAGES.glob("console-*.jpg"))
    print(f"{len(pictures)} pictures, {total / 1000:,.0f} KB")  # noqa: T201


def looks() -> Iterator[tuple[str, str, dict[str, int]]]:
    """Yield each state of a review with the scheme and size in which it is looked at."""
    for state in ("empty", "full", "loading", "error"):
        for scheme in ("light", "dark"):
            yield state, scheme, WIDE
    yield "full", "light", PHONE


def review(stage: Stage, browser: Browser, folder: Path, into: Path) -> None:
    """Write a picture of every view in every state."""
    into.mkdir(parents=True, exist_ok=True)
    ids = NOTHING
    for state, scheme, size in looks():
        page = open_page(browser, scheme, size)
        if state != "empty" and ids is NOTHING:
            ids = fill(stage)
            start_run(page, stage)
        if state in {"loading", "error"}:
            page.route("**/v1/**", _held if state == "loading" else _failing)
        for name, place in places(ids).items():
            page.goto("about:blank")
            page.goto(f"{stage.url}/console/{place}")
            take(page, into / f"{state}-{scheme}-{size['width']}-{name}.jpg", folder)
        page.context.close()
    print(f"{len(list(into.glob('*.jpg')))} pictures in {into}")  # noqa: T201


def _is_frame(route: Route) -> bool:
    """Return whether a request is of the frame: who signs in, and the stream."""
    return route.request.url.split("?")[0].endswith(("/v1/me", "/v1/events"))


def _held(route: Route) -> None:
    if _is_frame(route):
        route.continue_()  # any other request is never answered


def _failing(route: Route) -> None:
    if _is_frame(route):
        route.continue_()
    else:
        route.fulfill(status=503, content_type="application/problem+json", body=json.dumps(FAILURE))


def main() -> None:
    """Write the pictures of the documentation, or those of a review."""
    into = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None
    folder = Path(tempfile.mkdtemp())
    os.chdir(folder)  # the demo writes its case where it runs
    with Stage(folder) as stage, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ["COMITY_CHROMIUM"], args=ARGS)
        if into is None:
            document(stage, browser, folder)
        else:
            review(stage, browser, folder, into)
        browser.close()


if __name__ == "__main__":
    main()
