"""Measure the console in a real browser: size and time of the first view, 100,000 rows, a tree of 5,000 calls, an hour of tail.

`COMITY_CHROMIUM=/usr/bin/chromium python -m tests.console.measure [ROWS [FOLDER [PARTS]]]` prints one line a figure; a folder is used
again. PARTS are `view`, `list`, `tree` and `tail` with commas, all unless given.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright
from tests.console.conftest import ARGS
from tests.console.stage import TOKEN, Stage

from comity import Limits

ROWS = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
PARTS = sys.argv[3].split(",") if len(sys.argv) > 3 else ["view", "list", "tree", "tail"]
TREE = 5_000
FRAMES = """async ([step, turns]) => {
  const box = document.querySelector('.vlist'); const frames = []; const long = [];
  new PerformanceObserver((list) => long.push(...list.getEntries().map((one) => one.duration))).observe({entryTypes: ['longtask']});
  let last = performance.now();
  for (let turn = 0; turn < turns; turn += 1) {
    await new Promise(requestAnimationFrame); const now = performance.now(); frames.push(now - last); last = now; box.scrollTop += step;
  }
  frames.shift(); frames.sort((a, b) => a - b);
  return {mean: frames.reduce((a, b) => a + b) / frames.length, p95: frames[Math.floor(frames.length * .95)], worst: frames.at(-1), long: long.length, longest: Math.max(0, ...long)};
}"""
HOUR = 360_000  # calls of an hour at 100 a second
LISTEN = """async () => {
  const { onEvent } = await import(new URL('live.js', document.querySelector('script[type=module]').src)); // the page's own module
  window.heard = {calls: 0, gaps: 0, missed: 0};
  onEvent('call', () => { window.heard.calls += 1; });
  onEvent('gap', ({data}) => { window.heard.gaps += 1; window.heard.missed += (data.to ?? 0) - (data.from ?? 0) + 1; });
}"""


def _tail(stage: Stage, page: Page, session: CDPSession) -> None:
    """Send the calls of an hour over the real stream to a list that tails, and print what the page kept, dropped and heard."""
    import asyncio

    page.goto(f"{stage.url}/console/#/calls?tail=1")
    page.locator(".vrow").first.wait_for()
    page.evaluate(LISTEN)
    row = _ask(stage, "/v1/calls?roots=true&limit=1")["items"][0]
    feed, begun = stage.server.app.state.live, time.time()

    async def tell() -> None:
        for number in range(HOUR):
            feed.tell("call", "default", row | {"request_id": f"tail-{number}", "created_at": row["created_at"] + number})
            if number % 100 == 99:
                await asyncio.sleep(0.005)

    sizes = []
    told = asyncio.run_coroutine_threadsafe(tell(), stage.loop)
    heard = {"calls": 0, "gaps": 0, "missed": 0}
    while time.time() - begun < 600 and not (told.done() and heard["calls"] + heard["missed"] >= HOUR):
        page.wait_for_timeout(2_000)
        heard = page.evaluate("window.heard")
        session.send("HeapProfiler.collectGarbage")
        sizes.append(session.send("Runtime.getHeapUsage")["usedSize"] / 1e6)
    foot = " · ".join(one for one in page.locator(".vfoot span").all_inner_texts() if one)
    elements = page.evaluate("document.querySelectorAll('*').length")
    print(
        f"an hour of tail at 100 a second, {HOUR:,} calls over the stream in {time.time() - begun:.0f} s: {heard}; "
        f"heap {sizes[0]:.1f}, at most {max(sizes):.1f}, last {sizes[-1]:.1f} MB; {elements:,} elements; the list says: {foot}"
    )


def _first_view(stage: Stage, _browser: Browser, page: Page) -> None:
    """Load the map and the calls; print bytes on the wire, when the view is drawn, and when the page answers a key."""
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    sent: list[float] = []
    session.on("Network.loadingFinished", lambda one: sent.append(one["encodedDataLength"]))
    for place, sign in (("#/map", ".graph"), ("#/calls", ".vrow")):
        session.send("Network.clearBrowserCache")
        for turn in range(4):
            sent.clear()
            page.goto("about:blank")
            page.goto(f"{stage.url}/console/{place}")
            page.locator(sign).first.wait_for()
            drawn = page.evaluate("performance.now()")
            page.keyboard.press("?")
            page.get_by_role("dialog").wait_for()
            answers = page.evaluate("performance.now()")
            page.keyboard.press("Escape")
            told = f"{len(sent)} answers, {sum(sent) / 1000:.1f} KB on the wire"
            print(
                f"{place} {'first' if not turn else 'again'}: {told}; drawn after {drawn:.0f} ms, answers a key after {answers:.0f} ms"
            )


def _list(stage: Stage, browser: Browser, page: Page) -> None:
    page.goto(f"{stage.url}/console/#/calls")
    page.locator(".vrow").first.wait_for()
    begun = time.time()
    page.locator(".vlist").focus()
    while page.locator(".vfoot").inner_text().find("more below") >= 0 and time.time() - begun < 240:
        page.evaluate("document.querySelector('.vlist').scrollTop = 1e9")
        page.wait_for_timeout(15)
    print(f"list: {page.locator('.vfoot span').first.inner_text()} after {time.time() - begun:.0f} s of paging")
    page.evaluate("document.querySelector('.vlist').scrollTop = 0")
    page.wait_for_timeout(500)
    for step_px in (60, 600):
        _computing(browser, page, step_px, 200)


def _tree(stage: Stage, browser: Browser, page: Page, root: str) -> None:
    for _ in range(4):
        page.goto(f"{stage.url}/console/#/system")
        page.get_by_role("heading", level=1, name="System").wait_for()
        begun = time.time()
        page.goto(f"{stage.url}/console/#/call/{root}")
        page.locator(".wf-row[role=option]").first.wait_for()
        size = page.locator(".tabs .count").first.inner_text()
        print(f"tree of {size}: drawn after {(time.time() - begun) * 1000:.0f} ms")
    page.locator(".wf-row.group").first.click()
    _computing(browser, page, 300, 200)


def _computing(browser: Browser, page: Page, step_px: int, turns: int) -> None:
    """Scroll, and print what the page's thread computed for a frame: it does not depend on what else the machine does."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        browser.start_tracing(page=page, path=path, categories=["devtools.timeline", "disabled-by-default-devtools.timeline"])
        frames = page.evaluate(FRAMES, [step_px, turns])
        browser.stop_tracing()
        events = json.loads(path.read_text())["traceEvents"]
    names = {(one["pid"], one["tid"]): one["args"]["name"] for one in events if one.get("name") == "thread_name"}
    tasks = [
        one["tdur"] / 1000
        for one in events
        if one.get("name") == "RunTask" and "tdur" in one and names.get((one["pid"], one["tid"])) == "CrRendererMain"
    ]
    print(
        f"scroll, {step_px} px a frame: {sum(tasks) / turns:.1f} ms of computing a frame, longest task {max(tasks):.1f} ms; "
        f"on the clock mean {frames['mean']:.1f}, p95 {frames['p95']:.1f} ms, {frames['long']} long tasks of {turns} frames"
    )


