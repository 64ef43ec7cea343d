"""Make the pictures of the console in docs/images: each view, filled, light or dark. Run by `make screenshots`."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from playwright.sync_api import sync_playwright  # noqa: E402
from tests.console.conftest import ARGS, sign_in  # noqa: E402
from tests.console.stage import Stage  # noqa: E402

IMAGES = ROOT / "docs" / "images"
# Takes the name of the folder, which is of this machine, out of every text of the page.
WITHOUT_FOLDER = """(folder) => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replaceAll(folder, '');
}"""


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
    stage.flush_spans()
    return {"case": case[0], "loop": loops[0], "handoff": handed[0]}


def main() -> None:
    """Write every picture."""
    IMAGES.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp())
    os.chdir(folder)  # the demo writes its case where it runs
    with Stage(folder) as stage, sync_playwright() as playwright:
        ids = fill(stage)
        pictures = {
            "map": ("light", "#/map"),
            "calls": ("dark", "#/calls?all=1"),
            "call": ("light", f"#/call/{ids['case']}"),
            "refused": ("dark", f"#/call/{ids['loop']}?tab=why"),
            "playground": ("light", "#/playground/ORC%20ORC_BUSINESS_CASE"),
            "chat": ("dark", "#/playground/MUSE%20message"),
            "handoffs": ("light", f"#/handoffs/{ids['handoff']}"),
            "approvals": ("light", "#/approvals"),
            "sessions": ("dark", "#/sessions/s-contact"),
            "audit": ("light", "#/audit?verify=1"),
            "insights": ("light", "#/insights?tab=query&as=tree&q=%7B%20name%20%3D%20%22invoke_agent%20ORC%22%20%7D"),
            "guidance": ("dark", "#/guidance?tab=edit"),
            "workflows": ("light", ""),
            "system": ("light", "#/system"),
        }
        browser = playwright.chromium.launch(executable_path=os.environ["COMITY_CHROMIUM"], args=ARGS)
        for name, (scheme, place) in pictures.items():
            context = browser.new_context(color_scheme=scheme, viewport={"width": 1200, "height": 720})
            page = context.new_page()
            sign_in(page, stage)
            if name == "workflows":
                page.goto(f"{stage.url}/console/#/workflows?tab=definitions&name=publish")
                page.get_by_label("input, JSON").fill('{"about": "bees"}')
                page.get_by_role("button", name="Start").click()
                page.get_by_role("form", name="Question").wait_for()
            else:
                page.goto(f"{stage.url}/console/{place}")
            if name == "playground":
                page.get_by_role("button", name="Run", exact=True).click()
                page.get_by_role("link", name="Open the call").wait_for()
            if name == "chat":
                page.get_by_role("textbox", name="Message").fill("Shall we enter the market?")
                page.keyboard.press("Enter")
                page.locator(".turn.agent .chip", has_text="success").wait_for()
            page.wait_for_timeout(1_200)
            page.evaluate(WITHOUT_FOLDER, f"{folder}/")
            page.screenshot(path=IMAGES / f"console-{name}.jpg", type="jpeg", quality=72)
            context.close()
        browser.close()
    total = sum(path.stat().st_size for path in IMAGES.glob("console-*.jpg"))
    print(f"{len(pictures)} pictures, {total / 1000:,.0f} KB")  # noqa: T201


if __name__ == "__main__":
    main()
