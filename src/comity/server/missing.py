"""What is said where the packages of the server are not installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from comity.errors import TargetError

NEEDED: Final = ("starlette", "uvicorn", "uvloop", "httptools", "jwt", "cryptography")


def check_installed() -> None:
    """Raise `TargetError` TARGET_MISCONFIGURED that names the extra if a package of the server is missing."""
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        message = f"the server needs {', '.join(missing)}: pip install 'comity[server]'"
        raise TargetError(message, code="TARGET_MISCONFIGURED")
