"""Under which attribute names things are emitted: the old ones, OpenTelemetry's current ones, or both.

`legacy`, `dual` and `otel` are the words of the ContextCore protocol, whose default is `dual`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from comity.errors import CallerError


class Mode(StrEnum):
    """Which names are written."""

    LEGACY = "legacy"
    DUAL = "dual"
    OTEL = "otel"


_VARIABLES = ("COMITY_OTEL_MODE", "CONTEXTCORE_OTEL_MODE", "CONTEXTCORE_EMIT_MODE")
_OPT_IN, _GENAI = "OTEL_SEMCONV_STABILITY_OPT_IN", "gen_ai_latest_experimental"


def emission_mode(environ: Mapping[str, str]) -> Mode:
    """Return the mode the environment asks for: our variable first, then ContextCore's two, then OpenTelemetry's opt-in."""
    for name in _VARIABLES:
        if word := environ.get(name, "").strip().lower():
            if word not in tuple(Mode):
                raise CallerError(f"{name} is {word!r}; use one of {', '.join(Mode)}", field=name)
            return Mode(word)
    opted = {part.strip() for part in environ.get(_OPT_IN, "").split(",")}
    return Mode.OTEL if _GENAI in opted else Mode.DUAL
