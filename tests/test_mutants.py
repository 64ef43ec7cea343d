"""The defects that `make mutate` does not count, because nothing that a caller can see changes."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_every_argued_defect_is_of_a_line_that_is_there():
    told = tomllib.loads((ROOT / "tests/mutants.toml").read_text())
    source = {name: (ROOT / "src/comity" / name).read_text() for name in told["files"]}
    assert [one["before"] for one in told["argued"] if one["before"] not in source.get(one["file"], "")] == []
