"""RFC 9535 JSONPath queries whose `match()` and `search()` take time that is linear in the text.

The package's own functions backtrack: `(a|aa)+$` over a text of 50 characters would never end.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, Final

from pydantic_core import SchemaError, SchemaValidator, core_schema

PATTERN_CHARACTERS_MAX: Final = 1_000
_PIECE = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\.", re.DOTALL)  # an escape, a class, or any character but a line break


@lru_cache(maxsize=256)
def pattern_test(pattern: str, *, is_whole: bool) -> Callable[[str], bool]:
    """Return a test for whether an I-Regexp (RFC 9485) matches in a text, or all of it.

    A pattern that is no I-Regexp matches nothing.
    """
    from iregexp_check import check  # noqa: PLC0415  an extra

    if len(pattern) > PATTERN_CHARACTERS_MAX or not check(pattern):
        return lambda _: False
    rust = _PIECE.sub(lambda piece: r"[^\n\r]" if piece.group() == "." else piece.group(), pattern)
    text = core_schema.str_schema(pattern=rf"\A(?:{rust})\z" if is_whole else rust, regex_engine="rust-regex", strict=True)
    try:
        return SchemaValidator(text).isinstance_python
    except SchemaError:  # larger than the engine takes
        return lambda _: False


@cache
def _environment() -> Any:
    import jsonpath_rfc9535 as jsonpath  # noqa: PLC0415  an extra

    environment: Any = jsonpath.JSONPathEnvironment()
    functions = environment.functions if hasattr(environment, "functions") else environment.function_extensions  # 2.x, 1.x
    functions |= {"match": _linear(functions["match"], is_whole=True), "search": _linear(functions["search"], is_whole=False)}
    return environment


def _linear(function: Any, *, is_whole: bool) -> Any:
    """Return a function of the package, with its types of arguments, that matches in linear time."""

    class Linear(type(function)):  # type: ignore[misc]
        def __call__(self, string: Any, pattern: Any) -> bool:
            return isinstance(pattern, str) and pattern_test(pattern, is_whole=is_whole)(string)

    return Linear()


def compile_query(text: str) -> Any:
    """Return a compiled query. Raises `ImportError` without the extra, and `ValueError` for what is no query."""
    import jsonpath_rfc9535 as jsonpath  # noqa: PLC0415  an extra

    try:
        return _environment().compile(text)
    except jsonpath.JSONPathError as error:
        raise ValueError(str(error)) from None
