"""The page of the HTTP API names what the server has."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from comity.server.settings import Settings
from comity.server.table import ROUTES

PAGE = (Path(__file__).parent.parent.parent / "docs" / "http.md").read_text()


def test_every_route_is_on_the_page():
    for route in ROUTES:
        path = re.sub(r":path", "", route.path)
        last = f"…/{path.rpartition('/')[2]}"
        assert path in PAGE or f"{last}`" in PAGE, f"docs/http.md does not name {route.method} {route.path}"


def test_every_bound_on_the_page_is_a_setting():
    named = set(re.findall(r"`([a-z_]+)`", PAGE.partition("## Bounds")[2].partition("## How it ends")[0]))
    assert named <= {field.name for field in msgspec.structs.fields(Settings)}
    assert {"body_bytes_max", "head_s", "stall_s", "rate_per_s"} <= named
