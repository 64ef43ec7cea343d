"""A project's guidance, wherever it is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:  # loaded where guidance and queries are used
    from comity.core.document.payload import Problem
    from comity.core.guidance.guidance import Guidance


class GuidanceSource(Protocol):
    """Where people keep a project's guidance, and agents answer."""

    def read(self) -> tuple[dict[str, Any], Guidance, tuple[Problem, ...]]:
        """Return the document, its guidance and what is wrong with it. Raises `ComityError` if it cannot be read at all."""
        ...

    def change(self, how: Callable[[Guidance], Guidance]) -> Guidance:
        """Apply a change to what the document says now, even if another writer changes it too, and return the result."""
        ...

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` from another thread whenever the document may have changed; return what ends that.

        When it raises `UnavailableError` it is called again after a while.
        """
        ...
