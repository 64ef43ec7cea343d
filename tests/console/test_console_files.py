"""The files of the console, without a browser: complete, offline, small, free of what would let text become code."""

from __future__ import annotations

import gzip
import re
from importlib.resources import files
from pathlib import Path

import pytest

CONSOLE = Path(str(files("comity"))) / "console"
FIRST_VIEW_BYTES_MAX = 300_000
OWN = sorted(path for path in CONSOLE.rglob("*.js") if path.name != "vendor.js")


def _reached() -> set[Path]:
    """Return every file that the page loads: what index.html names, and what those import, also on demand."""
    waiting = [CONSOLE / "index.html"]
    found: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        text = path.read_text()
        if path.suffix == ".html":
            names = re.findall(r'(?:href|src)="([^"#]+)"', text)
        elif path.suffix == ".js":
            names = [*re.findall(r"from '(\.[^']+)'", text), *re.findall(r"import '(\.[^']+)'", text)]
            for folder in re.findall(r"import\(`\./(\w+)/\$\{", text):
                waiting += sorted((path.parent / folder).glob("*.js"))
        else:
            names = []
        waiting += [(path.parent / name).resolve() for name in names]
    return found


def test_every_file_the_page_names_is_in_the_package_and_no_file_is_left_over():
    shipped = {path for path in CONSOLE.rglob("*") if path.is_file() and path.name != "vendor.LEGAL.txt"}
    assert _reached() == shipped


def test_the_whole_console_is_under_300_kb_compressed():
    total = sum(len(gzip.compress(path.read_bytes(), 6)) for path in CONSOLE.rglob("*") if path.is_file())
    assert total < FIRST_VIEW_BYTES_MAX


def test_the_page_runs_under_a_policy_without_inline_code():
    page = (CONSOLE / "index.html").read_text()
    assert not re.search(r"<script(?![^>]*\ssrc=)", page)
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=", page)


@pytest.mark.parametrize("path", OWN, ids=lambda path: str(path.relative_to(CONSOLE)))
def test_no_module_turns_text_into_code_or_asks_another_host(path):
    text = path.read_text()
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "document.cookie"):
        assert word not in text, word
    assert not re.search(r"https?://", text.replace("http://www.w3.org/", ""))
    assert len(text.splitlines()) < 400


def test_the_licences_of_what_is_vendored_are_in_the_package():
    legal = (CONSOLE / "vendor.LEGAL.txt").read_text()
    for name in ("preact", "@preact/signals", "htm"):
        assert f"==== {name} ====" in legal
