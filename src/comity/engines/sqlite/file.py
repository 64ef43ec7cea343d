"""The file of a store: whether it exists, and creating it readable by its owner only."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from comity.errors import UnavailableError


def is_file(path: Path) -> bool:
    """Return whether the store's file exists. Raises `UnavailableError` if the path is no file."""
    try:
        kind = path.stat().st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(kind):
        raise UnavailableError(f"{path} is not a file, so it is no store", code="STORE_UNAVAILABLE", retryable=False)
    return True


def unwritable(path: Path) -> str:
    """Return why this process could not write a store at `path`, as far as permissions say; nothing if it could."""
    places = [path] if path.exists() else []
    places += [next(folder for folder in path.absolute().parents if folder.exists())]  # for the log, or the store itself
    denied = [one for one in places if not os.access(one, os.W_OK, effective_ids=os.access in os.supports_effective_ids)]
    return f"{denied[0]} cannot be written by this user: check its permissions" if denied else ""


def make_file(path: Path) -> None:
    """Create the file and its folders if they are missing, synced to disk.

    Only the owner may read it, since calls hold users' content; SQLite gives its further files the same mode. An existing file
    is not opened: closing it here would drop the locks of another journal of this process.
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
