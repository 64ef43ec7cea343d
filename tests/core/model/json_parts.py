"""How much of a JSON value came through."""

from __future__ import annotations

from typing import Any


def is_part(part: Any, whole: Any) -> bool:
    """Whether nothing in `part` contradicts `whole`: numbers and literals equal, strings and arrays from the start."""
    if isinstance(whole, dict):
        return isinstance(part, dict) and all(key in whole and is_part(part[key], whole[key]) for key in part)
    if isinstance(whole, list):
        return isinstance(part, list) and len(part) <= len(whole) and all(map(is_part, part, whole))
    if isinstance(whole, str):
        return isinstance(part, str) and whole.startswith(part)
    return type(part) is type(whole) and part == whole
