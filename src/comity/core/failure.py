"""What foreign code raises: which exceptions are its own failure, and how that is told."""

from __future__ import annotations

from typing import Final

# Not a failure of the code they pass through: somebody ends the program, or a coroutine is thrown away. `SystemExit` is none of
# these: code that calls `sys.exit` in one agent must not take the others with it.
ENDINGS: Final = (KeyboardInterrupt, GeneratorExit)


def told(raised: BaseException) -> str:
    """Return an exception in words: its type, and what it says."""
    if isinstance(raised, SystemExit):
        return f"SystemExit: its code called sys.exit({'' if raised.code is None else repr(raised.code)})"
    text = str(raised)
    return f"{type(raised).__name__}: {text}" if text else type(raised).__name__
