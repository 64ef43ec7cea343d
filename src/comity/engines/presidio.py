"""Presidio's recognisers as detectors: the extra `pii`. They know names of people and national ids ours do not.

They have no cheap test that says "nothing here", so with one of them every text is analysed, at tens of texts a second.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from comity.core.redaction import DETECTORS, Category, Detector, Scanner

LANGUAGE = "en"


class PresidioDetector:
    """One entity type of Presidio."""

    hint = None
    category = Category.GOVERNMENT

    def __init__(self, analyzer: Any, entity: str, *, priority: int = 900) -> None:
        self._analyzer = analyzer
        self._entity = entity
        self.name = f"presidio_{entity.lower()}"
        self.type = entity if entity.replace("_", "").isalpha() else "".join(c for c in entity if c.isalpha() or c == "_")
        self.priority = priority  # after our own, whose checksums say more

    def spans(self, text: str, start: int = 0) -> Iterator[tuple[int, int]]:
        """Yield what Presidio finds, in order."""
        found = self._analyzer.analyze(text=text, language=LANGUAGE, entities=[self._entity])
        yield from sorted((one.start, one.end) for one in found if one.start >= start)

    def fits(self, before: str, after: str) -> bool:  # noqa: ARG002  Presidio has judged the surroundings itself
        """Every place counts."""
        return True

    def names(self, key: str) -> bool:  # noqa: ARG002
        """A key alone is no proof."""
        return False


def scanner(entities: Collection[str], *, analyzer: Any = None) -> Scanner:
    """Return our detectors and Presidio's for `entities`, such as `["US_PASSPORT", "UK_NHS"]`, for `Privacy(scanner=…)`."""
    if analyzer is None:
        try:
            from presidio_analyzer import AnalyzerEngine  # noqa: PLC0415  an extra
        except ModuleNotFoundError:
            raise ModuleNotFoundError('Presidio is not installed; in a clone of Comity, pip install ".[pii]"') from None
        analyzer = AnalyzerEngine()
    theirs: list[Detector] = [PresidioDetector(analyzer, entity) for entity in entities]
    return Scanner([*DETECTORS, *theirs])