def _fill(stage: Stage) -> None:
    import asyncio

    async def many() -> None:
        for begin in range(0, ROWS, 500):
            await asyncio.gather(
                *(stage.node.call("LEAF", "LEAF_SAY", {"number": begin + one}, user_id="ann") for one in range(500))
            )
        await stage.node.call("WIDE", "WIDE_FAN", {"count": TREE, "at_once": 100}, user_id="ann", timeout_ms=200_000)

    asyncio.run_coroutine_threadsafe(many(), stage.loop).result(1_200)


def _ask(stage: Stage, path: str) -> dict:
    request = urllib.request.Request(f"{stage.url}{path}", headers={"Authorization": f"Bearer {TOKEN}"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=600) as answer:  # noqa: S310
        return json.load(answer)


def main() -> None:
    """Fill a store and measure."""
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(tempfile.mkdtemp())
    is_new = not (folder / "stage.db").exists()
    limits = Limits(calls_max=2 * TREE, fan_out_max=200, timeout_ms=200_000)
    with Stage(folder, limits=limits) as stage, sync_playwright() as playwright:
        begun = time.time()
        if is_new:
            _fill(stage)
            print(f"filled {ROWS:,} calls and a tree of {TREE:,} in {time.time() - begun:.0f} s, in {folder}")
        begun = time.time()
        root = _ask(stage, "/v1/calls?agent=WIDE&roots=true&limit=1")["items"][0]["request_id"]
        print(f"the first list after a start, its index made or caught up: {time.time() - begun:.1f} s")
        browser = playwright.chromium.launch(executable_path=os.environ["COMITY_CHROMIUM"], args=ARGS)
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        context.add_init_script(f"sessionStorage.setItem('comity.token', {json.dumps(TOKEN)})")
        page = context.new_page()
        parts = {"view": _first_view, "list": _list, "tree": lambda *given: _tree(*given, root=root)}
        for part in PARTS:
            if part in parts:
                parts[part](stage, browser, page)
            else:
                _tail(stage, page, context.new_cdp_session(page))
        browser.close()


if __name__ == "__main__":
    main()
