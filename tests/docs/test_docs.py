"""The docs say what the code does today."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUNNABLE = [
    ROOT / "README.md",
    *(ROOT / "docs" / name for name in ("guide.md", "handoffs.md", "models.md", "personal_data.md", "tracing.md")),
]


def blocks_of(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.name)
def test_every_python_example_runs(page, tmp_path, monkeypatch, run_script):
    blocks = blocks_of(page)
    assert blocks
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks))
    run_script(script)


# Examples are written as users write them: types where they help, and one `main` after the other on a page.
MYPY = (
    "# mypy: check-untyped-defs, allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs, allow-any-generics\n"
    '# mypy: disable-error-code="no-redef,no-any-return"\n'
)


@pytest.mark.types
def test_every_python_example_has_the_types_it_shows(tmp_path):
    for page in (*RUNNABLE, ROOT / "docs" / "testing.md"):
        (tmp_path / f"{page.stem}_page.py").write_text(MYPY + "\n".join(blocks_of(page)))
    # With the settings of the package, and so with what is known of it already.
    command = [sys.executable, "-m", "mypy", *map(str, tmp_path.iterdir())]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout


def test_the_drawn_pages_are_what_the_code_says():
    ran = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "draw_docs.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"


def test_every_promise_names_a_test_that_exists():
    pages = [(ROOT / "docs" / name).read_text() for name in ("promises.md", "security.md")]
    promised = re.findall(r"`(tests/[^`:]+)(?:::(\w+))?`", "\n".join(pages))
    assert len(promised) >= 25
    for file, name in promised:
        text = (ROOT / file).read_text() if (ROOT / file).is_file() else ""
        assert (ROOT / file).exists(), f"{file} is not there"
        assert not name or f"def {name}(" in text, f"{file} has no test {name}"


def test_every_decision_is_on_one_page_with_its_parts():
    decisions = sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))
    assert decisions
    for decision in decisions:
        text = decision.read_text()
        for part in ("Status", "Context", "Decision", "Consequences", "Rejected"):
            assert f"**{part}**" in text, f"{decision.name} does not say its {part.lower()}"
        assert len(text.splitlines()) <= 60, f"{decision.name} is longer than a page"


def test_the_readme_is_one_screen():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 60
