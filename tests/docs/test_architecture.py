"""The architecture page names files that are there, and shows the walk of a call as it is."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "comity"
PAGE = (ROOT / "docs" / "architecture.md").read_text()


def listed(what: str) -> tuple[list[str], list[str]]:
    """Return the paths that the page lists for adding something: those to touch, and those to go by."""
    section = PAGE.partition(f"**{what}**")[2].partition("\n\n")[0]
    found = re.findall(r"(\bas )?`((?:src|docs|tests)/[\w/.]+)`", section)
    return [path for is_model, path in found if not is_model], [path for is_model, path in found if is_model]


ASSERTIONS_MAX = 5  # that something is there, in the runtime
SWITCHES_MAX, WALKED_MAX = 30, 14  # between files, and files, in the walk of one call
# What is to be added: how many files at most, its own among them. Of an engine: its folder, the line, and its contract classes.
FILES_MAX = {"A dialect": 5, "A rule of admission": 5, "An engine": 3, "A command": 4, "An adapter": 4}


@pytest.mark.parametrize("what", FILES_MAX)
def test_the_files_to_touch_are_there_and_few(what):
    files, models = listed(what)
    assert len(files) > 1
    assert [one for one in (*files, *models) if "NAME" not in one and not (ROOT / one).exists()] == []
    assert len(files) <= FILES_MAX[what]


def test_every_path_on_the_page_is_there():
    inside = re.findall(r"`((?:core|runtime|engines|node|ports|dialects|tests|scripts)/[\w/]+\.py)`", PAGE)
    assert inside
    assert [one for one in inside if not (ROOT / "src" / "comity" / one).exists() and not (ROOT / one).exists()] == []


def lines_of(*folders: str) -> list[tuple[str, str]]:
    """Return the lines of code below these folders, each with its file."""
    files = [path for folder in folders for path in sorted((SRC / folder).rglob("*.py"))]
    return [(str(path.relative_to(SRC)), line.strip()) for path in files for line in path.read_text().splitlines()]


def test_an_assertion_of_the_runtime_that_something_is_there_is_argued():
    found = [line for _, line in lines_of("runtime") if re.match(r"assert .* is not None", line)]
    assert len(found) <= ASSERTIONS_MAX
    assert [line for line in found if "  # " not in line] == []


def test_only_an_engine_says_that_a_node_is_alone():
    """A placement is asked for what follows from it: who takes over, where a tree resumes, what is held here."""
    asked = re.compile(r"(?<!engine)\.is_alone|(placement|cluster|\bway) is (not )?None")
    assert [one for one in lines_of("runtime", "node", "doors", "agents", "server", "cli") if asked.search(one[1])] == []


def test_the_state_of_a_call_changes_in_one_place():
    found = [line for _, line in lines_of("runtime", "node") if re.search(r"(?<!self)\.state = ", line)]
    own = [line for _, line in lines_of("runtime/call") if "self.state = " in line]
    assert (found, own) == ([], ["self.state = TRANSITIONS[self.state][event]"])


def test_the_simulator_reaches_for_nothing_private():
    """It replaces ports and listens to the observer. Its event loop runs asyncio's own handles, which have no public face."""
    private = re.compile(r"(?<!\bself)(?<!\bcls)(?<!\bsuper\(\))\._[a-z]\w*")
    reached = [(path, line) for path, line in lines_of("testing") if private.search(line)]
    assert [one for one in reached if one[0] != "testing/sim/loop.py"] == []


def test_the_order_of_the_call_path_stands_in_one_place():
    path = (SRC / "runtime" / "call" / "path.py").read_text()
    steps = re.findall(r"^    (\w+) {2,}", path.split('"""')[1], re.MULTILINE)
    assert steps == ["open", "look", "admit", "screen", "accept", "place", "run", "read", "settle", "deliver"]
    said = re.sub(r"`[^`]*`", "", PAGE.partition("The way of every call is")[2].partition("\n\n")[0])
    assert [word for word in re.findall(r"\w+", said) if word in steps][: len(steps)] == steps


def test_the_walk_goes_through_the_files_on_the_page():
    """In a process of its own: another test may have loaded OpenTelemetry, with which a call also has a span."""
    program = "import walk_call; walk = walk_call.walk(); print(len(walk.stays) - 1, *{file for file, _ in walk.steps})"
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT / "scripts", capture_output=True, text=True, check=True)
    switches, *files = ran.stdout.split()
    assert int(switches) <= SWITCHES_MAX
    assert len(files) <= WALKED_MAX
    drawn = re.findall(r"^\| \d+ \| `([\w/.]+)`", PAGE, re.MULTILINE)
    assert (set(drawn), len(drawn) - 1) == (set(files), int(switches)), "draw it anew: python scripts/walk_call.py"
