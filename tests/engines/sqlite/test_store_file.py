"""What stands at the path of a store."""

from __future__ import annotations

from pathlib import Path

import pytest

from comity.engines.sqlite.file import is_file, make_file
from comity.errors import UnavailableError


def test_a_file_is_made_once_with_its_folders_and_is_its_owners_alone(tmp_path: Path) -> None:
    store = tmp_path / "a" / "b" / "work.db"
    assert not is_file(store)
    make_file(store)
    assert is_file(store)
    assert store.stat().st_mode & 0o777 == 0o600
    store.write_bytes(b"kept")
    make_file(store)
    assert store.read_bytes() == b"kept"


def test_what_is_no_file_is_refused_for_good(tmp_path: Path) -> None:
    for look in (is_file, make_file):
        with pytest.raises(UnavailableError, match="is not a file, so it is no store") as refused:
            look(tmp_path)
        assert not refused.value.retryable
