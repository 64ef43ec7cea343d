"""How words on the command line are read, for argparse: an unusable value is refused at once."""

from __future__ import annotations

import argparse


def at_least_one(text: str) -> int:
    """Read a count."""
    if not text.lstrip("-").isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number, not {text!r}")
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def a_name(text: str) -> str:
    """Read a path or a name. An empty one is a shell variable that was not set, and never what stands in its place."""
    if not text:
        raise argparse.ArgumentTypeError("is empty; leave it out, or set the variable it is from")
    return text
