"""The beginning of a long document, where validation errors are listed: listing all of a long document takes seconds."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

VALUES_MAX: Final = 256


class Beginning:
    """A copy of a document with at most `VALUES_MAX` values: long lists and objects lack their last items."""

    __slots__ = ("_cut", "_left", "value")

    def __init__(self, value: Any) -> None:
        self._left = VALUES_MAX
        self._cut: list[Any] = []  # the lists and objects that lack items
        self.value = self._of(value)

    @property
    def is_all(self) -> bool:
        """Whether the copy is the whole document."""
        return not self._cut

    def holds(self, location: Iterable[Any]) -> bool:
        """Return whether an error at a location holds for the whole document: not for a list or an object that lacks items."""
        value = self.value
        for step in location:
            try:
                value = value[step]
            except (LookupError, TypeError):  # a key that is missing, or the name of a type in a union
                continue
        return not any(value is one for one in self._cut)

    def _of(self, value: Any) -> Any:
        self._left -= 1
        if not isinstance(value, dict | list):
            return value
        kept: Any
        if isinstance(value, dict):
            kept = {key: self._of(one) for key, one in islice(value.items(), VALUES_MAX) if self._left > 0}
        else:
            kept = [self._of(one) for one in islice(value, VALUES_MAX) if self._left > 0]
        if len(kept) < len(value):
            self._cut.append(kept)
        return kept
