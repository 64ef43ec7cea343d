"""Measure the console in a real browser: size and time of the first view, 100,000 rows, a tree of 5,000 calls, an hour of tail.

`COMITY_CHROMIUM=/usr/bin/chromium python -m tests.console.measure [ROWS [FOLDER]]` prints one line a figure; a folder is used again.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from playwright.sync_api import sync_playwright
from tests.console.conftest import ARGS
from tests.console.stage import TOKEN, Stage

ROWS = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
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
TAIL = """async (count) => {
  const { CallRows, TAIL_ROWS_MAX } = await import('./views/calls.js');
  const list = new CallRows({roots: true}, () => {}); const begin = performance.now();
  for (let n = 0; n < count; n += 1) list.take({request_id: `r${n}`, target: 'A', capability: 'B', status: 'success', created_at: n}, true);
  return {rows: list.rows.length, bound: TAIL_ROWS_MAX, dropped: list.dropped, sum: list.rows.length + list.dropped, ms: performance.now() - begin};
}"""


def _fill(stage: Stage) -> None:
    import asyncio

    async def many() -> None:
        for begin in range(0, ROWS, 500):
            await asyncio.gather(
                *(stage.node.call("LEAF", "LEAF_SAY", {"number": begin + one}, user_id="ann") for one in range(500))
            )
        from comity import Limits

        limits = Limits(calls_max=10_000, fan_out_max=200, timeout_ms=200_000)
        await stage.node.call(
            "WIDE", "WIDE_FAN", {"count": TREE, "at_once": 100}, user_id="ann", limits=limits, timeout_ms=200_000
        )

    asyncio.run_coroutine_threadsafe(many(), stage.loop).result(1_200)


def _ask(stage: Stage, path: str) -> dict:
    request = urllib.request.Request(f"{stage.url}{path}", headers={"Authorization": f"Bearer {TOKEN}"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=600) as answer:  # noqa: S310
        return json.load(answer)


def main() -> None:
    """Fill a store and measure."""
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(tempfile.mkdtemp())
    is_new = not (folder / "stage.db").exists()
    with Stage(folder) as stage, sync_playwright() as playwright:
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
        bodies: list[int] = []
        page.on(
            "response",
            lambda one: bodies.append(len(gzip.compress(one.body()))) if "/console/" in one.url and one.status == 200 else None,
        )
        page.goto(f"{stage.url}/console/#/calls")
        page.locator(".vrow").first.wait_for()
        took = page.evaluate("performance.now()")
        print(f"first view: {len(bodies)} files, {sum(bodies) / 1000:.1f} KB compressed, rows drawn after {took:.0f} ms")
        for _ in range(3):
            page.reload()
            page.locator(".vrow").first.wait_for()
            print(f"  again: rows drawn after {page.evaluate('performance.now()'):.0f} ms")
        begun = time.time()
        page.locator(".vlist").focus()
        while page.locator(".vfoot").inner_text().find("more below") >= 0 and time.time() - begun < 240:
            page.evaluate("document.querySelector('.vlist').scrollTop = 1e9")
            page.wait_for_timeout(15)
        print(f"list: {page.locator('.vfoot span').first.inner_text()} after {time.time() - begun:.0f} s of paging")
        page.evaluate("document.querySelector('.vlist').scrollTop = 0")
        print("scroll, 600 px a frame:", page.evaluate(FRAMES, [600, 300]))
        for _ in range(2):
            page.goto(f"{stage.url}/console/#/system")
            page.get_by_role("heading", level=1).wait_for()
            begun = time.time()
            page.goto(f"{stage.url}/console/#/call/{root}")
            page.locator(".wf-row[role=option]").first.wait_for()
            print(f"tree of {TREE:,}: drawn after {(time.time() - begun) * 1000:.0f} ms")
        page.locator(".wf-row.group").first.click()
        print("scroll of the opened tree:", page.evaluate(FRAMES, [300, 200]))
        page.goto(f"{stage.url}/console/#/calls")
        print("an hour of tail at 100 a second:", page.evaluate(TAIL, 360_000))
        browser.close()


if __name__ == "__main__":
    main()
