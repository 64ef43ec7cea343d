"""The components of a combined reply: what each part answered, how sure it is, and what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from comity.core.agent.disclosure import spoken_of_part
from comity.core.envelope.confidence import band
from comity.core.envelope.envelope import Error
from comity.core.envelope.reserved import VERDICTS

GOOD: Final = frozenset({"success", "partial", "completed"})
SKIPPED: Final = "skipped"

Part = tuple[str, dict[str, Any]]  # its name, and its reply as conditions see it


@dataclass(frozen=True, slots=True)
class Component:
    """One part of a combined reply."""

    name: str
    status: str
    data: Any = None
    message: str = ""
    confidence: float = 0.0
    warnings: tuple[str, ...] = ()
    error: str = ""  # its code
    title: str = ""

    @property
    def is_good(self) -> bool:
        """Whether it has a result."""
        return self.status in GOOD

    @property
    def shown(self) -> str:
        """Its name for people."""
        return self.title or self.name.replace("_", " ")

    def summary(self) -> dict[str, Any]:
        """Return what a reader gets about the component beside the result."""
        told: dict[str, Any] = {"name": self.name, "status": self.status}
        if self.is_good:
            told |= {"confidence": round(self.confidence, 4), "level": band(self.confidence).value}
        if self.warnings:
            told["warnings"] = list(self.warnings)
        return told


def components(parts: Sequence[Part], options: dict[str, Any]) -> list[Component]:
    """Return the components in the order of `options.order`, those it does not name after them in the order of the parts.

    The parts come in the order of the plan, whichever agent answered first. A part that was skipped is none.
    """
    titles = options.get("titles") if isinstance(options.get("titles"), dict) else {}
    found = {
        name: _component(name, view, str((titles or {}).get(name, ""))) for name, view in parts if view.get("status") != SKIPPED
    }
    wanted = [name for name in options.get("order") or () if name in found]
    return [found[name] for name in dict.fromkeys([*wanted, *found])]


def _component(name: str, view: dict[str, Any], title: str) -> Component:
    error = view.get("error") or {}
    confidence = view.get("confidence")
    is_good = view.get("status") in GOOD
    message = str(view.get("message") or "")
    if error:
        failed = Error.of(str(error.get("code", "")), "", retryable=bool(error.get("retryable")))
        message = spoken_of_part(failed, message, is_verdict=view.get("outcome") in VERDICTS)
    return Component(
        name=name,
        status=str(view.get("status", "failure")),
        data=view.get("data"),
        message=message,
        confidence=float(confidence) if isinstance(confidence, int | float) else 1.0 if is_good else 0.0,
        warnings=tuple(map(str, view.get("warnings") or ())),
        error=str(error.get("code", "")),
        title=title,
    )
