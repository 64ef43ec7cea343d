"""The place of a store: whether there is a file, and making a file that is its owner's alone."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from comity.errors import UnavailableError


def is_file(path: Path) -> bool:
    """Return whether there is a file at the path of a store. Raises `UnavailableError` if something else stands there."""
    try:
        kind = path.stat().st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(kind):
        raise UnavailableError(f"{path} is not a file, so it is no store", code="STORE_UNAVAILABLE", retryable=False)
    return True


def make_file(path: Path) -> None:
    """Create the file and its folders if they are missing, such that they survive a loss of power.

    Calls carry what users wrote, so the file is its owner's alone; SQLite gives the files it adds the same mode. A file that
    exists is not touched: closing it here would drop the locks of another journal of this process.
    """
    if is_file(path):
        return
    missing = [folder for folder in path.absolute().parents if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    for folder in missing:
        file = os.open(folder.parent, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)
